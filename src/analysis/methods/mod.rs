//! Where threads spend their time: samples by method, by thread and by stack.
//!
//! The sampler captures every managed thread about a thousand times per second, including waiting ones. So a sample represents *thread time*,
//! not CPU time, of the length of its sampling round. Samples of unknown methods are kept by address and resolved in a snapshot.

mod by_type;
mod callers;
mod counts;
mod cpu;
mod diagnostics;
mod naming;
mod osr;
mod profile;
mod rounds;
mod samples;
mod stack_cache;
mod tree;
mod waits;

use std::collections::VecDeque;

use crate::clr::payload::SampleType;
use crate::nettrace::ThreadId;

use super::Symbols;
use super::event_context::EventContext;
use super::ranking::push_latest;

use samples::{Samples, ThreadState};
use stack_cache::StackCache;
use tree::{Frame, StackTree};

pub(in crate::analysis) use by_type::EventStacks;
pub use by_type::{CallSite, TypeStacks};
#[cfg(test)]
pub(crate) use counts::COUNTED;
pub use counts::{CallNode, Counts, MethodCount, MethodTime, SampleCount, StackGroup};
pub use cpu::{CpuSamples, CpuStack, MissingFrames};
pub use osr::{OsrCallers, OsrSite};
pub use profile::{Profile, ProfileFrame};
pub use rounds::Rounds;
pub use waits::{StuckThreads, WaitReason, Waits};

/// Number of frames at which the runtime truncates stacks (reference: nettrace, stacks). A stack with this many frames usually has more.
const CUT: usize = 100;
/// Maximum number of pending CPU times.
const TIMES: usize = 16;

/// Counts samples.
#[derive(Debug, Default)]
pub struct Methods {
    tree: StackTree,
    samples: Samples,
    /// Node by stack ID: each stack is added to the tree only once, however many samples share it.
    cached: StackCache<CachedStack>,
    /// Samples of threads that ran no managed code, or whose stack is missing from the stream.
    without_stack: u64,
    /// Pending CPU times of threads and their timestamps, until all earlier samples have arrived.
    times: VecDeque<(i64, ThreadCpu)>,
}

/// Total CPU time of threads, in nanoseconds, by thread ID within the process.
pub type ThreadCpu = Vec<(u64, u64)>;

/// Destination of samples with a stack.
#[derive(Debug, Clone, Copy, Default)]
struct CachedStack {
    node: u32,
    /// Thread and cell of the latest sample: a waiting thread has the same stack for a long time.
    latest: Option<(ThreadId, u32)>,
}

/// Selects the samples to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleFilter {
    /// Only samples of this thread; `None` for all threads.
    pub thread: Option<ThreadId>,
    /// Samples of running threads.
    pub running: bool,
    /// Samples of waiting threads.
    pub waiting: bool,
}

impl SampleFilter {
    /// All samples.
    pub const ALL: Self = Self { thread: None, running: true, waiting: true };
    /// All samples except those of waiting threads: the best approximation of CPU time by samples.
    pub const BUSY: Self = Self { waiting: false, ..Self::ALL };
}

/// The methods in which threads spend their time.
#[derive(Debug, Clone)]
pub struct MethodsSnapshot {
    /// Total of the selected samples.
    pub samples: SampleCount,
    /// Measured time between two samples of a thread, in nanoseconds: what one sample represents. `None` without enough samples.
    pub interval_ns: Option<u64>,
    /// Threads in descending order of time.
    pub threads: Vec<ThreadSamples>,
    /// Methods in descending order of self time.
    pub methods: Vec<MethodTime>,
    /// Number of samples whose method is not known (yet).
    pub unresolved: u64,
    /// Number of samples without a stack; not included in the methods.
    pub without_stack: u64,
    /// Number of samples whose stack was folded because it was too rare; not included in the self time of methods.
    pub folded: u64,
    /// Samples whose stack was truncated by the runtime at 100 frames; the totals of their callers are too low.
    pub cut: SampleCount,
}

/// Samples of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSamples {
    /// The thread; [`ThreadId::OTHERS`] for all threads that are not distinguished.
    pub thread: ThreadId,
    /// Samples of the thread.
    pub samples: SampleCount,
}

