//! Actions on tagged processes: one after another what the key does to the selected one.

use crate::app::action::{Status, status};
use crate::app::dialog::Subject;
use crate::app::toast::Level;
use crate::app::{Effect, Focus, State};
use crate::model::{ProcessKey, TraceOptions};

use super::{process, watching};

/// Starts recordings of the tagged processes that have none, or stops all once each has one. Without tags, of the selected process.
pub(in crate::app) fn toggle_trace(state: &mut State) -> Vec<Effect> {
    let tagged = state.tagged();
    let waiting: Vec<_> = tagged.iter().copied().filter(|key| !state.recordings.is_recording(*key)).collect();
    let keys = if waiting.is_empty() { tagged } else { waiting };
    for_each(state, keys, status::trace, process::toggle_trace)
}

/// Records what shows why each of the tagged processes is slow. Without tags, the selected process.
pub(in crate::app) fn why_slow(state: &mut State) -> Vec<Effect> {
    let keys = state.tagged();
    for_each(state, keys, status::why_slow, process::why_slow)
}

/// Watches the tagged processes that are not watched by key, or none of them once all are. Without tags, the selected process.
pub(in crate::app) fn toggle_watch(state: &mut State) -> Vec<Effect> {
    let tagged = state.tagged();
    let waiting: Vec<_> = tagged.iter().copied().filter(|key| state.watches.of(*key).is_none()).collect();
    let keys = if waiting.is_empty() { tagged } else { waiting };
    for_each(state, keys, status::watch, watching::toggle)
}

/// Starts recordings of the tagged processes with these options. Without tags, of this process.
pub(in crate::app) fn start_trace(state: &mut State, subject: Subject, options: TraceOptions) -> Vec<Effect> {
    let keys = state.tagged();
    if keys.is_empty() {
        return process::start_trace(state, subject, options);
    }
    for_each(state, keys, status::attachable, |state| {
        state.selected_subject().map(|subject| process::start_trace(state, subject, options.clone())).unwrap_or_default()
    })
}

/// Acts on each of the processes as if it were selected; on the selected one where there are none. What is refused is counted, and shown with one reason.
fn for_each(state: &mut State, keys: Vec<ProcessKey>, may: fn(&State) -> Status, act: impl Fn(&mut State) -> Vec<Effect>) -> Vec<Effect> {
    if keys.is_empty() {
        return act(state);
    }
    let (selected, all) = (state.list.selected(), keys.len());
    let (mut effects, mut refused) = (Vec::new(), Vec::new());
    for key in keys {
        if !state.list.select(key) {
            continue;
        }
        match may(state) {
            Status::Ready => effects.extend(act(state)),
            Status::Refused(reason) => refused.push(reason),
            Status::Idle => {}
        }
    }
    if let Some(key) = selected {
        state.list.select(key);
    }
    if let Some(reason) = refused.first() {
        let (count, of) = (refused.len(), if all == 1 { "process" } else { "processes" });
        state.notify(Level::Warning, format!("{count} of {all} tagged {of}: {reason}"));
    }
    effects
}

impl State {
    /// The tagged processes that are listed, while the keys go to the table.
    pub(in crate::app) fn tagged(&self) -> Vec<ProcessKey> {
        if self.focus == Focus::List { self.list.tagged() } else { Vec::new() }
    }
}
