//! Waits that the runtime's own events show: for locks, and for collections to be over.

use foldhash::HashMap;

use super::WaitReason;
use super::gc::Suspensions;
use crate::clr::EventKind;
use crate::clr::payload::{ContentionStart, ContentionStop, Fields, Payload, SuspendBegin};
use crate::nettrace::{Event, Loss, Metadata, Sink, ThreadId, TraceHeader};

/// Threads that wait for locks at the same time.
const WAITING: usize = 4096;
/// Waits that are kept until they are taken.
const KEPT: usize = 1 << 16;

/// A wait that is over. Times are nanoseconds on the clock of the stream, which on Linux is CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeWait {
    /// What for: a lock, or a collection.
    pub reason: WaitReason,
    /// The thread that waited; `None` where all did that executed managed code.
    pub thread: Option<u64>,
    /// Since when.
    pub begin: u64,
    /// Until when.
    pub end: u64,
}

/// Finds the waits in a stream.
#[derive(Debug, Default)]
pub struct RuntimeWaits {
    /// By metadata index.
    kinds: Vec<EventKind>,
    pointer_size: u8,
    /// Whether its clock counts nanoseconds, as on Linux; waits of others are not found.
    is_in_ns: bool,
    /// Since when they wait for a lock.
    waiting: HashMap<ThreadId, u64>,
    suspensions: Suspensions,
    over: Vec<RuntimeWait>,
}

impl RuntimeWaits {
    /// The waits that ended since this was last asked: no more than 65,536.
    pub fn take(&mut self) -> Vec<RuntimeWait> {
        std::mem::take(&mut self.over)
    }

    /// Threads that wait for a lock, and since when.
    pub fn waiting(&self) -> Vec<(u64, u64)> {
        self.waiting.iter().map(|(thread, since)| (thread.thread, *since)).collect()
    }

    /// Takes an event of a kind. `None` where it shows nothing: its payload is malformed, or what it ends did not begin.
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
                // Its start may have been before the session.
                let began = self.waiting.remove(&thread).or_else(|| duration_ns.map(|waited| at.saturating_sub(waited as u64)));
                self.ended(WaitReason::Lock, Some(thread.thread), began?, at);
            }
            EventKind::SuspendBegin => {
                self.suspensions.begin(event.timestamp(), event.capture_thread(), SuspendBegin::read(fields)?);
            }
            EventKind::RestartEnd => {
                let pause = self.suspensions.end(event.timestamp(), event.capture_thread())?;
                self.ended(WaitReason::Gc, None, u64::try_from(pause.begin).ok()?, at);
            }
            _ => {}
        }
        Some(())
    }

    fn ended(&mut self, reason: WaitReason, thread: Option<u64>, begin: u64, end: u64) {
        if self.over.len() < KEPT && begin < end {
            self.over.push(RuntimeWait { reason, thread, begin, end });
        }
    }
}

impl Sink for RuntimeWaits {
    fn trace(&mut self, header: &TraceHeader) {
        (self.pointer_size, self.is_in_ns) = (header.pointer_size, header.ticks_per_second == 1_000_000_000);
        self.kinds = vec![EventKind::Other];
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(if self.is_in_ns { EventKind::of(metadata) } else { EventKind::Other });
    }

    /// What is paired is of one thread, whose events come in their order.
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let kind = self.kinds.get(event.metadata.index as usize).copied().unwrap_or_default();
        // What is malformed shows nothing.
        let _ = self.feed(kind, event);
    }

    fn loss(&mut self, loss: &Loss) {
        self.waiting.remove(&loss.capture_thread);
        self.suspensions.lost(loss.capture_thread);
    }
}
