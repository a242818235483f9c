//! What was and is being done, to all processes: recordings, dumps and perf map commands in one list.

use std::time::Duration;

use super::State;
use super::jobs::Job;
use super::recordings::Tracked;
use crate::model::ProcessKey;

/// Something that was or is being done.
#[derive(Debug, Clone, Copy)]
pub enum Activity<'a> {
    /// A recording.
    Recording(&'a Tracked),
    /// A dump or perf map command.
    Job(&'a Job),
}

impl Activity<'_> {
    /// When it began.
    pub fn began(&self) -> Duration {
        match self {
            Self::Recording(tracked) => tracked.began,
            Self::Job(job) => job.began,
        }
    }

    /// To which process.
    pub fn key(&self) -> ProcessKey {
        match self {
            Self::Recording(tracked) => tracked.value.key,
            Self::Job(job) => job.subject.key,
        }
    }

    /// The files that came of it, or will.
    pub fn files(&self) -> Vec<String> {
        match self {
            Self::Recording(tracked) => vec![tracked.value.file.to_string_lossy().into_owned()],
            Self::Job(job) => match &job.ended {
                Some((_, Ok(result))) => result.files.clone(),
                _ => Vec::new(),
            },
        }
    }
}

impl State {
    /// How many things were and are being done.
    pub fn activities(&self) -> usize {
        self.recordings.shown().len() + self.jobs.newest_first().count()
    }

    /// All of them, newest first.
    pub fn activity(&self) -> Vec<Activity<'_>> {
        let recordings = self.recordings.shown().iter().map(Activity::Recording);
        let mut all: Vec<_> = recordings.chain(self.jobs.newest_first().map(Activity::Job)).collect();
        all.sort_by_key(|activity| std::cmp::Reverse(activity.began()));
        all
    }
}
