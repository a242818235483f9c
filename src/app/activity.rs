//! The action log: current and past recordings and jobs, with process, time and result. Entries outlive their processes.

use std::path::Path;
use std::time::Duration;

use super::{Job, Now, State, Subject, TrackedRecording};
use crate::model::{Bytes, Count, Counted, Outcome, Phase, ProcessKey, Recording, StoppedBy, sanitize};
use crate::sorting::CompactSort;

/// A current or past recording or job.
#[derive(Debug, Clone, Copy)]
pub enum Activity<'a> {
    Recording(&'a TrackedRecording),
    /// A dump or perf map command.
    Job(&'a Job),
}

impl Activity<'_> {
    pub fn began(&self) -> Duration {
        match self {
            Self::Recording(tracked) => tracked.began,
            Self::Job(job) => job.began,
        }
    }

    pub fn id(&self) -> String {
        match self {
            Self::Recording(tracked) => format!("recording {}", tracked.value.id.0),
            Self::Job(job) => format!("job {}", job.ticket.0),
        }
    }

    pub fn title(&self) -> &'static str {
        match self {
            Self::Recording(_) => "trace",
            Self::Job(job) => job.kind.title(),
        }
    }

    pub fn key(&self) -> ProcessKey {
        match self {
            Self::Recording(tracked) => tracked.value.key,
            Self::Job(job) => job.subject.key,
        }
    }

    /// Returns the name and pid of the process.
    pub fn subject(&self) -> String {
        match self {
            Self::Recording(tracked) => Subject::of_recording(&tracked.value).to_string(),
            Self::Job(job) => job.subject.to_string(),
        }
    }

    /// Returns what was requested; without the path of a file that the answer names.
    fn request(&self) -> String {
        let arguments = match self {
            Self::Recording(TrackedRecording { value: Recording { what, kernel: Some(kernel), .. }, .. }) => {
                format!("{} to {kernel}", what.join(" + "))
            }
            Self::Recording(tracked) => tracked.value.what.join(" + "),
            Self::Job(Job { kind, ended: Some((_, Ok(result))), .. }) if result.files.iter().any(|file| **file == *kind.arguments()) => {
                String::new()
            }
            Self::Job(job) => job.kind.arguments(),
        };
        sanitize(format!("{} {arguments}", self.title()).trim_end())
    }

    /// Returns the process's answer or the result.
    pub fn answer(&self) -> String {
        let text = match self {
            Self::Recording(TrackedRecording { value: recording, .. }) => {
                let numbers = match &recording.kernel {
                    Some(kernel) => kernel.session.as_ref().map(|session| format!(", session {session}")).unwrap_or_default(),
                    None => format!(
                        ": {}, {}, {} dropped",
                        Bytes(recording.bytes),
                        Counted(recording.events, "event"),
                        Count(recording.dropped)
                    ),
                };
                match &recording.phase {
                    Phase::Done(Outcome { stopped_by, complete, file, trouble }) => {
                        let whole = match (&recording.kernel, complete) {
                            (Some(_), _) => "",
                            (None, true) => ", complete",
                            (None, false) => ", incomplete",
                        };
                        let file = file.as_ref().map(|file| format!(", {}", file.to_string_lossy())).unwrap_or_default();
                        let trouble = trouble.as_ref().map(|trouble| format!(" ({trouble})")).unwrap_or_default();
                        format!("{}{whole}{trouble}{numbers}{file}", ended(*stopped_by))
                    }
                    _ => format!("in progress{numbers}"),
                }
            }
            Self::Job(job) => match &job.ended {
                None if job.percent.is_some() => format!("in progress: {} %", job.percent.unwrap_or(0)),
                None => "no answer yet".to_owned(),
                Some((_, Err(reason))) => format!("failed: {reason}"),
                Some((_, Ok(result))) => {
                    let size = result.bytes.map(|bytes| Bytes(bytes).to_string());
                    let rest =
                        result.files.iter().map(ToString::to_string).chain(size).chain(result.note.as_ref().map(ToString::to_string));
                    ["done".to_owned()].into_iter().chain(rest).collect::<Vec<_>>().join(", ")
                }
            },
        };
        sanitize(&text)
    }

    /// Returns the time of day at which the activity began.
    pub fn clock(&self, now: Now) -> String {
        let ago = now.elapsed.saturating_sub(self.began()).as_millis() as u64;
        Now { unix_ms: now.unix_ms.saturating_sub(ago), ..now }.clock()
    }

    pub fn entry(&self, now: Now) -> String {
        format!("{}  {}  {}: {}", self.clock(now), self.subject(), self.request(), self.answer())
    }

    /// Returns the files that the activity wrote or will write.
    pub fn files(&self) -> Vec<String> {
        match self {
            Self::Recording(TrackedRecording { value: Recording { kernel: Some(_), .. }, .. }) => Vec::new(),
            Self::Recording(TrackedRecording { value: Recording { phase: Phase::Done(outcome), .. }, .. }) => {
                outcome.file.iter().map(|file| copyable(file)).collect()
            }
            Self::Recording(tracked) => vec![copyable(&tracked.value.file)],
            Self::Job(job) => match &job.ended {
                Some((_, Ok(result))) => result.files.iter().map(ToString::to_string).collect(),
                _ => job.kind.output().map(copyable).into_iter().collect(),
            },
        }
    }
}

fn copyable(path: &Path) -> String {
    sanitize(&path.to_string_lossy())
}

impl State {
    /// Returns the number of entries in the action log.
    pub fn activities(&self) -> usize {
        self.recordings.shown().len() + self.jobs.newest_first().count()
    }

    /// Returns all entries of the action log, newest first.
    pub fn activity(&self) -> Vec<Activity<'_>> {
        let recordings = self.recordings.shown().iter().map(Activity::Recording);
        let mut all: Vec<_> = recordings.chain(self.jobs.newest_first().map(Activity::Job)).collect();
        all.compact_sort_by_key(|activity| std::cmp::Reverse(activity.began()));
        all
    }
}

/// Returns how a recording ended.
fn ended(stopped_by: StoppedBy) -> &'static str {
    match stopped_by {
        StoppedBy::Duration => "ended after its duration",
        StoppedBy::Size => "ended at its maximum size",
        StoppedBy::Event => "ended at its stop event",
        StoppedBy::Condition => "ended at its stop condition",
        StoppedBy::Interrupt => "stopped",
        StoppedBy::DiskSpace => "ended because the disk is nearly full",
        StoppedBy::TargetExit => "ended with the process",
        StoppedBy::Error => "ended by an error",
    }
}
