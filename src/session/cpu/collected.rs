//! The samples of a process so far, and what is known about them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::blocked::BlockedIntervals;
use super::file::CpuFile;
use super::gc_samples::{GcSamples, HOLD_NS, RuntimeSample};
use super::osr::complete_frames;
use super::waits::{attribute_waits, without_idle_waits};
use crate::analysis::{CpuSamples, CpuStack, MissingFrames, OsrCallers, OsrSite, Profile, Symbols, ThreadId, Waits};
use crate::clr::payload::SampleLosses;
use crate::model::{CpuThread, CpuTime};
use crate::net::clock::monotonic_ns;
use crate::net::perf::{CodeChain, CpuSample, NativeCode, SampleLoss, Unwinder, Wait};

/// How long samples count as recent, in nanoseconds.
const RECENT_NS: i64 = 2_000_000_000;
/// Maximum number of addresses of a file that get names.
const MAX_NAMED_ADDRESSES: usize = 1 << 20;

/// The samples, the state of their evaluation, and the file to which they are written.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) samples: CpuSamples,
    /// Off-CPU samples.
    pub(super) waits: CpuSamples,
    pub(super) blocked: BlockedIntervals,
    pub(super) gc: GcSamples,
    pub(super) code: NativeCode,
    unwinder: Unwinder,
    pub(super) callers: OsrCallers,
    /// Places where a caller is missing, one for each thread.
    pub(super) incomplete: BTreeMap<u64, OsrSite>,
    pub(super) file: Option<CpuFile>,
    /// Sorted addresses of the samples in the file, as of the last name resolution.
    pub(super) kept: Vec<u64>,
    pub(super) threads: Vec<CpuThread>,
    pub(super) loss: SampleLoss,
    pub(super) includes_kernel: bool,
    /// When sampling began, and when samples were last collected, in nanoseconds of the samples' clock.
    began: i64,
    pub(super) taken: i64,
}

impl Collected {
    /// If there is a file, all samples are also written to it.
    pub(super) fn new(code: NativeCode, period_ns: u64, file: Option<CpuFile>) -> Self {
        let now = monotonic_ns();
        Self {
            samples: CpuSamples::new(period_ns),
            waits: CpuSamples::of_waits(),
            blocked: BlockedIntervals::default(),
            gc: GcSamples::default(),
            unwinder: code.unwinder(),
            code,
            callers: OsrCallers::default(),
            incomplete: BTreeMap::new(),
            file,
            kept: Vec::new(),
            threads: Vec::new(),
            loss: SampleLoss::default(),
            includes_kernel: true,
            began: now,
            taken: now,
        }
    }

