//! The heap as a graph: objects, references, and the roots that keep them alive, as reported by a heap walk.

use foldhash::HashMap;

use super::address_index::AddressIndex;
use crate::analysis::{HeapType, ObjectGraph, Retention, module_name};
use crate::clr::EventKind;
use crate::clr::payload::{
    BulkEdge, BulkNode, BulkRootEdge, BulkRootStaticVariable, BulkType, BulkWeakTableEdge, Fields, ModuleLoad, Payload, RootKind,
};
use crate::clr::{TypeArguments, type_name};
use crate::nettrace::{ByMetadata, Event, Metadata, Sink, TraceHeader};

/// Upper limit for the size of a graph, in bytes.
const MAX_GRAPH_BYTES: u64 = 2 << 30;
/// Maximum number of modules.
const MAX_MODULES: usize = 1 << 14;
/// Maximum length of a name that is kept, in characters.
const MAX_NAME_CHARS: usize = 1024;

/// Collects the graph during the session. The file needs the addresses of the last objects for the first references, so everything is kept in
/// memory: 20 bytes per object and 8 per reference, up to a limit. Beyond the limit the graph is discarded.
#[derive(Debug, Clone, Default)]
pub struct HeapGraph {
    /// By metadata index.
    kinds: ByMetadata<EventKind>,
    pointer_size: u8,
    type_index: HashMap<u64, u32>,
    pub(super) types: Vec<Type>,
    /// Paths of modules.
    modules: HashMap<u64, String>,
    /// Addresses of objects.
    pub(super) addresses: Vec<u64>,
    /// The same objects as in `addresses`.
    pub(super) nodes: Vec<Node>,
    /// Target addresses of references, in the order of the referencing nodes.
    pub(super) edges: Vec<u64>,
    pub(super) roots: Vec<(u64, Root)>,
    pub(super) statics: Vec<Static>,
    /// An object, and another one that it keeps alive through a dependent handle.
    pub(super) dependents: Vec<(u64, u64)>,
    /// Kinds of which the first event of this walk was received.
    begun: Vec<EventKind>,
    /// Memory limit in bytes; `used` is the memory in use.
    limit: u64,
    used: u64,
    is_full: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Type {
    /// Empty if unknown.
    pub(super) name: String,
    module: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) size: u32,
    /// Index of the type.
    pub(super) kind: u32,
    pub(super) edges: u32,
}

listed! {
/// A kind of root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    Local => ["[local vars]", "local variable"],
    Finalizer => ["[FinalizerQueue]", "finalizer queue"],
    Pinned => ["[PinnedHandle]", "pinned handle"],
    Strong => ["[StrongHandle]", "strong handle"],
    Reference => ["[COM/WinRT Objects]", "reference-counted handle"],
    Other => ["[other Handles]", "other runtime root"],
}
/// The name in a `.gcdump` file, and the one to display.
pub(super) fn names(self) -> [&'static str; 2];
}

/// A static variable and the object that it references.
#[derive(Debug, Clone)]
pub(super) struct Static {
    pub(super) object: u64,
    pub(super) kind: u32,
    pub(super) name: String,
    pub(super) is_thread_static: bool,
}

/// Describes a static variable as a root. The type in the event of a runtime is that of the variable; its class is not reported.
pub(super) fn static_variable(name: &str, of_type: &str, is_thread_static: bool) -> String {
    let what = if is_thread_static { "thread-static variable" } else { "static variable" };
    if of_type.is_empty() { format!("{what} {name}") } else { format!("{what} {name} ({of_type})") }
}

impl HeapGraph {
    /// Creates an empty graph that takes at most `limit` bytes. With `limit` 0 no graph is collected.
    pub fn new(limit: u64) -> Self {
        Self { limit: limit.min(MAX_GRAPH_BYTES), ..Self::default() }
    }

