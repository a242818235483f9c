//! The list of a tab, whichever it is: its lines, and which of them is selected.

use crate::app::cursor::{Cursor, Step};
use crate::app::pane::Tab;
use crate::app::state::State;
use crate::app::tabs::View;
use crate::app::views::Pick;
use crate::model::{Findings, sanitise};

impl State {
    /// What is in the shown recording, as far as it was looked at.
    pub fn findings(&self) -> Option<&Findings> {
        self.shown_recording()?.value.findings.as_deref()
    }

    /// Whether every word of the filter is in one of the texts.
    pub fn passes(&self, texts: [&str; 2]) -> bool {
        let wanted = self.views.filter(self.tab).value().to_lowercase();
        wanted.split_whitespace().all(|word| texts.iter().any(|text| text.to_lowercase().contains(word)))
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
