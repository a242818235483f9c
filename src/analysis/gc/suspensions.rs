//! GC pauses, from the events of the suspending thread.

use foldhash::HashMap;

use crate::clr::payload::SuspendBegin;
use crate::nettrace::ThreadId;

/// Upper bound on threads that suspend others at the same time; in practice two or three.
const SUSPENDERS: usize = 64;

/// A period in which all managed threads were suspended for a collection.
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

/// Pairs the start of a suspension with the end of the restart.
///
/// The sampling profiler suspends the runtime a thousand times per second, and its events are interleaved with those of the GC. But the
/// suspending thread also performs the restart, and the events of one thread are in order, so they are paired by thread.
#[derive(Debug, Default)]
pub(in crate::analysis) struct Suspensions {
    /// Start of each thread's suspension for a collection.
    since: HashMap<ThreadId, i64>,
}

impl Suspensions {
    /// Handles the start of a suspension. Returns whether it is for a collection.
    pub(in crate::analysis) fn begin(&mut self, at: i64, thread: ThreadId, begin: SuspendBegin) -> bool {
        // An earlier suspension of this thread without an end: the end event was lost.
        self.since.remove(&thread);
        if self.since.len() >= SUSPENDERS {
            self.since.clear();
        }
        if begin.is_for_gc() {
            self.since.insert(thread, at);
        }
        begin.is_for_gc()
    }

    /// Handles the end of a restart. `None` if it was not for a collection, or its start is unknown.
    pub(in crate::analysis) fn end(&mut self, at: i64, thread: ThreadId) -> Option<Pause> {
        self.since.remove(&thread).map(|begin| Pause { begin, end: at })
    }

    /// Returns the threads that have suspended all others for a collection, and since when.
    pub(in crate::analysis) fn current(&self) -> impl Iterator<Item = (ThreadId, i64)> {
        self.since.iter().map(|(thread, since)| (*thread, *since))
    }

    /// Handles lost events of a thread.
    pub(in crate::analysis) fn lost(&mut self, thread: ThreadId) {
        self.since.remove(&thread);
    }
}
