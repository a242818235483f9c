//! Time-driven changes: ages on the screen, messages that disappear, rows that fade, delayed requests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::app::action::{Action, Status};
use crate::app::details::Refresh;
use crate::app::{Answer, Details, Effect, Focus, Form, Now, State, Tab, Ticket};
use crate::model::ProcessKey;

use super::{files, leaving, watching};

impl State {
    /// Returns how long to sleep before the next [`Msg::Tick`](crate::app::Msg::Tick); `None` if nothing changes by itself.
    pub fn next_deadline(&self, now: Now) -> Option<Duration> {
        next_change(self).map(|due| due.saturating_sub(now.elapsed))
    }
}

/// Returns when something next changes by itself, after the last message.
pub(super) fn next_change(state: &State) -> Option<Duration> {
    let Now { elapsed, unix_ms, .. } = state.now;
    let next_second = Duration::from_secs(elapsed.as_secs() + 1);
    let next_minute = elapsed + Duration::from_millis(60_000 - unix_ms % 60_000);
    let paused_for = state.pause.as_ref().map(|pause| elapsed.saturating_sub(pause.since.elapsed));
    // Ages in the list are updated with the rest of the list.
    let counts_seconds = state.jobs.active() > 0
        || state.pending_quit.is_some()
        || match paused_for {
            Some(paused_for) => paused_for < Duration::from_secs(60),
            None => state.recordings.active() > 0,
        };
    [
        Some(next_minute),
        counts_seconds.then_some(next_second),
        state.list.deadline(),
        state.toasts.deadline(elapsed),
        // Other tabs send no delayed requests.
        state.details.settles_at.filter(|_| state.tab == Tab::Environment || state.tab.shows_recordings()),
        state.pending_quit.map(|pending_quit| pending_quit.limit),
        watching::deadline(state),
    ]
    .into_iter()
    .flatten()
    .min()
}

/// Brings everything up to date with the current time and selection.
pub(super) fn update_due(state: &mut State) -> Vec<Effect> {
    let now = state.now.elapsed;
    mark_rows(state);
    // What was recorded of a process that crashes must not disappear while it is read.
    state.list.keep(state.list.selected().filter(|_| state.focus == Focus::Detail));
    if state.list.expire(now) {
        state.dirty = true;
    }
    let layout = state.layout();
    state.list.scroll_to_selection(layout.list_height());
    let selected = state.list.selected();
    if state.details.key != selected {
        state.details.reset(selected, now);
        state.chosen_recording = None;
        state.dirty = true;
    }
    let kind = state.row_kind();
    if !state.tab.is_shown(kind) {
        // A heap file has only one tab. The tab open before is restored with the next trace.
        let next = if state.last_trace_tab.is_shown(kind) { state.last_trace_tab } else { Tab::Heap };
        state.last_trace_tab = std::mem::replace(&mut state.tab, next);
    }
    let mut effects = leaving::quit_when_finished(state);
    let watches = watching::update_automatic(state);
    if !watches.is_empty() {
        mark_rows(state);
    }
    effects.extend(watches);
    effects.extend(files::request_unread(state));
    effects.extend(state.form_mut().and_then(Form::request_free_space));
    effects.extend(state.publish_filter());
    if state.details.settles_at.is_some_and(|at| at <= now) {
        state.details.settles_at = None;
    }
    // Open files have exactly one recording per row.
    if state.files.is_empty() {
        let shown = state.shown_recording().map(|tracked| tracked.value.id);
        state.recordings.release(shown);
    }
    if state.details.settles_at.is_none() && layout.detail.is_some() {
        effects.extend(request_environment(state));
        effects.extend(list(state, Tab::Threads, |of| &mut of.threads.refresh, |key, ticket| Effect::ListThreads { key, ticket }));
        effects.extend(list(state, Tab::Assemblies, |of| &mut of.assemblies.refresh, |key, ticket| Effect::ListAssemblies { key, ticket }));
        if state.tab.shows_recordings() {
            effects.extend(files::request_again(state));
        }
    }
    effects
}

/// Updates in the table which processes are recorded and watched.
fn mark_rows(state: &mut State) {
    let shows_figures = state.shows_figures();
    let active = state.recordings.all().iter().filter(|tracked| tracked.is_active());
    let recorded: BTreeSet<_> = active.map(|tracked| tracked.value.key).collect();
    let watched: BTreeMap<_, _> = state.watches.all().iter().map(|watch| (watch.key, watch.status())).collect();
    state.list.mark_recordings(|key| recorded.contains(&key));
    state.list.mark_watches(|key| watched.get(&key).copied(), shows_figures);
}

/// Requests the list shown by a tab for the selected process, as often as the processes are scanned.
fn list(
    state: &mut State,
    tab: Tab,
    refresh: fn(&mut Details) -> &mut Refresh,
    effect: fn(ProcessKey, Ticket) -> Effect,
) -> Option<Effect> {
    let key = state.list.selected()?;
    // Only for the current activity of a running process.
    let is_shown = state.tab == tab && !state.shows_files() && state.pause.is_none() && state.is_alive(key);
    if !is_shown || !refresh(&mut state.details).is_due() {
        return None;
    }
    let ticket = state.next_ticket();
    refresh(&mut state.details).requested(ticket);
    Some(effect(key, ticket))
}

/// Requests the environment of the selected process if the open tab shows it.
fn request_environment(state: &mut State) -> Option<Effect> {
    let key = state.list.selected()?;
    let wanted = state.tab == Tab::Environment && state.details.environment == Answer::NotRequested;
    if !wanted || Action::Environment.status(state) != Status::Ready {
        return None;
    }
    let ticket = state.next_ticket();
    state.details.environment = Answer::Requested(ticket);
    state.dirty = true;
    Some(Effect::ReadEnvironment { key, ticket })
}
