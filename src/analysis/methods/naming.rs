//! Permanent names for the frames of a tree of addresses.

use super::super::Symbols;
use super::osr::OsrCallers;
use super::tree::{Frame, StackTree};

impl StackTree {
    /// Replaces addresses by methods where that is final, completes the callers of methods in on-stack replacement, and merges nodes that become
    /// equal. Returns the new node of every old one.
    pub(super) fn name(&mut self, symbols: &Symbols, callers: &OsrCallers) -> Vec<u32> {
        let mut other = self.take_spare();
        let mut completed = None;
        if !callers.is_empty() {
            completed = Some(self.complete(&mut other, symbols, callers));
            self.swap(&mut other);
            other.clear();
        }
        let named = self.name_final(&mut other, symbols, callers);
        self.swap(&mut other);
        self.finish_naming(other);
        match completed {
            Some(completed) => completed.iter().map(|node| named[*node as usize]).collect(),
            None => named,
        }
    }

    /// Adds every node to another tree, with callers instead of replaced code, and returns its index there. The replacing code itself is named,
    /// unless its caller is still unknown.
    fn complete(&self, completed: &mut Self, symbols: &Symbols, callers: &OsrCallers) -> Vec<u32> {
        let mut moved = vec![Self::ROOT; self.len()];
        let (mut path, mut addresses): (Vec<Frame>, Vec<u64>) = Default::default();
        for (index, node) in self.nodes().iter().enumerate().skip(1) {
            let mut frame = node.frame;
            let mut parent = moved[node.parent as usize];
            if frame.address().is_some_and(|address| callers.is_replacement(address) && symbols.find(address).is_some()) {
                path.clear();
                path.extend(self.path(index as u32));
                // As in samples: all but the innermost are return addresses.
                let return_address = |(depth, frame): (usize, &Frame)| frame.address().map_or(0, |address| address + u64::from(depth > 0));
                addresses.clear();
                addresses.extend(path.iter().enumerate().map(return_address));
                if callers.complete(&mut addresses).is_none() {
                    let outer = path.iter().enumerate().zip(&addresses).skip(1).rev();
                    parent = outer.fold(Self::ROOT, |parent, (known, address)| {
                        let frame = if return_address(known) == *address { *known.1 } else { Frame::within_call(*address) };
                        completed.child(parent, frame)
                    });
                    frame = frame.resolved(symbols);
                }
            }
            moved[index] = completed.child(parent, frame);
        }
        moved
    }

    /// Adds every node to another tree, by its method if that is final, and returns its index there.
    fn name_final(&self, named: &mut Self, symbols: &Symbols, callers: &OsrCallers) -> Vec<u32> {
        let is_final = |address| symbols.find(address).is_some_and(|method| symbols.is_final(method)) && !callers.is_replacement(address);
        // Code without a name may turn out to be a replacement, whose caller is found by two addresses.
        let mut is_needed = vec![false; self.len()];
        for (index, node) in self.nodes().iter().enumerate().skip(1) {
            if node.frame.address().is_some_and(|address| !is_final(address)) {
                let outer = self.nodes()[node.parent as usize].parent;
                [index as u32, node.parent, outer].into_iter().for_each(|node| is_needed[node as usize] = true);
            }
        }
        let mut moved = vec![Self::ROOT; self.len()];
        for (index, node) in self.nodes().iter().enumerate().skip(1) {
            let frame = if is_needed[index] { node.frame } else { node.frame.resolved(symbols) };
            let parent = moved[node.parent as usize];
            // As in profiles.
            let called = frame.called_by(named.nodes()[parent as usize].frame, symbols);
            moved[index] = called.map_or(parent, |frame| named.child(parent, frame));
        }
        moved
    }

