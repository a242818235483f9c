//! What was asked of processes in this run of the program: the action log, recordings aside.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::ipc::{DumpKind, DumpRequest, PerfMapKind};
use crate::model::{ProcessKey, SafeText};

use super::dialog::{Change, Subject};
use super::{JobResult, Ticket};

/// How many are kept.
const KEPT: usize = 200;

/// A dump or perf map command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub ticket: Ticket,
    pub subject: Subject,
    pub what: JobKind,
    pub began: Duration,
    /// When the answer came, and the answer.
    pub ended: Option<(Duration, Result<JobResult, SafeText>)>,
    /// The newest lines of what a program wrote that was started; safe to show.
    pub wrote: Arc<[SafeText]>,
    /// Progress in percent; `None` for a job that reports none.
    pub percent: Option<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobKind {
    Dump(DumpRequest),
    /// A perf map of this kind, or none.
    PerfMap(Option<PerfMapKind>),
    HeapWalk,
    /// A file of what a walk found.
    HeapFile(PathBuf),
    /// To run, after waiting at startup.
    Resume,
    Control(Change, String),
    /// An export of a recording, into this file.
    Export(PathBuf),
    /// A diagnostic port was served, there.
    Port(PathBuf),
    /// The port there was taken down.
    ClosePort(PathBuf),
    /// Sockets of killed processes were removed.
    CleanUp,
    /// Perfetto's tracing service was served; which processes.
    Producer(String),
    Launch {
        line: SafeText,
        /// The file that it writes its output into.
        output: PathBuf,
    },
}

/// All commands, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    all: VecDeque<Job>,
}

impl JobKind {
    pub fn title(&self) -> &'static str {
        match self {
            Self::Dump(request) => match request.kind {
                DumpKind::Mini => "mini dump",
                DumpKind::Heap => "heap dump",
                DumpKind::Triage => "triage dump",
                DumpKind::Full => "full dump",
            },
            Self::PerfMap(Some(_)) => "perf map on",
            Self::PerfMap(None) => "perf map off",
            Self::HeapWalk => "heap walk",
            Self::HeapFile(_) => "heap file",
            Self::Resume => "resume",
            Self::Control(change, _) => change.title(),
            Self::Export(_) => "export",
            Self::Port(_) => "port",
            Self::ClosePort(_) => "close port",
            Self::CleanUp => "clean up",
            Self::Producer(_) => "serve Perfetto",
            Self::Launch { .. } => "run",
        }
    }

    pub fn with(&self) -> &str {
        match self {
            Self::Dump(request) => request.path.as_str(),
            Self::PerfMap(kind) => kind.map_or("", PerfMapKind::word),
            Self::Resume | Self::CleanUp | Self::HeapWalk => "",
            Self::Export(path) | Self::HeapFile(path) | Self::Port(path) | Self::ClosePort(path) => path.to_str().unwrap_or_default(),
            Self::Control(_, what) | Self::Producer(what) => what,
            Self::Launch { line, .. } => line,
        }
    }

    /// The file that a program writes its output into that was started.
    pub fn output(&self) -> Option<&Path> {
        match self {
            Self::Launch { output, .. } => Some(output),
            _ => None,
        }
    }

    /// Whether a process is busy with it. One that was started only runs, and exports and the tracing service have nothing to do with it.
    fn keeps_busy(&self) -> bool {
        !matches!(self, Self::Launch { .. } | Self::Export(_) | Self::HeapFile(_) | Self::Producer(_) | Self::CleanUp)
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
    pub fn newest_first(&self) -> impl Iterator<Item = &Job> {
        self.all.iter().rev()
    }

    /// The command that a process is busy with.
    pub fn running(&self, key: ProcessKey) -> Option<&Job> {
        self.all.iter().find(|job| job.subject.key == key && job.is_running() && job.what.keeps_busy())
    }

    /// How many processes have not answered yet.
    pub fn active(&self) -> usize {
        self.all.iter().filter(|job| job.is_running() && job.what.keeps_busy()).count()
    }

    /// Which perf map this program turned on in a process.
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

    /// A program that was started has a process by now.
    pub(super) fn identify(&mut self, ticket: Ticket, subject: Subject) {
        if let Some(job) = self.all.iter_mut().find(|job| job.ticket == ticket && job.is_running()) {
            job.subject = subject;
        }
    }

    /// Takes in what a program wrote.
    pub(super) fn apply(&mut self, ticket: Ticket, lines: Arc<[SafeText]>) {
        if let Some(job) = self.all.iter_mut().find(|job| job.ticket == ticket) {
            job.wrote = lines;
        }
    }

    /// Updates the progress of a running job, in percent.
    pub(super) fn advance(&mut self, ticket: Ticket, percent: u8) {
        if let Some(job) = self.all.iter_mut().find(|job| job.ticket == ticket && job.is_running()) {
            job.percent = Some(percent);
        }
    }

    pub fn find(&self, ticket: Ticket) -> Option<&Job> {
        self.all.iter().find(|job| job.ticket == ticket)
    }

    /// Takes in an answer; `None` where no job waits for it.
    pub(super) fn end(&mut self, ticket: Ticket, result: Result<JobResult, SafeText>, now: Duration) -> Option<&Job> {
        let job = self.all.iter_mut().find(|job| job.ticket == ticket && job.is_running())?;
        job.ended = Some((now, result));
        Some(job)
    }
}
