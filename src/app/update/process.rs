//! What is done to or with a process.

use std::path::PathBuf;
use std::time::Duration;

use crate::app::dialog::Subject;
use crate::app::toast::Level;
use crate::app::{Effect, Job, JobKind, State, Tab};
use crate::ipc::{DumpKind, PerfMapKind, TargetPath};
use crate::model::{NameSearch, Phase, Recording, RecordingId};

/// Stops the recording of the selected process, or starts one.
pub(super) fn toggle_trace(state: &mut State) -> Vec<Effect> {
    let Some(subject) = state.selected_subject() else { return Vec::new() };
    let shown = state.shown_recording().filter(|tracked| tracked.is_stoppable()).map(|tracked| tracked.value.id);
    let newest = || state.recordings.all().iter().rev().find(|tracked| tracked.value.key == subject.key && tracked.is_stoppable());
    match shown.or_else(|| newest().map(|tracked| tracked.value.id)) {
        Some(id) => stop_trace(state, id),
        None => {
            let profiles = state.last_profiles.clone();
            start_trace(state, subject, profiles)
        }
    }
}

/// Starts to record a process.
pub(super) fn start_trace(state: &mut State, subject: Subject, profiles: Vec<String>) -> Vec<Effect> {
    let id = state.recordings.next_id();
    let recording = Recording {
        id,
        key: subject.key,
        name: subject.name,
        file: PathBuf::new(),
        what: profiles.join(" + "),
        phase: Phase::Starting,
        elapsed: Duration::ZERO,
        bytes: 0,
        events: 0,
        dropped: 0,
        history: Vec::new(),
        threads: Default::default(),
        names: NameSearch::NotYet,
        findings: None,
    };
    state.recordings.begin(recording, state.now.elapsed);
    state.chosen = Some(id);
    state.tab = Tab::Trace;
    state.last_profiles.clone_from(&profiles);
    mark_recordings(state);
    vec![Effect::StartTrace { id, key: subject.key, profiles }]
}

fn stop_trace(state: &mut State, id: RecordingId) -> Vec<Effect> {
    state.recordings.stop(id);
    state.tab = Tab::Trace;
    vec![Effect::StopTrace { id }]
}

/// Ends the shown recording without waiting for the rest.
pub(super) fn abandon(state: &mut State) -> Vec<Effect> {
    let stopping = state.shown_recording().filter(|tracked| tracked.is_stopping());
    stopping.map(|tracked| Effect::AbandonTrace { id: tracked.value.id }).into_iter().collect()
}

/// Has a process write a dump.
pub(super) fn dump(state: &mut State, subject: Subject, kind: DumpKind, path: TargetPath) -> Vec<Effect> {
    let key = subject.key;
    let ticket = begin(state, subject, JobKind::Dump(kind, path.clone()));
    vec![Effect::Dump { key, kind, path, ticket }]
}

/// Turns a process's perf map on or off.
pub(super) fn perf_map(state: &mut State, subject: Subject, kind: Option<PerfMapKind>) -> Vec<Effect> {
    let key = subject.key;
    let ticket = begin(state, subject, JobKind::PerfMap(kind));
    vec![Effect::PerfMap { key, kind, ticket }]
}

/// Lets a process run that waits at start-up, or every one that does.
pub(super) fn resume(state: &mut State, subject: Subject, all: bool) -> Vec<Effect> {
    let subjects = if all { state.waiting().collect() } else { vec![subject] };
    let begin = |subject: Subject| {
        let key = subject.key;
        Effect::Resume { key, ticket: begin(state, subject, JobKind::Resume) }
    };
    subjects.into_iter().map(begin).collect()
}

fn begin(state: &mut State, subject: Subject, what: JobKind) -> crate::app::Ticket {
    let ticket = state.ticket();
    state.say(Level::Info, format!("{subject}: {} …", what.title()));
    state.jobs.begin(Job { ticket, subject, what, began: state.now.elapsed, ended: None });
    ticket
}

/// Tells the table which processes are being recorded.
pub(super) fn mark_recordings(state: &mut State) {
    let recordings = &state.recordings;
    state.list.mark_recordings(|key| recordings.is_recording(key));
}
