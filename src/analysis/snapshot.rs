//! The results of all analyses at one point in time.

use super::Totals;
use super::activities::ActivitySnapshot;
use super::assemblies::AssemblySnapshot;
use super::contention::ContentionSnapshot;
use super::counters::CountersSnapshot;
use super::exceptions::ExceptionSnapshot;
use super::gc::GcSnapshot;
use super::jit::JitSnapshot;
use super::logs::LogSnapshot;
use super::rates::RateSnapshot;
use super::thread_pool::ThreadPoolSnapshot;
use crate::nettrace::ThreadId;

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
