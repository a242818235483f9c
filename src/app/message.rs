//! What can happen to the program.

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
    CpuUse, FILE_STAMP, FileContents, Process, ProcessKey, ProducerReport, Recording, RecordingId, SafeText, ThreadUse, TraceFile, Variable,
};

/// The time, as the runner reads it before each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Time since the program began; never goes back.
    pub elapsed: Duration,
    /// Milliseconds since the Unix epoch; may jump.
    pub unix_ms: u64,
    /// How far the local clock is ahead of UTC, in seconds.
    pub utc_offset: i32,
}

impl Now {
    /// The time of day on the local clock, in seconds since midnight.
    pub fn second_of_day(self) -> u64 {
        let local = (self.unix_ms / 1000) as i64 + i64::from(self.utc_offset);
        local.rem_euclid(86_400) as u64
    }

    /// Date and time on the local clock, as in names of files.
    pub fn file_stamp(self) -> String {
        let time = Timestamp::from_millisecond(self.unix_ms as i64).unwrap_or_default();
        let local = Offset::from_seconds(self.utc_offset).unwrap_or(Offset::UTC).to_datetime(time);
        local.strftime(FILE_STAMP).to_string()
    }
}

/// Which question a reply answers. Replies with an old ticket are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Something happened.
#[derive(Debug, Clone)]
pub enum Msg {
    /// A key was pressed, is held, or was let go.
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// The terminal has this many columns and rows.
    Resize(u16, u16),
    /// The deadline is reached that [`State::next_deadline`](super::State::next_deadline) named.
    Tick,
    Processes(Vec<Process>),
    /// The threads of a process; none where /proc does not show them.
    Threads {
        ticket: Ticket,
        threads: Vec<ThreadUse>,
    },
    /// The paths of the assemblies that a process has mapped; none where /proc does not show them.
    Assemblies {
        ticket: Ticket,
        paths: Vec<SafeText>,
    },
    /// What every thread of a process does.
    Stacks {
        ticket: Ticket,
        /// The stacks, or a sentence with the reason why there are none.
        result: Result<Arc<Stacks>, SafeText>,
    },
    HeapProgress {
        ticket: Ticket,
        objects: u64,
        bytes: u64,
    },
    /// A walk over a heap is over, or a file with one was read.
    HeapWalked {
        ticket: Ticket,
        /// What is on the heap, or a sentence with the reason why nothing is known of it.
        result: Result<Arc<WalkedHeap>, SafeText>,
    },
    /// How many sockets killed processes left behind. None of them is among the processes.
    StaleSockets(StaleSockets),
    Environment {
        ticket: Ticket,
        /// All variables, or a sentence with the reason why there are none.
        result: Result<Vec<Variable>, SafeText>,
    },
    /// What is missing for events of a process to go to tracepoints of the kernel.
    TracepointsMissing {
        key: ProcessKey,
        /// A sentence each about what would help; none where nothing is missing.
        missing: Vec<SafeText>,
    },
    Recording(Box<Recording>),
    /// A recording could not be started.
    TraceFailed {
        id: RecordingId,
        /// A sentence: what was tried, what the answer was, what to do next.
        reason: SafeText,
    },
    FilesFound {
        ticket: Ticket,
        /// Those that can be opened, those that were written to last first.
        files: Vec<TraceFile>,
    },
    /// The latest lines of the log of this program, the newest last.
    OwnLog(Arc<[SafeText]>),
    /// The name that was proposed for a new file is taken.
    FreeName {
        proposed: PathBuf,
        free: PathBuf,
    },
    /// How far a file was read.
    FileProgress {
        ticket: Ticket,
        bytes: u64,
    },
    FileRead {
        ticket: Ticket,
        /// What is in it, or a sentence with the reason why it cannot be read.
        result: Result<FileContents, SafeText>,
    },
    Watched {
        ticket: Ticket,
        /// Its counters. Text in them is not sanitised.
        counters: Arc<CountersSnapshot>,
        /// What it took of the processors over the latest seconds; `None` where /proc does not show that.
        cpu: Option<CpuUse>,
    },
    WatchEnded {
        ticket: Ticket,
        /// A sentence, where it is not over because the process ended.
        trouble: Option<SafeText>,
    },
    /// A program that was started waits to be recorded.
    Launched {
        ticket: Ticket,
        /// Its recording, before anything has come.
        recording: Box<Recording>,
    },
    /// A program that was started wrote something.
    Wrote {
        ticket: Ticket,
        /// The newest lines of all that it wrote.
        lines: Arc<[SafeText]>,
    },
    JobProgress {
        ticket: Ticket,
        /// Percent of the recording that was read.
        percent: u8,
    },
    /// A command does not get on.
    JobStalled {
        ticket: Ticket,
        notice: SafeText,
    },
    /// How it goes with serving Perfetto's tracing service.
    Producer {
        ticket: Ticket,
        report: ProducerReport,
    },
    JobDone {
        ticket: Ticket,
        /// Its result, or a sentence with the reason why there is none.
        result: Result<JobResult, SafeText>,
    },
    Copied {
        /// What it was, as given in [`Effect::Copy`](super::Effect::Copy).
        label: SafeText,
        /// Where it went.
        to: Clipboard,
    },
    /// Something failed that no other message is for: a sentence for a person.
    Failed(SafeText),
    /// A signal to end the program (`SIGTERM`, `SIGHUP`).
    Terminate,
    TaskPanicked(SafeText),
}

impl Msg {
    /// A command is over. An error may have several lines.
    pub fn job_done(ticket: Ticket, result: Result<JobResult, impl ToString>) -> Self {
        Self::JobDone { ticket, result: result.map_err(|error| SafeText::from_lines(&error.to_string())) }
    }
}

/// What came of a dump or perf map command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobResult {
    /// Files that were written, as this program sees them where it can, else as the target does.
    pub files: Vec<SafeText>,
    /// Size of the dump, bytes, where the file can be seen from here.
    pub bytes: Option<u64>,
    /// A further sentence, such as what could not be checked.
    pub note: Option<SafeText>,
}

/// Where copied text went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clipboard {
    Desktop,
    /// The terminal's clipboard (OSC 52), which does not answer.
    Terminal,
}
