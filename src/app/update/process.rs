//! Actions on a process.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::app::dialog::{Change, ControlRequest, ExportRequest, Form, Overlay, ProducerRequest, ProgramRequest, Subject};
use crate::app::list::Row;
use crate::app::toast::Level;
use crate::app::{Effect, Focus, Job, JobKind, OutputView, Producer, State, Tab, Ticket, TrackedRecording};
use crate::clr::SLOW_PROFILE;
use crate::ipc::{DumpRequest, PerfMapKind};
use crate::model::{
    Process, ProcessKey, Recording, RecordingId, RunState, SafeText, Scheduling, TraceOptions, file_stem, shown_command_line,
};

use super::overlays;

/// Stops the recording of the selected process, or starts one. A tab that shows the contents of recordings stays open.
pub(in crate::app) fn toggle_trace(state: &mut State) -> Vec<Effect> {
    let tab = state.tab;
    let effects = start_or_stop(state);
    if tab.is_analysis() {
        state.tab = tab;
    }
    effects
}

fn start_or_stop(state: &mut State) -> Vec<Effect> {
    let Some(subject) = state.selected_subject() else { return Vec::new() };
    let shown = state.shown_recording().filter(|tracked| tracked.is_stoppable()).map(|tracked| tracked.value.id);
    let newest = || state.recordings.all().iter().rev().find(|tracked| tracked.value.key == subject.key && tracked.is_stoppable());
    match shown.or_else(|| newest().map(|tracked| tracked.value.id)) {
        Some(id) => stop_trace(state, id),
        None => {
            let options = TraceOptions::of_profiles(&state.last_profiles);
            start_trace(state, subject, options)
        }
    }
}

/// Records the profiles of the open tab, which stays open.
pub(in crate::app) fn record_tab(state: &mut State) -> Vec<Effect> {
    let Some(subject) = state.selected_subject() else { return Vec::new() };
    let (tab, usual) = (state.tab, state.last_profiles.clone());
    let options = TraceOptions::of_profiles(&state.profiles_of_tab(tab));
    let effects = start_trace(state, subject, options);
    (state.tab, state.last_profiles) = (tab, usual);
    effects
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
        let usual = state.last_profiles.clone();
        let options = TraceOptions { duration: Some(SLOWDOWN_DURATION), ..TraceOptions::of_profiles(&[SLOW_PROFILE.to_owned()]) };
        effects = start_trace(state, subject, options);
        state.last_profiles = usual;
    }
    (state.tab, state.focus) = (Tab::Slowdown, Focus::Detail);
    effects
}

/// Starts to record a process.
pub(in crate::app) fn start_trace(state: &mut State, subject: Subject, options: TraceOptions) -> Vec<Effect> {
    let id = state.recordings.next_id();
    let what = options.profiles.iter().chain(&options.providers).cloned().collect();
    let kernel = options.user_events().ok().flatten().map(|(_, kernel)| kernel);
    let scheduling = options.scheduling.then_some(Scheduling::Waiting);
    let recording = Recording { kernel, scheduling, ..Recording::starting(id, subject.key, subject.name, what, PathBuf::new()) };
    state.recordings.begin(recording, options.duration, state.now.elapsed);
    state.chosen_recording = Some(id);
    state.tab = Tab::Trace;
    if !options.profiles.is_empty() {
        state.last_profiles.clone_from(&options.profiles);
    }
    if options.flight.is_some() {
        // A file name from the options applies to the first recording only.
        state.flight_options.push((id, TraceOptions { file: None, ..options.clone() }));
    }
    mark_recordings(state);
    vec![Effect::StartTrace { id, key: subject.key, options: Box::new(options) }]
}

fn stop_trace(state: &mut State, id: RecordingId) -> Vec<Effect> {
    state.recordings.stop(id);
    state.tab = Tab::Trace;
    vec![Effect::StopTrace { id }]
}

