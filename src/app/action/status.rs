//! Which actions are possible now, and the reasons why others are not.

use crate::app::{Answer, Change, Form, Level, Overlay, Pick, Row, RowKind, Shape, State, Subject, Tab, TrackedRecording};
use crate::ipc::CommandCode;
use crate::model::{Contact, FileKind, NativeAotGap, Process, RunState};

use super::{Action, Context};

/// The first .NET version whose runtime can publish all meters on request.
const METERS_SINCE: u32 = 9;

/// Reason for refusing event-based actions on a heap file.
const HEAP_FILE: &str = "A heap file is open, not a recording.";

/// Whether an action is possible now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Ready,
    /// There is nothing to act on; needs no message.
    Idle,
    /// Not possible, with the reason as a sentence.
    Refused(String),
}

fn refused(reason: impl Into<String>) -> Status {
    Status::Refused(reason.into())
}

pub(in crate::app) fn ready_if(possible: bool) -> Status {
    if possible { Status::Ready } else { Status::Idle }
}

pub(super) fn always(_: &State) -> Status {
    Status::Ready
}

/// Requires live processes rather than a file.
pub(super) fn live(state: &State) -> Status {
    match (state.shows_files(), &state.saved_process_view) {
        (false, _) => Status::Ready,
        (true, None) => refused("A recorded file is open, not a process."),
        (true, Some(_)) => refused("A recorded file is open, not a process: Esc in the table goes back to the processes."),
    }
}

/// Requires live processes, or a trace, which may have grown.
pub(super) fn refresh(state: &State) -> Status {
    if state.row_kind() == RowKind::File(FileKind::Trace) { Status::Ready } else { live(state) }
}

/// Requires a selected process that can be attached to, is not stopped and passes `check`.
fn of_process(state: &State, check: impl Fn(&Row) -> Option<Status>) -> Status {
    match (live(state), state.selected()) {
        (Status::Ready, Some(row)) => attach(state, row).or_else(|| stopped(row)).or_else(|| check(row)).unwrap_or(Status::Ready),
        (Status::Ready, None) => refused("No process is selected."),
        (other, _) => other,
    }
}

/// Requires a runtime that supports `command` and has no running job.
fn of_command(state: &State, command: CommandCode, check: impl Fn(&Process) -> Option<Status>) -> Status {
    of_process(state, |row| {
        let process = &row.process;
        check(process).or_else(|| missing(process, command).map(refused)).or_else(|| busy(state, process))
    })
}

/// Returns a refusal if the process is stopped.
fn stopped(row: &Row) -> Option<Status> {
    row.stop_reason().map(|reason| refused(format!("{}: {reason}", Subject::of(&row.process))))
}

/// Returns a refusal if a job is running on the process.
fn busy(state: &State, process: &Process) -> Option<Status> {
    state.jobs.running(process.key).map(|job| refused(format!("{} is still busy with the {}.", job.subject, job.kind.title())))
}

/// Returns a refusal if the process is suspended at startup.
fn suspended(process: &Process, what: &str) -> Option<Status> {
    (process.run_state == RunState::Suspended).then(|| refused(format!("{} is suspended at startup: {what}", process.name)))
}

/// Returns a refusal if the process is not suspended at startup.
fn running(process: &Process, what: &str) -> Option<Status> {
    (process.run_state == RunState::Running).then(|| refused(format!("{} is not suspended at startup{what}.", process.name)))
}

/// Returns a sentence about what a NativeAOT program lacks.
pub(in crate::app) fn native_aot(process: &Process, gap: NativeAotGap) -> String {
    format!("{}: {}.", process.name, gap.message(process.key.pid))
}

pub(in crate::app) fn attachable(state: &State) -> Status {
    of_process(state, |_| None)
}

pub(super) fn tagged(state: &State) -> Status {
    ready_if(!state.list.tagged().is_empty())
}

pub(super) fn stacks(state: &State) -> Status {
    of_process(state, |row| {
        let process = &row.process;
        match &state.details.stacks {
            _ if process.native_aot => Some(refused(native_aot(process, NativeAotGap::Samples))),
            Answer::Requested(_) => Some(Status::Idle),
            _ => suspended(process, "it runs no code yet. Resume it first."),
        }
    })
}

/// Also possible during a heap walk, to cancel it.
pub(super) fn heap(state: &State) -> Status {
    of_process(state, |row| {
        let process = &row.process;
        if state.heaps.of(process.key).is_some_and(|heap| heap.walking.is_some()) {
            return None;
        }
        let aot = process.native_aot.then(|| {
            let sizes = Tab::Gc.key(RowKind::Process);
            refused(format!("{}: a NativeAOT program has no heap walk; GC ({sizes}) shows the sizes of its heap.", process.name))
        });
        aot.or_else(|| suspended(process, "it has no heap yet. Resume it first.")).or_else(|| busy(state, process))
    })
}

