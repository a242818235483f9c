//! A list: rows with an identity, and columns that each make a cell of a row.

use ratatui::layout::Rect;

use super::cell::Cell;
use super::geometry::column_slots;
use crate::analysis::{Field, Filter, name_rank};
use crate::app::cursor::Cursor;
use crate::app::state::State;
use crate::app::tabs::Tab;
use crate::app::views::TabSort;
use crate::sorting::CompactSort;

/// How text stands in a column, and what is left of it where it does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// From the left, cut at its end.
    Left,
    /// Against the right edge: numbers.
    Right,
    /// Against the right edge: identifiers, which are found as text is.
    Id,
    /// From the left, without its first namespaces: names of types and methods.
    Name,
    /// From the left, without its last parts: parts with commas in between, the most important first.
    Parts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub title: &'static str,
    /// How wide it is; 0 takes what is left.
    pub width: u16,
    /// How wide it is at least; where there is no room for that, it is left out.
    pub least: u16,
    /// How wide it may become where the list's subject has more room than names need.
    pub most: u16,
    /// How text stands in it.
    pub fit: Fit,
    pub sorted: Option<Direction>,
    /// Whether the list can be sorted by it.
    pub sortable: bool,
}

/// The direction of a sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The smallest first.
    Ascending,
    /// The largest first.
    Descending,
}

impl Direction {
    pub(in crate::app) fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }
}

impl Column {
    /// The direction in which it is sorted first: the largest quantity, or the first letter.
    pub(in crate::app) fn first_direction(&self) -> Direction {
        if self.fit == Fit::Right { Direction::Descending } else { Direction::Ascending }
    }

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
    /// Where each column is in an area: its left end and its width; `None` where it has no room.
    fn slots(&self, area: Rect) -> Vec<Option<(u16, u16)>> {
        column_slots(&self.columns(), area)
    }
    /// Identity of a row, the same in a later snapshot.
    fn id(&self, row: usize) -> String;
    fn cell(&self, row: usize, column: usize) -> Cell;
}

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
        self.columns.push((Column { title, width, least: width, most: width, fit, sorted: None, sortable: false }, Box::new(cell)));
        self
    }

    /// Lets the last column become narrower before others are left out.
    pub(in crate::app) fn shrinking_to(mut self, least: u16) -> Self {
        if let Some((column, _)) = self.columns.last_mut() {
            column.least = least.min(column.width);
        }
        self
    }

    /// Lets the last column become wider where there is much room.
    pub(in crate::app) fn growing_to(mut self, most: u16) -> Self {
        if let Some((column, _)) = self.columns.last_mut() {
            column.most = most.max(column.width);
        }
        self
    }

    /// A column that is there only where some row needs it.
    pub(in crate::app) fn column_if(self, needed: bool, title: &'static str, width: u16, fit: Fit, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        if needed { self.column(title, width, fit, cell) } else { self }
    }

    /// Marks the column that the rows are sorted by, the largest first.
    pub(super) fn sorted_by(mut self, title: &str) -> Self {
        for (column, _) in &mut self.columns {
            column.sorted = (column.title == title).then_some(Direction::Descending);
        }
        self
    }

    /// Lets the list be sorted by these columns; the rows are sorted by the caller.
    pub(super) fn sortable_by(mut self, titles: &[&str], sort: Option<TabSort>) -> Self {
        for (column, _) in &mut self.columns {
            column.sortable = titles.contains(&column.title);
            if let Some(sort) = sort.filter(|_| titles.iter().any(|title| sort.is_some_and(|sort| sort.column == *title))) {
                column.sorted = (column.title == sort.column).then_some(sort.direction);
            }
        }
        self
    }

    /// Lets the list be sorted by every column with a title whose cells have something to sort by, and sorts it as a tab is sorted.
    fn sort(&mut self, sort: Option<TabSort>) {
        let first = self.rows.first();
        for (column, cell) in &mut self.columns {
            let is_picture = first.is_some_and(|row| matches!(cell(row), Cell::Bars(..) | Cell::Meter(_) | Cell::Masked));
            column.sortable = !column.title.is_empty() && !is_picture;
        }
        let Some(sort) = sort else { return };
        let Some(by) = self.columns.iter().position(|(column, _)| column.sortable && column.title == sort.column) else { return };
        for (column, _) in &mut self.columns {
            column.sorted = (column.title == sort.column).then_some(sort.direction);
        }
        let cell = &self.columns[by].1;
        let mut rows: Vec<_> = self.rows.drain(..).map(|row| (cell(&row).into_sort_key(), row)).collect();
        rows.compact_sort_by(|(a, _), (b, _)| a.compare(b, sort.direction));
        self.rows.extend(rows.into_iter().map(|(_, row)| row));
    }

    pub(in crate::app) fn finish(self) -> Rows<'a> {
        Box::new(self)
    }

    /// Leaves only the rows that the tab's filter lets through, sorts them, and finds the selected one among them.
    pub(super) fn place(mut self, state: &State, tab: Tab) -> Placed<'a, T>
    where
        T: Clone,
    {
        self.filter(state.views.filter(tab));
        self.sorted(state, tab)
    }

    /// Sorts rows that are filtered already, and finds the selected one among them.
    pub(super) fn sorted(mut self, state: &State, tab: Tab) -> Placed<'a, T>
    where
        T: Clone,
    {
        self.sort(state.views.sort(tab));
        self.in_order(state, tab)
    }

    /// Finds the selected one among rows that are in order.
    pub(super) fn in_order(self, state: &State, tab: Tab) -> Placed<'a, T>
    where
        T: Clone,
    {
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

    /// Puts those rows first whose text in the column of this title is what was typed, then those whose text begins so.
    pub(in crate::app) fn sort_by_name(&mut self, title: &str, typed: &str) {
        if let Some((_, name)) = self.columns.iter().find(|(column, _)| column.title == title) {
            self.rows.sort_by_cached_key(|row| name_rank(typed, &name(row).into_text()));
        }
    }
}

/// The list of a tab, filtered.
pub(super) struct Placed<'a, T> {
    pub(super) list: Rows<'a>,
    pub(super) cursor: Cursor,
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
