//! Counters, garbage collection marks and the number of threads waiting for locks, for streams without other events of interest.

use foldhash::HashSet;

use crate::clr::EventKind;
use crate::clr::payload::SuspendBegin;
use crate::nettrace::{ByMetadata, Event, Loss, Metadata, Sink, ThreadId, TraceHeader};

use super::super::clock::Clock;
use super::super::contention::Contention;
use super::super::event_context::EventContext;
use super::super::gc::{Finalizers, GcMarks};
use super::{CollectionMarks, CounterSession, Counters, CountersSnapshot};

/// Approximate size of an event in the stream without its payload and stack, in bytes.
const HEADER: usize = 32;

/// Runtime events of the keyword Contention: ContentionStart, ContentionLockCreated, ContentionStop.
const LOCK_EVENTS: [u32; 3] = [81, 90, 91];

/// Upper bound on threads that suspend others at the same time; in practice one or two.
const SUSPENDERS: usize = 64;

/// Reads only the counters of a stream: much smaller than [`Live`](crate::analysis::Live), for many streams at once. Another stream of the
/// same process may follow: times continue from the start of the first one, counters and marks are kept.
#[derive(Debug, Default)]
pub struct CounterTally {
    clock: Clock,
    /// With whether it is a lock contention event.
    kinds: ByMetadata<(EventKind, bool)>,
    newest: i64,
    values: u64,
    counters: Counters,
    marks: GcMarks,
    finalizers: Finalizers,
    contention: Contention,
    /// Threads that are suspending the others, not for a collection.
    suspenders: HashSet<ThreadId>,
    event_bytes: EventBytes,
}

/// Approximate sizes in the stream of the events other than counter values, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventBytes {
    /// Events of collections, and all that are none of the others.
    pub collections: u64,
    /// Events of suspensions that are not for a collection. As long as any session samples threads, the runtime suspends them a thousand times a
    /// second.
    pub suspensions: u64,
    /// Lock contention events.
    pub lock_waits: u64,
}

impl CounterTally {
    /// Creates a tally for the session's own counters.
    pub fn new(session: CounterSession) -> Self {
        Self { counters: Counters::of(session), ..Self::default() }
    }

    /// Returns the number of counter events so far.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Returns the approximate sizes of the other events so far.
    pub fn event_bytes(&self) -> EventBytes {
        self.event_bytes
    }

    /// Returns the current values of the counters, and what the events of collections and lock contention have shown so far.
    pub fn snapshot(&self) -> CountersSnapshot {
        CountersSnapshot {
            collections: CollectionMarks::Recorded(self.marks.marks()),
            full_collections: self.marks.full_collections(),
            finalizer_wait: self.finalizers.waiting(self.newest),
            lock_waiters: self.contention.recent_waiters(self.newest),
            long_lock_waits_ns: self.contention.long_waits(self.newest),
            ..self.counters.snapshot()
        }
    }

    /// Returns what the bytes of an event are added to; `None` for a counter value.
    fn bytes_of_kind(&mut self, context: &EventContext<'_>, is_lock: bool) -> Option<&mut u64> {
        // The events of one thread are in order.
        let thread = context.event.capture_thread();
        match context.kind {
            EventKind::EventCounter | EventKind::Metrics => return None,
            _ if is_lock => return Some(&mut self.event_bytes.lock_waits),
            EventKind::SuspendBegin => {
                let is_for_gc = context.payload().is_none_or(SuspendBegin::is_for_gc);
                if is_for_gc || self.suspenders.len() >= SUSPENDERS {
                    self.suspenders.remove(&thread);
                } else {
                    self.suspenders.insert(thread);
                }
            }
            EventKind::RestartEnd if self.suspenders.remove(&thread) => return Some(&mut self.event_bytes.suspensions),
            _ => {}
        }
        let EventBytes { collections, suspensions, .. } = &mut self.event_bytes;
        Some(if self.suspenders.contains(&thread) { suspensions } else { collections })
    }
}

impl Sink for CounterTally {
    fn trace(&mut self, header: &TraceHeader) {
        // All streams of a process use the same clock.
        if self.clock.header().is_none() {
            self.clock = Clock::new(header);
        }
        self.kinds = ByMetadata::default();
        self.counters.restart();
        self.marks.restart();
        self.suspenders.clear();
        self.finalizers.restart();
        self.contention = Contention::since(self.clock.nanoseconds(header.sync_ticks));
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push((EventKind::of(metadata), LOCK_EVENTS.contains(&metadata.event_id)));
    }

    fn needs_order(&self, metadata: &Metadata) -> bool {
        let (kind, _) = self.kinds.of(metadata);
        GcMarks::uses(kind) || Finalizers::uses(kind)
    }

    fn event(&mut self, event: &Event<'_>) {
        let (kind, is_lock) = self.kinds.of(event.metadata);
        let context = self.clock.context(kind, event);
        if let Some(bytes) = self.bytes_of_kind(&context, is_lock) {
            *bytes += (event.payload.len() + event.stack().map_or(0, |stack| stack.frames().count() * 8) + HEADER) as u64;
        }
        // An invalid value is ignored.
        let _ = match kind {
            EventKind::EventCounter | EventKind::Metrics => {
                self.newest = self.newest.max(context.at);
                self.values += 1;
                self.counters.feed(&context)
            }
            EventKind::ContentionStart | EventKind::ContentionStop => self.contention.feed(&context),
            _ => None,
        };
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        let context = self.clock.context(self.kinds.of(event.metadata).0, event);
        // A malformed payload is ignored.
        let _ = self.finalizers.feed(&context);
        let _ = self.marks.feed(&context);
    }

    fn loss(&mut self, loss: &Loss) {
        // The end of its suspension may be among them.
        self.suspenders.remove(&loss.capture_thread);
        self.contention.lost(loss.capture_thread);
    }

    fn ordered_loss(&mut self, loss: &Loss) {
        self.marks.lost(loss.capture_thread);
        self.finalizers.restart();
    }
}
