//! Replies and reports from the runner: processes, answers, recordings.

use super::submit;
use crate::app::recordings::RecordingChange;
use crate::app::{Clipboard, JobKind, JobResult, Level, State, Subject, Ticket};
use crate::model::{
    Bytes, Count, Counted, Environment, Outcome, Phase, Process, ProcessKey, ProducerReport, Recording, RecordingId, SafeText, StoppedBy,
    Stopwatch,
};
use crate::sorting::CompactSort;

/// Maximum length of a process name in characters; an assembly name may be as long as a message of its runtime.
const MAX_NAME_LENGTH: usize = 200;

pub(super) fn processes(state: &mut State, mut processes: Vec<Process>) {
    for process in &mut processes {
        process.name = std::mem::take(&mut process.name).cut(MAX_NAME_LENGTH);
    }
    if let Some(saved) = &mut state.saved_process_view {
        saved.pending = Some(processes);
        return;
    }
    let alive = |key| processes.iter().any(|process| process.key == key);
    // A dialog about a process that has ended must not be confirmed.
    let orphan = state.overlay.as_ref().and_then(|overlay| overlay.subject()).filter(|subject| !alive(subject.key)).cloned();
    if let Some(subject) = orphan {
        (state.overlay, state.line) = (None, None);
        state.notify(Level::Warning, format!("{subject} has ended; the action was not carried out."));
    }
    if let Some(pause) = &mut state.pause {
        pause.pending = Some(processes);
        return;
    }
    let selected = |state: &State| state.selected().map(|row| (row.process.key, row.process.contact.clone(), row.process.runtime.clone()));
    let before = selected(state);
    state.details.threads.refresh.mark_outdated();
    state.details.assemblies.refresh.mark_outdated();
    state.usage.push(&processes, state.now.elapsed);
    let aged = state
        .list
        .rows()
        .iter()
        .any(|row| displayed_age(&row.process, state.listed_unix_ms) != displayed_age(&row.process, state.now.unix_ms));
    state.listed_unix_ms = state.now.unix_ms;
    state.dirty |= state.list.replace(processes, state.now.elapsed) || aged;
    let list = &state.list;
    state.watches.forget(|key| list.find(key).is_some());
    if before != selected(state) {
        state.details.retry();
    }
}

/// Returns a process's displayed age: in seconds at first, then in minutes.
fn displayed_age(process: &Process, unix_ms: u64) -> u64 {
    let seconds = unix_ms.saturating_sub(process.started_unix_ms) / 1000;
    if seconds < 60 { seconds } else { seconds / 60 * 60 }
}

pub(super) fn environment(state: &mut State, ticket: Ticket, mut result: Result<Environment, SafeText>) {
    if let Ok(Environment { variables, .. }) = &mut result {
        variables.compact_sort_by(|a, b| a.name.cmp(&b.name));
    }
    state.details.environment.take(ticket, result);
}

/// Applies the reported status of a recording.
pub(super) fn recording(state: &mut State, recording: Recording) {
    let id = recording.id;
    let result = match &recording.phase {
        Phase::Done(outcome) => Some(ended(&recording, outcome)),
        _ => None,
    };
    match state.recordings.apply(recording, &state.options.thresholds, state.now.elapsed) {
        RecordingChange::Nothing => return,
        RecordingChange::Numbers if state.pause.is_some() => return,
        RecordingChange::Numbers | RecordingChange::Phase => {}
        RecordingChange::Ended => {
            state.bell = state.options.bell;
            state.flight_options.retain(|(other, _)| *other != id);
            if let Some((level, text)) = result {
                state.notify(level, text);
            }
        }
    }
    state.dirty = true;
}

/// Returns the message for an ended recording.
fn ended(recording: &Recording, outcome: &Outcome) -> (Level, String) {
    let subject = Subject::of_recording(recording);
    let trouble = outcome.trouble.as_deref().map(|trouble| format!(" {}", sentence(trouble))).unwrap_or_default();
    if let Some(kernel) = &recording.kernel {
        let elapsed = Stopwatch(recording.elapsed);
        return match outcome.stopped_by {
            StoppedBy::Error => (Level::Error, format!("{subject}: cannot write events to {kernel}.{trouble}")),
            StoppedBy::TargetExit => (Level::Warning, format!("{subject} exited while writing to {kernel}.{trouble}")),
            _ if trouble.is_empty() => (Level::Success, format!("{subject} wrote to {kernel} for {elapsed}.")),
            _ => (Level::Warning, format!("{subject} wrote to {kernel} for {elapsed}.{trouble}")),
        };
    }
    let samples = recording.cpu_file.as_ref().map(|file| format!(" CPU samples in {}.", file.display())).unwrap_or_default();
    let Some(file) = &outcome.file else {
        return (Level::Error, format!("{subject}: nothing was recorded.{trouble}{samples}"));
    };
    let loss = if recording.dropped > 0 { format!(", {} dropped", Count(recording.dropped)) } else { String::new() };
    let what = format!("{}, {}{loss}, in {}", Bytes(recording.bytes), Counted(recording.events, "event"), file.display());
    let success = if trouble.is_empty() && !recording.is_empty() { Level::Success } else { Level::Warning };
    let (level, text) = match (outcome.stopped_by, outcome.complete) {
        (StoppedBy::Error, _) => (Level::Error, format!("{subject}: the recording failed.{trouble} Kept: {what}.")),
        (StoppedBy::TargetExit, _) => (Level::Warning, format!("{subject} exited while being recorded.{trouble} Kept: {what}.")),
        (StoppedBy::Event, true) => (success, format!("{subject}: stop event received. Recorded {what}.{trouble}")),
        (StoppedBy::Condition, true) => (success, format!("{subject}: stop condition met. Recorded {what}.{trouble}")),
        (_, false) => (Level::Warning, format!("{subject}: recorded, but the end is missing.{trouble} Kept: {what}.")),
        (_, true) => (success, format!("{subject}: recorded {what}.{trouble}")),
    };
    (level, text + &samples)
}

