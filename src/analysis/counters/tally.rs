//! Counters, garbage collection marks and the number of threads waiting for locks, for streams without other events of interest.

use foldhash::HashSet;

use crate::clr::EventKind;
use crate::clr::payload::SuspendBegin;
use crate::nettrace::{Event, Loss, Metadata, Sink, ThreadId, TraceHeader};

use super::super::clock::Clock;
use super::super::contention::Contention;
use super::super::event_context::{ByMetadata, EventContext};
use super::super::gc::{FinalizerWait, Finalizers, FullCollection, GcMarks};
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
    collection_bytes: u64,
    suspension_bytes: u64,
    lock_bytes: u64,
}

/// What the bytes of an event are counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Value,
    LockWait,
    Suspension,
    Collection,
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

    /// Returns the approximate size of all lock contention events so far, in bytes.
    pub fn lock_bytes(&self) -> u64 {
        self.lock_bytes
    }

    /// Returns the approximate size of all other events so far, in bytes: those of collections.
    pub fn collection_bytes(&self) -> u64 {
        self.collection_bytes
    }

    /// Returns the approximate size of the events of suspensions that are not for a collection, in bytes. As long as any session samples
    /// threads, the runtime suspends them a thousand times a second.
    pub fn suspension_bytes(&self) -> u64 {
        self.suspension_bytes
    }

    /// Returns the mean number of threads waiting for a lock over the last ten seconds; `None` in the first three seconds of a stream.
    pub fn lock_waiters(&self) -> Option<f64> {
        self.contention.recent_waiters(self.newest)
    }

    /// Returns the durations so far of the unfinished waits for locks of a second or longer, in nanoseconds, longest first.
    pub fn long_lock_waits(&self) -> Vec<u64> {
        self.contention.long_waits(self.newest)
    }

    /// Returns the latest garbage collections.
    pub fn marks(&self) -> CollectionMarks {
        CollectionMarks::Recorded(self.marks.marks())
    }

    /// Returns the latest gen 2 collections, oldest first.
    pub fn full_collections(&self) -> Vec<FullCollection> {
        self.marks.full_collections()
    }

    /// Returns the objects that wait for their finalizers.
    pub fn finalizer_wait(&self) -> Option<FinalizerWait> {
        self.finalizers.waiting(self.newest)
    }

    /// Returns the current values of the counters.
    pub fn snapshot(&self) -> CountersSnapshot {
        self.counters.snapshot()
    }

    fn subject(&mut self, context: &EventContext<'_>, is_lock: bool) -> Subject {
        // The events of one thread are in order.
        let thread = context.event.capture_thread();
        match context.kind {
            EventKind::EventCounter | EventKind::Metrics => return Subject::Value,
            _ if is_lock => return Subject::LockWait,
            EventKind::SuspendBegin => {
                let is_for_gc = context.payload().is_none_or(SuspendBegin::is_for_gc);
                if is_for_gc || self.suspenders.len() >= SUSPENDERS {
                    self.suspenders.remove(&thread);
                } else {
                    self.suspenders.insert(thread);
                }
            }
            EventKind::RestartEnd if self.suspenders.remove(&thread) => return Subject::Suspension,
            _ => {}
        }
        if self.suspenders.contains(&thread) { Subject::Suspension } else { Subject::Collection }
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
        let bytes = match self.subject(&context, is_lock) {
            Subject::Value => None,
            Subject::LockWait => Some(&mut self.lock_bytes),
            Subject::Suspension => Some(&mut self.suspension_bytes),
            Subject::Collection => Some(&mut self.collection_bytes),
        };
        if let Some(bytes) = bytes {
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