/// Saves the shown flight recording. A new one starts before the old one ends, so that no events are missed.
pub(in crate::app) fn save(state: &mut State) -> Vec<Effect> {
    let Some(TrackedRecording { value: recording, .. }) = state.shown_recording() else { return Vec::new() };
    let (id, subject) = (recording.id, Subject::of_recording(recording));
    let Some(at) = state.flight_options.iter().position(|(other, _)| *other == id) else { return Vec::new() };
    let (_, options) = state.flight_options.swap_remove(at);
    state.notify(Level::Info, format!("{subject}: saving the flight recording; the recorder continues."));
    let mut effects = start_trace(state, subject, options);
    effects.extend(stop_trace(state, id));
    effects
}

/// Ends the shown recording without waiting for its remaining data.
pub(in crate::app) fn abandon(state: &mut State) -> Vec<Effect> {
    let stopping = state.shown_recording().filter(|tracked| tracked.is_stopping());
    stopping.map(|tracked| Effect::AbandonTrace { id: tracked.value.id }).into_iter().collect()
}

/// Makes a process write a dump.
pub(in crate::app) fn dump(state: &mut State, subject: Subject, request: DumpRequest) -> Vec<Effect> {
    let key = subject.key;
    let ticket = begin(state, subject, JobKind::Dump(request.clone()));
    vec![Effect::Dump { key, request, ticket }]
}

/// Returns the export dialog for the shown recording.
pub(in crate::app) fn export_form(state: &State) -> Option<Form> {
    let subject = state.selected_subject()?;
    if let Some(file) = state.open_file() {
        return Some(Form::export(subject, file.facts.path.clone(), file.span(), false, state.now));
    }
    let (source, grows) = state.shown_recording()?.written()?;
    Some(Form::export(subject, source, None, grows, state.now))
}

pub(in crate::app) fn export(state: &mut State, subject: Subject, request: ExportRequest) -> Vec<Effect> {
    let ExportRequest { source, destination, format, span } = request;
    let ticket = begin(state, subject, JobKind::Export(destination.clone()));
    vec![Effect::Export { source, destination, format, span, ticket }]
}

/// Turns a process's perf map on or off.
pub(in crate::app) fn perf_map(state: &mut State, subject: Subject, kind: Option<PerfMapKind>) -> Vec<Effect> {
    let key = subject.key;
    let ticket = begin(state, subject, JobKind::PerfMap(kind));
    vec![Effect::PerfMap { key, kind, ticket }]
}

/// Sends a process a command that changes its state.
pub(in crate::app) fn control(state: &mut State, subject: Subject, change: Change, wanted: ControlRequest) -> Vec<Effect> {
    let ControlRequest { command, data, what } = wanted;
    let key = subject.key;
    let ticket = begin(state, subject, JobKind::Control(change, what));
    vec![Effect::Control { key, command, data, ticket }]
}

pub(in crate::app) fn launch(state: &mut State, program: ProgramRequest) -> Vec<Effect> {
    let ProgramRequest { words, options, output } = program;
    let name = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default().to_owned();
    let subject = without_process(&name);
    let output = output.unwrap_or_else(|| format!("{}_{}.out", file_stem(&name), state.now.file_stamp()).into());
    let ticket = begin(state, subject, JobKind::Launch { line: shown_command_line(&words.join(" ")), output: output.clone() });
    let id = state.recordings.next_id();
    state.last_profiles.clone_from(&options.profiles);
    state.overlay = state.jobs.find(ticket).map(|job| Overlay::Output(OutputView::new(job)));
    vec![Effect::Launch { words, id, options: Box::new(options), output, ticket }]
}

/// Serves a diagnostic port.
pub(in crate::app) fn port(state: &mut State, path: PathBuf) -> Vec<Effect> {
    let ticket = begin(state, without_process("dn-top"), JobKind::Port(path.clone()));
    vec![Effect::ServePort { path, ticket }]
}