    /// Whether the limit was exceeded. The graph is incomplete then.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns what keeps the objects of these types alive, and what they retain. `None` if the memory was insufficient for the graph or for the
    /// computation. The graph must be complete: if the walk was aborted or lost events, references may lead anywhere.
    pub fn retention(&self, types: &[HeapType]) -> Option<Retention> {
        if self.is_full || self.nodes.is_empty() {
            return None;
        }
        let mut graph = ObjectGraph::new(self.nodes.len(), self.edges.len() + self.dependents.len())?;
        graph.types = types.iter().map(|named| named.name.clone()).collect();
        // Merge types with the same name and module.
        let mut known: HashMap<(&str, &str), u32> = types.iter().zip(0..).map(|(of, number)| ((&*of.name, &*of.module), number)).collect();
        let mut is_known = vec![false; types.len()];
        let mut numbers = Vec::with_capacity(self.types.len());
        for (kind, index) in self.types.iter().zip(0..) {
            let module = module_name(self.module(index).unwrap_or_default());
            let number = *known.entry((kind.name.as_str(), module)).or_insert_with(|| {
                graph.types.push(kind.name.clone());
                graph.types.len() as u32 - 1
            });
            is_known.get_mut(number as usize).into_iter().for_each(|known| *known = true);
            numbers.push(number);
        }

        let mut address_index = AddressIndex::new(&self.addresses);
        let dependents = self.sorted_dependents();
        for (_, node, targets) in self.objects(&dependents) {
            graph.push(node.size, numbers[node.kind as usize], targets.filter_map(|target| address_index.find(target)));
        }
        let type_name = |kind: u32| self.types.get(kind as usize).map_or("", |of| of.name.as_str());
        let text = self.statics.iter().map(|found| (found.name.len() + type_name(found.kind).len()) as u64).sum::<u64>();
        if text > self.unused_bytes() {
            return None;
        }
        for Static { object, kind, name, is_thread_static } in &self.statics {
            graph.root(static_variable(name, type_name(*kind), *is_thread_static), address_index.find(*object).into_iter());
        }
        for kind in [Root::Local, Root::Strong, Root::Pinned, Root::Reference, Root::Other, Root::Finalizer] {
            let of_kind = self.roots.iter().filter(|(_, root)| *root == kind);
            graph.root(kind.names()[1], of_kind.filter_map(|(object, _)| address_index.find(*object)));
        }
        let mut retention = graph.retention(types.len())?;
        for (of, known) in retention.types.iter_mut().zip(is_known) {
            *of = of.take().filter(|_| known);
        }
        Some(retention)
    }

    /// Returns the keys and values of the dependent handles, sorted by key.
    pub(super) fn sorted_dependents(&self) -> Vec<(u64, u64)> {
        let mut dependents = self.dependents.clone();
        dependents.sort_unstable();
        dependents
    }

