//! Stacks in a tree, sharing common outer frames.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::super::{MethodId, Symbols};

/// Maximum number of nodes.
const NODES: usize = 1 << 17;
/// Number of new nodes after which names are resolved to save memory.
const MANY: usize = 1 << 12;
/// Maximum number of frames of a stack, counted from the leaf.
const DEPTH: usize = 256;

/// A tree of stacks, from the outermost frames on.
#[derive(Debug)]
pub(super) struct StackTree {
    /// The root first; every node follows its parent.
    nodes: Vec<Node>,
    /// All nodes but the root, by parent and frame.
    children: HashTable<u32>,
    hasher: RandomState,
    /// Number of nodes after names were last resolved.
    named: usize,
    /// An empty tree whose memory is reused: names are resolved on changing threads, and an allocator does not return what each of them frees.
    spare: Option<Box<Self>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) parent: u32,
    pub(super) frame: Frame,
}

/// Frame of a node: a method, an address whose method is not known yet, folded stacks, or the missing callers of a truncated stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Frame(u64);

/// Decoded frame.
pub(super) enum DecodedFrame {
    Method(MethodId),
    Address(u64),
    Folded,
    Cut,
    Broken,
}

impl Frame {
    pub(super) const FOLDED: Self = Self(u64::MAX);
    pub(super) const CUT: Self = Self(u64::MAX - 1);
    /// The outermost frames are missing because code in between does not maintain the frame pointer.
    pub(super) const BROKEN: Self = Self(u64::MAX - 2);
    /// Marks a method. Never set in an address, as it would be in the kernel half.
    const METHOD: u64 = 1 << 63;

    fn of(address: u64, symbols: &Symbols) -> Self {
        symbols.find(address).map_or(Self(address & !Self::METHOD), Self::of_method)
    }

    fn of_method(method: MethodId) -> Self {
        Self(Self::METHOD | u64::from(method.0))
    }

    pub(super) fn decode(self) -> DecodedFrame {
        match self {
            Self::FOLDED => DecodedFrame::Folded,
            Self::CUT => DecodedFrame::Cut,
            Self::BROKEN => DecodedFrame::Broken,
            Self(frame) if frame & Self::METHOD != 0 => DecodedFrame::Method(MethodId(frame as u32)),
            Self(address) => DecodedFrame::Address(address),
        }
    }

    /// Returns the frame of a return address.
    pub(super) fn within_call(return_address: u64) -> Self {
        Self(return_address.wrapping_sub(1) & !Self::METHOD)
    }

    /// Returns the address, if it is one.
    pub(super) fn address(self) -> Option<u64> {
        if let DecodedFrame::Address(address) = self.decode() { Some(address) } else { None }
    }

    /// Returns what this frame does for its caller, see [`Symbols::in_context`]; `None` if it cannot be told apart from it.
    pub(super) fn called_by(self, caller: Self, symbols: &Symbols) -> Option<Self> {
        match (self.decode(), caller.decode()) {
            (DecodedFrame::Method(method), DecodedFrame::Method(caller)) if symbols.is_nameless(method) => {
                Some(symbols.in_context(method, caller)).filter(|part| *part != caller).map(Self::of_method)
            }
            _ => Some(self),
        }
    }

    /// Returns the frame as a method, if it is known by now.
    pub(super) fn resolved(self, symbols: &Symbols) -> Self {
        if self.0 & Self::METHOD != 0 { self } else { Self::of(self.0, symbols) }
    }
}

impl Default for StackTree {
    fn default() -> Self {
        let root = Node { parent: 0, frame: Frame(0) };
        Self { nodes: vec![root], children: HashTable::new(), hasher: RandomState::default(), named: 0, spare: None }
    }
}

