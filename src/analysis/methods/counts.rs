//! Samples of a profile that pass a filter: by method, as a call tree, by stack, by thread.

use std::cmp::Reverse;

use foldhash::HashMap;

use crate::clr::payload::Tier;
use crate::nettrace::ThreadId;
use crate::sorting::CompactSort;

use super::super::Origin;
use super::profile::{Cell, FrameKind, Profile, ProfileFrame};
use super::tree::StackTree;
use super::{SampleFilter, ThreadSamples};

/// Samples by what their threads were doing, and the time that they stand for.
///
/// Shares are shares of time: rounds of the sampler are uneven, and a sample of a long one stands for more than one of a short one. It stands for the
/// time since the round before, but for no more than four times the mean of the latest: a stall does not go to what was sampled after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleCount {
    /// Running, as far as is known: see [`Profile::is_weighed`]. That a sample is marked as managed code means little, as .NET 9 marks hardly any.
    pub running: u64,
    /// Waiting: in a method that does nothing else, or for a lock.
    pub waiting: u64,
    /// Nanoseconds of those that were running.
    pub running_ns: u64,
    /// Nanoseconds of those that were waiting.
    pub waiting_ns: u64,
    /// Nanoseconds of those of CPU time that are recent: see [`CpuSamples::forget_recent`](super::CpuSamples::forget_recent).
    pub recent_ns: u64,
}

impl SampleCount {
    pub(super) fn of(samples: u64, ns: u64, waits: bool) -> Self {
        if waits {
            Self { waiting: samples, waiting_ns: ns, ..Self::default() }
        } else {
            Self { running: samples, running_ns: ns, ..Self::default() }
        }
    }

    /// All of them.
    pub fn all(self) -> u64 {
        self.running + self.waiting
    }

    /// Nanoseconds of all of them.
    pub fn all_ns(self) -> u64 {
        self.running_ns.saturating_add(self.waiting_ns)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.running += other.running;
        self.waiting += other.waiting;
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
        self.waiting_ns = self.waiting_ns.saturating_add(other.waiting_ns);
        self.recent_ns = self.recent_ns.saturating_add(other.recent_ns);
    }
}

/// Samples of a method: all of its bodies together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodTime {
    /// Type and name, or an address where the method is not known; not sanitised.
    pub name: String,
    /// Its parameters in parentheses, types without namespaces; empty where they are not known. Not sanitised.
    pub parameters: String,
    /// Its module, without extension; empty where it is not known. Not sanitised.
    pub module: String,
    /// Samples in which it was the leaf.
    pub own: SampleCount,
    /// Samples in which it was anywhere on the stack, once each.
    pub total: SampleCount,
    /// The tiers that it was compiled in.
    pub tiers: Vec<Tier>,
    /// Whose code it is.
    pub origin: Origin,
}

/// The same, by the index of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodCount {
    /// Index of the frame.
    pub frame: u32,
    /// Samples in which it was the leaf.
    pub own: SampleCount,
    /// Samples in which it was anywhere on the stack, once each.
    pub total: SampleCount,
}

/// A node of the call tree: a method, and how it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallNode {
    /// Type and name, an address, or `…` for all that is too light; not sanitised.
    pub name: String,
    /// Index of its frame.
    pub frame: u32,
    /// Frames above it; the first have 0.
    pub depth: usize,
    /// Whose code it is.
    pub origin: Origin,
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
    pub threads: Vec<(ThreadId, u64)>,
}

/// Samples that pass a filter, by node of the profile.
#[derive(Debug)]
pub struct Counts<'a> {
    profile: &'a Profile,
    filter: SampleFilter,
    /// Index of the selected thread; one that is not there where none of that number is.
    thread: Option<u32>,
    own: Vec<SampleCount>,
    total: Vec<SampleCount>,
}

impl<'a> Counts<'a> {
    pub(super) fn new(profile: &'a Profile, filter: SampleFilter) -> Self {
        let index = |id| profile.threads.iter().position(|other| *other == id).map_or(u32::MAX, |index| index as u32);
        let own = vec![SampleCount::default(); profile.nodes.len()];
        let mut counts = Self { profile, filter, thread: filter.thread.map(index), own, total: Vec::new() };
        for cell in &profile.cells {
            let passed = counts.passed(cell);
            counts.own[cell.node as usize].add(passed);
        }
        counts.total.clone_from(&counts.own);
        for index in (1..profile.nodes.len()).rev() {
            let total = counts.total[index];
            counts.total[profile.nodes[index].parent as usize].add(total);
        }
        counts
    }

    fn passed(&self, cell: &Cell) -> SampleCount {
        if self.thread.is_some_and(|thread| thread != cell.thread) {
            return SampleCount::default();
        }
        let SampleCount { running, waiting, running_ns, waiting_ns, recent_ns } = cell.count;
        let mut passed = SampleCount { recent_ns, ..SampleCount::default() };
        if self.filter.running {
            passed.add(SampleCount::of(running, running_ns, false));
        }
        if self.filter.waiting {
            passed.add(SampleCount::of(waiting, waiting_ns, true));
        }
        passed
    }

