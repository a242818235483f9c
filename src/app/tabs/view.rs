//! What a tab shows, apart from where and in which colours.

use super::list::Rows;
use super::overview::Graph;
use crate::analysis::Timeline;
use crate::app::cursor::Cursor;
use crate::app::findings::Finding;

/// What a style stands for; a theme has its colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Text,
    Dim,
    Strong,
    Accent,
    Good,
    Warning,
    Bad,
    /// What is new, and keys.
    Key,
    Bytes,
    Events,
    Border,
    Part(usize),
    /// A label on a ground of its own.
    Chip,
    Recording,
}

/// A sign; a theme has its character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Waiting,
    Recording,
    Stopping,
    /// Well.
    Yes,
    /// Failed.
    No,
    Trouble,
    Running,
    Watched,
    Gone,
}

/// A labelled value in the line above a list.
#[derive(Debug, Clone)]
pub struct Figure {
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
    pub title: &'static str,
    /// How the curve looks.
    pub role: Role,
    /// Writes a value of its axis.
    pub unit: fn(f64) -> String,
    pub line: &'a Timeline,
    /// Whether the figure keeps its value until it changes; else it is a sum, and 0 where there is no value.
    pub keeps_value: bool,
}

/// A line of text in pieces. The last is wrapped where it does not fit, and goes on below where it begins.
pub type Line = Vec<(String, Role)>;

/// What stands above a list.
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

/// The history of a value, one for each second.
#[derive(Debug, Clone)]
pub struct Plot {
    pub title: &'static str,
    /// Writes a value of its axis.
    pub unit: fn(f64) -> String,
    /// The values, the newest last.
    pub values: Vec<f64>,
}

/// What is beside or below a list: about the selected row, or about all of it.
pub struct Side<'a> {
    /// Text. Not sanitised.
    pub text: Vec<Line>,
    /// Lists below the text, one below the other, in which nothing is selected.
    pub lists: Vec<Rows<'a>>,
    /// A curve below the text.
    pub plot: Option<Plot>,
    /// A graph in place of it.
    pub graph: Option<Graph>,
    /// From how many columns on it is beside the list.
    pub wide: u16,
    /// Whether it is below the list where it is not beside it.
    pub below: bool,
    /// Thirds of the height that it has below the list, if it needs so much.
    pub thirds: u16,
}

impl<'a> Side<'a> {
    /// From this width on, what is about the selected row is beside the list unless a tab needs less.
    const WIDE: u16 = 150;

    pub(super) fn text(text: Vec<Line>) -> Self {
        Self { text, lists: Vec::new(), plot: None, graph: None, wide: Self::WIDE, below: true, thirds: 1 }
    }

    pub(super) fn list(list: Rows<'a>) -> Self {
        Self { lists: vec![list], ..Self::text(Vec::new()) }
    }
}

/// What a tab shows.
pub struct View<'a> {
    /// What stands above everything else instead of the line about the recording.
    pub heading: Option<Vec<Line>>,
    pub findings: Vec<Finding>,
    /// What stands above the charts and the list.
    pub head: Vec<Head>,
    /// A small table above the charts, where there is room for it.
    pub summary: Option<Rows<'a>>,
    /// Charts, of which two have room side by side.
    pub charts: Vec<Chart<'a>>,
    /// Graphs in place of charts, as many as have room side by side.
    pub graphs: Vec<Graph>,
    pub list: Rows<'a>,
    /// The titles of the columns in which a filter can look for words.
    pub filtered: Vec<&'static str>,
    /// The selected row, and how far the list is scrolled.
    pub cursor: Cursor,
    /// The text in place of an empty list.
    pub empty: (String, Role),
    /// What is beside or below the list.
    pub side: Option<Side<'a>>,
    /// Label and text of the selected row for the copy menu.
    pub copy: Option<(&'static str, String)>,
}

impl<'a> View<'a> {
    /// A list, and nothing else yet.
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
            cursor,
            empty: (empty.into(), Role::Dim),
            side: None,
            copy: None,
        }
    }
}
