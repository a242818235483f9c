//! What a tab shows, apart from where and in which colours.

use super::list::Rows;
use crate::analysis::Timeline;
use crate::app::cursor::Cursor;

/// What a style stands for; a theme says how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    Text,
    /// What matters less.
    Dim,
    /// What matters most.
    Strong,
    /// A heading.
    Accent,
    /// What is well.
    Good,
    /// What asks for a look.
    Warning,
    /// What is wrong.
    Bad,
    /// Sizes.
    Bytes,
    /// Rates and durations.
    Events,
}

/// A labelled value in the line above a list.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The label.
    pub label: &'static str,
    /// The value, with its unit.
    pub value: String,
    /// How the value looks.
    pub role: Role,
}

impl Figure {
    pub(super) fn new(label: &'static str, value: impl ToString, role: Role) -> Self {
        Self { label, value: value.to_string(), role }
    }
}

/// A figure over time.
#[derive(Debug, Clone, Copy)]
pub struct Chart<'a> {
    /// The title.
    pub title: &'static str,
    /// How the curve looks.
    pub role: Role,
    /// Writes a value of its axis.
    pub unit: fn(f64) -> String,
    /// The values.
    pub line: &'a Timeline,
    /// Whether the figure keeps its value until it changes; else it is a sum, and 0 where there is no value.
    pub keeps_value: bool,
}

/// A line of text in pieces. A line of one piece is wrapped.
pub type Line = Vec<(String, Role)>;

/// What is shown of the selected row, or beside the list.
pub enum Side<'a> {
    /// Another list, in which nothing is selected.
    List(Rows<'a>),
    /// Text. Not sanitised.
    Text(Vec<Line>),
}

/// What a tab shows.
pub struct View<'a> {
    /// Key figures, the most important first.
    pub figures: Vec<Figure>,
    /// Charts, of which two have room side by side.
    pub charts: Vec<Chart<'a>>,
    /// The list that the cursor moves in.
    pub list: Rows<'a>,
    /// The selected row, and how far the list is scrolled.
    pub cursor: Cursor,
    /// What is said in place of an empty list.
    pub empty: String,
    /// What is beside or below the list.
    pub side: Option<Side<'a>>,
    /// Label and text of the selected row for the copy menu.
    pub copy: Option<(&'static str, String)>,
}