impl StackTree {
    /// The root of all stacks, which has no frame.
    pub(super) const ROOT: u32 = 0;

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the addresses of methods that are not known yet, sorted.
    pub(super) fn addresses(&self) -> Vec<u64> {
        let mut addresses: Vec<_> = self.nodes.iter().skip(1).filter_map(|node| node.frame.address()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// Returns whether the lightest stacks were folded.
    pub(super) fn is_folded(&self) -> bool {
        self.nodes.iter().any(|node| node.frame == Frame::FOLDED)
    }

    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() + DEPTH > NODES
    }

    /// Whether there are many more nodes than after names were last resolved.
    pub(super) fn has_grown(&self) -> bool {
        self.nodes.len() > self.named + MANY
    }

    /// Returns an empty tree, to be given back with [`Self::finish_naming`].
    pub(super) fn take_spare(&mut self) -> Self {
        self.spare.take().map(|spare| *spare).unwrap_or_default()
    }

    /// Records that names were resolved.
    pub(super) fn finish_naming(&mut self, mut spare: Self) {
        spare.clear();
        (self.named, self.spare) = (self.len(), Some(Box::new(spare)));
    }

    /// Removes all stacks.
    pub(super) fn clear(&mut self) {
        self.nodes.truncate(1);
        self.children.clear();
    }

    /// Swaps the stacks of two trees.
    pub(super) fn swap(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.nodes, &mut other.nodes);
        std::mem::swap(&mut self.children, &mut other.children);
        std::mem::swap(&mut self.hasher, &mut other.hasher);
    }

    /// Returns the node of a stack's leaf. Frames are leaf first; `missing` represents missing outer frames.
    pub(super) fn add(
        &mut self,
        frames: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator,
        missing: Option<Frame>,
        symbols: &Symbols,
    ) -> u32 {
        let root = missing.map_or(Self::ROOT, |missing| self.child(Self::ROOT, missing));
        let frames = frames.take(DEPTH).enumerate().rev();
        frames.fold(root, |parent, (depth, address)| {
            // A return address can be just past the last byte of its method.
            let address = if depth == 0 { address } else { address.wrapping_sub(1) };
            self.child(parent, Frame::of(address, symbols))
        })
    }

    pub(super) fn child(&mut self, parent: u32, frame: Frame) -> u32 {
        let Self { nodes, children, hasher, .. } = self;
        let (child, next) = (Node { parent, frame }, nodes.len() as u32);
        let hash = |index: &u32| hasher.hash_one(nodes[*index as usize]);
        match children.entry(hasher.hash_one(child), |index| nodes[*index as usize] == child, hash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                place.insert(next);
                nodes.push(child);
                next
            }
        }
    }

    /// Merges nodes that turned out to be the same method, and folds the lightest stacks if that is not enough. `weights` are the samples of
    /// each node. Returns the new node of every old one.
    pub(super) fn make_room(&mut self, symbols: &Symbols, mut weights: Vec<u64>) -> Vec<u32> {
        let mut merged = Self::default();
        let moved = self.move_to(&mut merged, |node| node.frame.resolved(symbols));
        let mut new_weights = vec![0; merged.len()];
        for (old, new) in moved.iter().enumerate() {
            new_weights[*new as usize] += weights[old];
        }
        weights = new_weights;
        for node in (1..merged.len()).rev() {
            weights[merged.nodes[node].parent as usize] += weights[node];
        }
        let keep = NODES / 4;
        if merged.len() <= 2 * keep {
            *self = merged;
            return moved;
        }
        let mut sorted = weights.clone();
        let (heavier, threshold, _) = sorted.select_nth_unstable_by(keep, |a, b| b.cmp(a));
        debug_assert!(heavier.len() == keep);
        let threshold = *threshold;
        let mut folded = Self::default();
        // A node is never heavier than its parent, so the nodes that are kept are connected.
        let mut places = vec![Self::ROOT; merged.len()];
        for (index, node) in merged.nodes.iter().enumerate().skip(1) {
            let parent = places[node.parent as usize];
            let is_folded = folded.nodes[parent as usize].frame == Frame::FOLDED && parent != Self::ROOT;
            places[index] = match (is_folded, weights[index] > threshold) {
                (true, _) => parent,
                (false, true) => folded.child(parent, node.frame),
                (false, false) => folded.child(parent, Frame::FOLDED),
            };
        }
        *self = folded;
        moved.into_iter().map(|node| places[node as usize]).collect()
    }

    /// Adds every node to another tree under its new name, and returns its index there.
    fn move_to(&self, other: &mut Self, name: impl Fn(&Node) -> Frame) -> Vec<u32> {
        let mut moved = vec![Self::ROOT; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            moved[index] = other.child(moved[node.parent as usize], name(node));
        }
        moved
    }
}
