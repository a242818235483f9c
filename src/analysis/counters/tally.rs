//! Counters, and collections as marks, of a stream in which nothing else is of interest.

use crate::clr::EventKind;
use crate::nettrace::{Event, Metadata, Sink, TraceHeader};

use super::super::clock::Clock;
use super::super::gc::GcMarks;
use super::super::known::{Analysis, Known, View};
use super::super::symbols::Symbols;
use super::{CollectionMarks, CounterSession, Counters, CountersSnapshot};

/// About the bytes that an event takes in the stream besides its payload and its stack.
const HEADER: usize = 32;

/// Takes the counters of a stream and leaves the rest: much smaller than [`Live`](crate::analysis::Live), for many streams at once.
#[derive(Debug)]
pub struct CounterTally {
    clock: Clock,
    /// By metadata index.
    kinds: Vec<EventKind>,
    newest: i64,
    values: u64,
    counters: Counters,
    marks: GcMarks,
    gc_bytes: u64,
}

impl CounterTally {
    /// Takes the counters that are the session's own.
    pub fn new(session: CounterSession) -> Self {
        let mut counters = Counters::default();
        counters.set_session(session);
        Self {
            clock: Clock::unknown(),
            kinds: vec![EventKind::Other],
            newest: 0,
            values: 0,
            counters,
            marks: GcMarks::default(),
            gc_bytes: 0,
        }
    }

    /// How many events reported counters so far.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// About how many bytes the events of collections took so far.
    pub fn gc_bytes(&self) -> u64 {
        self.gc_bytes
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
        self.clock = Clock::new(header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(EventKind::of(metadata));
    }

    fn event(&mut self, event: &Event<'_>) {
        let kind = self.kinds.get(event.metadata.index as usize).copied().unwrap_or_default();
        let is_value = matches!(kind, EventKind::EventCounter | EventKind::Metrics);
        if !is_value {
            self.gc_bytes += (event.payload.len() + event.stack().map_or(0, |stack| stack.frames().count() * 8) + HEADER) as u64;
        }
        let at = self.clock.nanoseconds(event.timestamp());
        let pointer_size = self.clock.header().map_or(8, |header| header.pointer_size);
        let known = Known { kind, event, at, thread: event.thread(), pointer_size };
        // A value that makes no sense is none.
        let _ = if is_value {
            self.newest = self.newest.max(at);
            self.values += 1;
            self.counters.feed(&known)
        } else {
            self.marks.feed(&known)
        };
    }
}
