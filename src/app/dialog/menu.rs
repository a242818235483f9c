//! The menu of what can be copied.

use crate::app::cursor::Cursor;

/// What can be copied.
#[derive(Debug)]
pub struct CopyMenu {
    /// The selected line.
    pub cursor: Cursor,
    /// The lines.
    pub items: Vec<CopyItem>,
}

/// A line of the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyItem {
    /// What it is.
    pub label: &'static str,
    /// The text.
    pub text: String,
}
