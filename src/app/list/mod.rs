//! The process table: rows, their order, and the selection.
//!
//! The selection is tied to a process, not to a row: it follows the process when the table is sorted, and moves to a neighbor only when the
//! process leaves the table. Order and marks are computed on changes, never while drawing.

mod column;
mod row;
mod table;
mod tree;
mod trend;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use column::{Column, Columns};
pub use row::Row;
pub use table::ProcessTable;
pub use trend::Trend;

use super::{Cursor, Sort, WatchStatus};
use crate::analysis::Filter;
use crate::model::{Process, ProcessKey};
use crate::sorting::CompactSort;

/// How long a new row is highlighted.
const NEW_DURATION: Duration = Duration::from_millis(1500);
/// How long the dimmed row of an exited process remains.
const EXITED_DURATION: Duration = Duration::from_secs(3);

#[derive(Default)]
pub struct ProcessList {
    rows: Vec<Row>,
    /// Indices into `rows`: those that pass the filter, sorted.
    order: Vec<usize>,
    /// The selected process; `None` when nothing is shown.
    selected: Option<ProcessKey>,
    /// Index of the selected row in `order`.
    cursor: Cursor,
    /// Whether the selection was made by a key or click; until then the first row is selected, whichever process that is.
    pinned: bool,
    sort: Sort,
    filter: Filter,
    /// Whether children are listed below their parents.
    is_tree: bool,
    /// The processes that actions apply to, instead of the selected one.
    tagged: BTreeSet<ProcessKey>,
    /// The process whose row stays after it has exited.
    kept: Option<ProcessKey>,
    loaded: bool,
}

impl ProcessList {
    /// Creates an empty table with this filter and sort order.
    pub fn new(filter: &str, sort: Sort) -> Self {
        Self { sort, filter: Filter::new(filter), ..Self::default() }
    }

    /// Returns whether the first scan of processes has finished.
    pub fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// Returns all rows in no particular order, including those of exited processes.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the row at this index among those that pass the filter.
    pub fn at(&self, place: usize) -> Option<&Row> {
        self.order.get(place).map(|&index| &self.rows[index])
    }

    /// Returns the rows that pass the filter, in the order of [`Self::rows`].
    pub fn shown(&self) -> impl Iterator<Item = &Row> {
        let mut shown = self.order.clone();
        shown.sort_unstable();
        shown.into_iter().map(|index| &self.rows[index])
    }

    /// Returns the number of rows that pass the filter.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns whether no row passes the filter.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the number of rows above the first visible one.
    pub fn offset(&self) -> usize {
        self.cursor.offset()
    }

    pub fn sort(&self) -> Sort {
        self.sort
    }

    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    pub fn selected(&self) -> Option<ProcessKey> {
        self.selected
    }

    /// Returns the cursor, with the selected row and the scroll offset; `None` if the table is empty.
    pub fn view_cursor(&self) -> Option<Cursor> {
        self.selected.map(|_| self.cursor)
    }

    /// Returns the index of the selected row among the shown rows.
    pub fn cursor(&self) -> Option<usize> {
        self.selected.map(|_| self.cursor.at)
    }

    pub fn selected_row(&self) -> Option<&Row> {
        self.cursor().map(|place| &self.rows[self.order[place]])
    }

    pub fn find(&self, key: ProcessKey) -> Option<&Row> {
        self.rows.iter().find(|row| row.process.key == key)
    }

    /// Applies a new scan. Returns whether anything changed.
    pub(super) fn replace(&mut self, processes: Vec<Process>, now: Duration) -> bool {
        let mut changed = !self.loaded;
        // New processes are added in a deterministic order.
        let mut fresh: BTreeMap<ProcessKey, Process> = processes.into_iter().map(|process| (process.key, process)).collect();
        for row in &mut self.rows {
            match fresh.remove(&row.process.key) {
                Some(process) => {
                    changed |= row.trend.push(process.usage.cpu_percent) || row.process != process || row.exited_at.is_some();
                    row.process = process;
                    row.exited_at = None;
                }
                None if row.exited_at.is_none() => {
                    row.exited_at = Some(now);
                    changed = true;
                }
                None => {}
            }
        }
        changed |= !fresh.is_empty();
        let new_until = self.loaded.then_some(now + NEW_DURATION);
        self.rows.extend(fresh.into_values().map(|process| Row {
            trend: Trend::new(process.usage.cpu_percent),
            process,
            recording: false,
            watch: None,
            new_until,
            exited_at: None,
            depth: 0,
        }));
        self.loaded = true;
        if changed {
            self.rebuild();
        }
        changed
    }

    /// Keeps the row of this process even after it has exited: its details are being read. Any other is no longer kept.
    pub(super) fn keep(&mut self, key: Option<ProcessKey>) {
        self.kept = key;
    }

    /// Returns when the row is removed: some time after its process has exited, unless it is kept.
    fn expires_at(&self, row: &Row) -> Option<Duration> {
        row.exited_at.filter(|_| self.kept != Some(row.process.key)).map(|at| at + EXITED_DURATION)
    }

    /// Removes the highlight of new rows, and the rows of exited processes, after their time. Returns whether anything changed.
    pub(super) fn expire(&mut self, now: Duration) -> bool {
        let mut changed = false;
        for row in &mut self.rows {
            if row.new_until.is_some_and(|until| until <= now) {
                row.new_until = None;
                changed = true;
            }
        }
        let is_over = |row: &Row| self.expires_at(row).is_some_and(|at| at <= now);
        let over: BTreeSet<_> = self.rows.iter().filter(|row| is_over(row)).map(|row| row.process.key).collect();
        if !over.is_empty() {
            self.rows.retain(|row| !over.contains(&row.process.key));
            let listed: BTreeSet<_> = self.rows.iter().map(|row| row.process.key).collect();
            self.tagged.retain(|key| listed.contains(key));
            self.rebuild();
            changed = true;
        }
        changed
    }

