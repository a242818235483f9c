//! The stacks of events by type: where objects are allocated, and exceptions thrown.
//!
//! They are kept and shown as those of samples are. A type stands in place of a thread, and what an event weighs in place of nanoseconds.

use super::samples::{Doing, Samples};
use super::stack_cache::StackCache;
use super::tree::{Frame, StackTree};
use super::{CUT, Counts, Profile, ProfileFrame, SampleFilter};
use crate::analysis::Symbols;
use crate::analysis::known::Known;
use crate::analysis::ranking::{Ranking, Row};
use crate::nettrace::ThreadId;
use crate::sorting::CompactSort;
use crate::wire::Utf16;

/// Types that are distinguished.
const TYPES: u64 = 1024;
/// What stands for none.
const NONE: ThreadId = ThreadId::of(TYPES);

/// Counts the stacks of events that each have a type and a weight.
#[derive(Debug)]
pub(in crate::analysis) struct EventStacks {
    tree: StackTree,
    samples: Samples,
    nodes: StackCache<u32>,
    /// By name in UTF-16: the types that weigh least make room for others.
    types: Ranking<Type>,
    /// What stands for no type yet.
    free: Vec<ThreadId>,
}

#[derive(Debug, Default)]
struct Type {
    weight: u64,
    /// What stands for it in the samples.
    number: Option<ThreadId>,
}

impl Row for Type {
    fn weight(&self) -> u64 {
        self.weight
    }

    /// The samples of what is no longer distinguished are put together when its number is used again.
    fn fold(&mut self, _row: Self) {}
}

impl Default for EventStacks {
    fn default() -> Self {
        Self {
            tree: StackTree::default(),
            samples: Samples::default(),
            nodes: StackCache::default(),
            types: Ranking::new(TYPES as usize),
            free: Vec::new(),
        }
    }
}

/// The stacks of events by type, with the names that are known.
#[derive(Debug, Clone, Default)]
pub struct TypeStacks {
    profile: Profile,
    /// Names of types, not sanitised, and what stands for them in the profile.
    types: Vec<(String, ThreadId)>,
}

/// A method in which objects of a type are allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// Type and name with parameters, or an address; empty for events without a stack. Not sanitised.
    pub method: String,
    /// Bytes that its events stand for.
    pub bytes: u64,
    /// Events.
    pub events: u64,
}

impl EventStacks {
    /// Counts an event of a type, with the methods that are known by now.
    pub(in crate::analysis) fn add(&mut self, known: &Known<'_>, symbols: &Symbols, type_name: Utf16<'_>, weight: u64) {
        let kind = self.number(type_name, weight);
        let stack_id = known.event.stack_id();
        let node = match (self.nodes.get(stack_id), known.event.stack()) {
            (Some(node), _) => node,
            (None, Some(stack)) if !stack.is_empty() => {
                let node = self.tree.add(stack.frames(), (stack.len() == CUT).then_some(Frame::CUT), symbols);
                self.nodes.put(stack_id, node);
                node
            }
            (None, _) => StackTree::ROOT,
        };
        self.samples.add_weighted(node, kind, known.at, Doing::Managed, weight);
        if self.tree.is_full() || self.samples.is_full() {
            let weights = self.samples.by_node(self.tree.len());
            let moved = self.tree.make_room(symbols, weights);
            self.samples.make_room(&moved);
            self.nodes.values_mut().for_each(|node| *node = moved[*node as usize]);
        }
    }

    /// What stands for a type, one of whose events weighs so much.
    fn number(&mut self, type_name: Utf16<'_>, weight: u64) -> ThreadId {
        let name = type_name.as_bytes();
        let row = self.types.row(name);
        row.weight = row.weight.saturating_add(weight);
        if let Some(number) = row.number {
            return number;
        }
        if self.free.is_empty() {
            // At first none is used; later the types of half of them have just made room.
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

    /// From here on, numbers of stacks mean others.
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
    /// The events of a type by stack, of all types where none is given; empty for a type that is not distinguished. Each counts as a sample of a thread
    /// that runs.
    pub fn of(&self, type_name: Option<&str>) -> Counts<'_> {
        let number = |name: &str| self.types.iter().find(|(known, _)| known == name).map_or(NONE, |(_, number)| *number);
        self.profile.count(SampleFilter { thread: type_name.map(number), ..SampleFilter::ALL })
    }

    /// The name of what [`StackGroup::threads`](super::StackGroup::threads) has in place of a thread; `None` for types that are not distinguished.
    pub fn type_name(&self, number: ThreadId) -> Option<&str> {
        self.types.iter().find(|(_, known)| *known == number).map(|(name, _)| name.as_str())
    }

    /// The stacks of all types.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Whether no event has a stack.
    pub fn is_empty(&self) -> bool {
        self.of(None).totals().len() < 2
    }

    /// The same without some frames.
    #[must_use]
    pub(in crate::analysis) fn without_frames(self, is_hidden: impl Fn(&ProfileFrame) -> bool) -> Self {
        Self { profile: self.profile.without_frames(is_hidden), ..self }
    }

    /// The methods that allocate objects of a type, those of the most bytes first.
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
