//! The tabs' views of recordings: selection, filters and sort order.

use std::collections::BTreeSet;

use super::call_tree::Expanded;
use super::cursor::{Neighbor, Step};
use super::tabs::{Column, EventsView, HeapView, View};
use super::type_tree::TypeTree;
use super::{Cursor, Direction, Sampling, Sort, State, Tab};
use crate::analysis::Filter;
use crate::model::{RecordingAnalysis, sanitize};

#[derive(Debug, Default)]
pub struct Views {
    tabs: [TabState; Tab::ALL.len()],
    pub sampling: Sampling,
    pub events: EventsView,
    pub heap: HeapView,
    /// Whether allocated types are listed instead of collections.
    pub(super) lists_allocations: bool,
    /// Providers and meters whose counters are collapsed.
    pub(super) collapsed_counters: BTreeSet<String>,
}

/// The state of a tab's list.
#[derive(Debug, Default)]
pub(super) struct TabState {
    pub(super) filter: Filter,
    /// `None` for the tab's own order.
    pub(super) sort: Option<Sort<&'static str>>,
    /// The call tree shown instead of types.
    pub(super) type_tree: Option<TypeTree>,
    pub(super) expanded: Expanded,
    selection: RowSelection,
}

/// A selection that follows its row when rows before it are added or removed.
#[derive(Debug, Clone, Default)]
struct RowSelection {
    cursor: Cursor,
    /// Identity of the selected row; `None` for the first row, whichever that is.
    name: Option<String>,
}

impl Views {
    pub(super) fn of(&self, tab: Tab) -> &TabState {
        &self.tabs[tab as usize]
    }

    pub(super) fn of_mut(&mut self, tab: Tab) -> &mut TabState {
        &mut self.tabs[tab as usize]
    }

    /// Returns the filter of a tab's list.
    pub fn filter(&self, tab: Tab) -> &Filter {
        &self.of(tab).filter
    }

    /// Returns the current position of the selected row in a tab's list.
    pub(super) fn selected(&self, tab: Tab, len: usize, id: impl Fn(usize) -> String) -> Cursor {
        let RowSelection { cursor, name } = &self.of(tab).selection;
        match name {
            Some(name) => cursor.moved_to((0..len).find(|row| id(*row) == *name).unwrap_or(cursor.at.min(len.saturating_sub(1)))),
            None => Cursor::default(),
        }
    }

    /// Selects the first row of a tab's list, because its contents were replaced.
    pub(super) fn select_first(&mut self, tab: Tab) {
        self.of_mut(tab).selection = RowSelection::default();
    }

    /// Selects a row of a tab's list, keeping the scroll offset.
    pub(super) fn select_at(&mut self, tab: Tab, cursor: Cursor, name: String) {
        self.of_mut(tab).selection = RowSelection { cursor, name: Some(name) };
    }

    /// Selects a row of a tab's list by its identity.
    pub(super) fn select(&mut self, tab: Tab, name: String) {
        self.of_mut(tab).selection.name = Some(name);
    }
}

impl State {
    /// Returns the analysis of the shown recording, as far as events were analyzed.
    pub fn analysis(&self) -> Option<&RecordingAnalysis> {
        self.shown_recording()?.value.analysis.as_deref()
    }

    /// Returns the current position of the selected row in a tab's list.
    pub fn view_cursor(&self, tab: Tab) -> Cursor {
        self.view_of(tab).map(|view| view.cursor).unwrap_or_default()
    }

    /// Moves in the list of the open tab.
    pub(in crate::app) fn step_view(&mut self, step: Step) {
        self.move_cursor(|cursor, len, page| cursor.go(step, len, page.max(1)));
        if step == Step::First {
            // The selection stays on the first row, whichever it is.
            self.views.of_mut(self.tab).selection.name = None;
        }
    }

    /// Scrolls the list of the open tab to a row. The selection moves only as far as needed to stay on the screen.
    pub(in crate::app) fn scroll_view(&mut self, offset: usize) {
        self.move_cursor(|cursor, len, page| cursor.scroll_to(offset, len, page));
    }

    fn move_cursor(&mut self, go: impl FnOnce(&mut Cursor, usize, usize)) {
        let Some((View { list, mut cursor, .. }, geometry)) = self.tab_view() else { return };
        go(&mut cursor, list.len(), geometry.rows().height.into());
        let name = (!list.is_empty()).then(|| list.id(cursor.at));
        drop(list);
        self.views.of_mut(self.tab).selection = RowSelection { cursor, name };
    }

    /// Pins the selection of a tab's list to its current row, even if it is the first.
    pub(in crate::app) fn pin_selection(&mut self, tab: Tab) {
        let held = self.view_of(tab).filter(|view| !view.list.is_empty()).map(|view| (view.cursor, view.list.id(view.cursor.at)));
        if let Some((cursor, id)) = held {
            self.views.select_at(tab, cursor, id);
        }
    }

    /// Returns the sortable columns of the open tab's list.
    pub(in crate::app) fn sortable(&self) -> Vec<Column> {
        let columns = self.tab_view().map(|(view, _)| view.list.columns()).unwrap_or_default();
        columns.into_iter().filter(|column| column.sortable).collect()
    }

    /// Sorts the open tab's list by the column next to the current one, wrapping around at the ends.
    pub(in crate::app) fn sort_tab_by_adjacent_column(&mut self, to: Neighbor) {
        let columns = self.sortable();
        let next = match (columns.iter().position(|column| column.sorted.is_some()), to) {
            (Some(at), _) => to.of(at, columns.len()),
            (None, Neighbor::Previous) => columns.len().saturating_sub(1),
            (None, Neighbor::Next) => 0,
        };
        if let Some(column) = columns.get(next) {
            self.views.of_mut(self.tab).sort = Some(Sort { column: column.title, direction: column.first_direction() });
        }
    }

    /// Reverses the sort order of the open tab's list.
    pub(in crate::app) fn reverse_tab_sort(&mut self) {
        if let Some(sorted) = self.sortable().into_iter().find(|column| column.sorted.is_some()) {
            self.sort_tab_by(sorted);
        }
    }

    /// Sorts the open tab's list by a column, or reverses the order if it is already sorted by it.
    pub(in crate::app) fn sort_tab_by(&mut self, column: Column) {
        let direction = column.sorted.map_or(column.first_direction(), Direction::reversed);
        self.views.of_mut(self.tab).sort = Some(Sort { column: column.title, direction });
    }

    /// Returns the label and text of the selection in the open tab, for the copy menu.
    pub(in crate::app) fn copyable_selection(&self) -> Option<(&'static str, String)> {
        let (label, text) = self.view_of(self.tab)?.copy?;
        Some((label, text.lines().map(sanitize).collect::<Vec<_>>().join("\n")))
    }
}
