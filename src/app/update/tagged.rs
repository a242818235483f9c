//! Actions on all tagged processes, applied to each as if it were selected.

use crate::app::action::{Status, status};
use crate::app::{Effect, Focus, Level, State, Subject};
use crate::model::{ProcessKey, TraceOptions};

use super::{process, watching};

/// Starts recording the tagged processes that are not being recorded, or stops all if all are. Without tags, applies to the selected process.
pub(in crate::app) fn toggle_trace(state: &mut State) -> Vec<Effect> {
    let keys = off_or_all(state, |key| state.recordings.is_recording(key));
    for_each(state, keys, status::trace, process::toggle_trace)
}

/// Starts a recording that shows why a process is slow, for each tagged process. Without tags, applies to the selected process.
pub(in crate::app) fn why_slow(state: &mut State) -> Vec<Effect> {
    let keys = state.tagged();
    for_each(state, keys, status::why_slow, process::why_slow)
}

/// Watches the tagged processes that are not watched, or unwatches all if all are. Without tags, applies to the selected process.
pub(in crate::app) fn toggle_watch(state: &mut State) -> Vec<Effect> {
    let keys = off_or_all(state, |key| state.watches.of(key).is_some());
    for_each(state, keys, status::watch, watching::toggle)
}

/// Starts recording the tagged processes with these options. Without tags, applies to the given process.
pub(in crate::app) fn start_trace(state: &mut State, subject: Subject, options: TraceOptions) -> Vec<Effect> {
    let keys = state.tagged();
    if keys.is_empty() {
        return process::start_trace(state, subject, options);
    }
    for_each(state, keys, status::attachable, |state| {
        state.selected_subject().map(|subject| process::start_trace(state, subject, options.clone())).unwrap_or_default()
    })
}

/// Returns the tagged processes for which something is off; all of them if it is on for each.
fn off_or_all(state: &State, is_on: impl Fn(ProcessKey) -> bool) -> Vec<ProcessKey> {
    let (on, off): (Vec<_>, Vec<_>) = state.tagged().into_iter().partition(|key| is_on(*key));
    if off.is_empty() { on } else { off }
}

/// Applies an action to each process as if it were selected, or to the selected one if there are none. Refusals are counted and reported with one
/// reason.
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
    /// Returns the tagged processes that are listed, while the table has the focus.
    pub(in crate::app) fn tagged(&self) -> Vec<ProcessKey> {
        if self.focus == Focus::List { self.list.tagged() } else { Vec::new() }
    }
}
