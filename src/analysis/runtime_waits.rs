//! Waits shown by runtime events: for locks, and for the end of garbage collections.

use foldhash::HashMap;

use super::WaitReason;
use super::gc::Suspensions;
use crate::clr::EventKind;
use crate::clr::payload::{ContentionStart, ContentionStop, Fields, Payload, SuspendBegin};
use crate::nettrace::{ByMetadata, Event, Loss, Metadata, Sink, ThreadId, TraceHeader};

/// Maximum number of threads tracked as waiting for locks.
const WAITING: usize = 4096;
/// Maximum number of waits kept until [`RuntimeWaits::take`].
const MAX_FINISHED: usize = 1 << 16;

/// A finished wait. Times are in nanoseconds of the stream's clock, which is CLOCK_MONOTONIC on Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeWait {
    /// Reason: a lock or a garbage collection.
    pub reason: WaitReason,
    /// For a lock, the waiting thread. For a garbage collection, for which all threads wait that execute managed code, the thread that suspended them:
    /// with workstation GC, it also collects.
    pub thread: u64,
    /// Start.
    pub begin: u64,
    /// End.
    pub end: u64,
}

/// Finds the waits in a stream.
#[derive(Debug, Default)]
pub struct RuntimeWaits {
    kinds: ByMetadata<EventKind>,
    pointer_size: u8,
    /// Whether the clock counts nanoseconds, as on Linux; waits in other streams are not found.
    is_in_ns: bool,
    /// When each thread began to wait for a lock.
    waiting: HashMap<ThreadId, u64>,
    suspensions: Suspensions,
    finished: Vec<RuntimeWait>,
}

impl RuntimeWaits {
    /// Returns the waits that ended since the last call; at most 65,536.
    pub fn take(&mut self) -> Vec<RuntimeWait> {
        std::mem::take(&mut self.finished)
    }

    /// Returns the threads waiting for a lock, with the start of each wait.
    pub fn waiting(&self) -> Vec<(u64, u64)> {
        self.waiting.iter().map(|(thread, since)| (thread.thread, *since)).collect()
    }

    /// Returns the threads that have suspended all others for a collection, with the start of each pause.
    pub fn pausing(&self) -> impl Iterator<Item = (u64, u64)> {
        self.suspensions.current().filter_map(|(thread, since)| Some((thread.thread, u64::try_from(since).ok()?)))
    }

    /// Processes an event. `None` if its payload is malformed, or it ends something that did not begin.
    fn feed(&mut self, kind: EventKind, event: &Event<'_>) -> Option<()> {
        let fields = Fields::of(event, self.pointer_size);
        let (thread, at) = (event.thread(), u64::try_from(event.timestamp()).ok()?);
        match kind {
            EventKind::ContentionStart => {
                let is_known = self.waiting.len() < WAITING || self.waiting.contains_key(&thread);
                if !ContentionStart::read(fields)?.native && is_known {
                    self.waiting.insert(thread, at);
                }
            }
            EventKind::ContentionStop => {
                let ContentionStop { native: false, duration_ns } = ContentionStop::read(fields)? else { return Some(()) };
                // The start may precede the session.
                let began = self.waiting.remove(&thread).or_else(|| duration_ns.map(|waited| at.saturating_sub(waited as u64)));
                self.ended(WaitReason::Lock, thread, began?, at);
            }
            EventKind::SuspendBegin => {
                self.suspensions.begin(event.timestamp(), event.capture_thread(), SuspendBegin::read(fields)?);
            }
            EventKind::RestartEnd => {
                let pause = self.suspensions.end(event.timestamp(), event.capture_thread())?;
                self.ended(WaitReason::Gc, event.capture_thread(), u64::try_from(pause.begin).ok()?, at);
            }
            _ => {}
        }
        Some(())
    }

    fn ended(&mut self, reason: WaitReason, ThreadId { thread, .. }: ThreadId, begin: u64, end: u64) {
        if self.finished.len() < MAX_FINISHED && begin < end {
            self.finished.push(RuntimeWait { reason, thread, begin, end });
        }
    }
}

impl Sink for RuntimeWaits {
    fn trace(&mut self, header: &TraceHeader) {
        (self.pointer_size, self.is_in_ns) = (header.pointer_size, header.ticks_per_second == 1_000_000_000);
        self.kinds = ByMetadata::default();
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(if self.is_in_ns { EventKind::of(metadata) } else { EventKind::Other });
    }

    /// Only events of the same thread are paired, and these are in order.
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        // A malformed payload is ignored.
        let _ = self.feed(self.kinds.of(event.metadata), event);
    }

    fn loss(&mut self, loss: &Loss) {
        self.waiting.remove(&loss.capture_thread);
        self.suspensions.lost(loss.capture_thread);
    }
}
