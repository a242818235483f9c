//! The panes, and the kinds of table rows.

use crate::model::FileKind;

/// The pane with the keyboard focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Focus {
    #[default]
    List,
    Detail,
}

/// The kind of the selected row, which determines its tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    Process,
    File(FileKind),
}

impl RowKind {
    pub(super) fn is_process(self) -> bool {
        self == Self::Process
    }

    /// Whether the row can have a recording: all kinds but heap files.
    pub(super) fn can_have_recording(self) -> bool {
        self != Self::File(FileKind::Heap)
    }
}
