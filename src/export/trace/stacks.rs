//! The stacks of an export, deduplicated: a tree whose nodes are frames.

use foldhash::HashMap;

use crate::analysis::{CodeLocation, Images, MethodId, Symbols};
use crate::nettrace::Event;

/// Maximum number of nodes; beyond it the tree is reset.
const MAX_NODES: usize = 1 << 16;
/// Maximum number of frames of a stack, counted from the leaf. Runtimes write 100.
const MAX_DEPTH: usize = 256;
/// Maximum number of cached addresses.
const MAX_ADDRESSES: usize = 1 << 15;
/// Maximum number of cached stack ids.
const MAX_STACK_IDS: usize = 1 << 16;

/// A node of the tree: a frame below those of its callers. 0 is the root, which has no frame.
pub(super) type NodeId = u32;
/// Id of a frame.
pub(super) type FrameId = u32;

/// A distinct frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Frame {
    /// A method with a known name.
    Method(MethodId),
    /// Code of a mapped file.
    Native(CodeLocation),
    /// Code without a name.
    Address(u64),
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: NodeId,
    frame: FrameId,
}

/// All stacks since the last reset.
#[derive(Debug)]
pub(super) struct Stacks {
    symbols: Symbols,
    images: Images,
    frames: Vec<Frame>,
    frame_ids: HashMap<Frame, FrameId>,
    /// By process and code address; `None` for code attributed to its caller.
    known: HashMap<(u32, u64), Option<FrameId>>,
    nodes: Vec<Node>,
    children: HashMap<(NodeId, FrameId), NodeId>,
    /// By stack id in the stream: the process, and the node plus one; 0 if unknown.
    stack_ids: Vec<(u32, NodeId)>,
}

impl Stacks {
    /// Creates an empty tree with the names for its frames.
    pub(super) fn new(symbols: Symbols, images: Images) -> Self {
        Self {
            symbols,
            images,
            frames: Vec::new(),
            frame_ids: HashMap::default(),
            known: HashMap::default(),
            nodes: vec![Node { parent: 0, frame: 0 }],
            children: HashMap::default(),
            stack_ids: Vec::new(),
        }
    }

    /// Returns the leaf node of an event's stack.
    pub(super) fn add(&mut self, event: &Event<'_>) -> NodeId {
        let (number, process) = (event.stack_id() as usize, event.thread().process);
        if let Some((_, node)) = self.stack_ids.get(number).filter(|(of, node)| *node != 0 && *of == process) {
            return node - 1;
        }
        let Some(stack) = event.stack() else { return 0 };
        let mut node = 0;
        for (depth, address) in stack.frames().take(MAX_DEPTH).enumerate().rev() {
            // A return address can be just past the last byte of its method.
            let address = if depth == 0 { address } else { address.wrapping_sub(1) };
            if let Some(frame) = self.frame(process, address) {
                node = self.child(node, frame);
            }
        }
        if number < MAX_STACK_IDS {
            if self.stack_ids.len() <= number {
                self.stack_ids.resize(number + 1, (0, 0));
            }
            self.stack_ids[number] = (process, node + 1);
        }
        node
    }

    /// Returns `None` for stubs that the runtime generates for calls to and from native code: they are attributed to their caller.
    fn frame(&mut self, process: u32, address: u64) -> Option<FrameId> {
        if let Some(known) = self.known.get(&(process, address)) {
            return *known;
        }
        let frame = match self.symbols.find(address) {
            Some(method) if self.symbols.is_stub(method) => None,
            Some(method) => Some(Frame::Method(method)),
            None => Some(self.images.find(process, address).map_or(Frame::Address(address), Frame::Native)),
        };
        let id = frame.map(|frame| self.number(frame));
        if self.known.len() < MAX_ADDRESSES {
            self.known.insert((process, address), id);
        }
        id
    }

    fn number(&mut self, frame: Frame) -> FrameId {
        let next = self.frames.len() as FrameId;
        let id = *self.frame_ids.entry(frame).or_insert(next);
        if id == next {
            self.frames.push(frame);
        }
        id
    }

    /// Returns the child of a node for a called frame.
    fn child(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        let next = self.nodes.len() as NodeId;
        let node = *self.children.entry((parent, frame)).or_insert(next);
        if node == next {
            self.nodes.push(Node { parent, frame });
        }
        node
    }

    /// Forgets the stack ids, which are reassigned from here on.
    pub(super) fn clear_stack_ids(&mut self) {
        self.stack_ids.clear();
    }

    /// Whether the tree must be reset.
    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() + MAX_DEPTH > MAX_NODES
    }

    /// Resets the tree: ids of nodes and frames are reassigned.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.frame_ids.clear();
        self.known.clear();
        self.nodes.truncate(1);
        self.children.clear();
        self.stack_ids.clear();
    }

    /// Replaces the contents of `path` by the frames of a node, root first.
    pub(super) fn path(&self, mut node: NodeId, path: &mut Vec<FrameId>) {
        path.clear();
        while node != 0 {
            let Node { parent, frame } = self.nodes[node as usize];
            path.push(frame);
            node = parent;
        }
        path.reverse();
    }

    /// Returns the number of frames.
    pub(super) fn frame_count(&self) -> FrameId {
        self.frames.len() as FrameId
    }

    /// Returns the text of a frame: type, name and parameters of a method.
    pub(super) fn name(&self, frame: FrameId) -> String {
        match self.frames[frame as usize] {
            Frame::Method(method) => self.method(method),
            Frame::Native(place) => self.images.function(place),
            Frame::Address(address) => format!("{address:#x}"),
        }
    }

    /// Returns the address of a frame without a name.
    pub(super) fn address(&self, frame: FrameId) -> Option<u64> {
        match self.frames[frame as usize] {
            Frame::Address(address) => Some(address),
            Frame::Method(_) | Frame::Native(_) => None,
        }
    }

    /// Returns the method at an address with its parameters, for names that arrived after the stack.
    pub(super) fn method_at(&self, address: u64) -> Option<String> {
        self.symbols.find(address).map(|method| self.method(method))
    }

    fn method(&self, id: MethodId) -> String {
        format!("{}{}", self.symbols.full_name(id), self.symbols.parameters(id))
    }

    /// Sets the names that arrived after the stacks.
    pub(super) fn set_symbols(&mut self, symbols: Symbols) {
        self.symbols = symbols;
    }

    /// Whether a frame is a managed method.
    pub(super) fn is_managed(&self, frame: FrameId) -> bool {
        matches!(self.frames[frame as usize], Frame::Method(_))
    }

    /// Returns the module of a frame, without extension for methods; empty if unknown.
    pub(super) fn module(&self, frame: FrameId) -> &str {
        match self.frames[frame as usize] {
            Frame::Method(method) => self.symbols.module(method),
            Frame::Native(place) => self.images.file(place),
            Frame::Address(_) => "",
        }
    }
}
