//! Samples by method, as far as methods are known now.

use rustc_hash::FxHashMap;

use crate::clr::payload::Tier;

use super::super::Symbols;
use super::samples::Samples;
use super::tree::{Frame, Meaning, StackTree};
use super::waiting::waits;
use super::{SampleFilter, ThreadSamples};

/// Samples by what their threads were doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleCount {
    /// Running, as far as is known: whether a sample says that it was in managed code tells little, as .NET 9 says so of hardly any.
    pub running: u64,
    /// Waiting: in a method that does nothing else, or for a lock.
    pub waiting: u64,
}

impl SampleCount {
    /// All of them.
    pub fn all(self) -> u64 {
        self.running + self.waiting
    }

    fn add(&mut self, other: Self) {
        self.running += other.running;
        self.waiting += other.waiting;
    }
}

/// Samples of a method: all of its bodies together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodTime {
    /// Type and name, or an address where the method is not known; not sanitised.
    pub name: String,
    /// Its module, without extension; empty where it is not known. Not sanitised.
    pub module: String,
    /// Samples in which it was the leaf.
    pub own: SampleCount,
    /// Samples in which it was anywhere on the stack, once each.
    pub total: SampleCount,
    /// The tiers that it was compiled in.
    pub tiers: Vec<Tier>,
}

/// A node of the call tree: a method, and how it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallNode {
    /// Type and name, an address, or `…` for all that is too light; not sanitised.
    pub name: String,
    /// Frames above it; the first have 0.
    pub depth: usize,
    /// Samples in which it was the leaf.
    pub own: SampleCount,
    /// These and those of everything it called.
    pub total: SampleCount,
}

/// Threads with the same stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackGroup {
    /// Methods or addresses, leaf first; not sanitised.
    pub frames: Vec<String>,
    /// Samples of all of them.
    pub samples: SampleCount,
    /// Threads and how many samples of each, most first.
    pub threads: Vec<(u64, u64)>,
}

/// The tree of stacks with methods for frames.
pub(super) struct FrameTree {
    /// The root first, and every node behind its parent.
    nodes: Vec<Node>,
    /// By node of the tree of stacks.
    places: Vec<u32>,
    filter: Filter,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    frame: Frame,
    own: SampleCount,
    total: SampleCount,
}

/// A filter, and what it takes to apply it.
struct Filter {
    asked: SampleFilter,
    /// Index of the thread; one that is not there where none of that number is.
    thread: Option<u32>,
    /// By node, whether it waits where it is the leaf.
    waits: Vec<bool>,
}

impl Filter {
    fn count(&self, cell: &super::samples::Cell, node: u32) -> SampleCount {
        if self.thread.is_some_and(|thread| thread != cell.thread) {
            return SampleCount::default();
        }
        let (managed, external, blocked) = (u64::from(cell.managed), u64::from(cell.external), u64::from(cell.blocked));
        let (running, waiting) = if self.waits[node as usize] { (managed, external + blocked) } else { (managed + external, blocked) };
        let pass = |count, passes| if passes { count } else { 0 };
        SampleCount { running: pass(running, self.asked.running), waiting: pass(waiting, self.asked.waiting) }
    }
}

