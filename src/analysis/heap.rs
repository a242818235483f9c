//! Heap contents: objects by type, from a heap walk during a full collection.
//!
//! A session with the keywords 0x1980001 makes the runtime start a full collection immediately and report every live object and every
//! reference in separate events: an object has a reference count, and the references follow in the same order in events of their own. So the
//! sums must match, and the events are numbered: missing data can be detected.

use std::fmt;

use foldhash::HashMap;

use crate::clr::payload::{BulkEdge, BulkNode, BulkType, GcEnd, GcStart, GcType};
use crate::clr::{EventKind, TypeArguments, type_name};
use crate::sorting::CompactSort;

use super::Symbols;
use super::event_context::EventContext;
use super::names::{NameId, Names};

/// Maximum number of distinct types.
const TYPES: usize = 1 << 17;
/// Maximum number of types in a snapshot.
const TOP: usize = 1000;

/// Counts objects by type.
#[derive(Debug, Default)]
pub(super) struct Heap {
    names: Names,
    /// Name and module by type ID.
    name_of: HashMap<u64, (NameId, u64)>,
    /// The latest collection that may walk the heap.
    collection: Option<u32>,
    walk: Walk,
}

/// A single heap walk.
#[derive(Debug, Default)]
struct Walk {
    collection: Option<u32>,
    types: HashMap<u64, Objects>,
    others: Objects,
    all: Objects,
    /// Number of references according to the objects.
    expected_edges: u64,
    edges: u64,
    node_events: Events,
    edge_events: Events,
    lost: u64,
    is_finished: bool,
}

/// Numbered events of one kind.
#[derive(Debug, Default)]
struct Events {
    seen: u32,
    missing: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Objects {
    count: u64,
    bytes: u64,
}

/// Result of a heap walk.
#[derive(Debug, Clone)]
pub struct HeapSnapshot {
    /// Number of objects.
    pub objects: u64,
    /// Size of all objects, in bytes.
    pub bytes: u64,
    /// Number of references between objects.
    pub references: u64,
    /// Types by size, descending; at most 1000.
    pub types: Vec<HeapType>,
    /// Types that are not listed: their number, objects and bytes.
    pub others: (u64, u64, u64),
    /// Whether the walk is complete. Until then the figures cover what was reported so far.
    pub is_finished: bool,
    /// Problems with the figures; empty if the walk is complete and consistent.
    pub problems: Vec<HeapProblem>,
}

/// Objects of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapType {
    /// Type name with type arguments in angle brackets; empty if unknown. Not sanitized.
    pub name: String,
    /// Module name without extension; empty if unknown. Not sanitized.
    pub module: String,
    /// Number of objects.
    pub objects: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// A reason why the figures of a heap walk may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapProblem {
    /// The number of reported references differs from the sum over all objects.
    ReferenceCountMismatch {
        /// Sum over all objects.
        expected: u64,
        /// Number of references reported.
        reported: u64,
    },
    /// Number of events missing, determined from their indexes.
    EventsMissing(u64),
    /// Number of events dropped by the runtime during the walk.
    EventsLost(u64),
    /// Number of objects whose type was not reported, because another session received it before.
    TypesUnknown(u64),
    /// Number of objects whose types have no names in the file.
    TypesUnnamed(u64),
    /// Approximate percentage of the objects that PerfView kept in the file; 0 for less than 1.
    Sampled(u32),
}

impl fmt::Display for HeapProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReferenceCountMismatch { expected, reported } => {
                write!(f, "the figures do not add up: objects hold {expected} references, and {reported} were reported")
            }
            Self::EventsMissing(count) => write!(f, "{count} events are missing: there are more objects than these"),
            Self::EventsLost(count) => write!(f, "the runtime dropped {count} events: there may be more objects than these"),
            Self::TypesUnknown(count) => write!(f, "the types of {count} objects are missing: an earlier session may have received them"),
            Self::TypesUnnamed(count) => write!(f, "the types of {count} objects have no names in the file"),
            Self::Sampled(percent) => {
                let share = if *percent == 0 { "less than 1".to_owned() } else { format!("about {percent}") };
                write!(f, "the file is a sample of {share} % of the objects: there are more objects than these")
            }
        }
    }
}

impl HeapSnapshot {
    /// Creates the result of a complete walk without problems, from the objects of all types and the number of references.
    pub fn new(mut types: Vec<HeapType>, references: u64) -> Self {
        let sum =
            |types: &[HeapType]| types.iter().fold((0, 0), |(objects, bytes), of| (objects + of.objects, of.bytes.saturating_add(bytes)));
        let (objects, bytes) = sum(&types);
        types.compact_sort_by(|a, b| (b.bytes, b.objects, &a.name, &a.module).cmp(&(a.bytes, a.objects, &b.name, &b.module)));
        let rest = types.split_off(types.len().min(TOP));
        let others = sum(&rest);
        let others = (rest.len() as u64, others.0, others.1);
        Self { objects, bytes, references, types, others, is_finished: true, problems: Vec::new() }
    }

    /// Returns whether every reference of every object was reported, so that references can be followed. Types may be missing: their objects
    /// have no names.
    pub fn has_all_references(&self) -> bool {
        let is_harmless = |problem: &HeapProblem| {
            matches!(problem, HeapProblem::TypesUnknown(_) | HeapProblem::TypesUnnamed(_) | HeapProblem::Sampled(_))
        };
        self.is_finished && self.problems.iter().all(is_harmless)
    }

