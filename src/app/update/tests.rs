//! Tests of all rules of the program: from keys and messages to effects and state.

mod auto_watch;
mod comparison;
mod counters;
mod dumps;
mod events;
mod exports;
mod files;
mod flame_graph;
mod forms;
mod health;
mod heap;
mod keys;
mod leaving;
mod listing;
mod mouse;
mod pointer;
mod processes;
mod programs;
mod random;
mod recordings;
mod run_states;
mod sampling;
mod time;
mod trace_form;
mod views;
mod watching;
mod without_findings;

use crate::app::test_app::TestApp;

impl TestApp {
    /// Returns the shown toasts, newest first.
    fn toast_texts(&self) -> Vec<String> {
        self.state.toasts.shown(self.now.elapsed).map(|toast| toast.text.to_string()).collect()
    }

    fn last_toast(&self) -> String {
        self.toast_texts().into_iter().next().unwrap_or_default()
    }

    fn selected_name(&self) -> String {
        self.state.selected().map(|row| row.process.name.to_string()).unwrap_or_default()
    }
}
