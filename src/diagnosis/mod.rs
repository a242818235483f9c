//! Why a process is slow: how much of its time goes into each possible cause, and the culprit of each in a sentence.
//!
//! [`slowdowns`] takes what a recording shows of its process, and [`Thresholds`] from which values on a figure is a problem. No input or output, no
//! clock. Text is not sanitised here.

mod culprit;
mod evidence;
mod locks;
mod source;
#[cfg(test)]
mod tests;
mod thresholds;

use std::time::Duration;

use crate::model::{CpuSupply, RecordingAnalysis, ThreadUse};
use crate::sorting::CompactSort;

pub use culprit::is_own;
pub use source::Source;
pub use thresholds::{GROWING_COLLECTIONS, RUNS, STARVES, THROTTLED, Threshold, Thresholds};

/// A possible cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its own code runs.
    Cpu,
    /// Threads that are ready to run have no processor.
    CpuWait,
    /// Its code writes log messages.
    Logging,
    /// Collections, and a heap that grows.
    Gc,
    /// Methods are compiled.
    Jit,
    /// Threads wait for locks.
    Locks,
    /// Work waits for a thread of the pool.
    ThreadPool,
    /// Exceptions.
    Exceptions,
    /// Requests that it sends, and serves.
    Http,
    /// Threads wait for something else.
    Waiting,
}

impl Cause {
    /// All, in the order in which they are listed where they weigh the same.
    pub const ALL: [Self; 10] = [
        Self::ThreadPool,
        Self::Locks,
        Self::Gc,
        Self::Jit,
        Self::Exceptions,
        Self::Http,
        Self::Logging,
        Self::CpuWait,
        Self::Cpu,
        Self::Waiting,
    ];

    /// Its name.
    pub fn title(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::CpuWait => "Waiting for CPU",
            Self::Logging => "Logging",
            Self::Gc => "GC and heap",
            Self::Jit => "JIT",
            Self::Locks => "Lock contention",
            Self::ThreadPool => "Thread pool",
            Self::Exceptions => "Exceptions",
            Self::Http => "HTTP",
            Self::Waiting => "Other waiting",
        }
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::CpuWait => "cpu-wait",
            Self::Logging => "logging",
            Self::Gc => "gc",
            Self::Jit => "jit",
            Self::Locks => "locks",
            Self::ThreadPool => "thread-pool",
            Self::Exceptions => "exceptions",
            Self::Http => "http",
            Self::Waiting => "waiting",
        }
    }
}

/// How much a cause slows a process down.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowdown {
    /// The cause.
    pub cause: Cause,
    /// Share of the time that the sentence names; more than 1 for several cores. `None` where it takes no share that can be measured.
    pub share: Option<f64>,
    /// How many times its threshold: from 1 on it is a problem. `None` where it was not measured.
    pub severity: Option<f64>,
    /// What was found, in a sentence. Not sanitised.
    pub text: String,
}

impl Slowdown {
    /// Whether it is above its threshold.
    pub fn is_problem(&self) -> bool {
        self.severity.is_some_and(|severity| severity >= 1.0)
    }
}

/// What a recording shows of its process.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What is in the recording.
    pub analysis: &'a RecordingAnalysis,
    /// What its threads took of the processors; empty where that is not known.
    pub threads: &'a [ThreadUse],
    /// For how long that was watched: the analysis may be some time behind.
    pub elapsed: Duration,
    /// Profiles and providers that were recorded; empty where they are not known.
    pub what: &'a [String],
    /// Major version of the runtime, where it is known.
    pub runtime: Option<u32>,
    /// What else decides how much CPU it gets.
    pub cpu_supply: CpuSupply,
    /// From which values on a figure is a problem.
    pub thresholds: &'a Thresholds,
}

/// All causes, the worst first; what was not measured comes last.
pub fn slowdowns(evidence: &Evidence<'_>) -> Vec<Slowdown> {
    let mut all: Vec<_> = Cause::ALL.into_iter().map(|cause| evidence.weigh(cause)).collect();
    all.compact_sort_by(|a, b| b.severity.unwrap_or(-1.0).total_cmp(&a.severity.unwrap_or(-1.0)));
    all
}