    /// Iterates over the objects: the address, and the targets of non-null references and of [dependent handles](Self::sorted_dependents).
    pub(super) fn objects<'g>(
        &'g self,
        dependents: &'g [(u64, u64)],
    ) -> impl Iterator<Item = (u64, &'g Node, impl Iterator<Item = u64> + Clone + 'g)> {
        let mut edges = &self.edges[..];
        self.addresses.iter().zip(&self.nodes).map(move |(address, node)| {
            let (own, others) = edges.split_at((node.edges as usize).min(edges.len()));
            edges = others;
            let first = dependents.partition_point(|(key, _)| key < address);
            let kept = dependents[first..].iter().take_while(move |(key, _)| key == address).map(|(_, value)| *value);
            (*address, node, own.iter().copied().filter(|target| *target != 0).chain(kept))
        })
    }

    /// Returns the path of a type's module, if known.
    pub(super) fn module(&self, kind: u32) -> Option<&str> {
        let module = self.types.get(kind as usize)?.module;
        self.modules.get(&module).map(String::as_str).filter(|path| !path.is_empty())
    }

    pub(super) fn is_64_bit(&self) -> bool {
        self.pointer_size != 4
    }

    /// Returns the part of the memory limit that is not in use, in bytes.
    pub(super) fn unused_bytes(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    fn type_of(&mut self, id: u64) -> Option<u32> {
        if let Some(index) = self.type_index.get(&id) {
            return Some(*index);
        }
        self.reserve(2 * size_of::<(u64, u32)>() + size_of::<Type>())?;
        let index = self.types.len() as u32;
        self.type_index.insert(id, index);
        self.types.push(Type::default());
        Some(index)
    }

    /// Returns the start of a name, if the memory limit permits.
    fn name(&mut self, name: impl Iterator<Item = char>) -> Option<String> {
        let name: String = name.take(MAX_NAME_CHARS).collect();
        self.reserve(name.len()).map(|()| name)
    }

    /// Reserves memory. Once the limit is exceeded, the graph is discarded and stays empty.
    fn reserve(&mut self, bytes: usize) -> Option<()> {
        self.used += bytes as u64;
        if self.used <= self.limit {
            return Some(());
        }
        *self = Self { is_full: true, ..Self::default() };
        None
    }

    /// Processes the index of an event. If it is the first of its kind again, another walk has begun.
    fn begin(&mut self, kind: EventKind, index: u32) {
        if index != 0 {
            return;
        }
        if self.begun.contains(&kind) {
            self.restart();
        }
        self.begun.push(kind);
    }

    /// Starts another walk: only the names of types and modules remain valid.
    fn restart(&mut self) {
        let Self { addresses, nodes, edges, roots, statics, dependents, begun, used, .. } = self;
        let names: usize = statics.iter().map(|found| found.name.len()).sum();
        let objects = size_of_val(&**addresses) + size_of_val(&**nodes) + size_of_val(&**edges);
        let roots_and_handles = size_of_val(&**roots) + size_of_val(&**statics) + size_of_val(&**dependents);
        *used -= (objects + roots_and_handles + names) as u64;
        addresses.clear();
        nodes.clear();
        edges.clear();
        roots.clear();
        statics.clear();
        dependents.clear();
        begun.clear();
    }

    fn nodes(&mut self, nodes: BulkNode<'_>) -> Option<()> {
        self.begin(EventKind::BulkNode, nodes.index);
        for node in nodes.rows() {
            let kind = self.type_of(node.type_id)?;
            self.reserve(size_of::<u64>() + size_of::<Node>())?;
            let size = node.size.min(i32::MAX as u64) as u32;
            // No process has room for more references.
            let edges = u32::try_from(node.edges).unwrap_or(u32::MAX);
            self.addresses.push(node.address);
            self.nodes.push(Node { size, kind, edges });
        }
        Some(())
    }

    fn edges(&mut self, edges: BulkEdge<'_>) -> Option<()> {
        self.begin(EventKind::BulkEdge, edges.index);
        let edges = edges.rows();
        self.reserve(edges.len() * size_of::<u64>())?;
        self.edges.extend(edges.map(|edge| edge.target));
        Some(())
    }

    fn roots(&mut self, roots: BulkRootEdge<'_>) -> Option<()> {
        self.begin(EventKind::BulkRootEdge, roots.index);
        for root in roots.rows().filter(|root| root.object != 0 && !root.is_weak()) {
            let kind = match root.kind {
                RootKind::Stack => Root::Local,
                RootKind::Finalizer => Root::Finalizer,
                RootKind::Handle if root.is_pinning() => Root::Pinned,
                RootKind::Handle if root.is_ref_counted() => Root::Reference,
                RootKind::Handle => Root::Strong,
                RootKind::Other => Root::Other,
            };
            self.reserve(size_of::<(u64, Root)>())?;
            self.roots.push((root.object, kind));
        }
        Some(())
    }

    fn statics(&mut self, statics: BulkRootStaticVariable<'_>) -> Option<()> {
        // They have no index. Runtimes report them before the objects (`GCProfileWalkHeap`).
        if self.begun.contains(&EventKind::BulkNode) {
            self.restart();
        }
        for found in statics.filter(|found| found.object != 0) {
            let kind = self.type_of(found.type_id)?;
            let name = self.name(found.name.chars())?;
            self.reserve(size_of::<Static>())?;
            self.statics.push(Static { object: found.object, kind, name, is_thread_static: found.is_thread_static() });
        }
        Some(())
    }

    fn dependents(&mut self, edges: BulkWeakTableEdge<'_>) -> Option<()> {
        self.begin(EventKind::BulkWeakTableEdge, edges.index);
        for edge in edges.rows().filter(|edge| edge.key != 0 && edge.value != 0) {
            self.reserve(size_of::<(u64, u64)>())?;
            self.dependents.push((edge.key, edge.value));
        }
        Some(())
    }

    fn feed(&mut self, kind: EventKind, fields: Fields<'_>) -> Option<()> {
        match kind {
            EventKind::BulkType => {
                for named in BulkType::read(fields)? {
                    let index = self.type_of(named.id)?;
                    let name: String = named.name.chars().take(MAX_NAME_CHARS).collect();
                    let name = self.name(type_name(&name, TypeArguments::Full).chars())?;
                    let before = std::mem::replace(&mut self.types[index as usize], Type { name, module: named.module });
                    self.used -= before.name.len() as u64;
                }
            }
            EventKind::ModuleLoad | EventKind::ModuleRundown => {
                let load = ModuleLoad::read(fields)?;
                if self.modules.len() < MAX_MODULES && !self.modules.contains_key(&load.module) {
                    let path = self.name(load.path.chars())?;
                    self.modules.insert(load.module, path);
                }
            }
            EventKind::BulkNode => self.nodes(BulkNode::read(fields)?)?,
            EventKind::BulkEdge => self.edges(BulkEdge::read(fields)?)?,
            EventKind::BulkRootEdge => self.roots(BulkRootEdge::read(fields)?)?,
            EventKind::BulkRootStaticVariable => self.statics(BulkRootStaticVariable::read(fields)?)?,
            EventKind::BulkWeakTableEdge => self.dependents(BulkWeakTableEdge::read(fields)?)?,
            _ => {}
        }
        Some(())
    }
}

impl Sink for HeapGraph {
    fn trace(&mut self, header: &TraceHeader) {
        self.pointer_size = header.pointer_size;
        self.kinds = ByMetadata::default();
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(if self.limit > 0 { EventKind::of(metadata) } else { EventKind::Other });
    }

    fn event(&mut self, event: &Event<'_>) {
        let kind = self.kinds.of(event.metadata);
        if kind != EventKind::Other {
            // The parts of an invalid payload are missing, which the analysis of the same stream reports.
            let _ = self.feed(kind, Fields::of(event, self.pointer_size));
        }
    }
}
