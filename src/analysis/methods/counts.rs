//! Filtered samples of a profile: by method, as a call tree, by stack, by thread.

use std::cmp::Reverse;

use foldhash::HashMap;

use crate::clr::payload::Tier;
use crate::nettrace::ThreadId;
use crate::sorting::CompactSort;

use super::super::Origin;
use super::profile::{Cell, FrameKind, Profile, ProfileFrame};
use super::tree::StackTree;
use super::{SampleFilter, ThreadSamples};

/// Number of samples by thread state, with the time they represent.
///
/// Percentages are shares of time: sampling rounds are uneven, and a sample of a long round represents more time than one of a short round. It
/// represents the time since the previous round, but at most four times the mean of the latest rounds: a stall is not attributed to the
/// samples after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleCount {
    /// Running, as far as known: see [`Profile::has_cpu_times`]. Whether a sample is marked as managed code means little, as .NET 9 marks hardly
    /// any.
    pub running: u64,
    /// Waiting: in a method that only waits, or for a lock.
    pub waiting: u64,
    /// Nanoseconds of running samples.
    pub running_ns: u64,
    /// Nanoseconds of waiting samples.
    pub waiting_ns: u64,
    /// Nanoseconds of recent CPU samples: see [`CpuSamples::forget_recent`](super::CpuSamples::forget_recent).
    pub recent_ns: u64,
}

impl SampleCount {
    /// Returns the number of all samples.
    pub fn all(self) -> u64 {
        self.running + self.waiting
    }

    /// Returns the nanoseconds of all samples.
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

/// Samples of a method, all of its bodies combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodTime {
    /// Type and method name, or an address if the method is unknown; not sanitized.
    pub name: String,
    /// Parameters in parentheses, types without namespaces; empty if unknown. Not sanitized.
    pub parameters: String,
    /// Module without extension; empty if unknown. Not sanitized.
    pub module: String,
    /// Samples with this method as the leaf.
    pub own: SampleCount,
    /// Samples with this method anywhere on the stack, each counted once.
    pub total: SampleCount,
    /// Tiers in which it was compiled.
    pub tiers: Vec<Tier>,
    /// Origin of the code.
    pub origin: Origin,
}

/// Samples of a method, by frame index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodCount {
    /// Frame index.
    pub frame: u32,
    /// Samples with this method as the leaf.
    pub own: SampleCount,
    /// Samples with this method anywhere on the stack, each counted once.
    pub total: SampleCount,
}

/// A node of the call tree: a method on one call path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNode<'a> {
    /// Type and method name, an address, or `…` for folded stacks; not sanitized.
    pub name: &'a str,
    /// Frame index.
    pub frame: u32,
    /// Number of frames above it; 0 for the outermost.
    pub depth: usize,
    /// Origin of the code.
    pub origin: Origin,
    /// Samples with this node as the leaf.
    pub own: SampleCount,
    /// Own samples and those of all callees.
    pub total: SampleCount,
}

/// Threads with the same stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackGroup {
    /// Methods or addresses, leaf first; not sanitized.
    pub frames: Vec<String>,
    /// Module of each frame without extension; empty if unknown. Not sanitized.
    pub modules: Vec<String>,
    /// Samples of all threads.
    pub samples: SampleCount,
    /// Threads with their number of samples, descending.
    pub threads: Vec<(ThreadId, u64)>,
}

#[cfg(test)]
thread_local! {
    /// Number of times that a profile was counted on this thread: the cost of a view.
    pub(crate) static COUNTED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Filtered samples by node of the profile.
#[derive(Debug)]
pub struct Counts<'a> {
    profile: &'a Profile,
    filter: SampleFilter,
    /// Index of the selected thread; an invalid index if there is no such thread.
    thread: Option<u32>,
    own: Vec<SampleCount>,
    total: Vec<SampleCount>,
}

impl<'a> Counts<'a> {
    pub(super) fn new(profile: &'a Profile, filter: SampleFilter) -> Self {
        #[cfg(test)]
        COUNTED.set(COUNTED.get() + 1);
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
        let mut passed = cell.count;
        if !self.filter.running {
            (passed.running, passed.running_ns) = (0, 0);
        }
        if !self.filter.waiting {
            (passed.waiting, passed.waiting_ns) = (0, 0);
        }
        passed
    }

    /// Returns the profile.
    pub fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// Returns the total of all samples.
    pub fn samples(&self) -> SampleCount {
        self.total_of(StackTree::ROOT)
    }

    /// Returns the samples with a node as the leaf.
    pub fn own_of(&self, node: u32) -> SampleCount {
        self.own.get(node as usize).copied().unwrap_or_default()
    }

    /// Returns the total samples of every node, indexed by node.
    pub fn totals(&self) -> &[SampleCount] {
        &self.total
    }

