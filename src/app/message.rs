//! What can happen to the program.

use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use jiff::Timestamp;
use jiff::tz::Offset;

use super::tabs::Stacks;
use super::{StaleSockets, WalkedHeap};
use crate::analysis::CountersSnapshot;
use crate::model::{
    FILE_STAMP, FileContents, Process, ProcessKey, ProducerReport, Recording, RecordingId, SafeText, ThreadUse, TraceFile, Variable,
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
    /// The mouse did something.
    Mouse(MouseEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal has this many columns and rows.
    Resize(u16, u16),
    /// The deadline is reached that [`State::next_deadline`](super::State::next_deadline) asked for.
    Tick,
    /// All processes, as they are now.
    Processes(Vec<Process>),
    /// The threads of a process; none where /proc does not show them.
    Threads {
        /// Which question this answers.
        ticket: Ticket,
        /// The threads.
        threads: Vec<ThreadUse>,
    },
    /// What every thread of a process does.
    Stacks {
        /// The question.
        ticket: Ticket,
        /// The stacks, or a sentence that says why there are none.
        result: Result<Arc<Stacks>, SafeText>,
    },
    /// Progress of a heap walk.
    HeapProgress {
        /// Which walk.
        ticket: Ticket,
        /// Objects so far.
        objects: u64,
        /// Bytes that they take.
        bytes: u64,
    },
    /// A walk over a heap is over.
    HeapWalked {
        /// Which walk.
        ticket: Ticket,
        /// What is on the heap, or a sentence that says why nothing is known of it.
        result: Result<Arc<WalkedHeap>, SafeText>,
    },
    /// How many sockets killed processes left behind. None of them is among the processes.
    StaleSockets(StaleSockets),
    /// A process's environment.
    Environment {
        /// The question.
        ticket: Ticket,
        /// All variables, or a sentence that says why there are none.
        result: Result<Vec<Variable>, SafeText>,
    },
    /// What is missing for events of a process to go to tracepoints of the kernel.
    TracepointsMissing {
        /// Which process.
        key: ProcessKey,
        /// A sentence each about what would help; none where nothing is missing.
        missing: Vec<SafeText>,
    },
    /// How a recording stands.
    Recording(Box<Recording>),
    /// A recording could not be started.
    TraceFailed {
        /// Which recording.
        id: RecordingId,
        /// A sentence: what was tried, what the answer was, what to do next.
        reason: SafeText,
    },
    /// Recorded files were looked for.
    FilesFound {
        /// The question.
        ticket: Ticket,
        /// Those that can be opened, those that were written to last first.
        files: Vec<TraceFile>,
    },
    /// How far a file was read.
    FileProgress {
        /// The question.
        ticket: Ticket,
        /// Bytes so far.
        bytes: u64,
    },
    /// A file was read.
    FileRead {
        /// The question.
        ticket: Ticket,
        /// What is in it, or a sentence that says why it cannot be read.
        result: Result<FileContents, SafeText>,
    },
    /// What a watched process publishes.
    Watched {
        /// The session.
        ticket: Ticket,
        /// Its counters. Text in them is not sanitised.
        counters: Arc<CountersSnapshot>,
    },
    /// A watch is over.
    WatchEnded {
        /// The session.
        ticket: Ticket,
        /// A sentence, where it is not over because the process ended.
        trouble: Option<SafeText>,
    },
    /// A program that was started waits to be recorded.
    Launched {
        /// The command that started it.
        ticket: Ticket,
        /// Its recording, before anything has come.
        recording: Box<Recording>,
    },
    /// A program that was started wrote something.
    Wrote {
        /// The command that started it.
        ticket: Ticket,
        /// The newest lines of all that it wrote.
        lines: Arc<[SafeText]>,
    },
    /// Progress of an export.
    JobProgress {
        /// The command.
        ticket: Ticket,
        /// Percent of the recording that was read.
        percent: u8,
    },
    /// A command does not get on.
    JobStalled {
        /// The command.
        ticket: Ticket,
        /// A sentence that says what may be done.
        notice: SafeText,
    },
    /// How it goes with serving Perfetto's tracing service.
    Producer {
        /// The command that began it.
        ticket: Ticket,
        /// What happened.
        report: ProducerReport,
    },
    /// A command is over.
    JobDone {
        /// The command.
        ticket: Ticket,
        /// What came of it, or a sentence that says why nothing did.
        result: Result<JobResult, SafeText>,
    },
    /// Text was copied.
    Copied {
        /// What it was, as given in [`Effect::Copy`](super::Effect::Copy).
        label: SafeText,
        /// Where it went.
        to: Clipboard,
    },
    /// Something failed that no other message is for: a sentence for a person.
    Failed(SafeText),
    /// A signal asks the program to end (`SIGTERM`, `SIGHUP`).
    Terminate,
    /// A task panicked; the program goes on.
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
    /// The desktop's clipboard.
    Desktop,
    /// The terminal's clipboard (OSC 52), which does not answer.
    Terminal,
}
