//! What is to be done outside of the state. The runner does it and answers with a message.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::ipc::{Command, DumpRequest, PerfMapKind};
use crate::model::{ProcessKey, RecordingId, SafeText, Span, TraceFormat, TraceOptions};

use super::Ticket;

/// Something to do outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Look at all processes now, without waiting for the next round. Answer: `Msg::Processes`.
    Refresh,
    /// Read a process's environment. Answer: `Msg::Environment`.
    ReadEnvironment {
        key: ProcessKey,
        ticket: Ticket,
    },
    /// List the threads of a process, as /proc has them. Answer: `Msg::Threads`.
    ListThreads {
        key: ProcessKey,
        ticket: Ticket,
    },
    /// List the assemblies that a process has mapped, as /proc has them. Answer: `Msg::Assemblies`.
    ListAssemblies {
        key: ProcessKey,
        ticket: Ticket,
    },
    /// Sample all threads of a process once. Answer: `Msg::Stacks`.
    SampleStacks {
        key: ProcessKey,
        ticket: Ticket,
    },
    /// Walk the heap of a process: a full, blocking GC. Answers: `Msg::HeapProgress`, then `Msg::HeapWalked`.
    WalkHeap {
        key: ProcessKey,
        ticket: Ticket,
    },
    /// End a walk over a heap, or do not read a file with one: its answer is not awaited.
    CancelHeapWalk {
        /// The one that began with it.
        ticket: Ticket,
    },
    /// Read a file with a heap. Answer: `Msg::HeapWalked`.
    ReadHeap {
        ticket: Ticket,
        path: PathBuf,
    },
    /// Write the objects that the last walk found. Answer: `Msg::JobDone`.
    WriteHeap {
        walk: Ticket,
        destination: PathBuf,
        ticket: Ticket,
    },
    /// Look at what is missing for events of a process to go to tracepoints of the kernel. Answer: `Msg::TracepointsMissing`.
    LookAtTracepoints {
        key: ProcessKey,
    },
    /// Record a process into a new file, or into tracepoints. Answers: `Msg::Recording` until its phase is done, or `Msg::TraceFailed`.
    StartTrace {
        /// The number of the recording, given out by the state.
        id: RecordingId,
        key: ProcessKey,
        /// What to record, and until when.
        order: Box<TraceOptions>,
    },
    /// Stop a recording and take in all that the runtime still sends.
    StopTrace {
        id: RecordingId,
    },
    /// End a recording at once. What was written stays, readable.
    AbandonTrace {
        id: RecordingId,
    },
    /// Read a recorded file; what was asked of the same before is of no use any more. Answers: `Msg::FileProgress`, then `Msg::FileRead`.
    ReadFile {
        key: ProcessKey,
        ticket: Ticket,
        path: PathBuf,
        /// Which part is looked at; `None` for all.
        span: Option<Span>,
    },
    /// Draw with this of the themes in [`Options`](super::Options).
    UseTheme(SafeText),
    /// Look for recorded files in the current folder. Answer: `Msg::FilesFound`.
    FindFiles {
        /// Files that are known already.
        known: Vec<PathBuf>,
        ticket: Ticket,
    },
    /// Read the latest lines of the log of this program. Answer: `Msg::OwnLog`.
    ReadLog,
    /// Find a name for a new file that is free. Answer: `Msg::FreeName` where it is another.
    FindFreeName {
        proposed: PathBuf,
        /// The same as it is reached from here.
        here: PathBuf,
    },
    /// Export a recorded file, or what there is of it so far. Answers: `Msg::JobProgress`, then `Msg::JobDone`.
    Export {
        source: PathBuf,
        destination: PathBuf,
        format: TraceFormat,
        /// Which part; `None` for all.
        span: Option<Span>,
        ticket: Ticket,
    },
    /// Watch a process: a small session of its runtime's own counters. One that is watched already goes on in the new session. Answers: `Msg::Watched`
    /// until it is over, then `Msg::WatchEnded`.
    Watch {
        key: ProcessKey,
        ticket: Ticket,
        /// Whether its meters are watched, too.
        meters: bool,
    },
    /// Watch a process no longer.
    Unwatch {
        key: ProcessKey,
    },
    /// Keep those single events of a running recording for a look that a filter lets through.
    FilterEvents {
        id: RecordingId,
        /// The filter, as it was typed.
        filter: String,
    },
    /// Have a process write a dump. Answer: `Msg::JobDone`.
    Dump {
        key: ProcessKey,
        /// What goes into it, and where to; always an absolute path.
        request: DumpRequest,
        ticket: Ticket,
    },
    /// Turn a process's perf map on (of this kind) or off. Answer: `Msg::JobDone`.
    PerfMap {
        key: ProcessKey,
        /// What to write; `None` turns it off.
        kind: Option<PerfMapKind>,
        ticket: Ticket,
    },
    /// Send a process a command that changes it. Answer: `Msg::JobDone`.
    Control {
        key: ProcessKey,
        command: Command,
        /// The file with what a profiler is handed, to be read first.
        data: Option<PathBuf>,
        ticket: Ticket,
    },
    /// Start a program suspended, record it, and let it run. Answers: `Msg::Launched` once it can be recorded, those of a recording, `Msg::Wrote` as often as
    /// it writes, and `Msg::JobDone` when it has ended or could not be started.
    Launch {
        words: Vec<String>,
        id: RecordingId,
        order: Box<TraceOptions>,
        /// A new file for what it writes.
        output: PathBuf,
        ticket: Ticket,
    },
    /// Serve a diagnostic port. Answer: `Msg::JobDone`.
    ServePort {
        path: PathBuf,
        ticket: Ticket,
    },
    /// Close the diagnostic port. Answer: `Msg::JobDone`.
    ClosePort {
        /// Who is to run first, of those that wait for it.
        resume: Vec<ProcessKey>,
        ticket: Ticket,
    },
    /// Remove the sockets of killed processes. Answer: `Msg::JobDone`.
    CleanUp {
        folders: BTreeSet<PathBuf>,
        ticket: Ticket,
    },
    /// Serve the data source `dotnet` to Perfetto's tracing service. Answers: `Msg::Producer`, and `Msg::JobDone` when it is over.
    ServeProducer {
        /// Pids or names; empty for all processes.
        targets: Vec<String>,
        /// Names of the profiles that a session records unless it has more.
        profiles: Vec<String>,
        ticket: Ticket,
    },
    /// Serve it no longer; sessions end properly.
    EndProducer,
    /// Let a process run that waits at startup. Answer: `Msg::JobDone`.
    Resume {
        key: ProcessKey,
        ticket: Ticket,
    },
    /// Put text into the clipboard. Answer: `Msg::Copied` or `Msg::Failed`.
    Copy {
        text: String,
        label: String,
    },
    Redraw,
    /// Restore the terminal and stop the program as Ctrl-Z does.
    Suspend,
    Quit {
        /// Recordings go on without the dashboard, until their target ends or the person interrupts.
        /// Otherwise none is active any more, or the wait for them took too long.
        keep_recording: bool,
    },
}
