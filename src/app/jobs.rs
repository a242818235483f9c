//! The jobs of this run: the action log without recordings.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::ipc::{DumpKind, DumpRequest, PerfMapKind};
use crate::model::{ProcessKey, RecordingId, SafeText, shown_command_line};

use super::{Change, ControlRequest, ExportRequest, JobResult, ProgramRequest, Subject, Ticket};

/// Number of jobs kept.
const MAX_JOBS: usize = 200;

/// A command such as a dump or perf map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub ticket: Ticket,
    pub subject: Subject,
    pub kind: JobKind,
    pub began: Duration,
    /// Time and result of the answer.
    pub ended: Option<(Duration, Result<JobResult, SafeText>)>,
    /// Latest output lines of a started program; safe to display.
    pub output_lines: Arc<[SafeText]>,
    /// Progress in percent; `None` for a job without progress reports.
    pub percent: Option<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobKind {
    /// Writes a dump, always to an absolute path.
    Dump(DumpRequest),
    /// Turns a perf map of this kind on, or perf maps off.
    PerfMap(Option<PerfMapKind>),
    /// Walks the heap: a full, blocking GC.
    HeapWalk,
    /// Writes the objects of this heap walk to a file.
    HeapFile(Ticket, PathBuf),
    /// Resumes a process suspended at startup.
    Resume,
    Control(Change, ControlRequest),
    /// Exports a recorded file, or the part recorded so far.
    Export(ExportRequest),
    /// Serves a diagnostic port at this path.
    Port(PathBuf),
    /// Closes the diagnostic port at this path. Before that, it resumes these processes, which are suspended at the port.
    ClosePort(PathBuf, Vec<ProcessKey>),
    /// Removes sockets of killed processes from these folders.
    CleanUp(BTreeSet<PathBuf>),
    /// Serves the data source `dotnet` of processes, given by PID or name, or of all processes, to Perfetto's tracing service. The profiles are
    /// those of a session that configures none.
    Producer {
        targets: Vec<String>,
        profiles: Vec<String>,
    },
    /// Starts a program suspended, records it, and resumes it.
    Launch(Box<ProgramRequest>, RecordingId),
}

/// All jobs, oldest first.
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
            Self::HeapFile(..) => "heap file",
            Self::Resume => "resume",
            Self::Control(change, _) => change.title(),
            Self::Export(_) => "export",
            Self::Port(_) => "port",
            Self::ClosePort(..) => "close port",
            Self::CleanUp(_) => "clean up",
            Self::Producer { .. } => "serve Perfetto",
            Self::Launch(..) => "run",
        }
    }

    pub fn arguments(&self) -> String {
        match self {
            Self::Dump(request) => request.path.as_str().to_owned(),
            Self::PerfMap(kind) => kind.map_or("", PerfMapKind::name).to_owned(),
            Self::Resume | Self::CleanUp(_) | Self::HeapWalk => String::new(),
            Self::Export(ExportRequest { destination: path, .. })
            | Self::HeapFile(_, path)
            | Self::Port(path)
            | Self::ClosePort(path, _) => path.to_string_lossy().into_owned(),
            Self::Control(_, request) => request.what.clone(),
            Self::Producer { targets, profiles } => {
                let named = if targets.is_empty() { "all processes".to_owned() } else { targets.join(", ") };
                format!("{named}: {}", profiles.join(", "))
            }
            Self::Launch(program, _) => shown_command_line(&program.words.join(" ")).into(),
        }
    }

    /// Returns the output file of a started program.
    pub fn output(&self) -> Option<&Path> {
        match self {
            Self::Launch(program, _) => Some(&program.output),
            _ => None,
        }
    }

    /// Whether the process is busy with the job. A started program merely runs; exports and the tracing service do not involve the process.
    fn keeps_busy(&self) -> bool {
        !matches!(self, Self::Launch(..) | Self::Export(_) | Self::HeapFile(..) | Self::Producer { .. } | Self::CleanUp(_))
    }
}

impl Job {
    /// Returns the duration so far, or in total.
    pub fn elapsed(&self, now: Duration) -> Duration {
        self.ended.as_ref().map_or(now, |(at, _)| *at).saturating_sub(self.began)
    }

    pub fn is_running(&self) -> bool {
        self.ended.is_none()
    }
}

impl Jobs {
    pub fn newest_first(&self) -> impl Iterator<Item = &Job> {
        self.all.iter().rev()
    }

    /// Returns the job that a process is busy with.
    pub fn running(&self, key: ProcessKey) -> Option<&Job> {
        self.all.iter().find(|job| job.subject.key == key && job.is_running() && job.kind.keeps_busy())
    }

    /// Returns the number of jobs that keep a process busy.
    pub fn active(&self) -> usize {
        self.all.iter().filter(|job| job.is_running() && job.kind.keeps_busy()).count()
    }

    /// Returns the kind of perf map that dn-top turned on in a process.
    pub fn perf_map(&self, key: ProcessKey) -> Option<PerfMapKind> {
        self.newest_first().find_map(|job| match (&job.kind, &job.ended) {
            (JobKind::PerfMap(kind), Some((_, Ok(_)))) if job.subject.key == key => Some(*kind),
            _ => None,
        })?
    }

    pub(super) fn begin(&mut self, job: Job) {
        if self.all.len() >= MAX_JOBS
            && let Some(oldest) = self.all.iter().position(|job| !job.is_running())
        {
            self.all.remove(oldest);
        }
        self.all.push_back(job);
    }

    fn running_mut(&mut self, ticket: Ticket) -> Option<&mut Job> {
        self.all.iter_mut().find(|job| job.ticket == ticket && job.is_running())
    }

    /// Sets the process of a started program.
    pub(super) fn identify(&mut self, ticket: Ticket, subject: Subject) {
        if let Some(job) = self.running_mut(ticket) {
            job.subject = subject;
        }
    }

    /// Stores the latest output lines of a program.
    pub(super) fn apply(&mut self, ticket: Ticket, lines: Arc<[SafeText]>) {
        if let Some(job) = self.all.iter_mut().find(|job| job.ticket == ticket) {
            job.output_lines = lines;
        }
    }

    /// Updates the progress of a running job, in percent.
    pub(super) fn advance(&mut self, ticket: Ticket, percent: u8) {
        if let Some(job) = self.running_mut(ticket) {
            job.percent = Some(percent);
        }
    }

    pub fn find(&self, ticket: Ticket) -> Option<&Job> {
        self.all.iter().find(|job| job.ticket == ticket)
    }

    /// Stores the result; `None` if there is no such running job.
    pub(super) fn end(&mut self, ticket: Ticket, result: Result<JobResult, SafeText>, now: Duration) -> Option<&Job> {
        let job = self.running_mut(ticket)?;
        job.ended = Some((now, result));
        Some(job)
    }
}