impl FrameTree {
    pub(super) fn new(tree: &StackTree, samples: &Samples, symbols: &Symbols, asked: SampleFilter) -> Self {
        let root = Node { parent: 0, frame: tree.nodes()[0].frame, own: SampleCount::default(), total: SampleCount::default() };
        let mut nodes = vec![root];
        let mut waiting = vec![false];
        let mut places = vec![StackTree::ROOT; tree.len()];
        let mut children = FxHashMap::<(u32, Frame), u32>::default();
        for (index, node) in tree.nodes().iter().enumerate().skip(1) {
            let parent = places[node.parent as usize];
            let frame = node.frame.resolved(symbols);
            let names = match frame.meaning() {
                Meaning::Method(method) => Some(symbols.names(method)),
                Meaning::Address(_) | Meaning::Folded => None,
            };
            // Code that the runtime makes to get from one world to another belongs to who called it.
            if names.is_some_and(|(_, name)| name.starts_with("IL_STUB")) {
                places[index] = parent;
                continue;
            }
            let next = nodes.len() as u32;
            let place = *children.entry((parent, frame)).or_insert(next);
            if place == next {
                nodes.push(Node { parent, frame, own: SampleCount::default(), total: SampleCount::default() });
                waiting.push(names.is_some_and(|(namespace, name)| waits(namespace, name)));
            }
            places[index] = place;
        }
        let thread = asked.thread.map(|id| samples.thread_index(id).unwrap_or(u32::MAX));
        let filter = Filter { asked, thread, waits: waiting };
        for cell in samples.cells() {
            let place = places[cell.node as usize];
            nodes[place as usize].own.add(filter.count(cell, place));
        }
        for index in (0..nodes.len()).rev() {
            let Node { parent, own, .. } = nodes[index];
            nodes[index].total.add(own);
            let total = nodes[index].total;
            if index > 0 {
                nodes[parent as usize].total.add(total);
            }
        }
        Self { nodes, places, filter }
    }

    pub(super) fn total(&self) -> SampleCount {
        self.nodes[0].total
    }

    /// Samples whose leaf is not known.
    pub(super) fn unresolved(&self) -> u64 {
        self.own_samples(|meaning| matches!(meaning, Meaning::Address(_)))
    }

    /// Samples whose stack was too rare to be kept apart.
    pub(super) fn folded(&self) -> u64 {
        self.own_samples(|meaning| matches!(meaning, Meaning::Folded))
    }

    fn own_samples(&self, of: impl Fn(Meaning) -> bool) -> u64 {
        self.nodes[1..].iter().filter(|node| of(node.frame.meaning())).map(|node| node.own.all()).sum()
    }

    /// Samples by thread, those with the most first.
    pub(super) fn threads(&self, samples: &Samples) -> Vec<ThreadSamples> {
        let mut by_thread = FxHashMap::<u32, SampleCount>::default();
        for cell in samples.cells() {
            let count = self.filter.count(cell, self.places[cell.node as usize]);
            if count.all() > 0 {
                by_thread.entry(cell.thread).or_default().add(count);
            }
        }
        let thread = |(index, samples_of): (u32, SampleCount)| ThreadSamples { thread: samples.thread(index), samples: samples_of };
        let mut threads: Vec<_> = by_thread.into_iter().map(thread).collect();
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.samples.all()), thread.thread));
        threads
    }

    /// Methods, those with the most samples of their own first.
    pub(super) fn methods(&self, symbols: &Symbols) -> Vec<MethodTime> {
        #[derive(Default)]
        struct Sums {
            own: SampleCount,
            total: SampleCount,
            /// How often it is among the frames above.
            above: u32,
        }
        let mut methods = FxHashMap::<Frame, Sums>::default();
        let children = Children::new(&self.nodes);
        // Nodes, and whether they are entered or left again.
        let mut walk: Vec<(u32, bool)> = children.of(0).map(|child| (child, true)).collect();
        while let Some((index, enters)) = walk.pop() {
            let Node { frame, own, total, .. } = self.nodes[index as usize];
            let sums = methods.entry(frame).or_default();
            if !enters {
                sums.above -= 1;
                continue;
            }
            sums.own.add(own);
            if sums.above == 0 {
                sums.total.add(total);
            }
            sums.above += 1;
            walk.push((index, false));
            walk.extend(children.of(index).map(|child| (child, true)));
        }
        let method = |(frame, sums): (Frame, Sums)| {
            let (module, tiers) = match frame.meaning() {
                Meaning::Method(method) => (symbols.module(method).to_owned(), symbols.tiers(method)),
                Meaning::Address(_) | Meaning::Folded => (String::new(), Vec::new()),
            };
            MethodTime { name: name(frame, symbols), module, own: sums.own, total: sums.total, tiers }
        };
        let is_shown = |(frame, sums): &(Frame, Sums)| *frame != Frame::FOLDED && sums.total.all() > 0;
        let mut methods: Vec<_> = methods.into_iter().filter(is_shown).collect();
        methods.sort_unstable_by_key(|(frame, sums)| (std::cmp::Reverse((sums.own.all(), sums.total.all())), *frame));
        methods.into_iter().map(method).collect()
    }
}

