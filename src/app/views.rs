//! How the recordings are looked at: what is selected, filtered and sorted in the tabs that show what is in them.

use tui_input::Input;

use super::counters::CounterView;
use super::cursor::Cursor;
use super::pane::Tab;
use super::sampling::Sampling;
use super::single_events::EventsView;

/// How the recordings are looked at.
#[derive(Debug, Default)]
pub struct Views {
    /// What is filtered for, by tab.
    filters: [Input; Tab::ALL.len()],
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
    pub fn filter(&self, tab: Tab) -> &Input {
        &self.filters[tab as usize]
    }

    pub(super) fn set_filter(&mut self, tab: Tab, filter: Input) {
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

    /// Selects a line of a tab's list by what tells it from others.
    pub(super) fn select(&mut self, tab: Tab, name: String) {
        self.picks[tab as usize].name = Some(name);
    }
}
