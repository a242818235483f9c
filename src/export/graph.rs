//! The heap as a graph: objects, their references, and the roots that keep them alive, as a walk over the heap tells them.

use rustc_hash::FxHashMap;

use crate::clr::EventKind;
use crate::clr::payload::{
    BulkEdge, BulkNode, BulkRootEdge, BulkRootStaticVariable, BulkType, BulkWeakTableEdge, Fields, Payload, RootKind,
};
use crate::nettrace::{Event, Metadata, Sink, TraceHeader};

/// Most objects: with their addresses these are 800 MB.
const NODES: usize = 1 << 25;
/// Most references: 1 GB.
const EDGES: usize = 1 << 27;
/// Most roots and most references of each other kind, and most types.
const OTHERS: usize = 1 << 22;
/// Longest name that is kept, characters.
const LONGEST: usize = 1024;

/// Gathers the graph while the session goes on. The file needs addresses of objects that come last for references that come first, so all of it is kept:
/// 24 bytes for an object, 8 for a reference, and never more than there is room for.
#[derive(Debug, Default)]
pub struct HeapGraph {
    /// By metadata index.
    kinds: Vec<EventKind>,
    pointer_size: u8,
    type_index: FxHashMap<u64, u32>,
    pub(super) types: Vec<String>,
    pub(super) nodes: Vec<Node>,
    /// Addresses, in the order of the nodes that hold them.
    pub(super) edges: Vec<u64>,
    pub(super) roots: Vec<(u64, Root)>,
    pub(super) statics: Vec<Static>,
    /// An object, and another that is alive as long as it is.
    pub(super) dependents: Vec<(u64, u64)>,
    is_full: bool,
    is_wanted: bool,
}

/// An object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) address: u64,
    pub(super) size: u32,
    /// Index of its type.
    pub(super) kind: u32,
    pub(super) edges: u32,
}

/// Why an object is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    Local,
    Finalizer,
    Pinned,
    Strong,
    Reference,
    Other,
}

impl Root {
    pub(super) const ALL: [Self; 6] = [Self::Local, Self::Finalizer, Self::Pinned, Self::Strong, Self::Reference, Self::Other];

    /// What it is called in a file of this kind.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Local => "[local vars]",
            Self::Finalizer => "[FinalizerQueue]",
            Self::Pinned => "[PinnedHandle]",
            Self::Strong => "[StrongHandle]",
            Self::Reference => "[COM/WinRT Objects]",
            Self::Other => "[other Handles]",
        }
    }
}

/// A static variable and the object in it.
#[derive(Debug)]
pub(super) struct Static {
    pub(super) object: u64,
    pub(super) kind: u32,
    pub(super) name: String,
    pub(super) of_thread: bool,
}

impl HeapGraph {
    /// Waits for a walk. One that is not wanted stays empty.
    pub fn new(is_wanted: bool) -> Self {
        Self { is_wanted, ..Self::default() }
    }

    /// Whether there was more than there is room for. What there is then makes no whole graph.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn is_64_bit(&self) -> bool {
        self.pointer_size != 4
    }

    fn type_of(&mut self, id: u64) -> u32 {
        let next = self.types.len() as u32;
        if self.types.len() >= OTHERS && !self.type_index.contains_key(&id) {
            self.is_full = true;
            return 0;
        }
        let index = *self.type_index.entry(id).or_insert(next);
        if index == next {
            self.types.push(String::new());
        }
        index
    }

    fn nodes(&mut self, nodes: BulkNode<'_>) {
        if nodes.index == 0 && !self.nodes.is_empty() {
            // Another walk: of the one before only the names of types still count.
            self.nodes.clear();
            self.edges.clear();
        }
        for node in nodes.nodes() {
            if self.nodes.len() >= NODES {
                self.is_full = true;
                return;
            }
            let kind = self.type_of(node.type_id);
            let size = node.size.min(i32::MAX as u64) as u32;
            let Ok(edges) = u32::try_from(node.edges) else {
                self.is_full = true;
                return;
            };
            self.nodes.push(Node { address: node.address, size, kind, edges });
        }
    }

    fn edges(&mut self, edges: BulkEdge<'_>) {
        let told = edges.edges();
        if self.edges.len() + told.len() > EDGES {
            self.is_full = true;
            return;
        }
        self.edges.extend(told.map(|edge| edge.target));
    }

    fn roots(&mut self, roots: BulkRootEdge<'_>) {
        for root in roots.roots().filter(|root| root.object != 0 && !root.is_weak()) {
            let kind = match root.kind {
                RootKind::Stack => Root::Local,
                RootKind::Finalizer => Root::Finalizer,
                RootKind::Handle if root.is_pinning() => Root::Pinned,
                RootKind::Handle if root.is_counted() => Root::Reference,
                RootKind::Handle => Root::Strong,
                RootKind::Other => Root::Other,
            };
            self.has_room(self.roots.len()).then(|| self.roots.push((root.object, kind)));
        }
    }

    fn statics(&mut self, statics: BulkRootStaticVariable<'_>) {
        for found in statics.filter(|found| found.object != 0) {
            let kind = self.type_of(found.type_id);
            let name = found.name.chars().take(LONGEST).collect();
            let found = Static { object: found.object, kind, name, of_thread: found.is_of_thread() };
            self.has_room(self.statics.len()).then(|| self.statics.push(found));
        }
    }

    fn has_room(&mut self, count: usize) -> bool {
        self.is_full |= count >= OTHERS;
        count < OTHERS
    }

    fn feed(&mut self, kind: EventKind, fields: Fields<'_>) -> Option<()> {
        match kind {
            EventKind::BulkType => {
                for named in BulkType::read(fields)? {
                    let index = self.type_of(named.id);
                    self.types[index as usize] = named.name.chars().take(LONGEST).collect();
                }
            }
            EventKind::BulkNode => self.nodes(BulkNode::read(fields)?),
            EventKind::BulkEdge => self.edges(BulkEdge::read(fields)?),
            EventKind::BulkRootEdge => self.roots(BulkRootEdge::read(fields)?),
            EventKind::BulkRootStaticVariable => self.statics(BulkRootStaticVariable::read(fields)?),
            EventKind::BulkWeakTableEdge => {
                for edge in BulkWeakTableEdge::read(fields)?.edges().filter(|edge| edge.key != 0 && edge.value != 0) {
                    self.has_room(self.dependents.len()).then(|| self.dependents.push((edge.key, edge.value)));
                }
            }
            _ => {}
        }
        Some(())
    }
}

impl Sink for HeapGraph {
    fn trace(&mut self, header: &TraceHeader) {
        self.pointer_size = header.pointer_size;
        self.kinds = vec![EventKind::Other];
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(if self.is_wanted { EventKind::of(metadata) } else { EventKind::Other });
    }

    fn event(&mut self, event: &Event<'_>) {
        let kind = self.kinds.get(event.metadata.index as usize).copied().unwrap_or_default();
        if kind != EventKind::Other {
            // What makes no sense is missing then, which the analysis of the same stream says.
            let _ = self.feed(kind, Fields::of(event, self.pointer_size));
        }
    }
}
