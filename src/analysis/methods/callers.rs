//! Caller tree of a method: the inverted call tree.

use std::cmp::Reverse;

use foldhash::HashMap;

use super::counts::{CallNode, Counts, SampleCount};

use crate::sorting::CompactSort;

/// A node of the caller tree: a caller on one path to the method.
#[derive(Debug, Default)]
struct Caller {
    frame: u32,
    own: SampleCount,
    total: SampleCount,
    children: Vec<u32>,
}

impl<'a> Counts<'a> {
    /// Returns the caller tree of a frame in preorder, heaviest callers first: the first row is the method itself, every other row has the
    /// samples in which the method was called on this path. Of a recursion, only the outermost call counts. At most `limit` rows.
    pub fn callers(&self, frame: u32, weight: impl Fn(SampleCount) -> u64, limit: usize) -> Vec<CallNode<'a>> {
        let profile = self.profile();
        let frame_of = |node: u32| profile.nodes[node as usize].frame;
        let above = |node: u32| profile.path(node).skip(1);
        let mut tree = vec![Caller { frame, ..Caller::default() }];
        let mut index = HashMap::<(u32, u32), u32>::default();
        for node in (1..profile.nodes.len() as u32).filter(|node| frame_of(*node) == frame) {
            let (own, total) = (self.own_of(node), self.total_of(node));
            if weight(total) == 0 || above(node).any(|caller| frame_of(caller) == frame) {
                continue;
            }
            let mut at = 0;
            tree[0].own.add(own);
            tree[0].total.add(total);
            for caller in above(node) {
                let key = (at, frame_of(caller));
                at = *index.entry(key).or_insert_with(|| {
                    tree.push(Caller { frame: key.1, ..Caller::default() });
                    let added = tree.len() as u32 - 1;
                    tree[at as usize].children.push(added);
                    added
                });
                tree[at as usize].own.add(own);
                tree[at as usize].total.add(total);
            }
        }
        let mut rows = Vec::new();
        let mut walk = vec![(0_u32, 0)];
        while let Some((at, depth)) = walk.pop().filter(|_| rows.len() < limit) {
            let Caller { frame, own, total, children } = &tree[at as usize];
            rows.push(self.call_node(*frame, depth, *own, *total));
            let mut below: Vec<_> = children.iter().map(|child| (*child, depth + 1)).collect();
            below.compact_sort_by_key(|(child, _)| (weight(tree[*child as usize].total), Reverse(*child)));
            walk.extend(below);
        }
        rows
    }
}