/// What a frame is called.
fn name(frame: Frame, symbols: &Symbols) -> String {
    match frame.meaning() {
        Meaning::Method(method) => symbols.full_name(method),
        Meaning::Address(address) => format!("{address:#x}"),
        Meaning::Folded => "…".to_owned(),
    }
}

/// The children of every node.
struct Children {
    first: Vec<u32>,
    next: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Children {
    fn new(nodes: &[Node]) -> Self {
        let (mut first, mut next) = (vec![NONE; nodes.len()], vec![NONE; nodes.len()]);
        for (index, node) in nodes.iter().enumerate().skip(1).rev() {
            next[index] = first[node.parent as usize];
            first[node.parent as usize] = index as u32;
        }
        Self { first, next }
    }

    fn of(&self, node: u32) -> impl Iterator<Item = u32> {
        let step = |index: u32| (index != NONE).then_some(index);
        std::iter::successors(step(self.first[node as usize]), move |last| step(self.next[*last as usize]))
    }
}

impl FrameTree {
    /// The call tree from its roots on, every node behind its parent, the children of one heaviest first: the heaviest nodes, as many as are
    /// asked for. What is left out is in the totals of the frames above it.
    pub(super) fn call_tree(&self, symbols: &Symbols, limit: usize) -> Vec<CallNode> {
        let weight = |index: u32| self.nodes[index as usize].total.all();
        let mut heaviest: Vec<u32> = (1..self.nodes.len() as u32).filter(|index| weight(*index) > 0).collect();
        // Of equals the one nearer to the root comes first, so that no node is kept without its parent.
        heaviest.sort_unstable_by_key(|index| (std::cmp::Reverse(weight(*index)), *index));
        heaviest.truncate(limit);
        let mut kept = vec![false; self.nodes.len()];
        heaviest.iter().for_each(|index| kept[*index as usize] = true);
        let children = Children::new(&self.nodes);
        let heaviest_last = |index: u32, depth: usize| {
            let mut below: Vec<_> = children.of(index).filter(|child| kept[*child as usize]).map(|child| (child, depth)).collect();
            below.sort_unstable_by_key(|(child, _)| (weight(*child), std::cmp::Reverse(*child)));
            below
        };
        let mut walk = heaviest_last(0, 0);
        let mut tree = Vec::with_capacity(heaviest.len());
        while let Some((index, depth)) = walk.pop() {
            let Node { frame, own, total, .. } = self.nodes[index as usize];
            tree.push(CallNode { name: name(frame, symbols), depth, own, total });
            walk.extend(heaviest_last(index, depth + 1));
        }
        tree
    }

    /// Stacks with the threads that had them, those with the most samples first.
    pub(super) fn stacks(&self, symbols: &Symbols, samples: &Samples, limit: usize) -> Vec<StackGroup> {
        let mut groups = FxHashMap::<u32, (SampleCount, Vec<(u64, u64)>)>::default();
        for cell in samples.cells() {
            let place = self.places[cell.node as usize];
            let count = self.filter.count(cell, place);
            if count.all() == 0 {
                continue;
            }
            let (all, threads) = groups.entry(place).or_default();
            all.add(count);
            let id = samples.thread(cell.thread);
            match threads.iter_mut().find(|(thread, _)| *thread == id) {
                Some((_, own)) => *own += count.all(),
                None => threads.push((id, count.all())),
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_unstable_by_key(|(place, (all, _))| (std::cmp::Reverse(all.all()), *place));
        groups.truncate(limit);
        let group = |(place, (samples, mut threads)): (u32, (SampleCount, Vec<(u64, u64)>))| {
            threads.sort_unstable_by_key(|(thread, count)| (std::cmp::Reverse(*count), *thread));
            let above = std::iter::successors(Some(place), |index| Some(self.nodes[*index as usize].parent));
            let frames = above.take_while(|index| *index != StackTree::ROOT).map(|index| name(self.nodes[index as usize].frame, symbols));
            StackGroup { frames: frames.collect(), samples, threads }
        };
        groups.into_iter().map(group).collect()
    }
}