    /// Returns when [`Self::expire`] is due next.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.rows.iter().flat_map(|row| [row.new_until, self.expires_at(row)]).flatten().min()
    }

    /// Updates which processes are being recorded.
    pub(super) fn mark_recordings(&mut self, is_recorded: impl Fn(ProcessKey) -> bool) {
        let mut changed = false;
        for row in &mut self.rows {
            let recording = is_recorded(row.process.key);
            changed |= std::mem::replace(&mut row.recording, recording) != recording;
        }
        if changed && (self.sort.column == Column::State || !self.filter.is_empty()) {
            self.rebuild();
        }
    }

    /// Updates the status of watched processes; `None` for those not watched. `shows_figures` is whether the columns of their figures are shown.
    pub(super) fn mark_watches(&mut self, watch: impl Fn(ProcessKey) -> Option<WatchStatus>, shows_figures: bool) {
        let mut changed = false;
        for row in &mut self.rows {
            let now = watch(row.process.key);
            changed |= std::mem::replace(&mut row.watch, now) != now;
        }
        // The table cannot stay sorted by a hidden column.
        let is_hidden = self.sort.column.is_watched() && !shows_figures;
        if is_hidden {
            self.sort = Sort::default();
        }
        if is_hidden || changed && (self.sort.column.is_watched() || self.sort.column == Column::State || !self.filter.is_empty()) {
            self.rebuild();
        }
    }

    pub(super) fn set_filter(&mut self, text: &str) {
        self.filter = Filter::new(text);
        self.rebuild();
    }

    /// Sorts by a column in its default direction; if already sorted by it, reverses the direction.
    pub(super) fn sort_by(&mut self, column: Column) {
        let direction = if self.sort.column == column { self.sort.direction.reversed() } else { column.first_direction() };
        self.sort = Sort { column, direction };
        self.rebuild();
    }

    /// Tags or untags the selected process and moves to the next row.
    pub(super) fn toggle_tag(&mut self) {
        if let Some(key) = self.selected {
            if !self.tagged.remove(&key) {
                self.tagged.insert(key);
            }
            self.move_by(1);
        }
    }

    pub(super) fn clear_tags(&mut self) {
        self.tagged.clear();
    }

    pub fn is_tagged(&self, key: ProcessKey) -> bool {
        self.tagged.contains(&key)
    }

    /// Returns the tagged processes that pass the filter, in table order.
    pub fn tagged(&self) -> Vec<ProcessKey> {
        let shown = self.order.iter().map(|&index| self.rows[index].process.key);
        shown.filter(|key| self.tagged.contains(key)).collect()
    }

    /// Switches between a tree and a flat list.
    pub(super) fn toggle_tree(&mut self) {
        self.is_tree = !self.is_tree;
        self.rebuild();
    }

    /// Reverses the sort order.
    pub(super) fn reverse(&mut self) {
        self.sort.direction = self.sort.direction.reversed();
        self.rebuild();
    }

    /// Selects a process if it passes the filter. Returns whether it did.
    pub(super) fn select(&mut self, key: ProcessKey) -> bool {
        let place = self.order.iter().position(|&index| self.rows[index].process.key == key);
        if let Some(place) = place {
            self.select_place(place);
        }
        place.is_some()
    }

    /// Selects the row at this index, or the last row.
    pub(super) fn select_place(&mut self, place: usize) {
        let place = place.min(self.order.len().saturating_sub(1));
        self.selected = self.order.get(place).map(|&index| self.rows[index].process.key);
        self.cursor = self.cursor.moved_to(place);
    }

    /// Makes the selection follow the selected process.
    pub(super) fn pin(&mut self) {
        self.pinned = true;
    }

    /// Moves the selection, stopping at both ends.
    pub(super) fn move_by(&mut self, rows: isize) {
        self.select_place(self.cursor().unwrap_or(0).saturating_add_signed(rows));
    }

    /// Scrolls to a row; if the selected row would no longer be among the `height` visible ones, selects another.
    pub(super) fn scroll_to(&mut self, offset: usize, height: usize) {
        self.cursor.scroll_to(offset, self.order.len(), height);
        self.select_place(self.cursor.at);
    }

    /// Scrolls so that the selected row is among the `height` visible ones, without empty space at the end.
    pub(super) fn scroll_to_selection(&mut self, height: usize) {
        self.cursor.fit(self.order.len(), height);
    }

    fn rebuild(&mut self) {
        let Self { rows, order, filter, sort, kept, .. } = self;
        order.clear();
        // An ended process whose details are being read may no longer match.
        let is_shown = |row: &Row| row.passes(filter) || row.exited_at.is_some() && *kept == Some(row.process.key);
        order.extend(rows.iter().enumerate().filter_map(|(index, row)| is_shown(row).then_some(index)));
        order.compact_sort_by(|&a, &b| {
            let (a, b) = (&rows[a], &rows[b]);
            // Ties are broken by PID, so that equal rows never swap places.
            let order = sort.direction.order(sort.column.compare(a, b), [a, b].map(|row| sort.column.is_unknown(row)));
            order.then_with(|| a.process.key.cmp(&b.process.key))
        });
        if self.is_tree {
            *order = tree::order(rows, order);
        } else {
            rows.iter_mut().for_each(|row| row.depth = 0);
        }
        let place = self.selected.filter(|_| self.pinned).map_or(0, |key| {
            let same = self.order.iter().position(|&index| self.rows[index].process.key == key);
            same.unwrap_or(self.cursor.at)
        });
        self.select_place(place);
    }
}

#[cfg(test)]
mod tests;