    /// Collects the samples that `drain` passes on.
    pub(super) fn take(&mut self, drain: impl FnOnce(&mut dyn FnMut(&CpuSample<'_>))) {
        let began = monotonic_ns();
        self.release(began - HOLD_NS, began);
        let Self { samples, waits, gc, code, unwinder, callers, incomplete, file, taken, began: first, .. } = self;
        let mut completed = Vec::new();
        drain(&mut |sample| {
            let CodeChain { frames, broken } = code.chain_of(sample, unwinder);
            completed.clear();
            completed.extend(frames);
            if !callers.is_empty() {
                if let Some(stack) = &sample.stack {
                    complete_frames(stack, &mut completed, callers, code);
                }
                incomplete.extend(callers.complete(&mut completed).map(|site| (sample.thread, site)));
            }
            let missing = if sample.cut { Some(MissingFrames::Cut) } else { broken.then_some(MissingFrames::Broken) };
            let at = i64::try_from(sample.time_ns).unwrap_or(i64::MAX);
            if sample.waited_ns.is_none()
                && let Some(in_runtime) = code.runtime_frames(&completed)
                && gc.hold(&RuntimeSample { thread: sample.thread, at, kernel: sample.kernel, user: &completed, in_runtime, missing })
            {
                return;
            }
            let stack = CpuStack { thread: ThreadId::of(sample.thread), at, kernel: sample.kernel, user: &completed, missing };
            match sample.waited_ns {
                None => samples.add(&stack),
                Some(ns) => waits.add_time(&stack, ns),
            }
            if let Some(file) = file {
                file.sample(&stack, sample.waited_ns);
            }
        });
        for samples in [samples, waits] {
            samples.forget_recent((began - RECENT_NS).max(*first));
        }
        *taken = began;
        if let Some(file) = file {
            file.write(began, code, callers);
        }
    }

    /// Counts the samples held back up to this time, with a frame for garbage collections. They are as recent as if they had been taken only now.
    pub(super) fn release(&mut self, until: i64, now: i64) {
        let Self { samples, gc, file, .. } = self;
        let mut user = Vec::new();
        gc.release(until, |sample, is_gc| {
            user.clear();
            user.extend(sample.user);
            if is_gc {
                user.insert(sample.in_runtime, Symbols::GC_FRAME);
            }
            let &RuntimeSample { thread, at, kernel, missing, .. } = sample;
            let stack = CpuStack { thread: ThreadId::of(thread), at, kernel, user: &user, missing };
            samples.add(&CpuStack { at: at.saturating_add(HOLD_NS).min(now), ..stack });
            if let Some(file) = file {
                file.sample(&stack, None);
            }
        });
    }

    pub(super) fn has_grown(&self) -> bool {
        self.samples.has_grown() || self.waits.has_grown()
    }

    pub(super) fn name(&mut self, symbols: &Symbols) {
        if self.file.is_some() {
            self.keep_addresses();
        }
        for samples in [&mut self.samples, &mut self.waits] {
            samples.name(symbols, &self.callers);
        }
    }

    /// Returns all samples, with these names.
    pub(super) fn cpu_time(&mut self, symbols: &Symbols, is_over: bool) -> CpuTime {
        self.name(symbols);
        let Collected { samples, waits, loss, began, taken, .. } = &*self;
        let waits = waits.profile(symbols);
        let profile = samples.profile(symbols);
        let (busy, idle) = without_idle_waits(Some(&waits).filter(|waits| !waits.is_empty()), &profile);
        let since = |moment: i64| Duration::from_nanos(u64::try_from(taken - moment).unwrap_or(0));
        let (cut, broken) = samples.missing();
        CpuTime {
            profile,
            waits: busy,
            idle,
            now: Some(*taken),
            elapsed: since(*began),
            recent: if is_over { Duration::ZERO } else { since(samples.recent_since().unwrap_or(*taken)) },
            threads: self.threads(&waits),
            losses: self.losses(),
            unfollowed: loss.unfollowed,
            lost_waits: loss.lost_waits,
            cut,
            broken,
        }
    }

    pub(super) fn losses(&self) -> SampleLosses {
        let SampleLoss { lost, throttled, unreadable, threads: missed_threads, short_threads, .. } = self.loss;
        SampleLosses { includes_kernel: self.includes_kernel, lost, unreadable, throttled, missed_threads, short_threads }
    }

    /// Addresses in samples that have no name yet.
    pub(super) fn addresses(&self) -> Vec<u64> {
        [&self.samples, &self.waits].map(CpuSamples::addresses).concat()
    }

    /// Adds these addresses to `kept`.
    pub(super) fn keep_addresses(&mut self) {
        if self.kept.len() >= MAX_NAMED_ADDRESSES {
            return;
        }
        self.kept.extend(self.addresses());
        self.kept.sort_unstable();
        self.kept.dedup();
    }

    /// Threads, with the reasons of their waits as far as the stacks of the waits and runtime events show them.
    pub(super) fn threads(&self, waits: &Profile) -> Vec<CpuThread> {
        let known = waits.waits(Wait::of_functions);
        let nothing = Waits::new();
        let thread = |thread: &CpuThread| {
            let known = known.get(&ThreadId::of(thread.thread)).unwrap_or(&nothing);
            let by_events = self.blocked.of(thread.thread, self.began.unsigned_abs(), self.taken.unsigned_abs());
            CpuThread { waits: attribute_waits(&thread.waits, known, by_events), ..thread.clone() }
        };
        self.threads.iter().map(thread).collect()
    }
}
