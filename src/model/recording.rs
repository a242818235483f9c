//! A recording: one trace session of one process, written to a file.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clr::{unrecorded_provider_note, without_events};

use super::{CpuConstraints, ProcessKey, RecordingAnalysis, SafeText, Stopwatch};

/// Identifies a recording within this run of dn-top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RecordingId(pub u32);

/// The state of a recording: a snapshot; the newest replaces the previous ones.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recording {
    /// Id of the recording.
    pub id: RecordingId,
    /// The recorded process.
    pub key: ProcessKey,
    /// Name of the process when the recording began.
    pub name: SafeText,
    /// Path of the finished file. While recording, data is written to the same path with `.partial` appended. Empty if there is no file.
    pub file: PathBuf,
    /// Descriptions of profiles and providers, such as `dotnet-common + sampled-thread-time`.
    pub what: Vec<String>,
    /// Requested features that the runtime does not support, one sentence each.
    pub notes: Vec<String>,
    /// Current phase.
    pub phase: Phase,
    /// Time since the session was requested, until now, the stop, or the end of the session: without the rundown.
    pub elapsed: Duration,
    /// Stream bytes written.
    pub bytes: u64,
    /// Events seen in the stream.
    pub events: u64,
    /// Events that the runtime dropped, by gaps in the sequence numbers.
    pub dropped: u64,
    /// Events that are in the file, and counted, but missing from `analysis`, because they arrived faster than they could be analyzed.
    pub unanalyzed: u64,
    /// Rates over time, oldest first, at most [`Recording::HISTORY`] of them.
    pub history: Vec<Rate>,
    /// CPU use of its threads, by thread id; empty if unknown.
    pub threads: Arc<[ThreadUse]>,
    /// What limits its CPU use from outside.
    pub cpu_constraints: CpuConstraints,
    /// Progress of resolving the names of methods compiled before the recording began.
    pub names: MethodNameResolution,
    /// The data kept by a flight recorder so far; `None` for a recording that keeps everything.
    pub kept: Option<FlightBufferUsage>,
    /// Destination of the events if they are not written to a file; `None` if dn-top receives them.
    pub kernel: Option<KernelTrace>,
    /// State of the kernel's scheduling events; `None` if they are not recorded.
    pub scheduling: Option<Scheduling>,
    /// Why the kernel does not sample its CPU time, if requested.
    pub cpu_unavailable: Option<CpuTimeUnavailable>,
    /// The separate file of the kernel samples, once it is complete.
    pub cpu_file: Option<PathBuf>,
    /// Number of kernel samples in the file of the recording, once it is complete.
    pub cpu_samples: Option<u64>,
    /// Providers of the recorded events, at the end; `None` if they are not known.
    pub providers: Option<Arc<BTreeSet<String>>>,
    /// Analysis so far; `None` before the first, and if the recording is not analyzed.
    pub analysis: Option<Arc<RecordingAnalysis>>,
}

impl Recording {
    /// Maximum number of rates: two minutes.
    pub const HISTORY: usize = 240;
    /// Time span of one rate: a multiple of the 100 ms interval in which a runtime flushes its buffers, so that rates do not jitter.
    pub const STEP: Duration = Duration::from_millis(500);

    /// Returns the initial state.
    pub fn starting(id: RecordingId, key: ProcessKey, name: SafeText, what: Vec<String>, file: PathBuf) -> Self {
        Self { id, key, name, file, what, ..Self::default() }
    }

    /// Returns a sentence for each specified provider without any recorded event.
    pub fn notes_on_providers<'a>(&self, specified: impl Iterator<Item = &'a str>) -> Vec<String> {
        let Some(providers) = &self.providers else { return Vec::new() };
        without_events(specified, providers).map(unrecorded_provider_note).collect()
    }

    /// Returns whether a file was written without any event or CPU sample.
    pub fn is_empty(&self) -> bool {
        self.kernel.is_none() && self.events == 0 && self.cpu_samples.unwrap_or(0) == 0 && self.cpu_file.is_none()
    }
}

/// Why the kernel does not sample the CPU time of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuTimeUnavailable {
    /// The reason, as a sentence.
    pub why: SafeText,
    /// A command or setting that would allow it, in a few words; empty if there is none.
    pub remedy: SafeText,
}

/// The resolution of names of methods compiled before a recording began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MethodNameResolution {
    /// Not started: all methods have had names so far.
    #[default]
    NotStarted,
    /// Requested from the runtime in a second, short session.
    Requested,
    /// Received from the runtime.
    Found {
        /// Number of methods.
        methods: usize,
        /// Time of the request since the recording began.
        at: Duration,
        /// Duration of the request.
        took: Duration,
    },
    /// Not received: the reason, as a sentence.
    Failed(SafeText),
}

