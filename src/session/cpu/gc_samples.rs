//! Samples in the runtime's own code, told apart by its events: whether the thread was collecting garbage.
//!
//! The runtime's functions have names only if its symbols are installed. With workstation GC, the thread that triggers a collection also performs
//! it; other collections have threads of their own. Events arrive later than samples, which are held back for that long.

use std::collections::{BTreeMap, VecDeque};

use crate::analysis::{MissingFrames, RuntimeWait, WaitReason};

/// How long samples are held back, in nanoseconds: runtimes send events about every 100 ms, and they are passed on every 200 ms.
pub(super) const HOLD_NS: i64 = 1_000_000_000;
/// Maximum number of frames held back: those of one second of eight busy processors. Further samples are not told apart.
const MAX_FRAMES: usize = 1 << 18;
/// Maximum number of pauses kept per thread, and of threads, of which one collects at a time.
const MAX_PAUSES: usize = 1 << 12;
const MAX_THREADS: usize = 64;

/// Samples held back, and the collections known so far.
#[derive(Debug, Default)]
pub(super) struct GcSamples {
    /// The oldest first.
    held: VecDeque<Held>,
    /// The frames of all samples held back, one after the other.
    frames: VecDeque<u64>,
    /// Start and end of each pause by the thread that collects, the oldest first.
    pauses: BTreeMap<u64, VecDeque<(i64, i64)>>,
    /// Start of the pause that a thread is in.
    current: BTreeMap<u64, i64>,
    /// Threads that do nothing else.
    gc_threads: Vec<u64>,
    /// Whether the runtime's events are received at all.
    has_events: bool,
}

#[derive(Debug)]
struct Held {
    thread: u64,
    at: i64,
    kernel: usize,
    user: usize,
    /// Number of user frames that are the runtime's or called by it.
    in_runtime: usize,
    missing: Option<MissingFrames>,
}

/// A sample in the runtime's own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuntimeSample<'a> {
    pub(super) thread: u64,
    /// Time, in nanoseconds of CLOCK_MONOTONIC, as in events.
    pub(super) at: i64,
    /// Kernel and user frames, innermost first.
    pub(super) kernel: &'a [u64],
    pub(super) user: &'a [u64],
    /// Number of user frames that are the runtime's or called by it.
    pub(super) in_runtime: usize,
    pub(super) missing: Option<MissingFrames>,
}

impl GcSamples {
    /// Adds pauses: completed ones, among other waits, and the start of the current one of each thread that is collecting.
    pub(super) fn add_pauses(&mut self, waits: &[RuntimeWait], current: impl Iterator<Item = (u64, u64)>) {
        self.has_events = true;
        let time = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        for pause in waits.iter().filter(|wait| wait.reason == WaitReason::Gc) {
            if self.pauses.len() >= MAX_THREADS && !self.pauses.contains_key(&pause.thread) {
                self.pauses.clear();
            }
            let known = self.pauses.entry(pause.thread).or_default();
            if known.len() >= MAX_PAUSES {
                known.pop_front();
            }
            known.push_back((time(pause.begin), time(pause.end)));
        }
        self.current = current.take(MAX_THREADS).map(|(thread, since)| (thread, time(since))).collect();
    }

    /// Sets the threads that only collect garbage.
    pub(super) fn set_gc_threads(&mut self, threads: impl Iterator<Item = u64>) {
        self.gc_threads.clear();
        self.gc_threads.extend(threads);
    }

    /// Holds a sample back. Returns whether it did.
    pub(super) fn hold(&mut self, sample: &RuntimeSample<'_>) -> bool {
        let RuntimeSample { thread, at, kernel, user, in_runtime, missing } = *sample;
        let is_held = self.has_events && self.frames.len() + kernel.len() + user.len() <= MAX_FRAMES;
        if is_held {
            self.frames.extend(kernel.iter().chain(user));
            self.held.push_back(Held { thread, at, kernel: kernel.len(), user: user.len(), in_runtime, missing });
        }
        is_held
    }

