//! Where threads spend their time: samples by method, by thread and by stack.
//!
//! The sampler looks at every managed thread, about a thousand times a second, also at those that wait. So a sample is a piece of *thread time*,
//! not of processor time: as long as its round took. A sample whose method is not known yet is kept by address, and finds its method in a snapshot.

mod by_type;
mod callers;
mod counts;
mod cpu;
mod profile;
mod rounds;
mod samples;
mod stack_cache;
mod tree;
mod waits;

use std::collections::VecDeque;

use crate::clr::payload::{SampleType, ThreadSample};
use crate::nettrace::ThreadId;

use super::Symbols;
use super::known::Known;

use samples::{Doing, Samples};
use stack_cache::StackCache;
use tree::{Frame, StackTree};

pub(in crate::analysis) use by_type::EventStacks;
pub use by_type::{CallSite, TypeStacks};
pub use counts::{CallNode, Counts, MethodCount, MethodTime, SampleCount, StackGroup};
pub use cpu::{CpuSamples, CpuStack, MissingFrames};
pub use profile::{Profile, ProfileFrame};
pub use rounds::Rounds;
pub use waits::{StuckThreads, WaitReason, Waits};

/// Frames after which the runtime cuts stacks off (reference: nettrace, stacks). What has as many has more, as a rule.
const CUT: usize = 100;
/// CPU times that wait for the samples before them.
const TIMES: usize = 16;

/// Counts samples.
#[derive(Debug, Default)]
pub struct Methods {
    tree: StackTree,
    samples: Samples,
    /// Each stack is added to the tree once, however many samples have it.
    remembered: StackCache<Remembered>,
    /// Samples of threads that ran no managed code, or whose stack the stream does not hold.
    without_stack: u64,
    /// CPU times of threads, and when they were so, before which samples may still come.
    times: VecDeque<(i64, ThreadCpu)>,
}

/// CPU time so far of threads by their number in the process, nanoseconds.
pub type ThreadCpu = Vec<(u64, u64)>;

/// Where samples with a stack go.
#[derive(Debug, Clone, Copy)]
struct Remembered {
    node: u32,
    /// The thread of the latest, and their cell: a thread that waits has the same stack for long.
    latest: Option<(ThreadId, u32)>,
}

/// Which samples count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleFilter {
    /// Those of one thread; `None` for all.
    pub thread: Option<ThreadId>,
    /// Those of threads that run.
    pub running: bool,
    /// Those of threads that wait.
    pub waiting: bool,
}

impl SampleFilter {
    /// All of them.
    pub const ALL: Self = Self { thread: None, running: true, waiting: true };
    /// All but those of threads that wait: the nearest to processor time that samples tell.
    pub const BUSY: Self = Self { waiting: false, ..Self::ALL };
}

/// The methods that threads spend their time in.
#[derive(Debug, Clone)]
pub struct MethodsSnapshot {
    /// All samples that the filter lets through.
    pub samples: SampleCount,
    /// Time between two samples of a thread, as measured, nanoseconds: what a sample stands for. `None` before there are some.
    pub interval_ns: Option<u64>,
    /// Threads, those with the most time first.
    pub threads: Vec<ThreadSamples>,
    /// Methods, those with the most time of their own first.
    pub methods: Vec<MethodTime>,
    /// Samples whose method is not known (yet).
    pub unresolved: u64,
    /// Samples without a stack; not in the methods.
    pub without_stack: u64,
    /// Samples whose stack was too rare to be kept apart; not in the methods' own.
    pub folded: u64,
    /// Samples whose stack the runtime cut off at 100 frames; the totals of their callers are too low.
    pub cut: SampleCount,
}

/// Samples of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSamples {
    /// Which one; [`ThreadId::OTHERS`] for all that are not distinguished.
    pub thread: ThreadId,
    /// How many.
    pub samples: SampleCount,
}