/// CPU use of a thread while it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadUse {
    /// Thread id in the pid namespace of the process.
    pub thread: u64,
    /// Name of the thread.
    pub name: SafeText,
    /// Time on CPU, since the recording began if there is one.
    pub cpu: Duration,
    /// Time runnable but not on a CPU, over the same period; `None` if not measured.
    pub runnable: Option<Duration>,
    /// Thread state as in `/proc/PID/task/TID/stat`: `R` running, `S` sleeping, `D` waiting for a device.
    pub state: char,
}

/// Events that go to tracepoints of the kernel, to be read by other tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelTrace {
    /// Names of the tracepoints.
    pub tracepoints: Vec<String>,
    /// Session id assigned by the runtime, once known.
    pub session: Option<String>,
}

impl fmt::Display for KernelTrace {
    /// Formats the tracepoints as other tools name them, `user_events:NAME`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.tracepoints.iter().enumerate() {
            write!(f, "{}user_events:{name}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// State of the kernel's events in a recording: scheduling, wakeups, and the names of processes and threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheduling {
    /// Requested from the tracing service; no event received yet.
    Waiting,
    /// Events are being recorded.
    Recording,
    /// Events were recorded, but ended early.
    Ended {
        /// Time from the start of the recording to the last events.
        after: Duration,
    },
    /// No events, so that those of .NET are recorded alone: the reason, and a remedy.
    Missing(SafeText),
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("Kernel: waiting for its events"),
            Self::Recording => f.write_str("Kernel: scheduling is recorded"),
            Self::Ended { after } => write!(
                f,
                "Kernel: scheduling is recorded up to about {} and no further: tracing was turned off (`tracing_on` of tracefs is 0), or `traced_probes` ended",
                Stopwatch(*after)
            ),
            Self::Missing(why) => write!(f, "Kernel: not recorded, only .NET events: {why}"),
        }
    }
}

/// The newest part of a recording, which is all that a flight recorder keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlightBufferUsage {
    /// Size in bytes.
    pub bytes: u64,
    /// Time from the oldest event to the newest.
    pub span: Duration,
    /// Why less is kept than requested.
    pub trouble: Option<SafeText>,
}

/// Rates over one [`Recording::STEP`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rate {
    /// Stream bytes per second.
    pub bytes: f64,
    /// Events per second.
    pub events: f64,
    /// Whether the runtime dropped events in this step.
    pub dropped: bool,
}

/// Phase of a recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Phase {
    /// The session was requested; no data has been received.
    #[default]
    Starting,
    /// Events are being received.
    Recording,
    /// Stop was requested; the runtime is sending its rundown, or is given time to collect its meters before that.
    Stopping {
        /// Time since stop was requested.
        since: Duration,
        /// Bytes of the rundown received so far.
        bytes: u64,
    },
    /// The stream has ended; the recording and its CPU samples are being written into one file.
    Joining {
        /// Progress in percent.
        percent: u8,
    },
    /// Finished.
    Done(Outcome),
}

/// The result of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What stopped it.
    pub stopped_by: StoppedBy,
    /// Whether the stream ended regularly.
    pub complete: bool,
    /// The resulting file; `None` if no data was received.
    pub file: Option<PathBuf>,
    /// A sentence for the user about problems, if any.
    pub trouble: Option<SafeText>,
}

listed! {
/// What stopped a recording. The names are those of the command line contract's `stopped_by` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoppedBy {
    /// The duration limit was reached.
    Duration => "duration",
    /// The size limit was reached.
    Size => "size",
    /// The stop event was received.
    Event => "event",
    /// The stop condition was met.
    Condition => "condition",
    /// The user or a signal stopped it.
    Interrupt => "interrupt",
    /// The recording would have filled the disk.
    DiskSpace => "disk-space",
    /// The target exited.
    TargetExit => "target-exit",
    /// An operation failed.
    Error => "error",
}
/// Returns the word in the command line contract.
pub fn word(self) -> &'static str;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_with_cpu_samples_alone_is_not_empty() {
        let is_empty = |events, cpu_samples| Recording { events, cpu_samples, ..Recording::default() }.is_empty();
        assert_eq!([is_empty(0, None), is_empty(0, Some(0)), is_empty(0, Some(1)), is_empty(1, None)], [true, true, false, false]);
    }
}
