//! The messages that drive the state machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use jiff::Timestamp;
use jiff::tz::Offset;

use super::tabs::Stacks;
use super::{StaleSockets, WalkedHeap};
use crate::analysis::CountersSnapshot;
use crate::model::{
    Environment, FILE_STAMP, FileContents, FreeSpace, Process, ProcessKey, ProcessUse, ProducerReport, Recording, RecordingId, SafeText,
    ThreadUse, TraceFile,
};

/// The time, read by the runner before each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Time since dn-top started; monotonic.
    pub elapsed: Duration,
    /// Milliseconds since the Unix epoch; may jump.
    pub unix_ms: u64,
    /// Offset of the local clock from UTC, seconds.
    pub utc_offset: i32,
}

impl Now {
    /// Formats the local time of day.
    pub fn clock(self) -> String {
        self.local(self.unix_ms, "%H:%M:%S")
    }

    /// Returns the local date and time in the format used in file names.
    pub fn file_stamp(self) -> String {
        self.local(self.unix_ms, FILE_STAMP)
    }

    /// Formats the local date and time of milliseconds since the Unix epoch; empty if there is no such time.
    pub(super) fn local(self, unix_ms: u64, format: &str) -> String {
        let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let offset = Offset::from_seconds(self.utc_offset).unwrap_or(Offset::UTC);
        time.map_or_else(String::new, |time| offset.to_datetime(time).strftime(format).to_string())
    }
}

/// Identifies the request that a reply answers. Replies with an outdated ticket are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Ticket(pub u64);

/// A message to the state machine.
#[derive(Debug, Clone)]
pub enum Msg {
    /// A key was pressed, repeated or released.
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// The terminal's new size in columns and rows.
    Resize(u16, u16),
    /// The deadline of [`State::next_deadline`](super::State::next_deadline) was reached.
    Tick,
    Processes(Vec<Process>),
    /// The threads of a process; empty if /proc does not show them.
    Threads {
        ticket: Ticket,
        threads: Vec<ThreadUse>,
    },
    /// Paths of the assemblies mapped by a process; empty if /proc does not show them.
    Assemblies {
        ticket: Ticket,
        paths: Vec<SafeText>,
    },
    /// The current stacks of all threads of a process.
    Stacks {
        ticket: Ticket,
        /// The stacks, or a sentence with the reason for the failure.
        result: Result<Arc<Stacks>, SafeText>,
    },
    HeapProgress {
        ticket: Ticket,
        objects: u64,
        bytes: u64,
    },
    /// A heap walk has ended, or a heap file was read.
    HeapWalked {
        ticket: Ticket,
        /// The heap, or a sentence with the reason for the failure.
        result: Result<Arc<WalkedHeap>, SafeText>,
    },
    /// The sockets left behind by killed processes, which are not among the processes.
    StaleSockets(StaleSockets),
    Environment {
        ticket: Ticket,
        /// All variables, or a sentence with the reason for the failure.
        result: Result<Environment, SafeText>,
    },
    /// Unmet prerequisites for writing a process's events to kernel tracepoints.
    TracepointsMissing {
        key: ProcessKey,
        /// One sentence with a remedy for each; empty if nothing is missing.
        missing: Vec<SafeText>,
    },
    Recording(Box<Recording>),
    /// A recording could not be started.
    TraceFailed {
        id: RecordingId,
        /// A sentence: what was attempted, what the answer was, what to do next.
        reason: SafeText,
    },
    FilesFound {
        ticket: Ticket,
        /// Files that can be opened, most recently modified first.
        files: Vec<TraceFile>,
    },
    /// The latest lines of dn-top's own log, newest last.
    OwnLog(Arc<[SafeText]>),
    /// The proposed name for a new file is taken.
    FreeName {
        proposed: PathBuf,
        free: PathBuf,
    },
    /// The free space in the folder of a new file.
    FreeSpace {
        /// The folder given in [`Effect::FindFreeSpace`](super::Effect::FindFreeSpace).
        folder: PathBuf,
        /// `None` if that cannot be found out.
        space: Option<FreeSpace>,
    },
    FileProgress {
        ticket: Ticket,
        bytes: u64,
    },
    FileRead {
        ticket: Ticket,
        /// The file's contents, or a sentence with the reason for the failure.
        result: Result<FileContents, SafeText>,
    },
    WatchReport {
        ticket: Ticket,
        /// The process's counters. Text in them is not sanitized.
        counters: Arc<CountersSnapshot>,
        /// What the system shows about the process.
        usage: Box<ProcessUse>,
    },
    WatchEnded {
        ticket: Ticket,
        /// A sentence; `None` if the watch ended because the process exited.
        trouble: Option<SafeText>,
    },
    /// A started program is suspended and ready to be recorded.
    Launched {
        ticket: Ticket,
        /// Its recording, still without data.
        recording: Box<Recording>,
    },
    /// A started program has written output.
    ProgramOutput {
        ticket: Ticket,
        /// The latest lines of its output.
        lines: Arc<[SafeText]>,
    },
    JobProgress {
        ticket: Ticket,
        /// Percentage of the recording read so far, or of the expected size of a dump written so far.
        percent: u8,
    },
    /// A job makes no progress.
    JobStalled {
        ticket: Ticket,
        notice: SafeText,
    },
    /// Status of the producer for Perfetto's tracing service.
    Producer {
        ticket: Ticket,
        report: ProducerReport,
    },
    JobDone {
        ticket: Ticket,
        /// The result, or a sentence with the reason for the failure.
        result: Result<JobResult, SafeText>,
    },
    Copied {
        /// The label given in [`Effect::Copy`](super::Effect::Copy).
        label: SafeText,
        to: Clipboard,
    },
    /// A failure not covered by any other message: a sentence for display.
    Failed(SafeText),
    /// A termination signal (`SIGTERM`, `SIGHUP`).
    Terminate,
    TaskPanicked(SafeText),
}

impl Msg {
    /// Returns the message for a finished job. The error may have several lines.
    pub fn job_done(ticket: Ticket, result: Result<JobResult, impl ToString>) -> Self {
        Self::JobDone { ticket, result: result.map_err(|error| SafeText::from_lines(&error.to_string())) }
    }
}

/// The result of a job such as a dump or perf map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobResult {
    /// Files written, with paths as seen by dn-top if possible, otherwise as seen by the target.
    pub files: Vec<SafeText>,
    /// Size of the dump in bytes, if the file is visible from here.
    pub bytes: Option<u64>,
    /// An additional sentence, such as what could not be checked.
    pub note: Option<SafeText>,
}

/// The clipboard that received copied text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clipboard {
    Desktop,
    /// The terminal's clipboard (OSC 52), which sends no confirmation.
    Terminal,
}
