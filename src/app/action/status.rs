//! Which actions are possible now, and why the others are not.

use crate::app::capability::missing;
use crate::app::dialog::{Change, Overlay};
use crate::app::list::Row;
use crate::app::pane::Tab;
use crate::app::toast::Level;
use crate::app::{Shape, State};
use crate::ipc::CommandCode;
use crate::model::{Contact, RunState};

use super::{Action, Context, Entry};

/// The first runtime whose library takes a wish for all meters.
const METERS: u32 = 9;

/// Whether an action is possible now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is.
    Ready,
    /// There is nothing to do it to; no need to say so.
    Idle,
    /// It is not, and this is why, in a sentence.
    Refused(String),
}

impl Entry {
    /// Whether this is possible now.
    pub fn status(&self, state: &State) -> Status {
        if self.changes && state.options.readonly {
            return refused("dn-top was started with --readonly: it looks, and changes nothing.");
        }
        self.action.status(state)
    }
}

fn refused(reason: impl Into<String>) -> Status {
    Status::Refused(reason.into())
}

fn ready_if(possible: bool) -> Status {
    if possible { Status::Ready } else { Status::Idle }
}

impl Action {
    /// Whether this is possible now, `--readonly` aside.
    pub fn status(self, state: &State) -> Status {
        match self {
            Self::Earlier | Self::Later | Self::MuchEarlier | Self::MuchLater | Self::Mark | Self::Whole => {
                ready_if(state.open_file().is_some_and(|file| file.end.is_some()))
            }
            Self::Pause if state.shows_files() => Status::Idle,
            _ if state.shows_files() && self.is_for_processes() => refused("A recorded file is open: there is no process to do this to."),
            Self::TraceForm if matches!(state.overlay, Some(Overlay::Choose(_))) => Status::Idle,
            Self::Watch if is_watched(state) => Status::Ready,
            Self::Watch
            | Self::Trace
            | Self::Profiles
            | Self::TraceForm
            | Self::Dump
            | Self::PerfMap
            | Self::Resume
            | Self::SetVariable
            | Self::UnsetVariable
            | Self::StartupHook
            | Self::AttachProfiler
            | Self::StartupProfiler
            | Self::Environment => {
                let Some(row) = state.selected() else { return refused("No process is selected.") };
                if self == Self::Trace && state.recordings.is_recording(row.process.key) {
                    return stop(state, row);
                }
                attach(state, row).unwrap_or_else(|| self.on(state, row))
            }
            Self::Meters => {
                let Some(row) = state.selected() else { return refused("No process is selected.") };
                let new = row.process.runtime.as_ref().filter(|version| version.major() >= METERS);
                let needs = || refused(format!("All meters at once need .NET {METERS}; {} has an older one.", row.process.name));
                attach(state, row).or_else(|| new.is_none().then(needs)).unwrap_or(Status::Ready)
            }
            Self::WatchAll => {
                let possible = |row| attach(state, row).is_none() || state.watches.of(row.process.key).is_some();
                let possible = state.list.shown().any(possible);
                if possible { Status::Ready } else { refused("There is no process that can be watched.") }
            }
            Self::Choose => ready_if(matches!(&state.overlay, Some(Overlay::Form(form)) if form.can_choose())),
            Self::CopyCommand => match &state.overlay {
                Some(Overlay::Form(form)) => ready_if(form.command_line().is_some()),
                _ => Status::Idle,
            },
            Self::Save => ready_if(state.shown_recording().is_some_and(|tracked| tracked.is_stoppable() && tracked.value.kept.is_some())),
            Self::Export => {
                let is_there = state.open_file().is_some() || state.shown_recording().is_some_and(|tracked| tracked.written().is_some());
                if is_there { Status::Ready } else { refused("There is no recording here to export: t makes one.") }
            }
            Self::Abandon => {
                let stopping = state.shown_recording().is_some_and(|tracked| tracked.is_stopping());
                ready_if(stopping || state.ending.is_some())
            }
            Self::Copy | Self::Open => match state.context() {
                Context::Counters if self == Self::Open => ready_if(state.counter_line().is_some()),
                Context::Jobs => ready_if(state.activities() > 0),
                Context::Events if self == Self::Open => ready_if(state.findings().is_some()),
                Context::Methods | Context::Flame if self == Self::Open => {
                    ready_if(state.has_samples() && matches!(state.views.sampling.shape, Shape::Flame | Shape::Threads))
                }
                _ => ready_if(state.selected().is_some()),
            },
            Self::Reveal => ready_if(state.tab == Tab::Environment && state.variable().is_some_and(|(_, variable)| variable.is_secret())),
            Self::Waiting => ready_if(state.has_samples() && state.views.sampling.shape != Shape::Threads),
            Self::Shape if state.context() == Context::Events => ready_if(state.findings().is_some()),
            Self::Shape | Self::Threads => ready_if(state.has_samples()),
            Self::Widen => ready_if(state.can_widen()),
            Self::SortLeft | Self::SortRight if state.context() == Context::Methods => {
                ready_if(state.has_samples() && state.views.sampling.shape == Shape::List)
            }
            Self::SortLeft | Self::SortRight if state.context() == Context::Counters => ready_if(state.counter_line().is_some()),
            Self::SortLeft | Self::SortRight if state.context() == Context::Flame => Status::Idle,
            Self::Back if state.context() == Context::List => {
                let errors = state.toasts.shown(state.now.elapsed).any(|toast| toast.level == Level::Error);
                ready_if(!state.list.filter().as_str().is_empty() || errors)
            }
            _ => Status::Ready,
        }
    }