/// Returns the text with a capital letter and a full stop. A name, such as that of a command, has its own capitals.
fn sentence(text: &str) -> String {
    let is_word = text.split(' ').next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1).filter(|_| is_word) {
        first.make_ascii_uppercase();
    }
    if !text.ends_with(['.', '!', '?', '…']) {
        text.push('.');
    }
    text
}

pub(super) fn tracepoints_missing(state: &mut State, key: ProcessKey, missing: Vec<SafeText>) {
    if let Some(form) = state.covered_form_mut()
        && form.subject.as_ref().is_some_and(|subject| subject.key == key)
    {
        form.take_missing(missing);
    }
}

pub(super) fn trace_failed(state: &mut State, id: RecordingId, reason: SafeText) {
    let Some(tracked) = state.recordings.all().iter().find(|tracked| tracked.value.id == id) else { return };
    let mut failed = tracked.value.clone();
    failed.elapsed = tracked.elapsed(state.now.elapsed);
    failed.phase = Phase::Done(Outcome { stopped_by: StoppedBy::Error, complete: false, file: None, trouble: Some(reason) });
    recording(state, failed);
}

/// Applies a report from the producer for Perfetto's tracing service.
pub(super) fn producer(state: &mut State, ticket: Ticket, report: ProducerReport) {
    let Some(producer) = state.producer.as_mut().filter(|producer| producer.ticket == ticket) else { return };
    let level = match &report {
        ProducerReport::Connected(_) => Some(Level::Success),
        ProducerReport::Waiting(_) | ProducerReport::Trouble(_) => Some(Level::Warning),
        ProducerReport::Started { troubles, .. } => Some(if troubles.is_empty() { Level::Info } else { Level::Warning }),
        ProducerReport::Progress { .. } => None,
        ProducerReport::Ended { packets, .. } => Some(if packets.dropped > 0 { Level::Warning } else { Level::Success }),
    };
    // Why the service cannot be reached begins with its name.
    let subject = if matches!(report, ProducerReport::Waiting(_)) { "" } else { "Perfetto: " };
    let text = level.map(|level| (level, format!("{subject}{report}").replace("\n  ", " · ")));
    producer.take(report);
    let sentences = producer.sentences();
    if let Some(form) = state.covered_form_mut() {
        form.show_producer(sentences);
    }
    if let Some((level, text)) = text {
        state.notify(level, text);
    }
}

/// Stores the result of a job and notifies about it.
pub(super) fn job_done(state: &mut State, ticket: Ticket, result: Result<JobResult, SafeText>) {
    let Some(job) = state.jobs.end(ticket, result, state.now.elapsed) else { return };
    match (&job.kind, &job.ended) {
        (JobKind::Port(path), Some((_, Ok(_)))) => state.port = Some(path.clone()),
        (JobKind::ClosePort(..), Some((_, Ok(_)))) => state.port = None,
        (JobKind::Producer { .. }, Some(_)) => state.producer = None,
        _ => {}
    }
    state.bell = state.options.bell;
    let title = format!("{}: {}", job.subject, job.kind.title());
    let (level, text) = match &job.ended {
        Some((_, Err(reason))) => (Level::Error, format!("{title} failed. {reason}")),
        Some((_, Ok(JobResult { files, bytes, note }))) => {
            let size = bytes.map(|bytes| format!(", {}", Bytes(bytes))).unwrap_or_default();
            let files = if files.is_empty() { String::new() } else { format!(": {}", files.join(", ")) };
            let level = if note.is_some() { Level::Warning } else { Level::Success };
            let note = note.as_deref().map(|note| format!(". {note}")).unwrap_or_default();
            (level, format!("{title} done{files}{size}{note}"))
        }
        None => return,
    };
    let begun = submit::beginning(&job.subject, &job.kind);
    state.toasts.dismiss_text(&begun);
    state.notify(level, text);
}

pub(super) fn copied(state: &mut State, label: &str, to: Clipboard) {
    let place = match to {
        Clipboard::Desktop => "copied",
        Clipboard::Terminal => "sent to the terminal's clipboard",
    };
    state.notify(Level::Success, format!("{label} {place}"));
}