    /// Returns the frames of a node, innermost first.
    fn path(&self, node: u32) -> impl Iterator<Item = Frame> {
        let nodes = std::iter::successors(Some(node), |node| Some(self.nodes()[*node as usize].parent));
        nodes.take_while(|node| *node != Self::ROOT).map(|node| self.nodes()[node as usize].frame)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::analysis::symbols::tests::load;
    use crate::analysis::{CpuSamples, CpuStack, NativeFunction, Origin, OsrSite, SampleFilter, ThreadId};

    /// Flags of code for on-stack replacement.
    const OSR: u32 = 5 << 7;

    #[test]
    fn named_samples_need_less_room() {
        let mut symbols = Symbols::default();
        load(&mut symbols, 1, 1 << 20, 1, "A", 0);
        let mut samples = CpuSamples::new(1000);
        let add = |samples: &mut CpuSamples, addresses: Range<u64>| {
            for address in addresses {
                samples.add(&CpuStack { thread: ThreadId::of(7), at: 5, kernel: &[], user: &[address], missing: None });
            }
        };
        add(&mut samples, 1..1 << 12);
        assert!(!samples.has_grown());
        add(&mut samples, 1 << 12..(1 << 12) + 10);
        assert!(samples.has_grown());
        samples.name(&Symbols::default(), &OsrCallers::default());
        assert!(!samples.has_grown(), "the names are not known yet");
        add(&mut samples, (1 << 12) + 10..(1 << 13) + 30);
        assert!(samples.has_grown());
        samples.name(&symbols, &OsrCallers::default());
        assert!(!samples.has_grown());
        assert_eq!(samples.profile(&symbols).count(SampleFilter::ALL).samples().all(), (1 << 13) + 29);
    }

    #[test]
    fn nameless_functions_of_a_file_are_merged() {
        let mut symbols = Symbols::default();
        let function = |start, name| NativeFunction { address: start, start, size: 50, name, image: "libclrjit.so", origin: Origin::Jit };
        [100, 200, 300].iter().for_each(|start| symbols.add_native(&function(*start, "[libclrjit.so]")));
        symbols.add_native(&function(400, "jitStartup"));
        let mut tree = StackTree::default();
        let mut add = |frames: &[u64]| tree.add(frames.iter().copied(), None, &Symbols::default());
        let leaves = [add(&[110, 221, 331, 441, 121]), add(&[310, 441, 121]), add(&[410, 441])];
        let moved = tree.name(&symbols, &OsrCallers::default());
        let depths = leaves.map(|leaf| tree.path(moved[leaf as usize]).count());
        assert_eq!((moved[leaves[0] as usize], depths), (moved[leaves[1] as usize], [3, 3, 2]));
    }

    #[test]
    fn parts_of_the_runtime_are_told_apart_by_their_callers() {
        let mut symbols = Symbols::default();
        let function = |start, name, image, origin| NativeFunction { address: start, start, size: 50, name, image, origin };
        let (managed, native) = (Origin::Managed, Origin::Native);
        for (start, name, image, origin) in [
            (0x2000, "Main", "App", managed),
            (0x2100, "System.Runtime.EH.DispatchEx(ExInfo&)", "System.Private.CoreLib", managed),
            (0x2200, "[libcoreclr.so]", "libcoreclr.so", native),
            (0x2300, "memset", "libc.so.6", native),
            (0x2400, "[libc.so.6]", "libc.so.6", native),
        ] {
            symbols.add_native(&function(start, name, image, origin));
        }
        symbols.add_gc_frame();
        let (main, dispatch, runtime, memset, other) = (0x2010, 0x2110, 0x2210, 0x2310, 0x2410);
        let stacks: [(&[u64], _); 7] = [
            (&[runtime, runtime + 8, Symbols::GC_FRAME, main], ("garbage collection", Origin::Gc, 2)),
            (&[memset, runtime, Symbols::GC_FRAME, main], ("memset", native, 3)),
            (&[runtime, memset, runtime, Symbols::GC_FRAME, main], ("[libcoreclr.so]", native, 4)),
            (&[runtime, runtime, dispatch, runtime, main], ("exception dispatch", Origin::Exception, 4)),
            (&[other, dispatch, main], ("[libc.so.6]", native, 3)),
            (&[runtime, runtime, main], ("[libcoreclr.so]", native, 2)),
            // A method that is called by itself is not a part of itself.
            (&[main, main], ("Main", managed, 2)),
        ];
        for is_named in [false, true] {
            for (user, expected) in &stacks {
                let mut samples = CpuSamples::new(1000);
                samples.add(&CpuStack { thread: ThreadId::of(7), at: 5, kernel: &[], user, missing: None });
                if is_named {
                    samples.name(&symbols, &OsrCallers::default());
                }
                let profile = samples.profile(&symbols);
                let tree = profile.count(SampleFilter::ALL).call_tree(|samples| samples.all(), 10);
                let leaf = tree.last().unwrap();
                assert_eq!((leaf.name, leaf.origin, leaf.depth + 1), *expected, "{user:x?}, {is_named}");
            }
        }
    }

    #[test]
    fn caller_found_later_is_added_to_earlier_samples() {
        let mut symbols = Symbols::default();
        for (start, token, name, flags) in [(100, 1, "A", OSR), (200, 1, "A", 0), (500, 2, "B", 0), (900, 3, "C", 0)] {
            load(&mut symbols, start, 50, token, name, flags);
        }
        let totals = |samples: &CpuSamples| {
            let methods = samples.profile(&symbols).methods(SampleFilter::ALL, 10).methods;
            let mut totals: Vec<_> = methods.into_iter().map(|method| (method.name, method.total.all())).collect();
            totals.sort_unstable();
            totals.into_iter().map(|(name, total)| format!("{} {total}", &name[2..3])).collect::<Vec<_>>()
        };
        let mut samples = CpuSamples::new(1000);
        let add = |samples: &mut CpuSamples, user: &[u64]| {
            samples.add(&CpuStack { thread: ThreadId::of(7), at: 5, kernel: &[], user, missing: None });
        };
        // The code is unknown at first.
        add(&mut samples, &[120, 220, 920]);
        samples.name(&Symbols::default(), &OsrCallers::default());
        let mut callers = OsrCallers::default();
        callers.set_code(&symbols);
        for _ in 0..2 {
            add(&mut samples, &[130, 220, 920]);
            samples.name(&symbols, &callers);
        }
        assert_eq!(totals(&samples), ["A 3", "C 3"]);
        callers.found(OsrSite { replaced: 220, outer: 920 }, 520);
        add(&mut samples, &[140, 520, 920]);
        samples.name(&symbols, &callers);
        assert_eq!(totals(&samples), ["A 4", "B 4", "C 4"]);
        assert_eq!(samples.addresses(), [0; 0], "all of them have their methods");
    }
}
