//! A list: rows with an identity, and columns that each say how a row looks in them.

use super::view::{Line, Role, Sign};
use crate::analysis::{Field, Filter};
use crate::app::action::Key;
use crate::app::cursor::Cursor;
use crate::app::pane::Tab;
use crate::app::state::State;

/// How text stands in a column, and what is left of it where it does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// From the left, cut at its end.
    Left,
    /// Against the right edge: numbers.
    Right,
    /// From the left, without its first namespaces: names of types and methods.
    Name,
}

/// A value in a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text; not sanitised.
    Text(String, Role),
    /// Text in pieces; not sanitised.
    Pieces(Line),
    /// Parts of a whole, from the left.
    Meter(Vec<(f64, Role)>),
    /// Values over time, the newest at the right; NaN where there is none.
    Bars(Vec<f64>, Role),
    /// A sign.
    Sign(Sign, Role),
    /// Whether a row is chosen.
    Check(bool),
    /// A key.
    Key(Key),
    /// Text that is not shown, nor found.
    Masked,
    /// A name in a tree, at this depth.
    Node(usize, String, Role),
}

impl Cell {
    /// An empty cell.
    pub const EMPTY: Self = Self::Text(String::new(), Role::Dim);

    pub(in crate::app) fn new(value: impl ToString, role: Role) -> Self {
        Self::Text(value.to_string(), role)
    }

    /// Its text, as far as it is one.
    pub fn into_text(self) -> String {
        match self {
            Self::Text(text, _) | Self::Node(_, text, _) => text,
            Self::Pieces(pieces) => pieces.into_iter().map(|(text, _)| text).collect(),
            Self::Meter(_) | Self::Bars(..) | Self::Sign(..) | Self::Check(_) | Self::Key(_) | Self::Masked => String::new(),
        }
    }

    /// A value that may be unknown.
    pub(super) fn known<T: ToString>(value: Option<T>, role: Role) -> Self {
        value.map_or(Self::EMPTY, |value| Self::new(value, role))
    }
}

/// The heading of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The title.
    pub title: &'static str,
    /// How wide it is; 0 takes what is left.
    pub width: u16,
    /// How wide it is at least; where there is no room for that, it is left out.
    pub least: u16,
    /// How text stands in it.
    pub fit: Fit,
    /// Whether the list is sorted by it.
    pub is_sorted: bool,
}

impl Column {
    /// A text in it, for a filter.
    pub fn field<'a>(&self, text: &'a str) -> Field<'a> {
        if self.fit == Fit::Right { Field::number(self.title, text) } else { Field::text(self.title, text) }
    }
}

/// A list that can be drawn, whatever its rows are.
pub trait List {
    /// Its columns. Where not all have room, the first stay.
    fn columns(&self) -> Vec<Column>;
    /// How many rows it has.
    fn len(&self) -> usize;
    /// Whether it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Identity of a row, the same in a later snapshot.
    fn id(&self, row: usize) -> String;
    /// What a row has in a column.
    fn cell(&self, row: usize, column: usize) -> Cell;
}

/// A list of any rows.
pub type Rows<'a> = Box<dyn List + 'a>;

type CellOf<'a, T> = Box<dyn Fn(&T) -> Cell + 'a>;

/// Rows with their columns.
pub(in crate::app) struct Table<'a, T> {
    pub(in crate::app) rows: Vec<T>,
    id: fn(&T) -> String,
    columns: Vec<(Column, CellOf<'a, T>)>,
}

impl<'a, T: 'a> Table<'a, T> {
    pub(in crate::app) fn new(rows: Vec<T>, id: fn(&T) -> String) -> Self {
        Self { rows, id, columns: Vec::new() }
    }

    /// A column of this width; 0 takes what is left.
    pub(in crate::app) fn column(mut self, title: &'static str, width: u16, fit: Fit, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        self.columns.push((Column { title, width, least: width, fit, is_sorted: false }, Box::new(cell)));
        self
    }

    /// Lets the last column become narrower before others are left out.
    pub(in crate::app) fn shrinking_to(mut self, least: u16) -> Self {
        if let Some((column, _)) = self.columns.last_mut() {
            column.least = least.min(column.width);
        }
        self
    }

    /// A column that is there only where some row needs it.
    pub(in crate::app) fn column_if(self, needed: bool, title: &'static str, width: u16, fit: Fit, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        if needed { self.column(title, width, fit, cell) } else { self }
    }

    /// Marks the column that the list is sorted by.
    pub(super) fn sorted_by(mut self, title: &str) -> Self {
        for (column, _) in &mut self.columns {
            column.is_sorted = column.title == title;
        }
        self
    }

    pub(in crate::app) fn finish(self) -> Rows<'a> {
        Box::new(self)
    }

    /// Leaves only the rows that the tab's filter lets through, and finds the selected one among them.
    pub(super) fn place(mut self, state: &State, tab: Tab) -> Placed<'a, T>
    where
        T: Clone,
    {
        self.filter(state.views.filter(tab));
        let cursor = state.views.selected(tab, self.len(), |row| self.id(row));
        Placed { selected: self.rows.get(cursor.at).cloned(), list: self.finish(), cursor }
    }

    /// Leaves only the rows that a filter lets through.
    pub(in crate::app) fn filter(&mut self, filter: &Filter) {
        if filter.is_empty() {
            return;
        }
        let columns = &self.columns;
        self.rows.retain(|row| {
            let texts: Vec<_> = columns.iter().map(|(column, cell)| (column, cell(row).into_text())).collect();
            filter.passes(&texts.iter().map(|(column, text)| column.field(text)).collect::<Vec<_>>())
        });
    }
}

/// The list of a tab, filtered.
pub(super) struct Placed<'a, T> {
    pub(super) list: Rows<'a>,
    pub(super) cursor: Cursor,
    /// The selected row.
    pub(super) selected: Option<T>,
}

impl<'a, T> Placed<'a, T> {
    /// The same, whatever the rows are.
    pub(super) fn untyped(self) -> Placed<'a, ()> {
        Placed { list: self.list, cursor: self.cursor, selected: None }
    }
}

impl<T> List for Table<'_, T> {
    fn columns(&self) -> Vec<Column> {
        self.columns.iter().map(|(column, _)| *column).collect()
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn id(&self, row: usize) -> String {
        self.rows.get(row).map(self.id).unwrap_or_default()
    }

    fn cell(&self, row: usize, column: usize) -> Cell {
        match (self.rows.get(row), self.columns.get(column)) {
            (Some(row), Some((_, cell))) => cell(row),
            _ => Cell::EMPTY,
        }
    }
}
