//! What the keys go to, and sets of such places.

use crate::app::listed::listed;

listed! {
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
}

impl Context {
    /// Whether the keys go to one of the two panes.
    pub fn is_pane(self) -> bool {
        PANES.contains(self)
    }

    /// Whether letters are text here, not keys.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Line | Self::FormText | Self::Palette)
    }
}

/// A set of contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places(u64);

impl Places {
    const fn of(contexts: &[Context]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < contexts.len() {
            bits |= 1 << contexts[at] as u64;
            at += 1;
        }
        Self(bits)
    }

    pub(in crate::app) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether tabs as different as an overview and a list are among them: what works there belongs to no single view.
    pub fn is_general(self) -> bool {
        self.contains(Context::Overview) && self.contains(Context::Heap)
    }

    pub fn contains(self, context: Context) -> bool {
        self.0 & 1 << context as u64 != 0
    }
}

pub(in crate::app) const LIST: Places = Places::of(&[Context::List]);
pub(in crate::app) const OVERVIEW: Places = Places::of(&[Context::Overview]);
pub(in crate::app) const ENVIRONMENT: Places = Places::of(&[Context::Environment]);
pub(in crate::app) const TRACE: Places = Places::of(&[Context::Trace]);
pub(in crate::app) const JOBS: Places = Places::of(&[Context::Jobs]);
pub(in crate::app) const FLAME: Places = Places::of(&[Context::Flame]);
pub(in crate::app) const CALL_TREE: Places = Places::of(&[Context::CallTree]);
pub(in crate::app) const ALLOCATED_TYPES: Places = Places::of(&[Context::Allocations]);
pub(in crate::app) const ALLOCATION_TREE: Places = Places::of(&[Context::AllocationTree]);
pub(in crate::app) const ALLOCATIONS: Places = ALLOCATED_TYPES.and(ALLOCATION_TREE);
/// The GC tab in all its forms, with the lists of other tabs.
pub(in crate::app) const COLLECTIONS: Places = Places::of(&[Context::Rows]).and(ALLOCATIONS);
pub(in crate::app) const THROW_TREE: Places = Places::of(&[Context::ThrowTree]);
/// Exceptions in both forms.
pub(in crate::app) const EXCEPTIONS: Places = Places::of(&[Context::Exceptions]).and(THROW_TREE);
/// Lists whose rows have rows below them.
pub(in crate::app) const TREES: Places = CALL_TREE.and(ALLOCATION_TREE).and(THROW_TREE);
/// Samples as anything but a call tree.
pub(in crate::app) const FLAT_METHODS: Places = Places::of(&[Context::Methods]).and(FLAME);
pub(in crate::app) const METHODS: Places = FLAT_METHODS.and(CALL_TREE);
/// Where arrows to the sides move.
pub(in crate::app) const SIDEWAYS: Places = FLAME.and(TREES);
pub(in crate::app) const EVENTS: Places = Places::of(&[Context::Events]);
pub(in crate::app) const COUNTERS: Places = Places::of(&[Context::Counters]);
pub(in crate::app) const ROWS: Places = Places::of(&[Context::Rows, Context::Exceptions]);
pub(in crate::app) const SLOWDOWN: Places = Places::of(&[Context::Slowdown]);
pub(in crate::app) const COMPARE: Places = Places::of(&[Context::Compare]);
pub(in crate::app) const HEAP: Places = Places::of(&[Context::Heap]);
pub(in crate::app) const ANALYSES: Places =
    Places::of(&[Context::Methods]).and(ALLOCATED_TYPES).and(EVENTS).and(COUNTERS).and(ROWS).and(SLOWDOWN).and(COMPARE).and(HEAP);
/// Where arrows to the sides are for nothing else.
pub(in crate::app) const PLAIN_DETAIL: Places = OVERVIEW.and(ENVIRONMENT).and(TRACE).and(ANALYSES).and(JOBS);
pub(in crate::app) const DETAIL: Places = PLAIN_DETAIL.and(SIDEWAYS);
pub(in crate::app) const PLAIN_PANES: Places = LIST.and(PLAIN_DETAIL);
pub(in crate::app) const PANES: Places = LIST.and(DETAIL);
/// Methods have another use for its key.
pub(in crate::app) const WATCH: Places = LIST
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
pub(in crate::app) const LINE: Places = Places::of(&[Context::Line]);
pub(in crate::app) const PICK: Places = Places::of(&[Context::Pick, Context::PickMany]);
pub(in crate::app) const PICK_MANY: Places = Places::of(&[Context::PickMany]);
pub(in crate::app) const FORM: Places = Places::of(&[Context::Form]);
pub(in crate::app) const FORM_TEXT: Places = Places::of(&[Context::FormText]);
pub(in crate::app) const PALETTE: Places = Places::of(&[Context::Palette]);
pub(in crate::app) const READER: Places = Places::of(&[Context::Reader]);
pub(in crate::app) const ENDING: Places = Places::of(&[Context::Ending]);
pub(in crate::app) const LISTS: Places = PICK.and(PALETTE);
/// Tabs whose lists have a filter.
pub(in crate::app) const LISTED: Places =
    ENVIRONMENT.and(METHODS).and(ALLOCATED_TYPES).and(EVENTS).and(COUNTERS).and(ROWS).and(SLOWDOWN).and(COMPARE).and(HEAP).and(JOBS);
pub(in crate::app) const PAGED: Places = PANES.and(LISTS).and(READER).and(LINE);
pub(in crate::app) const EVERYWHERE: Places = PANES.and(LINE).and(PICK).and(FORM).and(FORM_TEXT).and(PALETTE).and(READER).and(ENDING);