pub(in crate::app) fn walked_heap(state: &State) -> Status {
    ready_if(state.selected_heap().is_some_and(|heap| heap.last.is_some()))
}

pub(in crate::app) fn walked_twice(state: &State) -> Status {
    ready_if(state.selected_heap().is_some_and(|heap| heap.before.is_some()))
}

pub(in crate::app) fn write_heap(state: &State) -> Status {
    let Some(last) = state.selected_heap().and_then(|heap| heap.last.as_ref()).filter(|last| last.file.is_none()) else {
        return Status::Idle;
    };
    if state.heaps.written_by(last.ticket).is_some() {
        return Status::Ready;
    }
    refused(format!("Only the objects of the latest heap walk are kept: walk this heap again with {}.", state.key(Action::WalkHeap)))
}

/// For a file the report is only displayed.
pub(in crate::app) fn why_slow(state: &State) -> Status {
    match state.row_kind() {
        RowKind::File(FileKind::Heap) => refused(HEAP_FILE),
        RowKind::File(FileKind::Trace) => Status::Ready,
        RowKind::Process if state.options.readonly => refused(super::READONLY),
        RowKind::Process => attachable(state),
    }
}

pub(in crate::app) fn trace(state: &State) -> Status {
    match state.selected() {
        Some(row) if !state.shows_files() && state.recordings.is_recording(row.process.key) => stop(state, row),
        _ => attachable(state),
    }
}

pub(super) fn picked_options(state: &State) -> Status {
    if matches!(state.overlay, Some(Overlay::List(_, Pick::Values(_)))) { Status::Idle } else { attachable(state) }
}

pub(super) fn save(state: &State) -> Status {
    ready_if(state.shown_recording().is_some_and(|tracked| tracked.is_stoppable() && tracked.value.kept.is_some()))
}

pub(super) fn abandon(state: &State) -> Status {
    ready_if(state.shown_recording().is_some_and(|tracked| tracked.is_stopping()) || state.pending_quit.is_some())
}

pub(super) fn export(state: &State) -> Status {
    if state.row_kind() == RowKind::File(FileKind::Heap) {
        return refused(HEAP_FILE);
    }
    if state.open_file().is_none() && state.shown_recording().is_some_and(TrackedRecording::is_unsaved) {
        return refused(format!("A flight recording has no file before it is saved: save it first ({}).", state.key(Action::Save)));
    }
    let is_there = state.open_file().is_some() || state.shown_recording().is_some_and(|tracked| tracked.written().is_some());
    if is_there { Status::Ready } else { refused(format!("No recording to export: start one with {}.", state.key(Action::Trace))) }
}

pub(in crate::app) fn watch(state: &State) -> Status {
    if state.selected_watch().is_some() { live(state) } else { attachable(state) }
}

pub(super) fn clean_up(state: &State) -> Status {
    match live(state) {
        Status::Ready if state.stale_sockets.count > 0 => Status::Ready,
        Status::Ready => refused("There are no stale sockets."),
        other => other,
    }
}

pub(super) fn watch_all(state: &State) -> Status {
    let possible = |row| attach(state, row).is_none() || state.watches.of(row.process.key).is_some();
    match live(state) {
        Status::Ready if state.list.shown().any(possible) => Status::Ready,
        Status::Ready => refused("No process can be watched."),
        other => other,
    }
}

pub(in crate::app) fn meters(state: &State) -> Status {
    of_process(state, |row| {
        let Process { name, runtime, native_aot, contact, .. } = &row.process;
        let problem = match runtime {
            Some(version) if version.major() >= METERS_SINCE => return None,
            None if *native_aot || *contact != Contact::Ok => format!("the version of {name} is not known yet"),
            _ => format!("{name} runs an older version"),
        };
        Some(refused(format!("Watching all meters needs .NET {METERS_SINCE}; {problem}.")))
    })
}

pub(super) fn dump(state: &State) -> Status {
    of_command(state, CommandCode::GenerateCoreDump, |_| None)
}

pub(super) fn perf_map(state: &State) -> Status {
    of_command(state, CommandCode::EnablePerfMap, |process| suspended(process, "a perf map now would crash it. Resume it first."))
}

pub(super) fn resume(state: &State) -> Status {
    of_command(state, CommandCode::ResumeRuntime, |process| running(process, ""))
}

pub(super) fn change(state: &State, change: Change) -> Status {
    of_command(state, change.code(), |process| match change {
        Change::AttachProfiler => suspended(process, "set a startup profiler instead."),
        Change::StartupProfiler => running(process, ": attach the profiler instead"),
        Change::SetVariable | Change::UnsetVariable | Change::StartupHook => None,
    })
}