    /// Passes on the samples taken up to this time, and whether the thread was collecting garbage.
    pub(super) fn release(&mut self, until: i64, mut each: impl FnMut(&RuntimeSample<'_>, bool)) {
        let mut frames = Vec::new();
        while self.held.front().is_some_and(|held| held.at <= until) {
            let Some(Held { thread, at, kernel, user, in_runtime, missing }) = self.held.pop_front() else { break };
            frames.clear();
            frames.extend(self.frames.drain(..kernel + user));
            let (kernel, user) = frames.split_at(kernel);
            each(&RuntimeSample { thread, at, kernel, user, in_runtime, missing }, self.is_collecting(thread, at));
        }
        for pauses in self.pauses.values_mut() {
            while pauses.front().is_some_and(|(_, end)| *end < until) {
                pauses.pop_front();
            }
        }
        self.pauses.retain(|_, pauses| !pauses.is_empty());
    }

    fn is_collecting(&self, thread: u64, at: i64) -> bool {
        let is_current = self.current.get(&thread).is_some_and(|since| *since <= at);
        is_current
            || self.gc_threads.contains(&thread)
            || self.pauses.get(&thread).is_some_and(|pauses| {
                let next = pauses.partition_point(|(begin, _)| *begin <= at);
                next.checked_sub(1).and_then(|last| pauses.get(last)).is_some_and(|(_, end)| at <= *end)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns thread, time and whether it was collecting of each sample released.
    fn released(samples: &mut GcSamples, until: i64) -> Vec<(u64, i64, bool)> {
        let mut released = Vec::new();
        samples.release(until, |sample, is_gc| {
            assert_eq!((sample.kernel, sample.user), (&[1][..], &[sample.at as u64, 2][..]));
            released.push((sample.thread, sample.at, is_gc));
        });
        released
    }

    fn pause(thread: u64, begin: u64, end: u64) -> RuntimeWait {
        RuntimeWait { reason: WaitReason::Gc, thread, begin, end }
    }

    fn hold(samples: &mut GcSamples, thread: u64, at: i64) -> bool {
        samples.hold(&RuntimeSample { thread, at, kernel: &[1], user: &[at as u64, 2], in_runtime: 1, missing: None })
    }

    #[test]
    fn samples_within_pauses_of_their_thread_are_of_collections() {
        let mut samples = GcSamples::default();
        assert!(!hold(&mut samples, 7, 5), "without events, nothing is known later either");
        samples.add_pauses(&[], std::iter::empty());
        for (thread, at) in [(7, 10), (7, 20), (8, 21), (7, 25), (7, 31), (7, 40), (9, 41), (7, 50)] {
            assert!(hold(&mut samples, thread, at));
        }
        let pauses = [(20, 25), (30, 35)].map(|(begin, end)| pause(7, begin, end));
        // Waiting for a lock is no collection.
        let lock = RuntimeWait { reason: WaitReason::Lock, ..pause(7, 5, 15) };
        samples.add_pauses(&[&[lock], &pauses[..]].concat(), [(7, 45), (9, 44)].into_iter());
        assert_eq!(released(&mut samples, 24), [(7, 10, false), (7, 20, true), (8, 21, false)]);
        assert_eq!(released(&mut samples, 24), []);
        // The collection of thread 7 ended, and that of thread 9 began.
        samples.add_pauses(&[pause(7, 45, 60)], [(9, 41)].into_iter());
        assert_eq!(released(&mut samples, i64::MAX), [(7, 25, true), (7, 31, true), (7, 40, false), (9, 41, true), (7, 50, true)]);
        assert!(samples.frames.is_empty() && samples.pauses.is_empty());
        samples.set_gc_threads([10, 12].into_iter());
        [11, 12].iter().for_each(|thread| assert!(hold(&mut samples, *thread, 70)));
        assert_eq!(released(&mut samples, i64::MAX), [(11, 70, false), (12, 70, true)], "of background and server GCs");
    }

    #[test]
    fn memory_is_limited() {
        let mut samples = GcSamples::default();
        for thread in 0..1000 {
            let pauses: Vec<_> = (0..10_000).map(|at| pause(thread, at, at)).collect();
            samples.add_pauses(&pauses[..if thread > 2 { 1 } else { pauses.len() }], (0..1000).map(|thread| (thread, 1)));
        }
        assert!(samples.pauses.len() <= MAX_THREADS && samples.current.len() <= MAX_THREADS);
        assert!(samples.pauses.values().all(|pauses| pauses.len() <= MAX_PAUSES));
        while hold(&mut samples, 1, 1) {}
        assert!(samples.frames.len() <= MAX_FRAMES && samples.held.len() <= MAX_FRAMES);
    }
}