    /// What of a runtime this changes, where a dialog asks about it.
    pub(in crate::app) fn change(self) -> Option<Change> {
        match self {
            Self::SetVariable => Some(Change::SetVariable),
            Self::UnsetVariable => Some(Change::UnsetVariable),
            Self::StartupHook => Some(Change::StartupHook),
            Self::AttachProfiler => Some(Change::AttachProfiler),
            Self::StartupProfiler => Some(Change::StartupProfiler),
            _ => None,
        }
    }

    /// Whether it needs a process.
    fn is_for_processes(self) -> bool {
        use Action::{
            Abandon, Act, Dump, Environment, Launch, Meters, PerfMap, Port, Producer, Profiles, Refresh, Resume, Trace, TraceForm, Watch,
            WatchAll,
        };
        self.change().is_some()
            || matches!(
                self,
                Abandon
                    | Act
                    | Dump
                    | Environment
                    | Launch
                    | Meters
                    | PerfMap
                    | Port
                    | Producer
                    | Profiles
                    | Refresh
                    | Resume
                    | Trace
                    | TraceForm
                    | Watch
                    | WatchAll
            )
    }

    /// What the runtime's version and state say about doing this to a process that can be talked to.
    fn on(self, state: &State, row: &Row) -> Status {
        let process = &row.process;
        let needs = |command| missing(process, command).map(refused);
        let busy =
            || state.jobs.running(process.key).map(|job| refused(format!("{} is still busy with the {}.", job.subject, job.what.title())));
        match self {
            // Harmless to ask for before the runtime has said its version: it answers for itself then.
            Self::Environment if process.contact == Contact::Unknown => None,
            Self::Environment => needs(CommandCode::ProcessEnvironment),
            Self::PerfMap if process.run_state == RunState::Suspended => {
                Some(refused(format!("{} waits at start-up: a perf map now would crash it. Let it start first.", process.name)))
            }
            Self::PerfMap => needs(CommandCode::EnablePerfMap).or_else(busy),
            Self::Resume if process.run_state == RunState::Running => {
                Some(refused(format!("{} is not suspended at start-up.", process.name)))
            }
            Self::Resume => needs(CommandCode::ResumeRuntime).or_else(busy),
            Self::Dump => needs(CommandCode::GenerateCoreDump).or_else(busy),
            Self::AttachProfiler if process.run_state == RunState::Suspended => {
                Some(refused(format!("{} waits at start-up: give it a profiler for its start instead.", process.name)))
            }
            Self::StartupProfiler if process.run_state == RunState::Running => {
                Some(refused(format!("{} is not suspended at start-up: a profiler can only be attached to it.", process.name)))
            }
            Self::SetVariable | Self::UnsetVariable | Self::StartupHook | Self::AttachProfiler | Self::StartupProfiler => {
                self.change().and_then(|change| needs(change.code())).or_else(busy)
            }
            _ => None,
        }
        .unwrap_or(Status::Ready)
    }
}

/// Why a process cannot be talked to.
pub(in crate::app) fn attach(state: &State, row: &Row) -> Option<Status> {
    let process = &row.process;
    if row.gone_at.is_some() || !state.is_alive(process.key) {
        return Some(refused(format!("{} ({}) has ended.", process.name, process.key.pid)));
    }
    if process.contact.is_attachable() {
        return None;
    }
    let reason = process.contact.reason().unwrap_or("It cannot be talked to.");
    Some(refused(format!("{} ({}): {reason}", process.name, process.key.pid)))
}

impl State {
    /// Whether the list that the keys go to has anything to be filtered or searched. Where it has not, a line opens all the same:
    /// what is typed next would be so many commands else.
    pub(in crate::app) fn has_what_to_filter(&self) -> bool {
        match self.context() {
            Context::Methods | Context::Flame => self.has_samples() && self.views.sampling.shape != Shape::Threads,
            Context::Events => self.findings().is_some(),
            Context::Counters => is_watched(self) || self.counters().is_some_and(|snapshot| !snapshot.counters.is_empty()),
            Context::Rows | Context::Environment | Context::Jobs => {
                self.view_of(self.tab).is_some_and(|view| !view.list.is_empty() || !self.views.filter(self.tab).as_str().is_empty())
            }
            _ => true,
        }
    }
}

/// Whether the selected process is watched.
fn is_watched(state: &State) -> bool {
    state.list.selected().is_some_and(|key| state.watches.of(key).is_some())
}

/// Whether a recording of the process can be stopped.
fn stop(state: &State, row: &Row) -> Status {
    let key = row.process.key;
    if state.recordings.all().iter().any(|tracked| tracked.value.key == key && tracked.is_stoppable()) {
        Status::Ready
    } else {
        refused("The runtime still sends the last of its data; x abandons that.")
    }
}
