//! The stacks of an export, each kept once: a tree whose nodes are frames.

use foldhash::HashMap;

use crate::analysis::{MethodId, Symbols};
use crate::nettrace::Stack;

/// Most nodes; then the tree begins anew.
const NODES: usize = 1 << 16;
/// Most frames of a stack, counted from the leaf. Runtimes write 100.
const DEPTH: usize = 256;
/// Most stack numbers whose node is remembered.
const REMEMBERED: usize = 1 << 16;

/// A node of the tree: a frame below the frames of its callers. 0 is the root, which is no frame.
pub(super) type NodeId = u32;
/// A frame by its number.
pub(super) type FrameId = u32;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Frame {
    /// A method whose name is known.
    Method(MethodId),
    /// Code that nothing names.
    Address(u64),
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: NodeId,
    frame: FrameId,
}

/// All stacks since the tree last began anew.
#[derive(Debug)]
pub(super) struct Stacks {
    symbols: Symbols,
    frames: Vec<Frame>,
    frame_ids: HashMap<Frame, FrameId>,
    nodes: Vec<Node>,
    children: HashMap<(NodeId, FrameId), NodeId>,
    /// By the number that a stack has in the stream, its node and one; 0 where it is not known.
    remembered: Vec<NodeId>,
}

impl Stacks {
    /// No stacks yet, and the names of their frames.
    pub(super) fn new(symbols: Symbols) -> Self {
        Self {
            symbols,
            frames: Vec::new(),
            frame_ids: HashMap::default(),
            nodes: vec![Node { parent: 0, frame: 0 }],
            children: HashMap::default(),
            remembered: Vec::new(),
        }
    }

    /// The node of the leaf of a stack, which has this number in the stream.
    pub(super) fn add(&mut self, number: u32, stack: Option<Stack<'_>>) -> NodeId {
        let number = number as usize;
        if let Some(node) = self.remembered.get(number).filter(|node| **node != 0) {
            return node - 1;
        }
        let Some(stack) = stack else { return 0 };
        let mut node = 0;
        for (depth, address) in stack.frames().take(DEPTH).enumerate().rev() {
            // A return address can stand behind the last byte of its method.
            let address = if depth == 0 { address } else { address.wrapping_sub(1) };
            let frame = self.symbols.find(address).map_or(Frame::Address(address), Frame::Method);
            // Code that the runtime makes to call native code and to be called by it belongs to its caller.
            if !matches!(frame, Frame::Method(method) if self.symbols.is_stub(method)) {
                node = self.child(node, frame);
            }
        }
        if number < REMEMBERED {
            if self.remembered.len() <= number {
                self.remembered.resize(number + 1, 0);
            }
            self.remembered[number] = node + 1;
        }
        node
    }

    /// The node of a frame that a node calls.
    fn child(&mut self, parent: NodeId, frame: Frame) -> NodeId {
        let next = self.frames.len() as FrameId;
        let frame_id = *self.frame_ids.entry(frame).or_insert(next);
        if frame_id == next {
            self.frames.push(frame);
        }
        let next = self.nodes.len() as NodeId;
        let node = *self.children.entry((parent, frame_id)).or_insert(next);
        if node == next {
            self.nodes.push(Node { parent, frame: frame_id });
        }
        node
    }

    /// From here on, numbers of stacks mean others.
    pub(super) fn forget_numbers(&mut self) {
        self.remembered.clear();
    }

    /// Whether the tree has to begin anew.
    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() + DEPTH > NODES
    }

    /// Begins anew: numbers of nodes and frames are given again.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.frame_ids.clear();
        self.nodes.truncate(1);
        self.children.clear();
        self.remembered.clear();
    }

    /// Replaces the content of `path` by the frames of a node, root first.
    pub(super) fn path(&self, mut node: NodeId, path: &mut Vec<FrameId>) {
        path.clear();
        while node != 0 {
            let Node { parent, frame } = self.nodes[node as usize];
            path.push(frame);
            node = parent;
        }
        path.reverse();
    }

    /// How many frames there are.
    pub(super) fn frames(&self) -> FrameId {
        self.frames.len() as FrameId
    }

    /// A frame as text: type and name of a method with its parameters.
    pub(super) fn name(&self, frame: FrameId) -> String {
        match self.frames[frame as usize] {
            Frame::Method(method) => format!("{}{}", self.symbols.full_name(method), self.symbols.parameters(method)),
            Frame::Address(address) => format!("{address:#x}"),
        }
    }

    /// The module of a frame, without extension; empty where it is not known.
    pub(super) fn module(&self, frame: FrameId) -> &str {
        match self.frames[frame as usize] {
            Frame::Method(method) => self.symbols.module(method),
            Frame::Address(_) => "",
        }
    }
}
