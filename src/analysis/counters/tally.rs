//! Counters, collections as marks, and how many threads wait for locks, of a stream in which nothing else is of interest.

use crate::clr::EventKind;
use crate::nettrace::{Event, Loss, Metadata, Sink, TraceHeader};

use super::super::clock::Clock;
use super::super::contention::Contention;
use super::super::gc::GcMarks;
use super::super::known::{Analysis, Known, View};
use super::super::symbols::Symbols;
use super::{CollectionMarks, CounterSession, Counters, CountersSnapshot};

/// About the bytes that an event takes in the stream besides its payload and its stack.
const HEADER: usize = 32;

/// The runtime's events of the keyword Contention: ContentionStart, ContentionLockCreated, ContentionStop.
const LOCK_EVENTS: [u32; 3] = [81, 90, 91];

/// Takes the counters of a stream and leaves the rest: much smaller than [`Live`](crate::analysis::Live), for many streams at once.
/// A stream of the same process may follow: times continue from the start of the first one, counters and marks stay.
#[derive(Debug)]
pub struct CounterTally {
    clock: Clock,
    /// By metadata index, with whether it is an event of locks.
    kinds: Vec<(EventKind, bool)>,
    newest: i64,
    values: u64,
    counters: Counters,
    marks: GcMarks,
    contention: Contention,
    collection_bytes: u64,
    lock_bytes: u64,
}

impl CounterTally {
    /// Takes the counters that are the session's own.
    pub fn new(session: CounterSession) -> Self {
        let mut counters = Counters::default();
        counters.set_session(session);
        Self {
            clock: Clock::unknown(),
            kinds: vec![(EventKind::Other, false)],
            newest: 0,
            values: 0,
            counters,
            marks: GcMarks::default(),
            contention: Contention::default(),
            collection_bytes: 0,
            lock_bytes: 0,
        }
    }

    /// How many events reported counters so far.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// About how many bytes the events of locks took so far.
    pub fn lock_bytes(&self) -> u64 {
        self.lock_bytes
    }

    /// About how many bytes all other events took so far that are no values: those of collections.
    pub fn collection_bytes(&self) -> u64 {
        self.collection_bytes
    }

    /// Threads that wait for a lock at a time, on average over the last ten seconds; `None` in the first three of a stream.
    pub fn lock_waiters(&self) -> Option<f64> {
        self.contention.recent_waiters(self.newest)
    }

    /// The latest collections.
    pub fn marks(&self) -> CollectionMarks {
        CollectionMarks::Recorded(self.marks.marks())
    }

    /// What is known of the counters.
    pub fn snapshot(&self) -> CountersSnapshot {
        self.counters.snapshot(&View { now: self.newest, symbols: &Symbols::default() })
    }
}

impl Sink for CounterTally {
    fn trace(&mut self, header: &TraceHeader) {
        // The clock of one process is the same in all its streams.
        if self.clock.header().is_none() {
            self.clock = Clock::new(header);
        }
        self.kinds.truncate(1);
        self.counters.restart();
        self.marks.restart();
        self.contention = Contention::since(self.clock.nanoseconds(header.sync_ticks));
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push((EventKind::of(metadata), LOCK_EVENTS.contains(&metadata.event_id)));
    }

    fn event(&mut self, event: &Event<'_>) {
        let (kind, is_lock) = self.kinds.get(event.metadata.index as usize).copied().unwrap_or_default();
        let is_value = matches!(kind, EventKind::EventCounter | EventKind::Metrics);
        if !is_value {
            let bytes = if is_lock { &mut self.lock_bytes } else { &mut self.collection_bytes };
            *bytes += (event.payload.len() + event.stack().map_or(0, |stack| stack.frames().count() * 8) + HEADER) as u64;
        }
        let at = self.clock.nanoseconds(event.timestamp());
        let pointer_size = self.clock.header().map_or(8, |header| header.pointer_size);
        let known = Known { kind, event, at, thread: event.thread(), pointer_size };
        // An invalid value counts as none.
        let _ = match kind {
            EventKind::EventCounter | EventKind::Metrics => {
                self.newest = self.newest.max(at);
                self.values += 1;
                self.counters.feed(&known)
            }
            EventKind::ContentionStart | EventKind::ContentionStop => self.contention.feed(&known),
            _ => self.marks.feed(&known),
        };
    }

    fn loss(&mut self, loss: &Loss) {
        self.contention.lost(loss.capture_thread);
    }
}
