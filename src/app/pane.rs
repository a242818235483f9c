//! The panes, and what a row of the table is.

use crate::model::FileKind;

/// Which pane the keys go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Focus {
    #[default]
    List,
    Detail,
}

/// What the selected row is: each kind has its tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    Process,
    File(FileKind),
}

impl RowKind {
    pub(super) fn is_process(self) -> bool {
        self == Self::Process
    }

    /// Whether it can have been recorded: all but a file of a heap.
    pub(super) fn is_traced(self) -> bool {
        self != Self::File(FileKind::Heap)
    }
}
