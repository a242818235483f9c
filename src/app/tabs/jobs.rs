//! Current and past jobs of all processes.

use super::{Cell, Descriptor, Fit, Role, Shows, Side, Sign, TabList, Table, View};
use crate::app::action::Run::Do;
use crate::app::action::{Action, Context, ENTER, Entry, details, places, status};
use crate::app::update::panes;
use crate::app::{Activity, Job, JobKind, RowKind, State, Tab, TrackedRecording};
use crate::model::{Bytes, Counted, Outcome, Phase, Recording, StoppedBy, Stopwatch};

pub(super) const TAB: Descriptor = Descriptor {
    titles: ["Jobs"; 3],
    is_shown: RowKind::is_process,
    context: |_| Context::Jobs,
    actions: ACTIONS,
    shows: Shows::List(view),
};

const ACTIONS: &[Entry] =
    &[details(Action::Open, &[ENTER], "go to", "Go to the process, or show the output of a program.", places::JOBS, Do(panes::open_job))
        .hint(80)
        .when(status::jobs)];

pub(super) fn view(state: &State) -> View<'_> {
    let TabList { list, cursor, selected } = placed(state);
    let none = state.activities() == 0;
    let text =
        if none { "No jobs yet. Traces, dumps and perf maps of all processes are listed here." } else { "No job matches the filter." };
    let about = |activity: Activity<'_>| Side::footer(vec![vec![(activity.entry(state.now), Role::Dim)]]);
    View { heading: Some(Vec::new()), side: selected.map(about), ..View::new(list, cursor, text) }
}

fn placed(state: &State) -> TabList<'_, Activity<'_>> {
    Table::new(state.activity(), Activity::id)
        .column("", 1, Fit::Left, |activity| {
            let (sign, role, ..) = state_of(activity);
            Cell::Sign(sign, role)
        })
        .column("WHAT", 14, Fit::Left, |activity| Cell::new(activity.title(), Role::Text))
        .column("PROCESS", 24, Fit::Left, |activity| Cell::new(activity.subject(), Role::Strong))
        .shrinking_to(14)
        .column("TIME", 7, Fit::Right, |activity| {
            let now = state.now.elapsed;
            let elapsed = match activity {
                Activity::Recording(tracked) => tracked.elapsed(state.recordings.shown_at(now)),
                Activity::Job(job) => job.elapsed(now),
            };
            Cell::new(Stopwatch(elapsed), Role::Text)
        })
        .column("OUTCOME", 0, Fit::Left, |activity| {
            let (_, _, outcome, role) = state_of(activity);
            Cell::new(outcome, role)
        })
        .column("WHEN", 9, Fit::Right, |activity| Cell::new(activity.clock(state.now), Role::Dim))
        .place(state, Tab::Jobs)
}

/// Returns a sign, its role and a word for the phase of a recording.
pub fn phase_badge(recording: &Recording) -> (Sign, Role, &'static str) {
    match &recording.phase {
        Phase::Starting => (Sign::Waiting, Role::Accent, "starting"),
        Phase::Recording if recording.kernel.is_some() => (Sign::Recording, Role::Recording, "into the kernel"),
        Phase::Recording => (Sign::Recording, Role::Recording, "recording"),
        Phase::Stopping { .. } | Phase::Joining { .. } => (Sign::Stopping, Role::Accent, "stopping"),
        Phase::Done(Outcome { file: None, .. }) if recording.kernel.is_none() => (Sign::No, Role::Bad, "failed"),
        Phase::Done(Outcome { stopped_by: StoppedBy::Error, .. }) => (Sign::No, Role::Bad, "failed"),
        Phase::Done(Outcome { complete: true, .. }) if recording.is_empty() => (Sign::Trouble, Role::Warning, "empty"),
        Phase::Done(Outcome { complete: true, trouble: Some(_), .. }) => (Sign::Trouble, Role::Warning, "done"),
        Phase::Done(Outcome { complete: true, .. }) => (Sign::Yes, Role::Good, "done"),
        Phase::Done(_) => (Sign::Trouble, Role::Warning, "incomplete"),
    }
}

fn state_of(activity: &Activity<'_>) -> (Sign, Role, String, Role) {
    match activity {
        Activity::Recording(tracked) => recording(tracked),
        Activity::Job(job) => state_of_job(job),
    }
}