/// Returns the dialog for serving a diagnostic port, or for closing the served one.
pub(in crate::app) fn port_form(state: &State) -> Form {
    let Some(path) = &state.port else { return Form::port() };
    let connected: Vec<_> = state.connected().map(|row| &row.process).collect();
    let count = |what: &dyn Fn(&Process) -> bool| connected.iter().filter(|process| what(process)).count();
    let waiting = count(&|process| process.run_state == RunState::Suspended);
    let recorded = count(&|process| state.recordings.is_recording(process.key));
    let subjects = connected.iter().map(|process| Subject::of(process)).collect();
    Form::close_port(path, subjects, waiting, recorded)
}

/// Closes the port, optionally after resuming the processes suspended at it.
pub(in crate::app) fn close_port(state: &mut State, resume: bool) -> Vec<Effect> {
    let Some(path) = state.port.clone() else { return Vec::new() };
    let waits = |row: &&Row| resume && row.process.run_state == RunState::Suspended;
    let resume = state.connected().filter(waits).map(|row| row.process.key).collect();
    let ticket = begin(state, without_process("dn-top"), JobKind::ClosePort(path));
    vec![Effect::ClosePort { resume, ticket }]
}

/// Removes the sockets of killed processes.
pub(in crate::app) fn clean_up(state: &mut State, folders: BTreeSet<PathBuf>) -> Vec<Effect> {
    let ticket = begin(state, without_process("dn-top"), JobKind::CleanUp);
    vec![Effect::CleanUp { folders, ticket }]
}

/// Starts to serve Perfetto's tracing service.
pub(in crate::app) fn producer(state: &mut State, served: ProducerRequest) -> Vec<Effect> {
    let ProducerRequest { targets, profiles } = served;
    let named = if targets.is_empty() { "all processes".to_owned() } else { targets.join(", ") };
    let ticket = begin(state, without_process("dn-top"), JobKind::Producer(format!("{named}: {}", profiles.join(", "))));
    state.producer = Some(Producer::new(ticket));
    vec![Effect::ServeProducer { targets, profiles, ticket }]
}

/// Returns the subject of a job that concerns no process, or one that does not exist yet.
fn without_process(name: &str) -> Subject {
    Subject { key: ProcessKey { pid: 0, started: 0 }, name: name.into() }
}

/// Stores the output of a started program.
pub(in crate::app) fn program_output(state: &mut State, ticket: Ticket, lines: Arc<[SafeText]>) {
    overlays::show_output(state, Some(ticket), &lines);
    state.jobs.apply(ticket, lines);
}

/// Begins the recording of a started program.
pub(in crate::app) fn launched(state: &mut State, ticket: Ticket, recording: Recording) -> Effect {
    let subject = Subject::of_recording(&recording);
    state.notify(Level::Info, format!("{subject} started; recording it."));
    state.jobs.identify(ticket, subject);
    state.recordings.begin(recording, None, state.now.elapsed);
    mark_recordings(state);
    Effect::Refresh
}

/// Resumes a process suspended at startup, or all of them.
pub(in crate::app) fn resume(state: &mut State, subject: Subject, all: bool) -> Vec<Effect> {
    let subjects = if all { state.suspended().collect() } else { vec![subject] };
    let begin = |subject: Subject| {
        let key = subject.key;
        Effect::Resume { key, ticket: begin(state, subject, JobKind::Resume) }
    };
    subjects.into_iter().map(begin).collect()
}

/// Adds a job for a process to the action log.
pub(super) fn begin(state: &mut State, subject: Subject, kind: JobKind) -> Ticket {
    let ticket = state.next_ticket();
    state.notify(Level::Info, format!("{subject}: {} …", kind.title()));
    state.jobs.begin(Job { ticket, subject, kind, began: state.now.elapsed, ended: None, output_lines: Arc::default(), percent: None });
    ticket
}

/// Updates in the table which processes are being recorded.
pub(in crate::app) fn mark_recordings(state: &mut State) {
    let recordings = &state.recordings;
    state.list.mark_recordings(|key| recordings.is_recording(key));
}
