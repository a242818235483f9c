//! Contexts that key presses are routed to, and sets of them.

listed! {
/// The view, dialog or text field that receives key presses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    List,
    Overview,
    Environment,
    Trace,
    /// Samples by method.
    Methods,
    /// Samples as a flame graph, where arrow keys move between frames.
    Flame,
    /// Samples as a call tree, where arrow keys expand and collapse.
    CallTree,
    Allocations,
    /// Allocation sites of one type as a call tree.
    AllocationTree,
    Events,
    Counters,
    Exceptions,
    /// Throw sites as a call tree, where arrow keys expand and collapse.
    ThrowTree,
    /// Garbage collections, in the same tab as allocations.
    Collections,
    /// A list of a recording's contents: threads, requests, log messages, compiled methods, assemblies.
    Rows,
    /// The slowdown report.
    Slowdown,
    /// The comparison of two recordings.
    Compare,
    Heap,
    Jobs,
    /// A single-line input for a filter or a search.
    Line,
    /// A list with a single choice.
    Pick,
    /// A list with multiple choices.
    PickMany,
    Form,
    /// A text field in a dialog.
    FormText,
    Palette,
    Reader,
    /// dn-top is shutting down and recordings are being finalized.
    Ending,
}
}

impl Context {
    /// Returns whether this is one of the two panes.
    pub fn is_pane(self) -> bool {
        PANES.contains(self)
    }

    /// Returns whether letters are input here rather than commands.
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

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the set includes both the overview and the heap tab: a key that works in such different tabs is not specific to one
    /// view.
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
/// All forms of the GC tab.
pub(in crate::app) const COLLECTIONS: Places = Places::of(&[Context::Collections]).and(ALLOCATIONS);
pub(in crate::app) const THROW_TREE: Places = Places::of(&[Context::ThrowTree]);
/// Both forms of the exceptions tab.
pub(in crate::app) const EXCEPTIONS: Places = Places::of(&[Context::Exceptions]).and(THROW_TREE);
/// Lists with expandable rows.
pub(in crate::app) const TREES: Places = CALL_TREE.and(ALLOCATION_TREE).and(THROW_TREE);
/// All forms of the samples except the call tree.
pub(in crate::app) const FLAT_METHODS: Places = Places::of(&[Context::Methods]).and(FLAME);
pub(in crate::app) const METHODS: Places = FLAT_METHODS.and(CALL_TREE);
/// Where Left and Right move within the view.
pub(in crate::app) const SIDEWAYS: Places = FLAME.and(TREES);
pub(in crate::app) const EVENTS: Places = Places::of(&[Context::Events]);
pub(in crate::app) const COUNTERS: Places = Places::of(&[Context::Counters]);
pub(in crate::app) const ROWS: Places = Places::of(&[Context::Rows, Context::Collections, Context::Exceptions]);
pub(in crate::app) const SLOWDOWN: Places = Places::of(&[Context::Slowdown]);
pub(in crate::app) const COMPARE: Places = Places::of(&[Context::Compare]);
pub(in crate::app) const HEAP: Places = Places::of(&[Context::Heap]);
pub(in crate::app) const ANALYSES: Places =
    Places::of(&[Context::Methods]).and(ALLOCATED_TYPES).and(EVENTS).and(COUNTERS).and(ROWS).and(SLOWDOWN).and(COMPARE).and(HEAP);
/// Where Left and Right are free to switch tabs.
pub(in crate::app) const PLAIN_DETAIL: Places = OVERVIEW.and(ENVIRONMENT).and(TRACE).and(ANALYSES).and(JOBS);
pub(in crate::app) const DETAIL: Places = PLAIN_DETAIL.and(SIDEWAYS);
pub(in crate::app) const PLAIN_PANES: Places = LIST.and(PLAIN_DETAIL);
pub(in crate::app) const PANES: Places = LIST.and(DETAIL);
/// Excludes the methods tab, where the key has another meaning.
pub(in crate::app) const WATCH: Places = PANES.without(METHODS);
pub(in crate::app) const LINE: Places = Places::of(&[Context::Line]);
pub(in crate::app) const PICK: Places = Places::of(&[Context::Pick, Context::PickMany]);
pub(in crate::app) const PICK_MANY: Places = Places::of(&[Context::PickMany]);
pub(in crate::app) const FORM: Places = Places::of(&[Context::Form]);
pub(in crate::app) const FORM_TEXT: Places = Places::of(&[Context::FormText]);
/// Dialogs, whether or not a text field has the focus.
pub(in crate::app) const FIELDS: Places = FORM.and(FORM_TEXT);
pub(in crate::app) const PALETTE: Places = Places::of(&[Context::Palette]);
pub(in crate::app) const READER: Places = Places::of(&[Context::Reader]);
pub(in crate::app) const ENDING: Places = Places::of(&[Context::Ending]);
pub(in crate::app) const LISTS: Places = PICK.and(PALETTE);
/// Tabs with a filterable list.
pub(in crate::app) const LISTED: Places = DETAIL.without(OVERVIEW).without(TRACE).without(ALLOCATION_TREE).without(THROW_TREE);
/// Where letters can be keys that move.
pub(in crate::app) const STEPPED: Places = PANES.and(PICK).and(READER);
pub(in crate::app) const PAGED: Places = PANES.and(LISTS).and(READER).and(LINE);
pub(in crate::app) const EVERYWHERE: Places = Places::of(&Context::ALL);
