//! CPU samples taken by the kernel.

use std::collections::VecDeque;

use crate::analysis::Symbols;
use crate::nettrace::{Label, ThreadId};

use super::Profile;
use super::osr::OsrCallers;
use super::samples::Samples;
use super::tree::{Frame, StackTree};

/// A sample of a thread's stack.
#[derive(Debug, Clone, Copy)]
pub struct CpuStack<'a> {
    /// The thread.
    pub thread: ThreadId,
    /// Time, in nanoseconds on any clock.
    pub at: i64,
    /// Kernel frames, innermost first.
    pub kernel: &'a [u64],
    /// User frames, innermost first. All but the first are return addresses.
    pub user: &'a [u64],
    /// Why outer frames are missing, if they are.
    pub missing: Option<MissingFrames>,
}

listed! {
/// Why the outermost frames of a stack are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFrames {
    /// There were more frames than are recorded.
    Cut => "cut",
    /// A function in between does not maintain the frame pointer.
    Broken => "broken",
}
/// Returns the value of the label.
pub fn label_value(self) -> &'static str;
}

impl MissingFrames {
    /// Key of the label for samples in a file.
    pub const LABEL: &str = "DnTop.MissingFrames";

    /// Parses a label.
    pub fn from_label(label: Label<'_>) -> Option<Self> {
        let Label::Text(key, value) = label else { return None };
        let is_value = |missing: &Self| missing.label_value().as_bytes() == value;
        Self::ALL.into_iter().find(is_value).filter(|_| key == Self::LABEL.as_bytes())
    }
}

/// Counts CPU samples.
#[derive(Debug, Default)]
pub struct CpuSamples {
    period_ns: u64,
    tree: StackTree,
    samples: Samples,
    /// Frames of a sample; a reused buffer.
    frames: Vec<u64>,
    cut: u64,
    broken: u64,
    /// The latest samples, oldest first: time, cell and nanoseconds of each.
    recent: VecDeque<(i64, u32, u64)>,
    /// Time since which samples are recent, once some have expired.
    recent_since: Option<i64>,
}

/// Maximum number of recent samples.
const RECENT: usize = 1 << 18;

/// Set in kernel addresses and never in user addresses. Also set in frames that are not addresses, so it is removed from addresses.
const KERNEL: u64 = 1 << 63;

impl CpuSamples {
    /// Creates a counter for samples that each represent a fixed number of nanoseconds.
    pub fn new(period_ns: u64) -> Self {
        Self { period_ns, ..Self::default() }
    }

    /// Creates a counter for samples with individual durations.
    pub fn of_waits() -> Self {
        Self::default()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples.cells().is_empty()
    }

    /// Whether there are many more different stacks than after names were last resolved.
    pub fn has_grown(&self) -> bool {
        self.tree.has_grown()
    }

    /// Counts a sample.
    pub fn add(&mut self, stack: &CpuStack<'_>) {
        self.add_time(stack, self.period_ns);
    }

    /// Counts a sample that represents a number of nanoseconds.
    pub fn add_time(&mut self, stack: &CpuStack<'_>, ns: u64) {
        self.frames.clear();
        self.frames.extend(stack.kernel.iter().map(|address| address & !KERNEL));
        self.frames.extend(stack.user);
        let missing = match stack.missing {
            None => None,
            Some(MissingFrames::Cut) => {
                self.cut += 1;
                Some(Frame::CUT)
            }
            Some(MissingFrames::Broken) => {
                self.broken += 1;
                Some(Frame::BROKEN)
            }
        };
        // Names are resolved at the end.
        let node = self.tree.add(self.frames.iter().copied(), missing, &Symbols::default());
        let cell = self.samples.add_recent(node, stack.thread, stack.at, ns);
        self.recent.push_back((stack.at, cell, ns));
        if self.recent.len() > RECENT {
            // By number and not by time: in a file, times need not ascend.
            self.recent_since = self.recent_since.max(Some(self.recent[RECENT / 2].0));
            self.recent.drain(..RECENT / 2).for_each(|(_, cell, ns)| self.samples.forget_recent(cell, ns));
        }
        if self.tree.is_full() || self.samples.is_full() {
            let weights = self.samples.by_node(self.tree.len());
            let moved = self.tree.make_room(&Symbols::default(), weights);
            let cells = self.samples.make_room(&moved);
            self.renumber(&cells);
        }
    }

