//! What to do about something that was found.

use crate::app::lints::Lint;
use crate::app::pane::{Focus, Tab};
use crate::app::state::State;

impl State {
    /// What to press, from where the keys go now, and what that shows. Empty where all of it is in sight.
    pub fn advice(&self, lint: &Lint) -> String {
        let is_recorded = lint.recorded || self.list.selected().is_some_and(|key| self.recordings.is_recording(key));
        let mut steps = Vec::new();
        if lint.tab != Tab::Trace && (self.tab != lint.tab || !is_recorded) {
            steps.push(format!("{}: {}", lint.tab.key(self.shows_files()), lint.shows));
        }
        if !lint.further.is_empty() {
            steps.push(format!("{} and {}", Tab::Methods.key(self.shows_files()), lint.further));
        }
        if let Some(first) = steps.first_mut().filter(|_| self.focus == Focus::List) {
            // There, digits sort the table.
            first.insert_str(0, "Enter, ");
        }
        if !lint.live.is_empty() && !self.shows_files() {
            steps.push(lint.live.to_owned());
        }
        format!("{}{}", if is_recorded { "" } else { "t, then " }, steps.join("; "))
    }
}