    /// What is counted.
    pub fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// All samples that pass.
    pub fn samples(&self) -> SampleCount {
        self.total_of(StackTree::ROOT)
    }

    /// Samples whose leaf a node is.
    pub fn own_of(&self, node: u32) -> SampleCount {
        self.own.get(node as usize).copied().unwrap_or_default()
    }

    /// Samples of every node and all below it, by its number.
    pub fn totals(&self) -> &[SampleCount] {
        &self.total
    }

    /// These and those of all nodes below.
    pub fn total_of(&self, node: u32) -> SampleCount {
        self.total.get(node as usize).copied().unwrap_or_default()
    }

    /// Whether enough methods have names to tell threads that wait from those that run, or their CPU times do.
    pub fn tell_waiting(&self) -> bool {
        self.profile.is_weighed || self.unresolved().saturating_mul(10) <= self.samples().all()
    }

    /// Samples whose leaf is not known.
    pub fn unresolved(&self) -> u64 {
        self.of_kind(FrameKind::Address)
    }

    /// Samples whose stack was too rare to be kept apart.
    pub fn folded(&self) -> u64 {
        self.of_kind(FrameKind::Folded)
    }

    /// Samples whose stack the runtime cut off, so that their callers are missing: these have too little time.
    pub fn cut(&self) -> SampleCount {
        let of = |node: u32| self.profile.frames[self.profile.nodes[node as usize].frame as usize].kind;
        let cut = self.profile.children(StackTree::ROOT).find(|node| of(*node) == FrameKind::Cut);
        cut.map_or_else(SampleCount::default, |node| self.total_of(node))
    }

    /// Samples with code of this origin anywhere in their stacks, its own and what it calls, and all of threads that do nothing else.
    pub fn within(&self, origin: Origin, is_of: impl Fn(ThreadId) -> bool) -> SampleCount {
        // A node is behind its parent.
        let mut inside = vec![false; self.profile.nodes.len()];
        for node in 1..inside.len() {
            inside[node] = inside[self.profile.nodes[node].parent as usize] || self.frame(node as u32).origin == origin;
        }
        let mut sum = SampleCount::default();
        for cell in &self.profile.cells {
            if inside[cell.node as usize] || is_of(self.profile.threads[cell.thread as usize]) {
                sum.add(self.passed(cell));
            }
        }
        sum
    }

    /// Samples whose leaf is code of this origin.
    pub fn own_of_origin(&self, origin: Origin) -> SampleCount {
        let mut sum = SampleCount::default();
        (1..self.own.len()).filter(|node| self.frame(*node as u32).origin == origin).for_each(|node| sum.add(self.own[node]));
        sum
    }

    fn of_kind(&self, kind: FrameKind) -> u64 {
        let nodes = self.profile.nodes.iter().zip(&self.own).skip(1);
        nodes.filter(|(node, _)| self.profile.frames[node.frame as usize].kind == kind).map(|(_, own)| own.all()).sum()
    }

    /// Samples by thread, those with the most time first.
    pub fn threads(&self) -> Vec<ThreadSamples> {
        let mut by_thread = HashMap::<u32, SampleCount>::default();
        for cell in &self.profile.cells {
            let count = self.passed(cell);
            if count.all() > 0 {
                by_thread.entry(cell.thread).or_default().add(count);
            }
        }
        let thread = |(index, samples): (u32, SampleCount)| ThreadSamples { thread: self.profile.threads[index as usize], samples };
        let mut threads: Vec<_> = by_thread.into_iter().map(thread).collect();
        threads.compact_sort_by_key(|thread| (Reverse(thread.samples.all_ns()), Reverse(thread.samples.all()), thread.thread));
        threads
    }

    /// Methods that have samples, in no order to speak of.
    pub fn by_method(&self) -> Vec<MethodCount> {
        let frames = self.profile.frames.len();
        let mut methods: Vec<_> =
            (0..frames as u32).map(|frame| MethodCount { frame, own: SampleCount::default(), total: SampleCount::default() }).collect();
        // By frame, how often it is among the frames above.
        let mut above = vec![0_u32; frames];
        // Nodes, and whether they are entered or left again.
        let mut walk: Vec<(u32, bool)> = self.profile.children(StackTree::ROOT).map(|child| (child, true)).collect();
        while let Some((index, enters)) = walk.pop() {
            let frame = self.profile.nodes[index as usize].frame as usize;
            if !enters {
                above[frame] -= 1;
                continue;
            }
            if self.total[index as usize].all() == 0 {
                continue;
            }
            methods[frame].own.add(self.own[index as usize]);
            if above[frame] == 0 {
                methods[frame].total.add(self.total[index as usize]);
            }
            above[frame] += 1;
            walk.push((index, false));
            walk.extend(self.profile.children(index).map(|child| (child, true)));
        }
        let kind = |method: &MethodCount| self.profile.frames[method.frame as usize].kind;
        methods.retain(|method| method.total.all() > 0 && !matches!(kind(method), FrameKind::Folded | FrameKind::Cut | FrameKind::Broken));
        methods
    }