    /// Resolves names permanently if they are final: other code may be loaded at the same address, and there are a few hundred functions but
    /// many thousand addresses. Also adds the callers of methods in on-stack replacement, as far as they are known. From here on, all names must be
    /// from this symbol table or one derived from it.
    pub fn name(&mut self, symbols: &Symbols, callers: &OsrCallers) {
        let moved = self.tree.name(symbols, callers);
        let cells = self.samples.renumber_nodes(&moved);
        self.renumber(&cells);
    }

    /// Updates the cell indexes of recent samples.
    fn renumber(&mut self, cells: &[u32]) {
        self.recent.iter_mut().for_each(|(_, cell, _)| *cell = cells[*cell as usize]);
    }

    /// Removes the samples taken before this time from the recent ones.
    pub fn forget_recent(&mut self, before: i64) {
        while let Some((at, cell, ns)) = self.recent.front().copied()
            && at < before
        {
            self.recent.pop_front();
            self.samples.forget_recent(cell, ns);
        }
        self.recent_since = self.recent_since.max(Some(before));
    }

    /// Returns the time since which samples are recent.
    pub fn recent_since(&self) -> Option<i64> {
        self.recent_since
    }

    /// Returns the numbers of samples with missing outer frames: truncated stacks, and stacks with a function that does not maintain the frame
    /// pointer.
    pub fn missing(&self) -> (u64, u64) {
        (self.cut, self.broken)
    }

    /// Returns the addresses of all frames, sorted.
    pub fn addresses(&self) -> Vec<u64> {
        self.tree.addresses()
    }

    /// Returns the kernel address for one of [`addresses`](Self::addresses); `None` if it is a user address.
    pub fn kernel_address(address: u64) -> Option<u64> {
        // User addresses have at most 56 bits; in kernel addresses all higher bits are set.
        Some(address | KERNEL).filter(|address| *address >= 0xff << 56)
    }

