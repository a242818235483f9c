//! Side effects requested by the state machine. The runner performs them and answers with messages.

use std::path::PathBuf;

use crate::model::{ProcessKey, RecordingId, SafeText, Span, TraceOptions};

use super::{JobKind, Ticket};

/// A side effect for the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Scan all processes now, without waiting for the next interval. Answer: `Msg::Processes`.
    Refresh,
    /// Read a process's environment. Answer: `Msg::Environment`.
    ReadEnvironment {
        key: ProcessKey,
        ticket: Ticket,
    },
    /// List the threads of a process from /proc. Answer: `Msg::Threads`.
    ListThreads {
        key: ProcessKey,
        ticket: Ticket,
    },
    /// List the assemblies mapped by a process, from /proc. Answer: `Msg::Assemblies`.
    ListAssemblies {
        key: ProcessKey,
        ticket: Ticket,
    },
    /// Sample all threads of a process once. Answer: `Msg::Stacks`.
    SampleStacks {
        key: ProcessKey,
        ticket: Ticket,
    },
    /// Cancel a heap walk or the reading of a heap file; no answer is expected.
    CancelHeapWalk {
        /// The ticket of the walk or read.
        ticket: Ticket,
    },
    /// Read a heap file. Answer: `Msg::HeapWalked`.
    ReadHeap {
        ticket: Ticket,
        path: PathBuf,
    },
    /// Do a job. Answer: `Msg::JobDone`, or `Msg::HeapWalked` for a heap walk. Before it, by kind of job: `Msg::JobProgress`, `Msg::JobStalled`,
    /// `Msg::HeapProgress`, `Msg::Producer`; of a program `Msg::Launched` once it can be recorded, those of a recording, and `Msg::ProgramOutput`.
    Begin {
        key: ProcessKey,
        ticket: Ticket,
        kind: JobKind,
    },
    /// Check the prerequisites for writing a process's events to kernel tracepoints. Answer: `Msg::TracepointsMissing`.
    CheckTracepoints {
        key: ProcessKey,
    },
    /// Record a process into a new file, or into tracepoints. Answers: `Msg::Recording` until its phase is done, or `Msg::TraceFailed`.
    StartTrace {
        /// The recording's number, assigned by the state.
        id: RecordingId,
        key: ProcessKey,
        /// What to record, and when to stop.
        options: Box<TraceOptions>,
    },
    /// Stop a recording and store all remaining events sent by the runtime.
    StopTrace {
        id: RecordingId,
    },
    /// Abandon a recording at once. The data written so far stays readable.
    AbandonTrace {
        id: RecordingId,
    },
    /// Read a recorded file. Supersedes earlier reads of the same file. Answers: `Msg::FileProgress`, then `Msg::FileRead`.
    ReadFile {
        key: ProcessKey,
        ticket: Ticket,
        path: PathBuf,
        /// The range to read; `None` for the whole file.
        span: Option<Span>,
    },
    /// Switch to this theme, one of those in [`Options`](super::Options).
    SetTheme(SafeText),
    /// Find recorded files in the current folder. Answer: `Msg::FilesFound`.
    FindFiles {
        /// Files that are already known.
        known: Vec<PathBuf>,
        ticket: Ticket,
    },
    /// Read the latest lines of dn-top's own log. Answer: `Msg::OwnLog`.
    ReadLog,
    /// Find an unused name for a new file. Answer: `Msg::FreeName` if it differs from the proposed one.
    FindFreeName {
        proposed: PathBuf,
        /// The same path as reachable from this process.
        here: PathBuf,
    },
    /// Find out how much space a process has in the folder of a new file. Answer: `Msg::FreeSpace`.
    FindFreeSpace {
        key: ProcessKey,
        /// The folder, as seen by the target.
        folder: PathBuf,
        /// The folder as reachable from this process.
        here: PathBuf,
    },
    /// Watch a process: a light session with its runtime's own counters. If the process is already watched, the new session continues that watch.
    /// Answers: `Msg::WatchReport` until the watch ends, then `Msg::WatchEnded`.
    Watch {
        key: ProcessKey,
        ticket: Ticket,
        /// Whether to include its meters.
        meters: bool,
    },
    /// Stop watching a process.
    Unwatch {
        key: ProcessKey,
    },
    /// Keep the single events of a running recording that pass a filter, for display.
    FilterEvents {
        id: RecordingId,
        /// The filter as typed.
        filter: String,
    },
    /// Stop serving the data source; sessions end properly.
    StopProducer,
    /// Copy text to the clipboard. Answer: `Msg::Copied` or `Msg::Failed`.
    Copy {
        text: String,
        label: String,
    },
    Redraw,
    /// Restore the terminal and stop the program as Ctrl-Z does.
    Suspend,
    Quit {
        /// Recordings continue without the dashboard until their target exits or the user interrupts. Otherwise no recording is active any more,
        /// or the wait for them timed out.
        keep_recording: bool,
    },
}
