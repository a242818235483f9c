//! Where threads spend their time: samples by method, by thread and by stack.
//!
//! The sampler looks at every managed thread, about a thousand times a second, also at those that wait. So a sample is a piece of *thread time*,
//! not of processor time: as long as its round took. A sample whose method is not known yet is kept by address, and finds its method when that is asked for.

mod callers;
mod counts;
mod cpu;
mod profile;
mod rounds;
mod samples;
mod tree;
mod waiting;

use foldhash::HashMap;

use crate::clr::payload::{SampleType, ThreadSample};
use crate::nettrace::ThreadId;

use super::Symbols;
use super::known::Known;

use samples::{Doing, Samples};
use tree::{Frame, StackTree};

pub use counts::{CallNode, Counts, MethodCount, MethodTime, SampleCount, StackGroup};
pub use cpu::{CpuSamples, CpuStack, MissingFrames};
pub use profile::{Profile, ProfileFrame};
pub use rounds::Rounds;

/// Frames after which the runtime cuts stacks off (reference: nettrace, stacks). What has as many has more, as a rule.
const CUT: usize = 100;
/// Numbers of stacks below this are looked up by index.
const DENSE: usize = 1 << 16;
/// Stacks of larger numbers that are remembered.
const SPARSE: usize = 1 << 17;

/// Counts samples.
#[derive(Debug, Default)]
pub struct Methods {
    tree: StackTree,
    samples: Samples,
    /// By number of the stack, until the next sequence point. Each stack is added to the tree once, however many samples have it.
    remembered: Vec<Option<Remembered>>,
    /// The same for large numbers.
    sparse: HashMap<u32, Remembered>,
    /// Samples of threads that ran no managed code, or whose stack the stream does not hold.
    without_stack: u64,
}

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
        let doing = match sample.kind {
            _ if is_blocked => Doing::Blocked,
            SampleType::Managed => Doing::Managed,
            SampleType::External | SampleType::Error => Doing::External,
        };
        let stack_id = known.event.stack_id();
        let remembered = match self.remembered.get(stack_id as usize) {
            Some(remembered) => *remembered,
            None => self.sparse.get(&stack_id).copied(),
        };
        if let Some(Remembered { latest: Some((thread, cell)), .. }) = remembered
            && thread == known.thread
        {
            self.samples.again(cell, known.at, doing);
            return Some(());
        }
        let node = match remembered {
            Some(remembered) => remembered.node,
            None => match known.event.stack() {
                Some(stack) if !stack.is_empty() => self.tree.add(stack.frames(), (stack.len() == CUT).then_some(Frame::CUT), symbols),
                _ => {
                    self.without_stack += 1;
                    StackTree::ROOT
                }
            },
        };
        let cell = self.samples.add(node, known.thread, known.at, doing);
        if node != StackTree::ROOT {
            self.remember(stack_id, Remembered { node, latest: Some((known.thread, cell)) });
        }
        if self.tree.is_full() || self.samples.is_full() {
            self.make_room(symbols);
        }
        Some(())
    }

    fn remember(&mut self, stack_id: u32, remembered: Remembered) {
        let index = stack_id as usize;
        if index < DENSE {
            self.remembered.resize(self.remembered.len().max(index + 1), None);
            self.remembered[index] = Some(remembered);
            return;
        }
        if self.sparse.len() >= SPARSE && !self.sparse.contains_key(&stack_id) {
            self.sparse = HashMap::default();
        }
        self.sparse.insert(stack_id, remembered);
    }

    /// From here on, numbers of stacks mean others.
    pub(super) fn forget_stacks(&mut self) {
        self.remembered.clear();
        // Clearing would cost the largest size that the table ever had.
        self.sparse = HashMap::default();
    }

    fn make_room(&mut self, symbols: &Symbols) {
        let weights = self.samples.by_node(self.tree.len());
        let moved = self.tree.make_room(symbols, weights);
        self.samples.make_room(&moved);
        // A stack that was folded away stays it: were it added again with the next sample, room would have to be made again soon.
        for remembered in self.remembered.iter_mut().flatten().chain(self.sparse.values_mut()) {
            *remembered = Remembered { node: moved[remembered.node as usize], latest: None };
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