    /// Returns all samples, with names from these symbols.
    pub fn profile(&self, symbols: &Symbols) -> Profile {
        Profile { interval_ns: Some(self.period_ns).filter(|ns| *ns > 0), ..Profile::new(&self.tree, &self.samples, symbols, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{NativeFunction, Origin, SampleFilter};

    #[test]
    fn samples_are_attributed_to_functions() {
        let mut cpu = CpuSamples::new(1000);
        let kernel = 0xffff_ffff_8100_0000;
        let inside = [kernel];
        let stack = |kernel, user, missing| CpuStack { thread: ThreadId::of(7), at: 5, kernel, user, missing };
        cpu.add(&stack(&[], &[100, 201, 301], None));
        cpu.add(&stack(&[], &[105, 201, 301], None));
        cpu.add(&stack(&inside, &[205, 301], None));
        cpu.add(&stack(&[], &[400], Some(MissingFrames::Broken)));
        cpu.add(&stack(&[], &[100, 100], Some(MissingFrames::Cut)));
        let mut symbols = Symbols::default();
        let named = |address| match CpuSamples::kernel_address(address) {
            Some(address) => (if address == kernel { "sys" } else { "?" }, Origin::Kernel),
            None => (["", "leaf", "middle", "main", "odd"][(address / 100) as usize], Origin::Native),
        };
        for address in cpu.addresses() {
            let (name, origin) = named(address);
            symbols.add_native(&NativeFunction { address, start: address, size: 1, name, image: "", origin });
        }
        let methods = cpu.profile(&symbols).methods(SampleFilter::BUSY, 10);
        let of = |name: &str| {
            let method = methods.methods.iter().find(|method| method.name == name).unwrap_or_else(|| panic!("no {name}"));
            (method.own.all_ns(), method.total.all_ns(), method.origin)
        };
        assert_eq!(of("leaf"), (3000, 3000, Origin::Native));
        assert_eq!(of("sys"), (1000, 1000, Origin::Kernel));
        let shown = cpu.profile(&symbols).without(|origin| origin == Origin::Kernel);
        let hidden = shown.methods(SampleFilter::BUSY, 10);
        let own = |name: &str| hidden.methods.iter().find(|method| method.name == name).map(|method| method.own.all_ns());
        assert_eq!((own("sys"), own("middle"), own("leaf"), hidden.samples.all_ns()), (None, Some(1000), Some(3000), 5000));
        let all = cpu.profile(&symbols).without(|origin| origin != Origin::Unknown);
        // All time belongs to hidden frames, including that of stacks whose callers are missing.
        assert_eq!((all.methods(SampleFilter::ALL, 10).methods.len(), all.count(SampleFilter::ALL).own_of(0).all_ns()), (0, 5000));
        // A sample without frames has nothing to hide.
        let mut empty = CpuSamples::new(1000);
        empty.add(&stack(&[], &[], Some(MissingFrames::Broken)));
        let none_hidden = empty.profile(&symbols).without(|_| false);
        assert_eq!(none_hidden.count(SampleFilter::ALL).own_of(0), empty.profile(&symbols).count(SampleFilter::ALL).own_of(0));
        // The return address 100 belongs to a call in the function that ends at 99.
        assert_eq!((of("middle"), of("main")), ((0, 3000, Origin::Native), (0, 3000, Origin::Native)));
        assert_eq!((methods.samples.all(), methods.samples.all_ns(), methods.unresolved), (5, 5000, 0));
        assert_eq!(((cpu.missing()), methods.methods.len()), ((1, 1), 6));
        assert_eq!(methods.interval_ns, Some(1000));
    }

    #[test]
    fn adjacent_unnamed_frames_of_one_image_are_merged() {
        let mut cpu = CpuSamples::new(1);
        for user in [&[10, 21, 31, 101][..], &[20, 31, 101], &[110, 31, 101]] {
            cpu.add(&CpuStack { thread: ThreadId::of(7), at: 0, kernel: &[], user, missing: None });
        }
        let mut symbols = Symbols::default();
        for address in cpu.addresses() {
            let name = if address < 100 { "[lib.so]" } else { "Main" };
            symbols.add_native(&NativeFunction { address, start: address, size: 1, name, image: "lib.so", origin: Origin::Native });
        }
        let profile = cpu.profile(&symbols);
        let tree = profile.count(SampleFilter::ALL).call_tree(|samples| samples.all(), 10);
        let nodes: Vec<_> = tree.iter().map(|node| (node.depth, node.name, node.own.all(), node.total.all())).collect();
        assert_eq!(nodes, [(0, "Main", 0, 3), (1, "[lib.so]", 2, 3), (2, "Main", 1, 1)]);
    }

    #[test]
    fn resolved_names_survive_reuse_of_code_addresses() {
        let mut cpu = CpuSamples::new(1000);
        let stack = |at, user| CpuStack { thread: ThreadId::of(7), at, kernel: &[], user, missing: None };
        for (at, user) in (0..).zip([&[10, 101, 201][..], &[20, 102, 202], &[30, 301], &[110, 203], &[15, 103, 401]]) {
            cpu.add(&stack(at, user));
        }
        cpu.forget_recent(1);
        let mut symbols = Symbols::default();
        let add = |symbols: &mut Symbols, start, name: &str, origin| {
            symbols.add_native(&NativeFunction { address: start, start, size: 99, name, image: "a.so", origin });
        };
        for (start, origin) in [(1, Origin::Native), (100, Origin::Jit), (200, Origin::Managed), (300, Origin::Stub)] {
            add(&mut symbols, start, &format!("f{start}"), origin);
        }
        let tree_rows = |cpu: &CpuSamples, symbols: &Symbols| {
            let profile = cpu.profile(symbols);
            let tree = profile.count(SampleFilter::ALL).call_tree(|samples| samples.all_ns(), 20);
            let node = |node: &crate::analysis::CallNode<'_>| (node.depth, node.name.to_owned(), node.own.all_ns(), node.total.recent_ns);
            tree.iter().map(node).collect::<Vec<_>>()
        };
        let before = tree_rows(&cpu, &symbols);
        assert_eq!(cpu.addresses(), [10, 15, 20, 30, 100, 101, 102, 110, 200, 201, 202, 300, 400]);
        for _ in 0..2 {
            cpu.name(&symbols, &OsrCallers::default());
            // A stub may still get a name, and so may an unresolved address.
            assert_eq!((tree_rows(&cpu, &symbols), cpu.addresses()), (before.clone(), vec![300, 400]));
        }
        symbols.forget_code();
        add(&mut symbols, 200, "another", Origin::Managed);
        add(&mut symbols, 300, "named", Origin::Managed);
        cpu.add(&stack(9, &[210]));
        cpu.name(&symbols, &OsrCallers::default());
        let names: Vec<_> = tree_rows(&cpu, &symbols).into_iter().map(|(depth, name, own, _)| (depth, name, own)).collect();
        let expected = [(0, "f200", 0), (1, "f100", 1000), (2, "f1", 2000), (0, "named", 0), (1, "f1", 1000), (0, "0x190", 0)];
        assert!(expected.iter().all(|(depth, name, own)| names.contains(&(*depth, (*name).to_owned(), *own))), "{names:?}");
        assert!(names.contains(&(0, "another".to_owned(), 1000)), "{names:?}");
        cpu.forget_recent(9);
        assert_eq!(cpu.profile(&symbols).count(SampleFilter::ALL).samples().recent_ns, 1000, "what is recent is still known");
    }

    #[test]
    fn recent_samples_are_those_since_a_moment() {
        let mut cpu = CpuSamples::new(1000);
        for at in 0..10 {
            cpu.add(&CpuStack { thread: ThreadId::of(7 + at % 2), at: at as i64, kernel: &[], user: &[100], missing: None });
        }
        let recent = |cpu: &CpuSamples| cpu.profile(&Symbols::default()).count(SampleFilter::ALL).samples();
        for (before, left) in [(-1, 10), (4, 6), (4, 6), (9, 1), (100, 0)] {
            cpu.forget_recent(before);
            assert_eq!((recent(&cpu).recent_ns, recent(&cpu).all_ns()), (left * 1000, 10_000), "{before}");
        }
        assert_eq!(cpu.recent_since(), Some(100));
    }

    /// Durations in a malformed file exceed the maximum that can be counted.
    #[test]
    fn excessive_durations_are_capped() {
        let mut waits = CpuSamples::of_waits();
        for _ in 0..2 {
            waits.add_time(&CpuStack { thread: ThreadId::of(7), at: 0, kernel: &[], user: &[100], missing: None }, u64::MAX);
        }
        let all = waits.profile(&Symbols::default()).count(SampleFilter::ALL).samples();
        assert_eq!((all.all_ns(), all.recent_ns), (u64::MAX, u64::MAX));
    }

    #[test]
    fn memory_is_bounded() {
        let mut cpu = CpuSamples::new(1);
        for at in 0..300_000 {
            let user = [at * 16, at * 32 + 1, 7];
            // Times that never expire.
            cpu.add(&CpuStack { thread: ThreadId::of(at % 9000), at: -(at as i64), kernel: &[], user: &user, missing: None });
        }
        assert_eq!(cpu.samples.count(), 300_000);
        assert!(cpu.recent.len() <= RECENT);
        assert!(cpu.addresses().len() < 1 << 17);
    }
}