impl Profile {
    /// The methods that threads spend their time in: no more than `limit`.
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
    /// Takes a sample of a thread, of which another analysis may know that it waits for a lock.
    pub(super) fn feed(&mut self, known: &Known<'_>, symbols: &Symbols, is_blocked: bool) -> Option<()> {
        let sample: ThreadSample = known.payload()?;
        self.weigh_until(known.at);
        let doing = match sample.kind {
            _ if is_blocked => Doing::Blocked,
            SampleType::Managed => Doing::Managed,
            SampleType::External | SampleType::Error => Doing::External,
        };
        self.count_sample(known, doing, symbols);
        Some(())
    }

    fn count_sample(&mut self, known: &Known<'_>, doing: Doing, symbols: &Symbols) {
        let Known { event, at, thread, .. } = *known;
        let stack_id = event.stack_id();
        let remembered = self.remembered.get(stack_id);
        if let Some(Remembered { latest: Some((latest, cell)), .. }) = remembered
            && latest == thread
        {
            return self.samples.again(cell, at, doing);
        }
        let node = match remembered {
            Some(remembered) => remembered.node,
            None => match event.stack() {
                Some(stack) if !stack.is_empty() => self.tree.add(stack.frames(), (stack.len() == CUT).then_some(Frame::CUT), symbols),
                _ => {
                    self.without_stack += 1;
                    StackTree::ROOT
                }
            },
        };
        let cell = self.samples.add(node, thread, at, doing);
        if node != StackTree::ROOT {
            self.remembered.put(stack_id, Remembered { node, latest: Some((thread, cell)) });
        }
        if self.tree.is_full() || self.samples.is_full() {
            self.make_room(symbols);
        }
    }

    /// From here on, numbers of stacks mean others.
    pub(super) fn forget_stacks(&mut self) {
        self.remembered.clear();
    }

    fn make_room(&mut self, symbols: &Symbols) {
        let weights = self.samples.by_node(self.tree.len());
        let moved = self.tree.make_room(symbols, weights);
        self.samples.make_room(&moved);
        // A stack that was folded away stays it: were it added again with the next sample, room would have to be made again soon.
        for remembered in self.remembered.values_mut() {
            *remembered = Remembered { node: moved[remembered.node as usize], latest: None };
        }
    }

    /// Takes the CPU times of threads at a moment: they divide the samples before it into those of threads that ran and of such that waited. They wait for
    /// the first sample after it.
    pub(super) fn weigh(&mut self, at: i64, times: ThreadCpu) {
        if self.times.len() >= TIMES {
            // They are the sums since the beginning: those that follow are the same of a longer time.
            self.times.pop_front();
        }
        self.times.push_back((at, times));
    }

    /// Takes no more samples that are older than the times that have come.
    pub(super) fn weigh_all(&mut self) {
        self.weigh_until(i64::MAX);
    }

    #[inline]
    fn weigh_until(&mut self, at: i64) {
        while let Some((_, times)) = self.times.front().filter(|(moment, _)| *moment < at) {
            self.samples.weigh(times);
            self.times.pop_front();
        }
    }

    /// How many samples there are.
    pub fn count(&self) -> u64 {
        self.samples.count()
    }

    /// The addresses whose methods are not known yet, sorted.
    pub(super) fn addresses(&self) -> Vec<u64> {
        self.tree.addresses()
    }

    /// Whether stacks were put together for want of room.
    pub(super) fn is_folded(&self) -> bool {
        self.tree.is_folded()
    }

    /// All samples, with the names that are known by now.
    pub(super) fn profile(&self, symbols: &Symbols) -> Profile {
        Profile::new(&self.tree, &self.samples, symbols, self.without_stack)
    }

    pub(super) fn stacks(&self, symbols: &Symbols, filter: SampleFilter, limit: usize) -> Vec<StackGroup> {
        self.profile(symbols).count(filter).stacks(limit)
    }
}
