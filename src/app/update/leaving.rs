//! Quitting: recordings are finished first unless they are abandoned.

use std::time::Duration;

use crate::app::{Effect, Form, Overlay, PendingQuit, Purpose, State};
use crate::model::RecordingId;

/// How long recordings may take to finish when the user quits: the rundown of a large process takes a while.
const QUIT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long they may take after a termination signal, which is likely to be followed by a kill.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(8);
/// How long an abandoned recording may take to close its file.
const ABANDON_TIMEOUT: Duration = Duration::from_secs(3);

/// Quits, after confirmation if anything is unfinished.
pub(in crate::app) fn quit(state: &mut State) -> Vec<Effect> {
    let (recordings, jobs) = (state.recordings.active(), state.jobs.active());
    if recordings + jobs == 0 {
        return quit_now(state, false);
    }
    state.line = None;
    state.overlay = Some(Overlay::Form(Form::quit(recordings, jobs)));
    Vec::new()
}

/// Handles Ctrl-C: quits, finishes recordings, or abandons them, depending on how often it was pressed.
pub(in crate::app) fn interrupt(state: &mut State) -> Vec<Effect> {
    match &state.overlay {
        _ if state.pending_quit.is_some() => abandon_all(state),
        Some(Overlay::Form(Form { purpose: Purpose::Quit, .. })) => finish_recordings(state),
        _ => quit(state),
    }
}

/// Stops the recordings, waits for their rundown, then quits.
pub(super) fn finish_recordings(state: &mut State) -> Vec<Effect> {
    finish(state, QUIT_TIMEOUT);
    Vec::new()
}

/// Handles a termination signal. Recordings that are already stopping are abandoned.
pub(in crate::app) fn terminate(state: &mut State) -> Vec<Effect> {
    match &state.pending_quit {
        // A terminal that closes may send several signals.
        Some(pending_quit) if pending_quit.limit <= state.now.elapsed + SIGNAL_TIMEOUT => Vec::new(),
        Some(_) => abandon_all(state),
        None => {
            let stopping = state.recordings.all().iter().filter(|tracked| tracked.is_stopping());
            let effects = stopping.map(|tracked| Effect::AbandonTrace { id: tracked.value.id }).collect();
            finish(state, SIGNAL_TIMEOUT);
            effects
        }
    }
}

/// Begins to quit: [`quit_when_finished`] stops the recordings.
fn finish(state: &mut State, limit: Duration) {
    (state.overlay, state.line) = (None, None);
    state.pending_quit = Some(PendingQuit { limit: state.now.elapsed + limit, abandoned: false });
}

/// Abandons all active recordings instead of waiting for their remaining data.
pub(in crate::app) fn abandon_all(state: &mut State) -> Vec<Effect> {
    let Some(pending_quit) = &mut state.pending_quit else { return Vec::new() };
    if pending_quit.abandoned {
        return Vec::new();
    }
    *pending_quit = PendingQuit { limit: state.now.elapsed + ABANDON_TIMEOUT, abandoned: true };
    state.dirty = true;
    let active = state.recordings.all().iter().filter(|tracked| tracked.is_active());
    active.map(|tracked| Effect::AbandonTrace { id: tracked.value.id }).collect()
}

/// Stops the recordings, and quits once everything is finished, or the wait has timed out.
pub(in crate::app) fn quit_when_finished(state: &mut State) -> Vec<Effect> {
    let Some(pending_quit) = state.pending_quit else { return Vec::new() };
    if state.recordings.active() == 0 {
        return quit_now(state, false);
    }
    if state.now.elapsed >= pending_quit.limit {
        return if pending_quit.abandoned { quit_now(state, false) } else { abandon_all(state) };
    }
    // One of a program that was being started may begin only now.
    let running = state.recordings.all().iter().filter(|tracked| tracked.is_stoppable());
    let ids: Vec<RecordingId> = running.map(|tracked| tracked.value.id).collect();
    ids.iter().for_each(|id| state.recordings.stop(*id));
    ids.into_iter().map(|id| Effect::StopTrace { id }).collect()
}

/// Quits. With `keep_recording`, recordings continue in this terminal.
pub(super) fn quit_now(state: &mut State, keep_recording: bool) -> Vec<Effect> {
    state.is_quitting = true;
    vec![Effect::Quit { keep_recording }]
}
