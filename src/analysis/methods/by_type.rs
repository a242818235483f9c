//! Stacks of events by type: allocated objects and thrown exceptions.
//!
//! They are stored and shown like the stacks of samples, with the type in place of the thread and the weight in place of nanoseconds.

use super::samples::{Samples, ThreadState};
use super::stack_cache::StackCache;
use super::tree::{Frame, StackTree};
use super::{CUT, Counts, Profile, ProfileFrame, SampleFilter};
use crate::analysis::Symbols;
use crate::analysis::event_context::EventContext;
use crate::analysis::ranking::{Ranking, Row};
use crate::nettrace::ThreadId;
use crate::sorting::CompactSort;
use crate::wire::Utf16;

/// Maximum number of distinct types.
const TYPES: u64 = 1024;
/// ID that represents no type.
const NONE: ThreadId = ThreadId::of(TYPES);

/// Counts the stacks of events with a type and a weight.
#[derive(Debug, Default)]
pub(in crate::analysis) struct EventStacks {
    tree: StackTree,
    samples: Samples,
    nodes: StackCache<u32>,
    /// By name in UTF-16; the types with the least weight are evicted.
    types: Ranking<Type>,
    /// Unused IDs.
    free: Vec<ThreadId>,
}

#[derive(Debug, Default)]
struct Type {
    weight: u64,
    /// ID that represents the type in the samples.
    number: Option<ThreadId>,
}

impl Row for Type {
    const LIMIT: usize = TYPES as usize;

    fn weight(&self) -> u64 {
        self.weight
    }

    /// The samples of an evicted type are merged when its ID is reused.
    fn fold(&mut self, _row: Self) {}
}

/// Stacks of events by type, with resolved names.
#[derive(Debug, Clone, Default)]
pub struct TypeStacks {
    profile: Profile,
    /// Type names (not sanitized) with the IDs that represent them in the profile.
    types: Vec<(String, ThreadId)>,
}

/// A method that allocates objects of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// Type and method name with parameters, or an address; empty for events without a stack. Not sanitized.
    pub method: String,
    /// Bytes represented by its events.
    pub bytes: u64,
    /// Number of events.
    pub events: u64,
}

impl EventStacks {
    /// Counts an event of a type, resolving its stack with the currently known methods.
    pub(in crate::analysis) fn add(&mut self, context: &EventContext<'_>, symbols: &Symbols, type_name: Utf16<'_>, weight: u64) {
        let kind = self.number(type_name, weight);
        let stack_id = context.event.stack_id();
        let node = match (self.nodes.get(stack_id), context.event.stack()) {
            (Some(node), _) => node,
            (None, Some(stack)) if !stack.is_empty() => {
                let node = self.tree.add(stack.frames(), (stack.len() == CUT).then_some(Frame::CUT), symbols);
                self.nodes.put(stack_id, node);
                node
            }
            (None, _) => StackTree::ROOT,
        };
        self.samples.add_weighted(node, kind, context.at, ThreadState::Managed, weight);
        if self.tree.is_full() || self.samples.is_full() {
            let weights = self.samples.by_node(self.tree.len());
            let moved = self.tree.make_room(symbols, weights);
            self.samples.make_room(&moved);
            self.nodes.values_mut().for_each(|node| *node = moved[*node as usize]);
        }
    }

    /// Returns the ID of a type, adding the weight of an event.
    fn number(&mut self, type_name: Utf16<'_>, weight: u64) -> ThreadId {
        let name = type_name.as_bytes();
        let row = self.types.row(name);
        row.weight = row.weight.saturating_add(weight);
        if let Some(number) = row.number {
            return number;
        }
        if self.free.is_empty() {
            // At first all IDs are unused; later, half of the types have just been evicted.
            let mut used: Vec<_> = self.types.rows().filter_map(|(_, row)| row.number).collect();
            used.sort_unstable();
            let is_free = |number: ThreadId| used.binary_search(&number).is_err();
            self.samples.fold_threads(is_free);
            self.free.extend((0..TYPES).rev().map(ThreadId::of).filter(|number| is_free(*number)));
        }
        let number = self.free.pop();
        self.types.row(name).number = number;
        number.unwrap_or(ThreadId::OTHERS)
    }

    /// Drops cached stack IDs, which have new meanings from here on.
    pub(in crate::analysis) fn forget_stacks(&mut self) {
        self.nodes.clear();
    }

    pub(in crate::analysis) fn snapshot(&self, symbols: &Symbols) -> TypeStacks {
        let mut types: Vec<_> = self.types.rows().filter_map(|(name, row)| Some((Utf16::new(name).to_string(), row.number?))).collect();
        types.compact_sort_by_key(|(_, number)| *number);
        TypeStacks { profile: Profile::new(&self.tree, &self.samples, symbols, 0), types }
    }
}

impl TypeStacks {
    /// Returns the events of a type by stack, or of all types if none is given; empty for a type without an ID. Each event counts as a sample
    /// of a running thread.
    pub fn of(&self, type_name: Option<&str>) -> Counts<'_> {
        let number = |name: &str| self.types.iter().find(|(known, _)| known == name).map_or(NONE, |(_, number)| *number);
        self.profile.count(SampleFilter { thread: type_name.map(number), ..SampleFilter::ALL })
    }

    /// Returns the type name of an ID used as a thread in [`StackGroup::threads`](super::StackGroup::threads); `None` if there is none.
    pub fn type_name(&self, number: ThreadId) -> Option<&str> {
        self.types.iter().find(|(_, known)| *known == number).map(|(name, _)| name.as_str())
    }

    /// Returns the stacks of all types.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns whether no event has a stack.
    pub fn is_empty(&self) -> bool {
        self.profile.nodes.len() < 2
    }

    /// Returns a copy without the hidden frames.
    #[must_use]
    pub(in crate::analysis) fn without_frames(self, is_hidden: &dyn Fn(&ProfileFrame) -> bool) -> Self {
        Self { profile: self.profile.without_frames(is_hidden), ..self }
    }

    /// Returns the methods that allocate objects of a type, by bytes in descending order.
    pub fn call_sites(&self, type_name: &str, limit: usize) -> Vec<CallSite> {
        let counts = self.of(Some(type_name));
        let without = counts.own_of(StackTree::ROOT);
        let without = (without.all() > 0).then(|| CallSite { method: String::new(), bytes: without.all_ns(), events: without.all() });
        let methods = counts.methods(usize::MAX).into_iter().filter(|method| method.own.all() > 0).map(|method| {
            let (bytes, events) = (method.own.all_ns(), method.own.all());
            CallSite { method: method.name + &method.parameters, bytes, events }
        });
        let mut sites: Vec<_> = methods.chain(without).collect();
        sites.compact_sort_by_key(|site| std::cmp::Reverse(site.bytes));
        sites.truncate(limit);
        sites
    }
}