fn recording(tracked: &TrackedRecording) -> (Sign, Role, String, Role) {
    let recording = &tracked.value;
    let (sign, role, word) = phase_badge(recording);
    let numbers = format!("{}, {}", Bytes(recording.bytes), Counted(recording.events, "event"));
    let (outcome, outcome_role) = match &recording.phase {
        Phase::Done(Outcome { trouble: Some(trouble), file, .. }) => {
            let file = file.as_ref().map(|file| format!(" {}", file.to_string_lossy())).unwrap_or_default();
            (format!("{trouble}{file}"), Role::Warning)
        }
        _ if recording.kernel.is_some() => {
            let places = recording.kernel.iter().map(ToString::to_string).collect::<String>();
            (format!("{word}: {places}"), role)
        }
        Phase::Done(Outcome { file: Some(file), .. }) => (format!("{numbers}  {}", file.to_string_lossy()), Role::Text),
        _ => (format!("{word}: {numbers}"), role),
    };
    (sign, role, outcome, outcome_role)
}

fn state_of_job(job: &Job) -> (Sign, Role, String, Role) {
    match &job.ended {
        None => {
            let words = match &job.kind {
                JobKind::Export(_) => format!("{} %  {}", job.percent.unwrap_or(0), job.kind.arguments()),
                JobKind::HeapFile(..) => format!("writing {}", job.kind.arguments()),
                JobKind::Launch(..) => "running".to_owned(),
                JobKind::Producer { .. } => "serving".to_owned(),
                JobKind::Port(_) | JobKind::ClosePort(..) | JobKind::CleanUp(_) => "in progress …".to_owned(),
                JobKind::Dump(_) if job.percent.is_some() => format!("writing the file: about {} %", job.percent.unwrap_or(0)),
                JobKind::Dump(_) | JobKind::PerfMap(_) | JobKind::HeapWalk | JobKind::Resume | JobKind::Control(..) => {
                    "waiting for the runtime …".to_owned()
                }
            };
            (Sign::Waiting, Role::Accent, words, Role::Accent)
        }
        Some((_, Err(reason))) => (Sign::No, Role::Bad, reason.to_string(), Role::Warning),
        Some((_, Ok(result))) => {
            let size = result.bytes.map(|bytes| format!("{}  ", Bytes(bytes))).unwrap_or_default();
            let note = result.note.as_deref().map(|note| format!("  {note}")).unwrap_or_default();
            (Sign::Yes, Role::Good, format!("{size}{}{note}", result.files.join(", ")), Role::Text)
        }
    }
}

impl State {
    pub(in crate::app) fn selected_activity(&self) -> Option<Activity<'_>> {
        placed(self).selected
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::app::dialog::Subject;
    use crate::app::test_app::{process, recording};
    use crate::app::{ExportRequest, ProgramRequest, Ticket};
    use crate::ipc::{DumpFlags, DumpKind, DumpRequest, TargetPath};
    use crate::model::{RecordingId, SafeText, TraceFormat, TraceOptions};

    #[test]
    fn only_recording_with_all_that_was_requested_is_good() {
        for (seconds, trouble, expected) in [
            (7, None, (Sign::Yes, Role::Good, "done")),
            (7, Some("less was kept than requested: no space left"), (Sign::Trouble, Role::Warning, "done")),
            (0, None, (Sign::Trouble, Role::Warning, "empty")),
        ] {
            let trouble = trouble.map(SafeText::new);
            let outcome = Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: Some("/tmp/a.nettrace".into()), trouble };
            assert_eq!(phase_badge(&recording(1, seconds, Phase::Done(outcome))), expected);
        }
    }

    #[test]
    fn only_jobs_of_a_runtime_wait_for_it() {
        let path = TargetPath::new("/tmp/a.dmp").unwrap();
        let dump = JobKind::Dump(DumpRequest { path, kind: DumpKind::Full, flags: DumpFlags::default() });
        let program = ProgramRequest { words: Vec::new(), options: TraceOptions::default(), output: PathBuf::new() };
        let (source, destination) = (PathBuf::new(), "/tmp/a.json".into());
        let export = ExportRequest { source, destination, format: TraceFormat::Chromium, span: None };
        let subject = Subject { key: process(1, "a").key, name: "a".into() };
        for (kind, percent, expected) in [
            (JobKind::HeapWalk, None, "waiting for the runtime …"),
            (dump.clone(), None, "waiting for the runtime …"),
            (dump, Some(45), "writing the file: about 45 %"),
            (JobKind::Launch(Box::new(program), RecordingId(1)), None, "running"),
            (JobKind::Producer { targets: Vec::new(), profiles: Vec::new() }, None, "serving"),
            (JobKind::HeapFile(Ticket(1), "/tmp/a.gcdump".into()), None, "writing /tmp/a.gcdump"),
            (JobKind::Export(export), None, "0 %  /tmp/a.json"),
            (JobKind::CleanUp(BTreeSet::new()), None, "in progress …"),
        ] {
            let (ticket, subject, output_lines) = (Ticket(1), subject.clone(), Arc::default());
            let job = Job { ticket, subject, kind, began: Duration::ZERO, ended: None, output_lines, percent };
            assert_eq!(state_of_job(&job).2, expected);
        }
    }
}
