//! Dumps and perf map commands of this run of the program.

use std::collections::VecDeque;
use std::time::Duration;

use crate::ipc::{DumpKind, PerfMapKind, TargetPath};
use crate::model::ProcessKey;

use super::dialog::Subject;
use super::{JobResult, Ticket};

/// How many are kept.
const KEPT: usize = 200;

/// A dump or perf map command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The question that was sent.
    pub ticket: Ticket,
    /// To which process.
    pub subject: Subject,
    /// What was asked for.
    pub what: JobKind,
    /// When.
    pub began: Duration,
    /// When the answer came, and the answer.
    pub ended: Option<(Duration, Result<JobResult, String>)>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobKind {
    /// A dump into this file, as the target sees it.
    Dump(DumpKind, TargetPath),
    /// A perf map of this kind, or none.
    PerfMap(Option<PerfMapKind>),
    /// To run, after waiting at start-up.
    Resume,
}

/// All commands, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    all: VecDeque<Job>,
}

impl JobKind {
    /// In words.
    pub fn title(&self) -> &'static str {
        match self {
            Self::Dump(DumpKind::Mini, _) => "mini dump",
            Self::Dump(DumpKind::Heap, _) => "heap dump",
            Self::Dump(DumpKind::Triage, _) => "triage dump",
            Self::Dump(DumpKind::Full, _) => "full dump",
            Self::PerfMap(Some(_)) => "perf map on",
            Self::PerfMap(None) => "perf map off",
            Self::Resume => "resume",
        }
    }
}

impl Job {
    /// How long it took, or takes.
    pub fn elapsed(&self, now: Duration) -> Duration {
        self.ended.as_ref().map_or(now, |(at, _)| *at).saturating_sub(self.began)
    }

    /// Whether no answer has come.
    pub fn is_running(&self) -> bool {
        self.ended.is_none()
    }
}

impl Jobs {
    /// All, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Job> {
        self.all.iter().rev()
    }

    /// The command that a process is busy with.
    pub fn running(&self, key: ProcessKey) -> Option<&Job> {
        self.all.iter().find(|job| job.subject.key == key && job.is_running())
    }

    /// How many have no answer yet.
    pub fn active(&self) -> usize {
        self.all.iter().filter(|job| job.is_running()).count()
    }

    /// Which perf map this program turned on in a process, as far as it knows.
    pub fn perf_map(&self, key: ProcessKey) -> Option<PerfMapKind> {
        self.newest_first().find_map(|job| match (&job.what, &job.ended) {
            (JobKind::PerfMap(kind), Some((_, Ok(_)))) if job.subject.key == key => Some(*kind),
            _ => None,
        })?
    }

    pub(super) fn begin(&mut self, job: Job) {
        if self.all.len() >= KEPT
            && let Some(oldest) = self.all.iter().position(|job| !job.is_running())
        {
            self.all.remove(oldest);
        }
        self.all.push_back(job);
    }

    /// Takes in an answer; `None` where nobody waits for it.
    pub(super) fn end(&mut self, ticket: Ticket, result: Result<JobResult, String>, now: Duration) -> Option<&Job> {
        let job = self.all.iter_mut().find(|job| job.ticket == ticket && job.is_running())?;
        job.ended = Some((now, result));
        Some(job)
    }
}
