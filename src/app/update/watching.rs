//! Watching processes.

use std::sync::Arc;
use std::time::Duration;

use crate::analysis::CountersSnapshot;
use crate::app::action::attach;
use crate::app::details::AUTO_WATCH_DELAY;
use crate::app::{AutoWatch, Effect, Level, Row, State, Subject, Ticket, Watch};
use crate::model::{Contact, Process, ProcessKey, ProcessUse, RunState, SafeText, counters_delay};

/// How long a deselected process stays watched, so that moving back and forth starts no sessions.
const UNWATCH_DELAY: Duration = Duration::from_secs(5);
/// Maximum number of watches that follow the selection.
const MAX_FOLLOWING: usize = 3;

/// Watches or unwatches the selected process.
pub(in crate::app) fn toggle(state: &mut State) -> Vec<Effect> {
    let Some(key) = state.list.selected() else { return Vec::new() };
    if state.watches.of(key).is_some() { vec![unwatch(state, key)] } else { vec![begin(state, key, false, false)] }
}

/// Watches every process that matches the filter and can be watched, or unwatches all of them if all are watched.
pub(in crate::app) fn toggle_all(state: &mut State) -> Vec<Effect> {
    let others: Vec<_> = state.unwatched().collect();
    if others.is_empty() {
        let shown = state.list.shown().map(|row| row.process.key);
        let watched: Vec<_> = shown.filter(|key| state.watches.of(*key).is_some()).collect();
        return watched.into_iter().map(|key| unwatch(state, key)).collect();
    }
    let (following, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|key| state.watches.of(*key).is_some());
    for key in following {
        state.watches.keep(key);
    }
    state.dirty = true;
    others.into_iter().map(|key| begin(state, key, false, false)).collect()
}

/// Includes or excludes the meters of a watched process.
pub(in crate::app) fn toggle_meters(state: &mut State) -> Vec<Effect> {
    let Some(key) = state.list.selected() else { return Vec::new() };
    let meters = state.watches.of(key).is_none_or(|watch| !watch.meters);
    vec![begin(state, key, meters, false)]
}

/// Starts and ends automatic watches.
pub(super) fn update_automatic(state: &mut State) -> Vec<Effect> {
    let (now, selected) = (state.now.elapsed, state.list.selected());
    for watch in state.watches.all_mut().iter_mut().filter(|watch| watch.automatic) {
        watch.deselected_at = if Some(watch.key) == selected { None } else { Some(watch.deselected_at.unwrap_or(now)) };
    }
    if state.pending_quit.is_some() {
        return Vec::new();
    }
    let mut effects = Vec::new();
    if state.options.watch == AutoWatch::Selected {
        let over = |watch: &&Watch| watch.automatic && watch.deselected_at.is_some_and(|left| now >= left + UNWATCH_DELAY);
        let over: Vec<_> = state.watches.all().iter().filter(over).map(|watch| watch.key).collect();
        effects.extend(over.into_iter().map(|key| end(state, key)));
    }
    for key in due(state).into_iter().filter(|(_, at)| *at <= now).map(|(key, _)| key).collect::<Vec<_>>() {
        let following = || state.watches.all().iter().filter(|watch| watch.automatic);
        if state.options.watch == AutoWatch::Selected && following().count() >= MAX_FOLLOWING {
            let oldest =
                following().filter(|watch| watch.deselected_at.is_some()).min_by_key(|watch| watch.deselected_at).map(|watch| watch.key);
            effects.extend(oldest.map(|key| end(state, key)));
        }
        effects.push(begin(state, key, false, true));
    }
    effects
}

/// Returns when [`update_automatic`] next has something to do.
pub(super) fn deadline(state: &State) -> Option<Duration> {
    if state.pending_quit.is_some() {
        return None;
    }
    let begins = due(state).into_iter().map(|(_, at)| at);
    let ends = state
        .watches
        .all()
        .iter()
        .filter(|_| state.options.watch == AutoWatch::Selected)
        .filter_map(|watch| Some(watch.deselected_at? + UNWATCH_DELAY));
    begins.chain(ends).min()
}

