//! A recording: one trace session of one process, written to a file.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{CpuSupply, ProcessKey, RecordingAnalysis, SafeText, Stopwatch};

/// Which recording of this run of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordingId(pub u32);

/// How a recording stands: a snapshot, newest wins.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Which recording.
    pub id: RecordingId,
    /// The process that is recorded.
    pub key: ProcessKey,
    /// Its name when the recording began.
    pub name: SafeText,
    /// Where the whole file will be, or is. While recording the bytes are in the same path with `.partial` behind it. Empty where there is none.
    pub file: PathBuf,
    /// Profiles and providers in words, such as `dotnet-common + sampled-thread-time`.
    pub what: Vec<String>,
    /// What was requested and the runtime cannot do, a sentence each.
    pub notes: Vec<String>,
    /// Where in its life it is.
    pub phase: Phase,
    /// Time since the session was requested, until now or until it ended.
    pub elapsed: Duration,
    /// Stream bytes written.
    pub bytes: u64,
    /// Events seen in the stream.
    pub events: u64,
    /// Events that the runtime dropped, by gaps in the sequence numbers.
    pub dropped: u64,
    /// Events that are in the file, and counted, but missing from `analysis`: they came faster than they could be analysed.
    pub unanalysed: u64,
    /// Rates over time, oldest first, at most [`Recording::HISTORY`] of them.
    pub history: Vec<Rate>,
    /// What its threads took of the processors, by number of the thread; empty where that is not known.
    pub threads: Arc<[ThreadUse]>,
    /// What else decides how much CPU it gets.
    pub cpu_supply: CpuSupply,
    /// How far the names of methods are known that were compiled before it began.
    pub names: NameSearch,
    /// What a flight recorder keeps so far; `None` for a recording that keeps everything.
    pub kept: Option<Kept>,
    /// Where its events go instead of into a file; `None` where they come to us.
    pub kernel: Option<KernelTrace>,
    /// How it is with what the kernel adds; `None` where that is not recorded.
    pub scheduling: Option<Scheduling>,
    /// Why the kernel does not sample its CPU time, where it should.
    pub no_cpu: Option<NoCpuTime>,
    /// The file of the kernel's samples, once it is whole, where it is one of its own.
    pub cpu_file: Option<PathBuf>,
    /// How many samples of the kernel are in the file of the recording, once it is whole.
    pub cpu_samples: Option<u64>,
    /// What is in it so far; `None` before anything is known, and where it is not analysed.
    pub analysis: Option<Arc<RecordingAnalysis>>,
}

impl Recording {
    /// How many rates are kept: two minutes of them.
    pub const HISTORY: usize = 240;
    /// What time one rate spans: a whole number of the 100 ms after which a runtime writes what has gathered, or the rates would jump.
    pub const STEP: Duration = Duration::from_millis(500);

    /// How it looks before anything has happened.
    pub fn starting(id: RecordingId, key: ProcessKey, name: SafeText, what: Vec<String>, file: PathBuf) -> Self {
        Self {
            id,
            key,
            name,
            file,
            what,
            notes: Vec::new(),
            phase: Phase::Starting,
            elapsed: Duration::ZERO,
            bytes: 0,
            events: 0,
            dropped: 0,
            unanalysed: 0,
            history: Vec::new(),
            threads: Arc::default(),
            cpu_supply: CpuSupply::default(),
            names: NameSearch::NotYet,
            kept: None,
            kernel: None,
            scheduling: None,
            no_cpu: None,
            cpu_file: None,
            cpu_samples: None,
            analysis: None,
        }
    }
}

/// Why the kernel does not sample the CPU time of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCpuTime {
    /// A sentence.
    pub why: SafeText,
    /// A command or a setting that would allow it, in a few words; empty where nothing would.
    pub remedy: SafeText,
}

/// The search for names of methods that were compiled before a recording began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NameSearch {
    /// It was not begun: nothing was without a name so far.
    #[default]
    NotYet,
    /// The runtime was asked, in a second, short session.
    Requested,
    /// The runtime sent them.
    Found {
        /// How many methods.
        methods: usize,
        /// When that was requested, since the recording began.
        at: Duration,
        /// How long that took.
        took: Duration,
    },
    /// It sent none: a sentence.
    Failed(SafeText),
}

/// What a thread took of the processors while it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadUse {
    /// Its number in the PID namespace of the process.
    pub thread: u64,
    /// Its name.
    pub name: SafeText,
    /// Time on a processor, since the recording began where there is one.
    pub cpu: Duration,
    /// Time in which it was ready to run and had no processor, as long; `None` where that is not measured.
    pub runnable: Option<Duration>,
    /// What it does, by the letter of `/proc/PID/task/TID/stat`: `R` runs, `S` sleeps, `D` waits for a device.
    pub state: char,
}

/// Events that go to tracepoints of the kernel, where others read them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelTrace {
    /// The names of the tracepoints.
    pub tracepoints: Vec<String>,
    /// What the runtime called the session, once it has.
    pub session: Option<String>,
}

impl fmt::Display for KernelTrace {
    /// As others know them, `user_events:NAME`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.tracepoints.iter().enumerate() {
            write!(f, "{}user_events:{name}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// The kernel's half of a recording: which threads ran when, what woke them, and the names of processes and threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheduling {
    /// Requested from the tracing service; no event received yet.
    Waiting,
    /// It is recorded.
    Recording,
    /// It was recorded, and no more of it comes.
    Ended {
        /// From the start of the recording to when its last events came.
        after: Duration,
    },
    /// It does not come, so that the events of .NET are recorded alone: why, and what would help.
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
            Self::Missing(why) => write!(f, "Kernel: nothing; events of .NET are recorded alone: {why}"),
        }
    }
}

/// The newest part of a recording, which is all that is kept of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Bytes.
    pub bytes: u64,
    /// From the oldest event to the newest.
    pub span: Duration,
}

/// What came in one step of [`Recording::STEP`], as rates.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rate {
    /// Stream bytes a second.
    pub bytes: f64,
    /// Events a second.
    pub events: f64,
    /// Whether the runtime dropped events in this step.
    pub dropped: bool,
}

/// Where in its life a recording is.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// The session was requested; no data has been received.
    Starting,
    /// Events come.
    Recording,
    /// Stop was requested; the runtime sends its rundown.
    Stopping {
        /// Time since stop was requested.
        since: Duration,
        /// Bytes that have come since then.
        bytes: u64,
    },
    /// The stream has ended; the recording and its CPU samples are being written into one file.
    Joining {
        /// How much of that is done.
        percent: u8,
    },
    /// It is over.
    Done(Outcome),
}

/// How a recording ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What ended it.
    pub stopped_by: StoppedBy,
    /// Whether the file ends the way a whole stream ends.
    pub complete: bool,
    /// The file that was kept; `None` where not a byte had come.
    pub file: Option<PathBuf>,
    /// A sentence for a person where not everything went well.
    pub trouble: Option<SafeText>,
}

/// What ended a recording. The names are those of the command line contract's `stopped_by` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoppedBy {
    /// The duration limit is reached.
    Duration,
    /// The size limit is reached.
    Size,
    /// The event came that was waited for.
    Event,
    /// A person or a signal stopped it.
    Interrupt,
    /// The target ended.
    TargetExit,
    /// Something failed.
    Error,
}

impl StoppedBy {
    /// The word of the command line contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::Size => "size",
            Self::Event => "event",
            Self::Interrupt => "interrupt",
            Self::TargetExit => "target-exit",
            Self::Error => "error",
        }
    }
}