    /// Returns the samples of a node and of all nodes below it.
    pub fn total_of(&self, node: u32) -> SampleCount {
        self.total.get(node as usize).copied().unwrap_or_default()
    }

    /// Returns whether waiting and running threads can be distinguished: enough methods have names, or the CPU times are known.
    pub fn distinguishes_waiting(&self) -> bool {
        self.profile.has_cpu_times || self.unresolved().saturating_mul(10) <= self.samples().all()
    }

    /// Returns the number of samples whose leaf is unresolved.
    pub fn unresolved(&self) -> u64 {
        self.of_kind(FrameKind::Address)
    }

    /// Returns the number of samples whose stack was folded because it was too rare.
    pub fn folded(&self) -> u64 {
        self.of_kind(FrameKind::Folded)
    }

    /// Returns the samples whose stack was truncated by the runtime. Their callers are missing and have too little time.
    pub fn cut(&self) -> SampleCount {
        let cut = self.profile.children(StackTree::ROOT).find(|node| self.frame(*node).kind == FrameKind::Cut);
        cut.map_or_else(SampleCount::default, |node| self.total_of(node))
    }

    /// Returns the samples with code of this origin anywhere on the stack, callees included, and all samples of the threads selected by
    /// `is_of`.
    pub fn within(&self, origin: Origin, is_of: impl Fn(ThreadId) -> bool) -> SampleCount {
        // Every node follows its parent.
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

    /// Returns the samples whose leaf is code of this origin.
    pub fn own_of_origin(&self, origin: Origin) -> SampleCount {
        self.own_where(|frame| frame.origin == origin)
    }

    fn own_where(&self, is: impl Fn(&ProfileFrame) -> bool) -> SampleCount {
        let mut sum = SampleCount::default();
        (1..self.own.len()).filter(|node| is(self.frame(*node as u32))).for_each(|node| sum.add(self.own[node]));
        sum
    }

    fn of_kind(&self, kind: FrameKind) -> u64 {
        self.own_where(|frame| frame.kind == kind).all()
    }

    /// Returns the samples by thread, in descending order of time.
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

    /// Returns the methods that have samples, in no particular order.
    pub fn by_method(&self) -> Vec<MethodCount> {
        let frames = self.profile.frames.len();
        let mut methods: Vec<_> =
            (0..frames as u32).map(|frame| MethodCount { frame, own: SampleCount::default(), total: SampleCount::default() }).collect();
        // For each frame, the number of its occurrences among the current ancestors.
        let mut above = vec![0_u32; frames];
        // Nodes, and whether they are being entered or left.
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

    /// Returns the methods with the greatest weight of own samples, descending, without those of weight 0.
    pub fn hottest(&self, limit: usize, weight: impl Fn(SampleCount) -> u64) -> Vec<MethodCount> {
        let mut methods = self.by_method();
        methods.retain(|method| weight(method.own) > 0);
        methods.compact_sort_by_key(|method| (Reverse(weight(method.own)), method.frame));
        methods.truncate(limit);
        methods
    }

    /// Returns the methods in descending order of self time.
    pub(super) fn methods(&self, limit: usize) -> Vec<MethodTime> {
        let frame = |method: &MethodCount| &self.profile.frames[method.frame as usize];
        let mut methods = self.by_method();
        methods.compact_sort_by(|a, b| {
            let weight = |method: &MethodCount| Reverse((method.own.all_ns(), method.own.all(), method.total.all_ns()));
            // Frame indexes depend on the order of appearance, and the same samples in another file have different ones.
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

    /// Returns the call tree in preorder, the heaviest children first. Only the `limit` heaviest nodes are included, by `weight` of their
    /// samples; omitted nodes are part of the totals of the frames above.
    pub fn call_tree(&self, weight: impl Fn(SampleCount) -> u64, limit: usize) -> Vec<CallNode<'a>> {
        let weight = |index: u32| weight(self.total[index as usize]);
        let mut heaviest: Vec<u32> = (1..self.profile.nodes.len() as u32).filter(|index| weight(*index) > 0).collect();
        // Of equal nodes, the one closer to the root comes first, so that no node is kept without its parent.
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

    pub(super) fn call_node(&self, frame: u32, depth: usize, own: SampleCount, total: SampleCount) -> CallNode<'a> {
        let ProfileFrame { name, origin, .. } = &self.profile.frames[frame as usize];
        CallNode { name, frame, depth, origin: *origin, own, total }
    }

    fn frame(&self, node: u32) -> &ProfileFrame {
        &self.profile.frames[self.profile.nodes[node as usize].frame as usize]
    }

    /// Returns stacks with their threads, in descending order of samples.
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
            let frame = |node| {
                let ProfileFrame { name, module, .. } = self.frame(node);
                (name.clone(), module.clone())
            };
            let (frames, modules) = self.profile.path(node).map(frame).unzip();
            StackGroup { frames, modules, samples, threads }
        };
        groups.into_iter().map(group).collect()
    }
}
