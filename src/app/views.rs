//! How the recordings are looked at: what is selected, filtered and sorted in the tabs that show what is in them.

use super::counters::CounterView;
use super::cursor::{Cursor, Step};
use super::pane::Tab;
use super::sampling::Sampling;
use super::state::State;
use super::tabs::{EventsView, View};
use crate::analysis::Filter;
use crate::model::{RecordingAnalysis, sanitise};

/// How the recordings are looked at.
#[derive(Debug, Default)]
pub struct Views {
    /// What is filtered for, by tab.
    filters: [Filter; Tab::ALL.len()],
    /// How samples are looked at.
    pub sampling: Sampling,
    /// How events are looked at.
    pub events: EventsView,
    /// How counters are looked at.
    pub counters: CounterView,
    /// By tab.
    pub(super) picks: [Pick; Tab::ALL.len()],
}

/// A selected line that stays selected when lines before it come and go.
#[derive(Debug, Clone, Default)]
pub(super) struct Pick {
    pub(super) cursor: Cursor,
    /// What is selected; `None` for the first line, whatever that is.
    pub(super) name: Option<String>,
}

impl Views {
    /// What a tab's list is filtered for.
    pub fn filter(&self, tab: Tab) -> &Filter {
        &self.filters[tab as usize]
    }

    pub(super) fn set_filter(&mut self, tab: Tab, filter: Filter) {
        self.filters[tab as usize] = filter;
    }

    /// The selected row of a tab's list, wherever it is by now.
    pub(super) fn selected(&self, tab: Tab, len: usize, id: impl Fn(usize) -> String) -> Cursor {
        let Pick { cursor, name } = &self.picks[tab as usize];
        match name {
            Some(name) => cursor.moved_to((0..len).find(|row| id(*row) == *name).unwrap_or(cursor.at.min(len.saturating_sub(1)))),
            None => Cursor::default(),
        }
    }

    /// Selects the first line of a tab's list: it is another list now.
    pub(super) fn first(&mut self, tab: Tab) {
        self.picks[tab as usize] = Pick::default();
    }

    /// Selects a line of a tab's list, scrolled as it is.
    pub(super) fn select_at(&mut self, tab: Tab, cursor: Cursor, name: String) {
        self.picks[tab as usize] = Pick { cursor, name: Some(name) };
    }

    /// Selects a row of a tab's list by its identity.
    pub(super) fn select(&mut self, tab: Tab, name: String) {
        self.picks[tab as usize].name = Some(name);
    }
}

impl State {
    /// What is in the shown recording, as far as it was looked at.
    pub fn analysis(&self) -> Option<&RecordingAnalysis> {
        self.shown_recording()?.value.analysis.as_deref()
    }

    /// The selected row of a tab's list, wherever it is by now.
    pub fn view_cursor(&self, tab: Tab) -> Cursor {
        self.view_of(tab).map(|view| view.cursor).unwrap_or_default()
    }

    /// Moves in the list of the open tab.
    pub(in crate::app) fn step_view(&mut self, step: Step) {
        let Some((View { list, mut cursor, .. }, geometry)) = self.tab_view() else { return };
        cursor.go(step, list.len(), usize::from(geometry.rows().height).max(1));
        // The first row stays the first, whichever it is.
        let name = (step != Step::First && !list.is_empty()).then(|| list.id(cursor.at));
        drop(list);
        self.views.picks[self.tab as usize] = Pick { cursor, name };
    }

    /// Keeps the selected row of a tab's list selected, the first one, too.
    pub(in crate::app) fn hold_view(&mut self, tab: Tab) {
        let held = self.view_of(tab).filter(|view| !view.list.is_empty()).map(|view| (view.cursor, view.list.id(view.cursor.at)));
        if let Some((cursor, id)) = held {
            self.views.select_at(tab, cursor, id);
        }
    }

    /// What is selected in the open tab, and what to call it, for the copy menu.
    pub(in crate::app) fn shown_name(&self) -> Option<(&'static str, String)> {
        let (label, text) = self.view_of(self.tab)?.copy?;
        Some((label, text.lines().map(sanitise).collect::<Vec<_>>().join("\n")))
    }
}
