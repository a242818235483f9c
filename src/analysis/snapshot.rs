//! The results of all analyses at one point in time.

use super::{
    ActivitySnapshot, AssemblySnapshot, ContentionSnapshot, CountersSnapshot, ExceptionSnapshot, GcSnapshot, JitSnapshot, LogSnapshot,
    ProblemCount, RateSnapshot, ThreadPoolSnapshot, Totals,
};
use crate::clr::EventKind;
use crate::nettrace::ThreadId;

/// Kinds of events that a stream contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContainedEvents {
    /// Garbage collections.
    pub collections: bool,
    /// Allocations.
    pub allocations: bool,
    /// Exceptions.
    pub exceptions: bool,
    /// Lock contention.
    pub contention: bool,
}

impl ContainedEvents {
    pub(super) fn add(&mut self, kind: EventKind) {
        match kind {
            EventKind::GcStart => self.collections = true,
            EventKind::AllocationTick | EventKind::AllocationSampled => self.allocations = true,
            EventKind::ExceptionThrown => self.exceptions = true,
            EventKind::ContentionStart => self.contention = true,
            _ => {}
        }
    }
}

/// The results of all analyses of a stream.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Time of the snapshot, in nanoseconds since the start of the session: at most the stop, as nothing is recorded after it.
    pub now: i64,
    /// Recorded time up to `now`, in nanoseconds: since the start of the session, or of the selected part. Overall rates are relative to this,
    /// not to the time between the first and the last event.
    pub recorded_ns: u64,
    /// Totals of the stream.
    pub totals: Totals,
    /// Problems with parts of the stream, in order of first occurrence.
    pub problems: Vec<ProblemCount>,
    /// Kinds of events that the stream contains, even if not in the selected part: of these, none in it means 0.
    pub contained: ContainedEvents,
    /// Names of threads, if the stream has them, in ascending order of the threads; not sanitized.
    pub thread_names: Vec<(ThreadId, String)>,
    /// Number of events with a malformed payload.
    pub unreadable: u64,
    /// Event rates over time, and lost events.
    pub rates: RateSnapshot,
    /// Garbage collection.
    pub gc: GcSnapshot,
    /// Exceptions.
    pub exceptions: ExceptionSnapshot,
    /// Lock contention.
    pub contention: ContentionSnapshot,
    /// The thread pool and threads.
    pub thread_pool: ThreadPoolSnapshot,
    /// JIT compilation.
    pub jit: JitSnapshot,
    /// Assemblies.
    pub assemblies: AssemblySnapshot,
    /// Log messages.
    pub logs: LogSnapshot,
    /// Requests and other activities.
    pub activities: ActivitySnapshot,
    /// EventCounters and meters.
    pub counters: CountersSnapshot,
}

impl Snapshot {
    /// Returns the share of time paused for GC, 0 to 1: of the whole recorded time, or of the last ten seconds.
    pub fn gc_share(&self, whole: bool) -> f64 {
        let pauses = &self.gc.pauses;
        if whole { pauses.total_ns as f64 / self.recorded_ns.max(1) as f64 } else { pauses.recent_share }
    }
}
