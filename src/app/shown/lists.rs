//! The list of a tab, whichever it is: its lines, and which of them is selected.

use crate::app::counters::CounterLine;
use crate::app::cursor::{Cursor, Step};
use crate::app::pane::Tab;
use crate::app::state::State;
use crate::app::views::Pick;
use crate::model::{EventRate, Findings, sanitise};

impl State {
    /// What is in the shown recording, as far as it was looked at.
    pub fn findings(&self) -> Option<&Findings> {
        self.shown_recording()?.value.findings.as_deref()
    }

    /// The events that the filter lets through, most first.
    pub fn events(&self) -> Vec<&EventRate> {
        let all = self.findings().map(|findings| findings.events.as_slice()).unwrap_or_default();
        all.iter().filter(|rate| self.passes([&rate.event.provider, &rate.event.name])).collect()
    }

    /// Whether every word of the filter is in one of the texts.
    pub fn passes(&self, texts: [&str; 2]) -> bool {
        let wanted = self.views.filter(self.tab).value().to_lowercase();
        wanted.split_whitespace().all(|word| texts.iter().any(|text| text.to_lowercase().contains(word)))
    }

    /// The lines of a tab's list, by what tells them apart.
    fn names(&self, tab: Tab) -> Vec<String> {
        if tab == Tab::Counters {
            return self.counter_lines().iter().map(CounterLine::name).collect();
        }
        match tab {
            Tab::Methods => self.sampling_names(),
            Tab::Events if self.views.events.single => self.single_event_names(),
            Tab::Events => self
                .events()
                .into_iter()
                .map(|rate| format!("{} {} {}", rate.event.provider, rate.event.event_id, rate.event.name))
                .collect(),
            Tab::Gc | Tab::Exceptions | Tab::Threads | Tab::Http | Tab::Logs | Tab::Jit | Tab::Assemblies => {
                let list = self.view_of(tab).map(|view| view.list);
                list.map(|list| (0..list.len()).map(|row| list.id(row)).collect()).unwrap_or_default()
            }
            Tab::Info | Tab::Environment | Tab::Trace | Tab::Counters | Tab::Operations => Vec::new(),
        }
    }

    /// The selected line of a tab's list, wherever it is by now.
    pub fn view_cursor(&self, tab: Tab) -> Cursor {
        let names = self.names(tab);
        self.views.selected(tab, names.len(), |row| names[row].clone())
    }

    /// Moves in the list of the open tab, of which about `page` lines are shown.
    pub(in crate::app) fn step_view(&mut self, step: Step, page: usize) {
        let names = self.names(self.tab);
        let mut cursor = self.view_cursor(self.tab);
        cursor.go(step, names.len(), page.max(1));
        let name = if step == Step::First { None } else { names.into_iter().nth(cursor.at) };
        self.views.picks[self.tab as usize] = Pick { cursor, name };
    }

    /// Keeps the selected line of a tab's list selected, the first one, too.
    pub(in crate::app) fn hold_view(&mut self, tab: Tab) {
        let cursor = self.view_cursor(tab);
        let name = self.names(tab).into_iter().nth(cursor.at);
        self.views.picks[tab as usize] = Pick { cursor, name };
    }

    /// What is selected in the open tab, and what to call it, for somebody who copies it.
    pub(in crate::app) fn shown_name(&self) -> Option<(&'static str, String)> {
        if self.tab == Tab::Counters {
            return Some(("counter", self.shown_counter()?));
        }
        let at = self.view_cursor(self.tab).at;
        let (label, text) = match self.tab {
            Tab::Methods => self.shown_frame(at)?,
            Tab::Events if self.views.events.single => {
                let (event, stack) = *self.single_events().get(at)?;
                let lines = event.payload.fields.iter().map(|(name, value)| format!("{name}: {value}"));
                let lines = lines.chain(stack.iter().map(|frame| format!("   at {frame}")));
                let head = format!("{}/{}", event.kind.provider, event.kind.name);
                ("event with its fields", [head].into_iter().chain(lines).collect::<Vec<_>>().join("\n"))
            }
            Tab::Events => self.events().get(at).map(|rate| ("event", format!("{}/{}", rate.event.provider, rate.event.name)))?,
            Tab::Gc | Tab::Exceptions | Tab::Threads | Tab::Http | Tab::Logs | Tab::Jit | Tab::Assemblies => self.view_of(self.tab)?.copy?,
            Tab::Info | Tab::Environment | Tab::Trace | Tab::Counters | Tab::Operations => return None,
        };
        Some((label, text.lines().map(sanitise).collect::<Vec<_>>().join("\n")))
    }
}
