//! Watching processes.

use std::sync::Arc;

use crate::analysis::CountersSnapshot;
use crate::app::toast::Level;
use crate::app::{Effect, State, Ticket};
use crate::model::{ProcessKey, sanitise};

/// Watches the selected process, or no longer.
pub(in crate::app) fn toggle(state: &mut State) -> Vec<Effect> {
    let Some(key) = state.list.selected() else { return Vec::new() };
    if state.watches.of(key).is_some() { vec![end(state, key)] } else { vec![begin(state, key, false)] }
}

/// Watches every process that the filter lets through and that can be watched, or none of these once all of them are.
pub(in crate::app) fn toggle_all(state: &mut State) -> Vec<Effect> {
    let others: Vec<_> = state.unwatched().collect();
    if others.is_empty() {
        let shown = state.list.shown().map(|row| row.process.key);
        let watched: Vec<_> = shown.filter(|key| state.watches.of(*key).is_some()).collect();
        return watched.into_iter().map(|key| end(state, key)).collect();
    }
    others.into_iter().map(|key| begin(state, key, false)).collect()
}

/// Asks a watched process for its meters as well, or no longer.
pub(in crate::app) fn toggle_meters(state: &mut State) -> Vec<Effect> {
    let Some(key) = state.list.selected() else { return Vec::new() };
    let meters = state.watches.of(key).is_none_or(|watch| !watch.meters);
    vec![begin(state, key, meters)]
}

fn begin(state: &mut State, key: ProcessKey, meters: bool) -> Effect {
    let ticket = state.ticket();
    state.watches.begin(key, meters, ticket);
    mark(state);
    Effect::Watch { key, ticket, meters }
}

fn end(state: &mut State, key: ProcessKey) -> Effect {
    state.watches.end(key);
    mark(state);
    Effect::Unwatch { key }
}

/// What a watched process publishes.
pub(in crate::app) fn heard(state: &mut State, ticket: Ticket, counters: Arc<CountersSnapshot>) -> Vec<Effect> {
    if state.watches.hear(ticket, counters, state.pause.is_some()) {
        mark(state);
        state.dirty = true;
    }
    Vec::new()
}

/// A watch is over: the process ended, or the sentence says why.
pub(in crate::app) fn ended(state: &mut State, ticket: Ticket, trouble: Option<String>) -> Vec<Effect> {
    let Some(key) = state.watches.ended(ticket) else { return Vec::new() };
    mark(state);
    state.dirty = true;
    if let Some(trouble) = trouble {
        let name = state.list.find(key).map(|row| row.process.name.clone()).unwrap_or_default();
        state.say(Level::Error, format!("{name} ({}) is not watched: {}", key.pid, sanitise(&trouble)));
    }
    Vec::new()
}

/// Tells the table what is known of watched processes.
pub(in crate::app) fn mark(state: &mut State) {
    let watches = &state.watches;
    state.list.mark_pulses(|key| watches.of(key).map(crate::app::Watch::pulse));
}
