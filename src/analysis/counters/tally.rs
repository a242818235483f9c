//! Counters alone, of a stream in which nothing else is of interest.

use crate::clr::EventKind;
use crate::nettrace::{Event, Metadata, Sink, TraceHeader};

use super::super::clock::Clock;
use super::super::known::{Analysis, Known, View};
use super::super::symbols::Symbols;
use super::{CounterSession, Counters, CountersSnapshot};

/// Takes the counters of a stream and leaves the rest: much smaller than [`Live`](crate::analysis::Live), for many streams at once.
#[derive(Debug)]
pub struct CounterTally {
    clock: Clock,
    /// By metadata index.
    kinds: Vec<EventKind>,
    newest: i64,
    values: u64,
    counters: Counters,
}

impl CounterTally {
    /// Takes the counters that are the session's own.
    pub fn new(session: CounterSession) -> Self {
        let mut counters = Counters::default();
        counters.set_session(session);
        Self { clock: Clock::unknown(), kinds: vec![EventKind::Other], newest: 0, values: 0, counters }
    }

    /// How many events told of counters so far.
    pub fn values(&self) -> u64 {
        self.values
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
        if !matches!(kind, EventKind::EventCounter | EventKind::Metrics) {
            return;
        }
        let at = self.clock.nanoseconds(event.timestamp());
        self.newest = self.newest.max(at);
        self.values += 1;
        // A value that makes no sense is none.
        let pointer_size = self.clock.header().map_or(8, |header| header.pointer_size);
        let _ = self.counters.feed(&Known { kind, event, at, thread: event.thread(), pointer_size });
    }
}
