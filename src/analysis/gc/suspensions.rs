//! Pauses for collections, from the events of the thread that suspends all others.

use foldhash::HashMap;

use crate::clr::payload::SuspendBegin;
use crate::nettrace::ThreadId;

/// Threads that suspend others at the same time: there are two or three.
const SUSPENDERS: usize = 64;

/// A time that all managed threads were suspended for a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::analysis) struct Pause {
    pub(in crate::analysis) begin: i64,
    pub(in crate::analysis) end: i64,
}

impl Pause {
    pub(in crate::analysis) fn nanoseconds(self) -> u64 {
        u64::try_from(self.end.saturating_sub(self.begin)).unwrap_or(0)
    }
}

/// Pairs the begin of a suspension with the end of the restart.
///
/// The sampling profiler suspends a thousand times a second, and its events stand between those of the collector. But the thread that suspends also restarts,
/// and the events of one thread come in their order: so they are paired by thread.
#[derive(Debug, Default)]
pub(in crate::analysis) struct Suspensions {
    /// Since when threads suspend all others for a collection.
    since: HashMap<ThreadId, i64>,
}

impl Suspensions {
    /// A thread suspends all others. Returns whether that is for a collection.
    pub(in crate::analysis) fn begin(&mut self, at: i64, thread: ThreadId, begin: SuspendBegin) -> bool {
        // One of this thread that has no end was lost.
        self.since.remove(&thread);
        if self.since.len() >= SUSPENDERS {
            self.since.clear();
        }
        if begin.is_for_gc() {
            self.since.insert(thread, at);
        }
        begin.is_for_gc()
    }

    /// All threads run again. `None` where it was not for a collection, or the begin is not known.
    pub(in crate::analysis) fn end(&mut self, at: i64, thread: ThreadId) -> Option<Pause> {
        self.since.remove(&thread).map(|begin| Pause { begin, end: at })
    }

    /// Events of a thread were lost.
    pub(in crate::analysis) fn lost(&mut self, thread: ThreadId) {
        self.since.remove(&thread);
    }
}
