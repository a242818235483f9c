//! Lists: rows with an identity, and columns that produce a cell for each row.

use ratatui::layout::Rect;

use super::geometry::column_slots;
use super::{Cell, View};
use crate::analysis::{Field, Filter, name_rank};
use crate::app::{Cursor, Direction, Sort, State, Tab};
use crate::sorting::CompactSort;

/// The alignment of text in a column, and how it is shortened if it does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Left-aligned, truncated at the end.
    Left,
    /// Right-aligned numbers.
    Right,
    /// Right-aligned identifiers, which filters match as text.
    Id,
    /// Left-aligned names of types and methods, shortened by dropping leading namespaces.
    Name,
    /// Left-aligned names of programs, without their start if they have dots: those of the programs of a company begin with the same word.
    Suffix,
    /// Left-aligned paths, without their start: files of one program differ at the end of their names.
    Path,
    /// Left-aligned comma-separated parts, the most important first, shortened by dropping the last ones.
    Parts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub title: &'static str,
    /// Width; 0 takes the remaining width.
    pub width: u16,
    /// Minimum width; without room for it, the column is hidden.
    pub min_width: u16,
    /// Maximum width, used if the column of width 0 has more than names need.
    pub max_width: u16,
    /// Minimum width of the list with which the column is shown: in a narrower one, the column of width 0 needs the room.
    pub min_list_width: u16,
    pub fit: Fit,
    pub sorted: Option<Direction>,
    /// Whether the list can be sorted by this column.
    pub sortable: bool,
}

impl Column {
    /// Returns the default direction: descending for quantities, ascending for text.
    pub(in crate::app) fn first_direction(&self) -> Direction {
        if self.fit == Fit::Right { Direction::Descending } else { Direction::Ascending }
    }

    /// Wraps a cell's text for a filter.
    pub fn field<'a>(&self, text: &'a str) -> Field<'a> {
        if self.fit == Fit::Right { Field::number(self.title, text) } else { Field::text(self.title, text) }
    }
}

/// A list that can be drawn, independent of the type of its rows.
pub trait List {
    /// Returns the columns. If not all fit, the first ones are kept.
    fn columns(&self) -> Vec<Column>;
    /// Returns the number of rows.
    fn len(&self) -> usize;
    /// Returns whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the left end and width of each column in an area; `None` for hidden columns.
    fn slots(&self, area: Rect) -> Vec<Option<(u16, u16)>> {
        column_slots(&self.columns(), area)
    }
    /// Returns the identity of a row, stable across snapshots.
    fn id(&self, row: usize) -> String;
    fn cell(&self, row: usize, column: usize) -> Cell;
}

pub type Rows<'a> = Box<dyn List + 'a>;

type CellOf<'a, T> = Box<dyn Fn(&T) -> Cell + 'a>;

/// Rows and their columns.
pub(in crate::app) struct Table<'a, T> {
    pub(in crate::app) rows: Vec<T>,
    id: fn(&T) -> String,
    columns: Vec<(Column, CellOf<'a, T>)>,
}