    /// The methods that weigh most by their own samples, heaviest first, without those that weigh nothing.
    pub fn hottest(&self, limit: usize, weight: impl Fn(SampleCount) -> u64) -> Vec<MethodCount> {
        let mut methods = self.by_method();
        methods.retain(|method| weight(method.own) > 0);
        methods.compact_sort_by_key(|method| (Reverse(weight(method.own)), method.frame));
        methods.truncate(limit);
        methods
    }

    /// Methods, those with the most time of their own first.
    pub(super) fn methods(&self, limit: usize) -> Vec<MethodTime> {
        let frame = |method: &MethodCount| &self.profile.frames[method.frame as usize];
        let mut methods = self.by_method();
        methods.compact_sort_by(|a, b| {
            let weight = |method: &MethodCount| Reverse((method.own.all_ns(), method.own.all(), method.total.all_ns()));
            // Numbers of frames depend on which was seen first: the same samples in another file have others.
            let text = |method: &MethodCount| [&frame(method).name, &frame(method).parameters, &frame(method).module];
            (weight(a), text(a), a.frame).cmp(&(weight(b), text(b), b.frame))
        });
        methods.truncate(limit);
        let time = |method: &MethodCount| {
            let ProfileFrame { name, parameters, module, tiers, origin, .. } = frame(method).clone();
            MethodTime { name, parameters, module, own: method.own, total: method.total, tiers, origin }
        };
        methods.iter().map(time).collect()
    }

    /// The call tree from its roots on, every node behind its parent, the children of one heaviest first: the heaviest nodes, as many as are
    /// asked for, by the samples that `weight` counts. What is left out is in the totals of the frames above it.
    pub fn call_tree(&self, weight: impl Fn(SampleCount) -> u64, limit: usize) -> Vec<CallNode> {
        let weight = |index: u32| weight(self.total[index as usize]);
        let mut heaviest: Vec<u32> = (1..self.profile.nodes.len() as u32).filter(|index| weight(*index) > 0).collect();
        // Of equals the one nearer to the root comes first, so that no node is kept without its parent.
        heaviest.compact_sort_by_key(|index| (Reverse(weight(*index)), *index));
        heaviest.truncate(limit);
        let mut kept = vec![false; self.profile.nodes.len()];
        heaviest.iter().for_each(|index| kept[*index as usize] = true);
        let heaviest_last = |index: u32, depth: usize| {
            let mut below: Vec<_> =
                self.profile.children(index).filter(|child| kept[*child as usize]).map(|child| (child, depth)).collect();
            below.compact_sort_by_key(|(child, _)| (weight(*child), Reverse(*child)));
            below
        };
        let mut walk = heaviest_last(StackTree::ROOT, 0);
        let mut tree = Vec::with_capacity(heaviest.len());
        while let Some((index, depth)) = walk.pop() {
            let (own, total) = (self.own[index as usize], self.total[index as usize]);
            tree.push(self.call_node(self.profile.nodes[index as usize].frame, depth, own, total));
            walk.extend(heaviest_last(index, depth + 1));
        }
        tree
    }

    pub(super) fn call_node(&self, frame: u32, depth: usize, own: SampleCount, total: SampleCount) -> CallNode {
        let ProfileFrame { name, origin, .. } = &self.profile.frames[frame as usize];
        CallNode { name: name.clone(), frame, depth, origin: *origin, own, total }
    }

    /// Samples of a node: in which it was the leaf, and these with those of everything below.
    pub(super) fn of_node(&self, node: u32) -> (SampleCount, SampleCount) {
        (self.own[node as usize], self.total[node as usize])
    }

    fn frame(&self, node: u32) -> &ProfileFrame {
        &self.profile.frames[self.profile.nodes[node as usize].frame as usize]
    }

    /// Stacks with the threads that had them, those with the most samples first.
    pub fn stacks(&self, limit: usize) -> Vec<StackGroup> {
        let mut groups = HashMap::<u32, (SampleCount, Vec<(ThreadId, u64)>)>::default();
        for cell in &self.profile.cells {
            let count = self.passed(cell);
            if count.all() > 0 {
                let (all, threads) = groups.entry(cell.node).or_default();
                all.add(count);
                threads.push((self.profile.threads[cell.thread as usize], count.all()));
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.compact_sort_by_key(|(node, (all, _))| (Reverse(all.all()), *node));
        groups.truncate(limit);
        let group = |(node, (samples, mut threads)): (u32, (SampleCount, Vec<(ThreadId, u64)>))| {
            threads.compact_sort_by_key(|(thread, count)| (Reverse(*count), *thread));
            let above = std::iter::successors(Some(node), |index| Some(self.profile.parent(*index)));
            let frames = above.take_while(|index| *index != StackTree::ROOT).map(|index| self.frame(index).name.clone());
            StackGroup { frames: frames.collect(), samples, threads }
        };
        groups.into_iter().map(group).collect()
    }
}
