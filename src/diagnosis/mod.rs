//! Diagnoses slow processes: how much time goes into each possible cause, with the culprit of each in a sentence.
//!
//! [`slowdowns`] compares the contents of a recording with the [`Thresholds`] from which a value is a problem. No I/O, no clock.
//! Text is not sanitized here.

mod culprit;
mod evidence;
mod locks;
mod source;
mod stack_wait;
#[cfg(test)]
mod tests;
mod thresholds;

use std::time::Duration;

use crate::model::{CpuConstraints, RecordingAnalysis, ThreadUse};
use crate::sorting::CompactSort;

use evidence::MAX_HARMLESS_SEVERITY;

pub use culprit::is_own;
pub use source::Source;
pub use stack_wait::{may_be_lock, wait_of_stack};
pub use thresholds::{GROWING_COLLECTIONS, MIN_BUSY_CORES, MIN_CPU_WAITERS, MIN_THROTTLED_SHARE, Threshold, Thresholds, starved_share};

listed! {
/// A possible cause of slowness. Those of equal severity are listed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Work items wait for a thread of the pool.
    ThreadPool => ("Thread pool", "thread-pool"),
    /// Lock contention.
    Locks => ("Lock contention", "locks"),
    /// Garbage collections, and heap growth.
    Gc => ("GC and heap", "gc"),
    /// JIT compilation.
    Jit => ("JIT", "jit"),
    /// Exceptions.
    Exceptions => ("Exceptions", "exceptions"),
    /// Outgoing and incoming HTTP requests.
    Http => ("HTTP", "http"),
    /// The application writes log messages.
    Logging => ("Logging", "logging"),
    /// Runnable threads wait for a CPU.
    CpuWait => ("Waiting for CPU", "cpu-wait"),
    /// The application's own code is running.
    Cpu => ("CPU", "cpu"),
    /// Other waits.
    Waiting => ("Other waiting", "waiting"),
}
/// Returns the display name, and the name in JSON.
fn names(self) -> (&'static str, &'static str);
}

impl Cause {
    /// Returns the display name.
    pub fn title(self) -> &'static str {
        self.names().0
    }

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        self.names().1
    }
}

/// The effect of a cause on a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowdown {
    /// The cause.
    pub cause: Cause,
    /// Share of the time described in the text; more than 1 for several cores. `None` if there is no measurable share.
    pub share: Option<f64>,
    /// Ratio to the threshold: a problem from 1 on. `None` if not measured.
    pub severity: Option<f64>,
    /// The finding in a sentence. Not sanitized.
    pub text: String,
}

impl Slowdown {
    /// Returns whether the threshold is reached.
    pub fn is_problem(&self) -> bool {
        self.severity.is_some_and(|severity| severity >= 1.0)
    }

    /// Returns whether it may be a problem, but the recording does not show that with certainty: threads are blocked, perhaps by a lock, or no
    /// request ends.
    fn may_be_problem(&self) -> bool {
        let Some(severity) = self.severity.filter(|severity| *severity < 1.0) else { return false };
        match self.cause {
            Cause::Locks => severity >= MAX_HARMLESS_SEVERITY,
            Cause::Http => severity > MAX_HARMLESS_SEVERITY,
            _ => false,
        }
    }
}

/// The input of a diagnosis.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Analysis of the recording.
    pub analysis: &'a RecordingAnalysis,
    /// CPU usage of the process's threads; empty if unknown.
    pub threads: &'a [ThreadUse],
    /// Period in which `threads` was measured; the analysis may be some time behind.
    pub elapsed: Duration,
    /// Profiles and providers that were recorded; empty if unknown.
    pub recorded: &'a [String],
    /// Major version of the runtime, if known.
    pub runtime: Option<u32>,
    /// Whether it is known to be a NativeAOT application.
    pub native_aot: bool,
    /// Limits on the available CPU time.
    pub cpu_constraints: CpuConstraints,
    /// Thresholds from which a value is a problem.
    pub thresholds: &'a Thresholds,
}

/// Returns all causes, most severe first; those that were not measured come last.
pub fn slowdowns(evidence: &Evidence<'_>) -> Vec<Slowdown> {
    let mut all: Vec<_> = Cause::ALL.into_iter().map(|cause| evidence.evaluate(cause)).collect();
    let severity = |cause| all.iter().find(|slowdown| slowdown.cause == cause && slowdown.is_problem())?.severity;
    if let Some((locks, _)) = severity(Cause::Locks).zip(severity(Cause::CpuWait)).filter(|(locks, cpu_wait)| locks < cpu_wait)
        && evidence.more_wait_for_locks()
    {
        let cpu_wait = all.iter_mut().filter(|slowdown| slowdown.cause == Cause::CpuWait);
        cpu_wait.for_each(|slowdown| slowdown.severity = Some(locks));
    }
    all.compact_sort_by(|a, b| b.severity.unwrap_or(-1.0).total_cmp(&a.severity.unwrap_or(-1.0)));
    all
}

/// Stands between the titles of the causes in a conclusion: a title may contain "and".
pub const ALSO: &str = "; also: ";

/// Returns the conclusion from causes, the worst first: a sentence, and the causes with whose titles it ends. If threads wait for CPUs, and there is
/// a problem of the program as well, both are named: the times of the program include the wait for CPUs, and remain a problem without it.
pub fn verdict(causes: &[Slowdown]) -> (&'static str, Vec<&Slowdown>) {
    match causes.first() {
        Some(worst) if worst.is_problem() => {
            let mut others = causes[1..].iter().filter(|other| other.is_problem());
            let other = match worst.cause {
                Cause::CpuWait => others.find(|other| other.cause != Cause::Cpu),
                _ => others.find(|other| other.cause == Cause::CpuWait),
            };
            ("Slow because of: ", [worst].into_iter().chain(other).collect())
        }
        Some(worst) if worst.may_be_problem() => ("Possibly slow because of: ", vec![worst]),
        Some(worst) if worst.severity.is_some() => ("No cause stands out: none is above its threshold.", Vec::new()),
        _ => ("Nothing was measured that shows a cause.", Vec::new()),
    }
}