impl Profile {
    /// Returns the methods in which threads spend their time; at most `limit`.
    pub fn methods(&self, filter: SampleFilter, limit: usize) -> MethodsSnapshot {
        let counts = self.count(filter);
        MethodsSnapshot {
            samples: counts.samples(),
            interval_ns: self.interval_ns,
            threads: counts.threads(),
            methods: counts.methods(limit),
            unresolved: counts.unresolved(),
            without_stack: self.without_stack,
            folded: counts.folded(),
            cut: counts.cut(),
        }
    }
}

impl Methods {
    /// Processes a sample of a thread. `is_blocked` is set if the thread is known to be waiting for a lock.
    pub(super) fn feed(&mut self, context: &EventContext<'_>, symbols: &Symbols, is_blocked: bool) -> Option<()> {
        let sample: SampleType = context.payload()?;
        self.apply_cpu_times_before(context.at);
        let state = match sample {
            _ if is_blocked => ThreadState::Blocked,
            SampleType::Managed => ThreadState::Managed,
            SampleType::External | SampleType::Error => ThreadState::External,
        };
        self.count_sample(context, state, symbols);
        Some(())
    }

    fn count_sample(&mut self, context: &EventContext<'_>, state: ThreadState, symbols: &Symbols) {
        let EventContext { event, at, thread, .. } = *context;
        let stack_id = event.stack_id();
        let cached = self.cached.get(stack_id);
        if let Some(CachedStack { latest: Some((latest, cell)), .. }) = cached
            && latest == thread
        {
            return self.samples.add_to_cell(cell, at, state);
        }
        let node = match cached {
            Some(cached) => cached.node,
            None => match event.stack() {
                Some(stack) if !stack.is_empty() => self.tree.add(stack.frames(), (stack.len() == CUT).then_some(Frame::CUT), symbols),
                _ => {
                    self.without_stack += 1;
                    StackTree::ROOT
                }
            },
        };
        let cell = self.samples.add(node, thread, at, state);
        if node != StackTree::ROOT {
            self.cached.put(stack_id, CachedStack { node, latest: Some((thread, cell)) });
        }
        if self.tree.is_full() || self.samples.is_full() {
            self.make_room(symbols);
        }
    }

    /// Drops cached stack IDs, which have new meanings from here on.
    pub(super) fn forget_stacks(&mut self) {
        self.cached.clear();
    }

    fn make_room(&mut self, symbols: &Symbols) {
        let weights = self.samples.by_node(self.tree.len());
        let moved = self.tree.make_room(symbols, weights);
        self.samples.make_room(&moved);
        // A folded stack stays folded: if the next sample added it again, space would soon run out again.
        for cached in self.cached.values_mut() {
            *cached = CachedStack { node: moved[cached.node as usize], latest: None };
        }
    }

    /// Adds the CPU times of threads at a time: they divide the preceding samples into running and waiting ones. They are pending until the
    /// first later sample.
    pub(super) fn add_cpu_times(&mut self, at: i64, times: ThreadCpu) {
        // The values are cumulative, so later ones cover a dropped interval as well.
        push_latest(&mut self.times, TIMES, (at, times));
    }

    /// Applies all pending CPU times: no more older samples will arrive.
    pub(super) fn apply_cpu_times(&mut self) {
        self.apply_cpu_times_before(i64::MAX);
    }

    #[inline]
    fn apply_cpu_times_before(&mut self, at: i64) {
        while let Some((_, times)) = self.times.front().filter(|(moment, _)| *moment < at) {
            self.samples.apply_cpu_times(times);
            self.times.pop_front();
        }
    }

    /// Returns the number of samples.
    pub fn count(&self) -> u64 {
        self.samples.count()
    }

    /// Returns the addresses of methods that are not known yet, sorted.
    pub(super) fn addresses(&self) -> Vec<u64> {
        self.tree.addresses()
    }

    /// Returns whether stacks were folded for lack of room.
    pub(super) fn is_folded(&self) -> bool {
        self.tree.is_folded()
    }

    /// Returns all samples, with the names known by now.
    pub(super) fn profile(&self, symbols: &Symbols) -> Profile {
        Profile::new(&self.tree, &self.samples, symbols, self.without_stack)
    }
}
