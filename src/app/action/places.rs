//! What the keys go to, and sets of such places.

/// What the keys go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    List,
    Overview,
    Environment,
    Trace,
    /// Where threads spend their time.
    Methods,
    /// The same as a flame graph, in which arrows move.
    Flame,
    /// The same as a call tree, in which arrows expand and collapse.
    CallTree,
    Allocations,
    /// Where objects of one type are allocated, as a call tree.
    AllocationTree,
    Events,
    Counters,
    Exceptions,
    /// What throws them as a call tree, in which arrows expand and collapse.
    ThrowTree,
    /// A list of what is in a recording: collections, threads, requests, log messages, compiled methods, assemblies.
    Rows,
    /// Why a process is slow.
    Slowdown,
    /// What changed between two recordings.
    Compare,
    Heap,
    Jobs,
    /// A line of text for a filter or a search.
    Line,
    /// A list to choose from.
    Pick,
    /// A list to choose several from.
    PickMany,
    Form,
    /// A line of text in a dialog.
    FormText,
    Palette,
    Reader,
    /// The program ends: recordings are being finished.
    Ending,
}

impl Context {
    pub const ALL: [Self; 26] = [
        Self::List,
        Self::Overview,
        Self::Environment,
        Self::Trace,
        Self::Methods,
        Self::Flame,
        Self::CallTree,
        Self::Allocations,
        Self::AllocationTree,
        Self::Events,
        Self::Counters,
        Self::Exceptions,
        Self::ThrowTree,
        Self::Rows,
        Self::Slowdown,
        Self::Compare,
        Self::Heap,
        Self::Jobs,
        Self::Line,
        Self::Pick,
        Self::PickMany,
        Self::Form,
        Self::FormText,
        Self::Palette,
        Self::Reader,
        Self::Ending,
    ];

    /// Whether the keys go to one of the two panes.
    pub fn is_pane(self) -> bool {
        use Context::{
            AllocationTree, Allocations, CallTree, Compare, Counters, Environment, Events, Exceptions, Flame, Heap, Jobs, List, Methods,
            Overview, Rows, Slowdown, ThrowTree, Trace,
        };
        matches!(
            self,
            List | Overview
                | Environment
                | Trace
                | Methods
                | Flame
                | CallTree
                | Allocations
                | AllocationTree
                | Events
                | Counters
                | Exceptions
                | ThrowTree
                | Rows
                | Slowdown
                | Compare
                | Heap
                | Jobs
        )
    }

    /// Whether letters are text here, not keys.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Line | Self::FormText | Self::Palette)
    }
}

/// A set of contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places(u32);

