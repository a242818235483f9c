//! Counters published by the application and its libraries, as EventCounters and as instruments of meters.

mod durations;
mod event_counters;
mod meters;
mod number;
mod reader;
mod runtime_stats;
mod series;
mod tally;

use foldhash::{HashMap, HashSet};

use crate::clr::EventKind;
use crate::sorting::CompactSort;

use super::event_context::EventContext;
use super::gc::{FinalizerWait, FullCollection, GcMark};

use event_counters::EventCounters;
use meters::Meters;
use series::Series;

pub use durations::RequestDurations;
pub use meters::{MeterLimits, MeterNotice};
pub use reader::{CounterReader, CounterValue};
pub use runtime_stats::RuntimeStats;
pub use series::{CounterKind, CounterSnapshot, CounterSource, HistogramReading, Spread};
pub use tally::{CounterTally, EventBytes};

/// Maximum number of series: the default limit of a session for meters, with room for EventCounters.
const SERIES: usize = 2000;

/// Identifies the session's own counters in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CounterSession {
    /// Requested interval of EventCounters in milliseconds; `None` accepts all intervals, as for a file.
    ///
    /// A provider publishes to every session at the shortest interval of all sessions. Values with another interval are accepted if there are
    /// none with the requested one.
    pub interval_ms: Option<u32>,
    /// `SessionId` of the meters; `None` accepts all.
    pub meter_session: Option<String>,
    /// `ClientId` of the meters, if the session is `SHARED`.
    pub meter_client: Option<String>,
}

/// Keeps the latest value and the history of every counter.
#[derive(Debug, Default)]
pub(super) struct Counters {
    session: CounterSession,
    store: Store,
    event_counters: EventCounters,
    meters: Meters,
}

/// All series by key.
#[derive(Debug, Default)]
struct Store {
    series: Vec<Series>,
    index: HashMap<Box<[u8]>, u32>,
    /// Key of the latest lookup; a reused buffer.
    key: Vec<u8>,
    /// Number of values dropped because there was no room for their series.
    dropped: u64,
    /// Series of the latest lookup.
    latest: Option<u32>,
}

/// All counters and derived figures.
#[derive(Debug, Clone, Default)]
pub struct CountersSnapshot {
    /// Counters, sorted by provider or meter, name and tags.
    pub counters: Vec<CounterSnapshot>,
    /// Whether the initial enumeration of instruments is complete.
    pub all_instruments_reported: bool,
    /// Problems, without duplicates.
    pub notices: Vec<MeterNotice>,
    /// Number of values dropped because there are too many counters.
    pub dropped: u64,
    /// Figures for a row of the process list.
    pub stats: RuntimeStats,
    /// Durations of incoming requests by interval, oldest first; empty if the session does not have this histogram.
    pub requests: Vec<RequestDurations>,
    /// Durations of outgoing requests, likewise.
    pub sent_requests: Vec<RequestDurations>,
    /// Individual garbage collections.
    pub collections: CollectionMarks,
    /// The latest gen 2 collections, oldest first; empty if collections are not recorded.
    pub full_collections: Vec<FullCollection>,
    /// Objects that wait for their finalizers; `None` if there are none, or collections are not recorded.
    pub finalizer_wait: Option<FinalizerWait>,
    /// Mean number of threads waiting for a lock over ten seconds; `None` if lock contention is not recorded, and in the first three seconds.
    pub lock_waiters: Option<f64>,
    /// Durations so far of the unfinished waits for locks of a second or longer, in nanoseconds, longest first. Empty if lock contention is not
    /// recorded.
    pub long_lock_waits_ns: Vec<u64>,
    /// Rate of lock contention events in bytes per second, if it was so high that recording them is suspended for a while.
    pub too_many_lock_waits: Option<f64>,
}

/// Garbage collection events of a counter session.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum CollectionMarks {
    /// Not recorded.
    #[default]
    NotRecorded,
    /// The latest collections, oldest first.
    Recorded(Vec<GcMark>),
    /// Recording is suspended for a while because of the high event rate, given in bytes per second.
    TooMany(f64),
}

impl CountersSnapshot {
    /// Returns a counter of a provider or meter, the first of those with different tags.
    pub fn find(&self, group: &str, name: &str) -> Option<&CounterSnapshot> {
        self.counters.iter().find(|counter| counter.group == group && counter.name == name)
    }
}

/// Returns the counters without duplicates: EventCounters are omitted if there is a meter with the same name as their group.
pub fn without_duplicates(counters: &[CounterSnapshot]) -> impl Iterator<Item = &CounterSnapshot> {
    let of_meter = |counter: &&CounterSnapshot| counter.source == CounterSource::Meter;
    let meters: HashSet<&str> = counters.iter().filter(of_meter).map(|counter| counter.group.as_str()).collect();
    counters.iter().filter(move |counter| of_meter(counter) || !meters.contains(counter.group.as_str()))
}

impl Store {
    /// Returns the series of the current key, creating it if needed; `None` if there is no room.
    fn series(&mut self, make: impl FnOnce() -> Series) -> Option<&mut Series> {
        let at = match self.index.get(&self.key[..]) {
            Some(at) => *at as usize,
            None if self.series.len() < SERIES => {
                self.index.insert(self.key[..].into(), self.series.len() as u32);
                self.series.push(make());
                self.series.len() - 1
            }
            None => {
                self.dropped += 1;
                return None;
            }
        };
        self.latest = Some(at as u32);
        self.series.get_mut(at)
    }

    /// Sets the key from these parts, none of which contains a NUL code unit.
    fn set_key(&mut self, parts: [&[u8]; 5]) {
        self.key.clear();
        for part in parts {
            // Parts that are longer are expected to differ within this prefix.
            self.key.extend_from_slice(&part[..part.len().min(1024)]);
            self.key.extend_from_slice(&[0, 0]);
        }
    }
}

impl Counters {
    /// Starts another stream of the same counter session.
    pub(super) fn restart(&mut self) {
        self.event_counters.restart();
    }

    pub(super) fn of(session: CounterSession) -> Self {
        Self { session, ..Self::default() }
    }

    pub(super) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        match context.kind {
            EventKind::EventCounter => self.event_counters.feed(context, &self.session, &mut self.store),
            EventKind::Metrics => self.meters.feed(context, &self.session, &mut self.store),
            _ => Some(()),
        }
    }

    pub(super) fn snapshot(&self) -> CountersSnapshot {
        let mut counters: Vec<_> = self.store.series.iter().filter_map(Series::snapshot).collect();
        counters.compact_sort_by(|a, b| (&a.group, &a.name, &a.tags).cmp(&(&b.group, &b.name, &b.tags)));
        CountersSnapshot {
            stats: RuntimeStats::new(&counters),
            counters,
            all_instruments_reported: self.meters.all_reported,
            notices: self.meters.notices.clone(),
            dropped: self.store.dropped,
            requests: self.meters.served.history(),
            sent_requests: self.meters.sent.history(),
            ..CountersSnapshot::default()
        }
    }
}
