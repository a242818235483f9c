//! All analysis at one moment.

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

/// What is known of a stream.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The moment that it looks from, nanoseconds since the start of the session: no later than its stop, as nothing is recorded after that.
    pub now: i64,
    /// How long was recorded up to then, nanoseconds: since the start of the session, or of the part of it that is looked at. Rates over all of the
    /// recording are divided by this, not by the time between its first and its last event.
    pub recorded_ns: u64,
    /// The sums over the stream.
    pub totals: Totals,
    /// Names of threads, where the stream has them, in ascending order of the threads; not sanitised.
    pub thread_names: Vec<(ThreadId, String)>,
    /// Events whose payload made no sense.
    pub unreadable: u64,
    /// When events came, and where they are missing.
    pub rates: RateSnapshot,
    /// Garbage collection.
    pub gc: GcSnapshot,
    /// Exceptions.
    pub exceptions: ExceptionSnapshot,
    /// Waits for locks.
    pub contention: ContentionSnapshot,
    /// The thread pool and the threads.
    pub thread_pool: ThreadPoolSnapshot,
    /// Compilation at run time.
    pub jit: JitSnapshot,
    /// Assemblies.
    pub assemblies: AssemblySnapshot,
    /// What the program logs.
    pub logs: LogSnapshot,
    /// Requests and other things that begin and end.
    pub activities: ActivitySnapshot,
    /// What the program and its libraries publish.
    pub counters: CountersSnapshot,
}