impl Places {
    const fn of(contexts: &[Context]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < contexts.len() {
            bits |= 1 << contexts[at] as u32;
            at += 1;
        }
        Self(bits)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether tabs as different as an overview and a list are among them: what works there belongs to no single view.
    pub fn is_general(self) -> bool {
        self.contains(Context::Overview) && self.contains(Context::Heap)
    }

    pub fn contains(self, context: Context) -> bool {
        self.0 & 1 << context as u32 != 0
    }
}

pub(super) const LIST: Places = Places::of(&[Context::List]);
pub(super) const OVERVIEW: Places = Places::of(&[Context::Overview]);
pub(super) const ENVIRONMENT: Places = Places::of(&[Context::Environment]);
pub(super) const TRACE: Places = Places::of(&[Context::Trace]);
pub(super) const JOBS: Places = Places::of(&[Context::Jobs]);
pub(super) const FLAME: Places = Places::of(&[Context::Flame]);
pub(super) const CALL_TREE: Places = Places::of(&[Context::CallTree]);
pub(super) const ALLOCATED_TYPES: Places = Places::of(&[Context::Allocations]);
pub(super) const ALLOCATION_TREE: Places = Places::of(&[Context::AllocationTree]);
pub(super) const ALLOCATIONS: Places = ALLOCATED_TYPES.and(ALLOCATION_TREE);
/// The GC tab in all its forms, with the lists of other tabs.
pub(super) const COLLECTIONS: Places = Places::of(&[Context::Rows]).and(ALLOCATIONS);
pub(super) const THROW_TREE: Places = Places::of(&[Context::ThrowTree]);
/// Exceptions in both forms.
pub(super) const EXCEPTIONS: Places = Places::of(&[Context::Exceptions]).and(THROW_TREE);
/// Lists whose rows have rows below them.
pub(super) const TREES: Places = CALL_TREE.and(ALLOCATION_TREE).and(THROW_TREE);
/// Samples as anything but a call tree.
pub(super) const FLAT_METHODS: Places = Places::of(&[Context::Methods]).and(FLAME);
pub(super) const METHODS: Places = FLAT_METHODS.and(CALL_TREE);
/// Where arrows to the sides move.
pub(super) const SIDEWAYS: Places = FLAME.and(TREES);
pub(super) const EVENTS: Places = Places::of(&[Context::Events]);
pub(super) const COUNTERS: Places = Places::of(&[Context::Counters]);
pub(super) const ROWS: Places = Places::of(&[Context::Rows, Context::Exceptions]);
pub(super) const SLOWDOWN: Places = Places::of(&[Context::Slowdown]);
pub(super) const COMPARE: Places = Places::of(&[Context::Compare]);
pub(super) const HEAP: Places = Places::of(&[Context::Heap]);
pub(super) const ANALYSES: Places =
    Places::of(&[Context::Methods]).and(ALLOCATED_TYPES).and(EVENTS).and(COUNTERS).and(ROWS).and(SLOWDOWN).and(COMPARE).and(HEAP);
/// Where arrows to the sides are for nothing else.
pub(super) const PLAIN_DETAIL: Places = OVERVIEW.and(ENVIRONMENT).and(TRACE).and(ANALYSES).and(JOBS);
pub(super) const DETAIL: Places = PLAIN_DETAIL.and(SIDEWAYS);
pub(super) const PLAIN_PANES: Places = LIST.and(PLAIN_DETAIL);
pub(super) const PANES: Places = LIST.and(DETAIL);
/// Methods have another use for its key.
pub(super) const WATCH: Places = LIST
    .and(OVERVIEW)
    .and(ENVIRONMENT)
    .and(TRACE)
    .and(ALLOCATIONS)
    .and(EVENTS)
    .and(COUNTERS)
    .and(ROWS)
    .and(THROW_TREE)
    .and(SLOWDOWN)
    .and(COMPARE)
    .and(HEAP)
    .and(JOBS);
pub(super) const LINE: Places = Places::of(&[Context::Line]);
pub(super) const PICK: Places = Places::of(&[Context::Pick, Context::PickMany]);
pub(super) const PICK_MANY: Places = Places::of(&[Context::PickMany]);
pub(super) const FORM: Places = Places::of(&[Context::Form]);
pub(super) const FORM_TEXT: Places = Places::of(&[Context::FormText]);
pub(super) const PALETTE: Places = Places::of(&[Context::Palette]);
pub(super) const READER: Places = Places::of(&[Context::Reader]);
pub(super) const ENDING: Places = Places::of(&[Context::Ending]);
pub(super) const LISTS: Places = PICK.and(PALETTE);
/// Tabs whose lists have a filter.
pub(super) const LISTED: Places =
    ENVIRONMENT.and(METHODS).and(ALLOCATED_TYPES).and(EVENTS).and(COUNTERS).and(ROWS).and(SLOWDOWN).and(COMPARE).and(HEAP).and(JOBS);
pub(super) const PAGED: Places = PANES.and(LISTS).and(READER).and(LINE);
pub(super) const EVERYWHERE: Places = PANES.and(LINE).and(PICK).and(FORM).and(FORM_TEXT).and(PALETTE).and(READER).and(ENDING);