impl<'a, T: 'a> Table<'a, T> {
    pub(in crate::app) fn new(rows: Vec<T>, id: fn(&T) -> String) -> Self {
        Self { rows, id, columns: Vec::new() }
    }

    /// Adds a column of this width; 0 takes the remaining width.
    pub(in crate::app) fn column(mut self, title: &'static str, width: u16, fit: Fit, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        self.columns.push((
            Column { title, width, min_width: width, max_width: width, min_list_width: 0, fit, sorted: None, sortable: false },
            Box::new(cell),
        ));
        self
    }

    /// Lets the last added column shrink before others are hidden.
    pub(in crate::app) fn shrinking_to(mut self, min_width: u16) -> Self {
        if let Some((column, _)) = self.columns.last_mut() {
            column.min_width = min_width.min(column.width);
        }
        self
    }

    /// Lets the last added column grow if there is much space.
    pub(in crate::app) fn growing_to(mut self, max_width: u16) -> Self {
        if let Some((column, _)) = self.columns.last_mut() {
            column.max_width = max_width.max(column.width);
        }
        self
    }

    /// Hides the last added column in lists that are narrower than this.
    pub(in crate::app) fn in_lists_from(mut self, min_list_width: u16) -> Self {
        if let Some((column, _)) = self.columns.last_mut() {
            column.min_list_width = min_list_width;
        }
        self
    }

    /// Adds a column only if some row needs it.
    pub(in crate::app) fn column_if(self, needed: bool, title: &'static str, width: u16, fit: Fit, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        if needed { self.column(title, width, fit, cell) } else { self }
    }

    /// Marks the column by which the rows are sorted, in descending order.
    pub(super) fn sorted_by(mut self, title: &str) -> Self {
        for (column, _) in &mut self.columns {
            column.sorted = (column.title == title).then_some(Direction::Descending);
        }
        self
    }

    /// Makes the list sortable by these columns; the caller sorts the rows.
    pub(super) fn sortable_by(mut self, titles: &[&str], sort: Sort<&str>) -> Self {
        for (column, _) in &mut self.columns {
            column.sortable = titles.contains(&column.title);
            column.sorted = (column.sortable && column.title == sort.column).then_some(sort.direction);
        }
        self
    }

    /// Makes the list sortable by every titled column whose cells have a sort key, and applies the sort order of a tab.
    fn sort(&mut self, sort: Option<Sort<&str>>) {
        let first = self.rows.first();
        for (column, cell) in &mut self.columns {
            let is_picture = first.is_some_and(|row| matches!(cell(row), Cell::Bars(..) | Cell::Meter(_)));
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

    /// Removes the rows that do not pass the filter.
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

    /// Ranks rows by their text in the column of this title: exact matches of `typed` first, then prefix matches.
    pub(in crate::app) fn sort_by_name(&mut self, title: &str, typed: &str) {
        if let Some((_, name)) = self.columns.iter().find(|(column, _)| column.title == title) {
            self.rows.sort_by_cached_key(|row| name_rank(typed, &name(row).into_text()));
        }
    }
}

impl<'a, T: Clone + 'a> Table<'a, T> {
    /// Applies the filter and sort order of a tab, and finds the selected row.
    pub(super) fn place(mut self, state: &State, tab: Tab) -> TabList<'a, T> {
        self.filter(state.views.filter(tab));
        self.sorted(state, tab)
    }

    /// Sorts rows that are already filtered, and finds the selected row.
    pub(super) fn sorted(mut self, state: &State, tab: Tab) -> TabList<'a, T> {
        self.sort(state.views.of(tab).sort);
        self.in_order(state, tab)
    }

    /// The same for rows of which the first stands for all others, and stays the first.
    pub(super) fn sorted_below_first(mut self, state: &State, tab: Tab) -> TabList<'a, T> {
        let others = self.rows.split_off(self.len().min(1));
        let first = std::mem::replace(&mut self.rows, others);
        self.sort(state.views.of(tab).sort);
        self.rows.splice(..0, first);
        self.in_order(state, tab)
    }

    /// Finds the selected row among rows that are already in order.
    pub(super) fn in_order(self, state: &State, tab: Tab) -> TabList<'a, T> {
        let cursor = state.views.selected(tab, self.len(), |row| self.id(row));
        TabList { selected: self.rows.get(cursor.at).cloned(), list: self.finish(), cursor }
    }
}

/// The filtered list of a tab.
pub(super) struct TabList<'a, T> {
    pub(super) list: Rows<'a>,
    pub(super) cursor: Cursor,
    pub(super) selected: Option<T>,
}

impl<'a, T> TabList<'a, T> {
    /// Returns a view with only the list.
    pub(super) fn view(self, empty: impl Into<String>) -> View<'a> {
        View::new(self.list, self.cursor, empty)
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
