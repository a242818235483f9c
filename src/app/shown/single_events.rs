//! The single events that are shown, and which of them is open.

use std::sync::Arc;

use tui_input::Input;

use crate::analysis::{EventFilter, SingleEvent};
use crate::app::effect::Effect;
use crate::app::pane::Tab;
use crate::app::state::State;

impl State {
    /// The single events that the filter lets through with their stacks, the latest first.
    pub fn single_events(&self) -> Vec<&(Arc<SingleEvent>, Arc<[String]>)> {
        let all = self.findings().map(|findings| findings.recent.events.as_slice()).unwrap_or_default();
        let filter = EventFilter::new(self.views.filter(Tab::Events).value());
        all.iter().filter(|(event, _)| filter.passes(&event.kind.provider, &event.kind.name)).collect()
    }

    /// What tells single events apart.
    pub(in crate::app) fn single_event_names(&self) -> Vec<String> {
        self.single_events().into_iter().map(|(event, _)| event.number.to_string()).collect()
    }

    /// Shows what is in the selected event, or no more; of a kind, shows its events one by one.
    pub(in crate::app) fn enter_event(&mut self) {
        if self.views.events.single {
            self.views.events.open = !self.views.events.open && !self.single_events().is_empty();
            if self.views.events.open {
                // What is looked at stays, whatever comes.
                self.hold_view(Tab::Events);
            }
            return;
        }
        let at = self.view_cursor(Tab::Events).at;
        // What has no name is found by who writes it.
        let name = self
            .events()
            .get(at)
            .map(|rate| if rate.event.name.is_empty() { rate.event.provider.clone() } else { rate.event.name.clone() });
        if let Some(name) = name {
            self.views.set_filter(Tab::Events, Input::new(name));
            self.show_single_events(true);
        }
    }

    /// Shows events one by one, or by kind.
    pub(in crate::app) fn show_single_events(&mut self, single: bool) {
        (self.views.events.single, self.views.events.open) = (single, false);
        self.views.first(Tab::Events);
    }

    /// Tells the recorder which events somebody wants to see, where it does not know.
    pub(in crate::app) fn tell_filter(&mut self) -> Option<Effect> {
        let tracked = self.shown_recording().filter(|tracked| self.tab == Tab::Events && tracked.is_active())?;
        let (id, filter) = (tracked.value.id, self.views.filter(Tab::Events).value());
        let told = self.views.events.told.as_ref().filter(|(other, _)| *other == id).map_or("", |(_, told)| told);
        if told == filter {
            return None;
        }
        let filter = filter.to_owned();
        self.views.events.told = Some((id, filter.clone()));
        Some(Effect::FilterEvents { id, filter })
    }
}
