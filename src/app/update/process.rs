//! Recordings of a process.

use std::path::PathBuf;
use std::time::Duration;

use crate::app::{Effect, Level, State, Subject, Tab, Ticket, TrackedRecording};
use crate::clr::SLOW_PROFILE;
use crate::model::{Recording, RecordingId, Scheduling, TraceOptions};

/// Stops the recording of the selected process, or starts one. A tab that shows the contents of recordings stays open.
pub(in crate::app) fn toggle_trace(state: &mut State) -> Vec<Effect> {
    let Some(subject) = state.selected_subject() else { return Vec::new() };
    let shown = state.shown_recording().filter(|tracked| tracked.is_stoppable()).map(|tracked| tracked.value.id);
    let newest = || state.recordings.all().iter().rev().find(|tracked| tracked.value.key == subject.key && tracked.is_stoppable());
    let effect = match shown.or_else(|| newest().map(|tracked| tracked.value.id)) {
        Some(id) => stop(state, id),
        None => {
            let options = TraceOptions::of_profiles(&state.last_profiles);
            record(state, subject, options)
        }
    };
    if !state.tab.is_analysis() {
        state.tab = Tab::Trace;
    }
    vec![effect]
}

/// Records the profiles of the open tab.
pub(in crate::app) fn record_tab(state: &mut State) -> Vec<Effect> {
    let options = TraceOptions::of_profiles(&state.profiles_of_tab(state.tab));
    state.selected_subject().map(|subject| record(state, subject, options)).into_iter().collect()
}

/// Duration of a recording that investigates why a process is slow.
const SLOWDOWN_DURATION: Duration = Duration::from_secs(30);

/// Starts a recording that shows why the selected process is slow, and opens its tab; a running recording of this kind, or a file, is only shown.
pub(in crate::app) fn why_slow(state: &mut State) -> Vec<Effect> {
    let Some(subject) = state.selected_subject() else { return Vec::new() };
    let is_running = |tracked: &&TrackedRecording| tracked.is_stoppable() && tracked.value.what == [SLOW_PROFILE];
    let running = state.recordings.of(subject.key).find(is_running).map(|tracked| tracked.value.id);
    let mut effects = Vec::new();
    if running.is_some() {
        state.chosen_recording = running;
    } else if !state.shows_files() {
        let options = TraceOptions { duration: Some(SLOWDOWN_DURATION), ..TraceOptions::of_profiles(&[SLOW_PROFILE.to_owned()]) };
        effects.push(record(state, subject, options));
    }
    state.open_tab(Tab::Slowdown);
    effects
}

/// Starts to record a process with options chosen by the user, and shows the recording.
pub(in crate::app) fn start_trace(state: &mut State, subject: Subject, options: TraceOptions) -> Vec<Effect> {
    if !options.profiles.is_empty() {
        state.last_profiles.clone_from(&options.profiles);
    }
    state.tab = Tab::Trace;
    vec![record(state, subject, options)]
}

fn record(state: &mut State, subject: Subject, options: TraceOptions) -> Effect {
    let id = state.recordings.next_id();
    let what = options.profiles.iter().chain(&options.providers).cloned().collect();
    let kernel = options.user_events().ok().flatten().map(|(_, kernel)| kernel);
    let scheduling = options.scheduling.then_some(Scheduling::Waiting);
    let recording = Recording { kernel, scheduling, ..Recording::starting(id, subject.key, subject.name, what, PathBuf::new()) };
    state.recordings.begin(recording, options.duration, state.now.elapsed);
    state.chosen_recording = Some(id);
    if options.flight.is_some() {
        // A file name from the options applies to the first recording only. Later ones are written next to it.
        let next_to = options.file.as_ref().and_then(|file| file.parent()).filter(|folder| !folder.as_os_str().is_empty());
        let folder = next_to.map(Into::into).or_else(|| options.folder.clone());
        state.flight_options.push((id, TraceOptions { file: None, folder, ..options.clone() }));
    }
    Effect::StartTrace { id, key: subject.key, options: Box::new(options) }
}

fn stop(state: &mut State, id: RecordingId) -> Effect {
    state.recordings.stop(id);
    Effect::StopTrace { id }
}

/// Saves the shown flight recording. A new one starts before the old one ends, so that no events are missed.
pub(in crate::app) fn save(state: &mut State) -> Vec<Effect> {
    let Some(TrackedRecording { value: recording, .. }) = state.shown_recording() else { return Vec::new() };
    let (id, subject) = (recording.id, Subject::of_recording(recording));
    let Some(at) = state.flight_options.iter().position(|(other, _)| *other == id) else { return Vec::new() };
    let (_, options) = state.flight_options.swap_remove(at);
    state.notify(Level::Info, format!("{subject}: saving the flight recording; the recorder continues."));
    let mut effects = start_trace(state, subject, options);
    effects.push(stop(state, id));
    effects
}

/// Ends the shown recording without waiting for its remaining data.
pub(in crate::app) fn abandon(state: &mut State) -> Vec<Effect> {
    let stopping = state.shown_recording().filter(|tracked| tracked.is_stopping());
    stopping.map(|tracked| Effect::AbandonTrace { id: tracked.value.id }).into_iter().collect()
}

/// Begins the recording of a started program.
pub(in crate::app) fn launched(state: &mut State, ticket: Ticket, recording: Recording) -> Effect {
    let subject = Subject::of_recording(&recording);
    state.notify(Level::Info, format!("{subject} started; recording it."));
    state.jobs.identify(ticket, subject);
    state.recordings.begin(recording, None, state.now.elapsed);
    Effect::Refresh
}