    /// Returns whether the figures are complete and consistent.
    pub fn is_exact(&self) -> bool {
        self.is_finished && self.problems.is_empty()
    }
}

impl Events {
    /// Processes the index of an event and returns whether it starts another walk.
    fn next(&mut self, index: u32) -> bool {
        if index == 0 && self.seen > 0 {
            return true;
        }
        self.missing += u64::from(index.saturating_sub(self.seen));
        self.seen = index.saturating_add(1);
        false
    }
}

impl Objects {
    fn add(&mut self, count: u64, bytes: u64) {
        self.count += count;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl Heap {
    /// Counts an event with `reported` of `count` entries, which starts another walk if its index is 0 again.
    fn event(&mut self, of: fn(&mut Walk) -> &mut Events, index: u32, count: u32, reported: usize) -> &mut Walk {
        if of(&mut self.walk).next(index) {
            self.walk = Walk::default();
            of(&mut self.walk).next(index);
        }
        let walk = &mut self.walk;
        walk.collection = walk.collection.or(self.collection);
        // An event with fewer entries than its count is incomplete.
        of(walk).missing += u64::from(reported < count as usize);
        walk
    }

    fn nodes(&mut self, nodes: BulkNode<'_>) {
        let reported = nodes.rows();
        let walk = self.event(|walk| &mut walk.node_events, nodes.index, nodes.count, reported.len());
        for node in reported {
            walk.all.add(1, node.size);
            walk.expected_edges = walk.expected_edges.saturating_add(node.edges);
            let is_full = walk.types.len() >= TYPES && !walk.types.contains_key(&node.type_id);
            let of_type = if is_full { &mut walk.others } else { walk.types.entry(node.type_id).or_default() };
            of_type.add(1, node.size);
        }
    }

    fn edges(&mut self, edges: BulkEdge<'_>) {
        let reported = edges.rows().len();
        self.event(|walk| &mut walk.edge_events, edges.index, edges.count, reported).edges += reported as u64;
    }

    fn types(&mut self, types: BulkType<'_>) {
        for named in types {
            if self.name_of.len() < TYPES || self.name_of.contains_key(&named.id) {
                let name = self.names.add(named.name);
                self.name_of.insert(named.id, (name, named.module));
            }
        }
    }

    /// Counts events dropped by the runtime. Events of other threads may be among them, which is harmless but cannot be distinguished.
    pub(super) fn events_lost(&mut self, count: u32) {
        if self.walk.all.count > 0 && !self.walk.is_finished {
            self.walk.lost += u64::from(count);
        }
    }

    /// Returns the number of objects and bytes so far; `None` if no walk started.
    pub(super) fn progress(&self) -> Option<(u64, u64)> {
        let Objects { count, bytes } = self.walk.all;
        (count > 0).then_some((count, bytes))
    }

    fn problems(&self) -> Vec<HeapProblem> {
        let walk = &self.walk;
        let mut problems = Vec::new();
        let missing = walk.node_events.missing + walk.edge_events.missing;
        if missing > 0 {
            problems.push(HeapProblem::EventsMissing(missing));
        }
        if walk.lost > 0 {
            problems.push(HeapProblem::EventsLost(walk.lost));
        }
        if walk.is_finished && walk.expected_edges != walk.edges {
            problems.push(HeapProblem::ReferenceCountMismatch { expected: walk.expected_edges, reported: walk.edges });
        }
        let unknown: u64 = walk.types.iter().filter(|(id, _)| !self.name_of.contains_key(id)).map(|(_, objects)| objects.count).sum();
        if walk.is_finished && unknown > 0 {
            problems.push(HeapProblem::TypesUnknown(unknown));
        }
        problems
    }

    pub(super) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        match context.kind {
            EventKind::BulkType => self.types(context.payload()?),
            EventKind::BulkNode => self.nodes(context.payload()?),
            EventKind::BulkEdge => self.edges(context.payload()?),
            EventKind::GcStart => {
                let start: GcStart = context.payload()?;
                if start.generation == 2 && start.kind != GcType::BACKGROUND {
                    self.collection = Some(start.number);
                }
            }
            EventKind::GcEnd => {
                let end: GcEnd = context.payload()?;
                if self.walk.collection == Some(end.number) {
                    self.walk.is_finished = true;
                }
            }
            _ => {}
        }
        Some(())
    }

    pub(super) fn snapshot(&self, symbols: &Symbols) -> Option<HeapSnapshot> {
        let (objects, bytes) = self.progress()?;
        // A module may be loaded more than once.
        let mut by_name = HashMap::<(NameId, &str), Objects>::default();
        for (id, objects) in &self.walk.types {
            let (name, module) = self.name_of.get(id).copied().unwrap_or_default();
            by_name.entry((name, symbols.module_name(module))).or_default().add(objects.count, objects.bytes);
        }
        let named = |((name, module), objects): ((NameId, &str), Objects)| HeapType {
            name: type_name(self.names.get(name), TypeArguments::Full),
            module: module.to_owned(),
            objects: objects.count,
            bytes: objects.bytes,
        };
        let found = HeapSnapshot::new(by_name.into_iter().map(named).collect(), self.walk.edges);
        let (types, of_others, bytes_of_others) = found.others;
        let rest = self.walk.others;
        Some(HeapSnapshot {
            objects,
            bytes,
            others: (types, of_others + rest.count, rest.bytes.saturating_add(bytes_of_others)),
            is_finished: self.walk.is_finished,
            problems: self.problems(),
            ..found
        })
    }
}