/// Returns the processes to be watched automatically, and when.
fn due(state: &State) -> Vec<(ProcessKey, Duration)> {
    let is_due = |row: &&Row| {
        let process = &row.process;
        process.contact == Contact::Ok
            && process.run_state != RunState::Suspended
            && !row.is_stopped()
            && state.watches.may_watch(process.key)
            && attach(state, row).is_none()
    };
    if state.shows_files() {
        return Vec::new();
    }
    match state.options.watch {
        AutoWatch::Never => Vec::new(),
        AutoWatch::Selected => {
            let at = |row: &Row| (state.details.since + AUTO_WATCH_DELAY).max(earliest_start(state, row));
            state.selected().filter(is_due).map(|row| (row.process.key, at(row))).into_iter().collect()
        }
        AutoWatch::All => state.list.rows().iter().filter(is_due).map(|row| (row.process.key, earliest_start(state, row))).collect(),
    }
}

/// Returns the earliest time for an automatic watch: not during startup, nor too soon after a failed watch.
fn earliest_start(state: &State, row: &Row) -> Duration {
    let safe_at = state.now.elapsed + remaining_startup(state, &row.process);
    safe_at.max(state.watches.retry_at(row.process.key))
}

/// Returns how long a counter session could still hang a starting process; zero if its runtime does not have this bug.
fn remaining_startup(state: &State, process: &Process) -> Duration {
    let uptime = Duration::from_millis(state.now.unix_ms.saturating_sub(process.started_unix_ms));
    counters_delay(process.runtime.as_ref(), uptime)
}

impl State {
    /// Whether the selected process is about to be watched automatically.
    pub(in crate::app) fn will_be_watched(&self) -> bool {
        let soon = self.now.elapsed + AUTO_WATCH_DELAY;
        self.list.selected().is_some_and(|selected| due(self).iter().any(|(key, at)| *key == selected && *at <= soon))
    }

    /// Returns when a failed automatic watch of the selected process will be tried again.
    pub(in crate::app) fn watch_retry(&self) -> Option<Duration> {
        let selected = self.list.selected()?;
        let (_, at) = due(self).into_iter().find(|(key, _)| *key == selected)?;
        let has_failed = self.watches.retry_at(selected) > self.now.elapsed;
        at.checked_sub(self.now.elapsed).filter(|_| has_failed)
    }

    /// Whether the selected process will be watched automatically only after it has run for a while.
    pub(in crate::app) fn is_watch_delayed(&self) -> bool {
        let Some(row) = self.selected() else { return false };
        !remaining_startup(self, &row.process).is_zero() && due(self).iter().any(|(key, _)| *key == row.process.key)
    }
}

fn begin(state: &mut State, key: ProcessKey, meters: bool, automatic: bool) -> Effect {
    let ticket = state.next_ticket();
    state.watches.begin(key, meters, automatic, ticket, state.options.processors);
    state.dirty = true;
    Effect::Watch { key, ticket, meters }
}

fn end(state: &mut State, key: ProcessKey) -> Effect {
    state.watches.end(key);
    state.dirty = true;
    Effect::Unwatch { key }
}

/// Ends a watch and prevents it from restarting automatically.
fn unwatch(state: &mut State, key: ProcessKey) -> Effect {
    state.watches.exclude(key);
    end(state, key)
}

/// Applies the counters published by a watched process.
pub(in crate::app) fn apply(state: &mut State, ticket: Ticket, counters: Arc<CountersSnapshot>, usage: Box<ProcessUse>) {
    if state.watches.apply(ticket, (counters, *usage), &state.options.thresholds, state.pause.is_some(), state.now.elapsed) {
        state.dirty = true;
    }
}

/// Handles the end of a watch: the process has ended, or the sentence gives the reason.
pub(in crate::app) fn ended(state: &mut State, ticket: Ticket, trouble: Option<SafeText>) {
    let Some((key, automatic)) = state.watches.ended(ticket) else { return };
    let is_news = if automatic && trouble.is_some() { state.watches.schedule_retry(key, state.now.elapsed) } else { true };
    if !automatic || trouble.is_none() {
        state.watches.exclude(key);
    }
    if let Some(trouble) = trouble.filter(|_| is_news) {
        let name = state.list.find(key).map(|row| row.process.name.clone()).unwrap_or_default();
        state.notify(Level::Error, format!("{} is not watched: {trouble}", Subject { key, name }));
    }
}
