//! The content of a tab, independent of layout and colors.

use super::{Graph, Rows, Table};
use crate::app::{Cursor, Finding, FlameGraph};
use crate::model::{Count, Nanoseconds};

/// The meaning of a style; themes define its colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Text,
    Dim,
    Strong,
    Accent,
    Good,
    Warning,
    Bad,
    /// New rows, and keys.
    Key,
    Bytes,
    Events,
    Border,
    Part(usize),
    /// A label with its own background.
    Chip,
    Recording,
}

/// A sign; themes define its character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Waiting,
    Recording,
    Stopping,
    /// Succeeded.
    Yes,
    /// Failed.
    No,
    Trouble,
    Running,
    Watched,
    Gone,
}

/// A labeled value in the line above a list.
#[derive(Debug, Clone)]
pub struct Figure {
    pub label: &'static str,
    /// The value with its unit.
    pub value: String,
    /// Role of the value.
    pub role: Role,
}

impl Figure {
    pub fn new(label: &'static str, value: impl ToString, role: Role) -> Self {
        Self { label, value: value.to_string(), role }
    }

    /// Returns a figure for a count, unless it is 0.
    pub(super) fn if_any(label: &'static str, count: u64, role: Role) -> Option<Self> {
        (count > 0).then(|| Self::new(label, Count(count), role))
    }

    /// Returns the figures for quantiles 0.95 and 0.5 of a duration.
    pub(super) fn quantiles([p50, p95, _]: [u64; 3]) -> [Self; 2] {
        [("p95", p95), ("p50", p50)].map(|(label, ns)| Self::new(label, Nanoseconds(ns), Role::Text))
    }
}

/// A quantity over time.
#[derive(Debug, Clone)]
pub struct Chart {
    pub title: &'static str,
    /// Role of the curve.
    pub role: Role,
    /// Formats a value on the axis.
    pub unit: fn(f64) -> String,
    /// One value per second, the newest last.
    pub values: Vec<f64>,
}

/// A line of text in pieces. If the last piece does not fit, it is wrapped and indented to its start.
pub type Line = Vec<(String, Role)>;

/// A part of the area above a list.
#[derive(Debug, Clone)]
pub enum Head {
    /// Figures, the most important first.
    Figures(Vec<Figure>),
    Text(Line),
}

impl Head {
    pub(super) fn text(text: impl Into<String>, role: Role) -> Self {
        Self::Text(vec![(text.into(), role)])
    }
}

/// The area beside or below a list, with details of the selected row or of the whole list.
pub struct Side<'a> {
    /// The text; not sanitized.
    pub text: Vec<Line>,
    /// Lists below the text, one below the other, without a selection.
    pub lists: Vec<Rows<'a>>,
    /// A chart below the text.
    pub chart: Option<Chart>,
    /// A graph that replaces the chart.
    pub graph: Option<Graph>,
    /// Minimum width at which it is beside the list.
    pub wide: u16,
    /// Whether it is shown below the list if it is not beside it.
    pub below: bool,
    /// Thirds of the height that it may take below the list, if needed.
    pub thirds: u16,
}

impl<'a> Side<'a> {
    /// Default minimum width at which it is beside the list.
    const WIDE: u16 = 150;
    /// The same for lists with many columns, which beside it are no narrower than those of a tab that is 116 columns wide.
    pub(super) const WIDE_FOR_MANY_COLUMNS: u16 = 195;

    pub(super) fn text(text: Vec<Line>) -> Self {
        Self { text, lists: Vec::new(), chart: None, graph: None, wide: Self::WIDE, below: true, thirds: 1 }
    }

    /// Creates a text that is below the list however wide the tab is.
    pub(super) fn footer(text: Vec<Line>) -> Self {
        Self { wide: u16::MAX, ..Self::text(text) }
    }

    pub(super) fn list(list: Rows<'a>) -> Self {
        Self { lists: vec![list], ..Self::text(Vec::new()) }
    }
}

/// The content of a tab.
pub struct View<'a> {
    /// Replaces the line about the recording at the top.
    pub heading: Option<Vec<Line>>,
    pub findings: Vec<Finding>,
    /// Lines above the charts and the list.
    pub head: Vec<Head>,
    /// A small table above the charts, if there is room.
    pub summary: Option<Rows<'a>>,
    /// Charts; up to two are side by side.
    pub charts: Vec<Chart>,
    /// Graphs that replace the charts, as many side by side as fit.
    pub graphs: Vec<Graph>,
    pub list: Rows<'a>,
    /// A flame graph drawn instead of the list.
    pub flame: Option<FlameGraph<'a>>,
    /// Titles of the columns that a filter can search.
    pub filtered: Vec<&'static str>,
    /// The selected row and the scroll offset.
    pub cursor: Cursor,
    /// Text shown instead of an empty list, and its role.
    pub empty: (String, Role),
    /// The area beside or below the list.
    pub side: Option<Side<'a>>,
    /// Label and text of the selected row for the copy menu.
    pub copy: Option<(&'static str, String)>,
}

impl<'a> View<'a> {
    /// Creates a view with only a text.
    pub(super) fn without_rows(text: impl Into<String>) -> Self {
        Self::new(Table::new(Vec::new(), |(): &()| String::new()).finish(), Cursor::default(), text)
    }

    /// Creates a view with only a list.
    pub(super) fn new(list: Rows<'a>, cursor: Cursor, empty: impl Into<String>) -> Self {
        Self {
            heading: None,
            findings: Vec::new(),
            head: Vec::new(),
            summary: None,
            charts: Vec::new(),
            graphs: Vec::new(),
            filtered: list.columns().iter().map(|column| column.title).filter(|title| !title.is_empty()).collect(),
            list,
            flame: None,
            cursor,
            empty: (empty.into(), Role::Dim),
            side: None,
            copy: None,
        }
    }
}