pub(super) fn selected(state: &State) -> Status {
    ready_if(state.selected().is_some())
}

pub(super) fn copy(state: &State) -> Status {
    if state.context() == Context::Jobs { jobs(state) } else { selected(state) }
}

pub(in crate::app) fn jobs(state: &State) -> Status {
    ready_if(state.activities() > 0)
}

pub(super) fn clear(state: &State) -> Status {
    let errors = state.toasts.shown(state.now.elapsed).any(|toast| toast.level == Level::Error);
    ready_if(!state.list.filter().as_str().is_empty() || errors || state.saved_process_view.is_some())
}

pub(super) fn record_tab(state: &State) -> Status {
    let has_content = !state.tab.sources().is_empty() && state.native_aot_reason(state.tab).is_none();
    if has_content && state.shown_recording().is_none() { attachable(state) } else { Status::Idle }
}

pub(super) fn pause(state: &State) -> Status {
    ready_if(!state.shows_files())
}

pub(super) fn sortable(state: &State) -> Status {
    ready_if(!state.sortable().is_empty())
}

pub(in crate::app) fn recorded(state: &State) -> Status {
    ready_if(state.analysis().is_some())
}

pub(super) fn has_range(state: &State) -> Status {
    ready_if(state.open_file().is_some_and(|file| file.end.is_some()))
}

pub(super) fn comparable(state: &State) -> Status {
    if state.row_kind() == RowKind::File(FileKind::Heap) { walked_heap(state) } else { has_range(state) }
}

pub(super) fn choose(state: &State) -> Status {
    ready_if(state.form().is_some_and(Form::can_choose))
}

/// Without fields, Enter already presses the button.
pub(super) fn start(state: &State) -> Status {
    ready_if(state.form().is_some_and(|form| !form.questions.is_empty()))
}

pub(super) fn copy_command(state: &State) -> Status {
    ready_if(state.form().and_then(Form::command_line).is_some())
}

impl Action {
    /// Returns whether the action is possible now.
    pub fn status(self, state: &State) -> Status {
        super::entry(self).status(state)
    }
}

/// Returns why a command cannot be sent to the process, judging by its runtime's version and earlier responses.
fn missing(process: &Process, command: CommandCode) -> Option<String> {
    let Process { name, runtime, .. } = process;
    if let Some(gap) = NativeAotGap::of(command).filter(|_| process.native_aot) {
        return Some(native_aot(process, gap));
    }
    let needs = process.capabilities().unsupported_reason(command)?;
    Some(match runtime {
        Some(version) => format!("This {needs}; {name} runs {version}."),
        None => format!("This {needs}; {name} runs an older version."),
    })
}

/// Returns why the process cannot be attached to.
pub(in crate::app) fn attach(state: &State, row: &Row) -> Option<Status> {
    let process = &row.process;
    if row.exited_at.is_some() || !state.is_alive(process.key) {
        return Some(refused(format!("{} has ended.", Subject::of(process))));
    }
    if process.contact.is_attachable() {
        return None;
    }
    let reason = process.contact.reason().unwrap_or("It cannot be attached to.");
    Some(refused(format!("{}: {reason}", Subject::of(process))))
}

impl State {
    /// Returns whether the focused list contains anything to filter or search. The input line opens even if it does not: otherwise the
    /// text typed next would be taken as commands.
    pub(in crate::app) fn has_filterable_rows(&self) -> bool {
        match self.context() {
            Context::Methods | Context::Flame | Context::CallTree => self.has_samples() && self.views.sampling.shape != Shape::Threads,
            Context::Events => self.analysis().is_some(),
            Context::Counters => self.selected_watch().is_some() || self.counters().is_some_and(|snapshot| !snapshot.counters.is_empty()),
            Context::Rows
            | Context::Collections
            | Context::Allocations
            | Context::Exceptions
            | Context::Heap
            | Context::Slowdown
            | Context::Compare
            | Context::Environment
            | Context::Jobs => {
                self.view_of(self.tab).is_some_and(|view| !view.list.is_empty() || !self.views.filter(self.tab).as_str().is_empty())
            }
            _ => true,
        }
    }
}

/// Returns whether a recording of the process can be stopped.
fn stop(state: &State, row: &Row) -> Status {
    let key = row.process.key;
    if state.recordings.all().iter().any(|tracked| tracked.value.key == key && tracked.is_stoppable()) {
        Status::Ready
    } else {
        refused(format!("The runtime is still sending its rundown; {} stops without it.", state.key(Action::Abandon)))
    }
}
