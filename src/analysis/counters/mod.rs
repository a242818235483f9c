//! Counters: figures that the program and its libraries publish themselves, as EventCounters and as instruments of meters.

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

use super::gc::GcMark;
use super::known::{Analysis, Known, View};

use event_counters::EventCounters;
use meters::Meters;
use series::Series;

pub use durations::RequestDurations;
pub use meters::{MeterLimits, MeterNotice};
pub use reader::{CounterReader, CounterValue};
pub use runtime_stats::RuntimeStats;
pub use series::{CounterKind, CounterSnapshot, CounterSource, HistogramReading, Spread};
pub use tally::CounterTally;

/// Most series that are distinguished; as many as a session of meters has by default, and EventCounters besides.
const SERIES: usize = 2000;

/// Which of the counters in a stream are the session's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CounterSession {
    /// The requested interval of EventCounters, milliseconds; `None` takes them all, as for a file.
    ///
    /// A provider publishes at the shortest interval of all sessions, and every session gets that. Values of another interval are taken where
    /// none of the own comes.
    pub interval_ms: Option<u32>,
    /// `SessionId` of the meters; `None` takes them all.
    pub meter_session: Option<String>,
    /// `ClientId` of the meters, where the session is `SHARED`.
    pub meter_client: Option<String>,
}

/// Keeps the latest value of every counter and its history.
#[derive(Debug, Default)]
pub(super) struct Counters {
    session: CounterSession,
    store: Store,
    event_counters: EventCounters,
    meters: Meters,
}

/// All series, by what distinguishes them.
#[derive(Debug, Default)]
struct Store {
    series: Vec<Series>,
    index: HashMap<Box<[u8]>, u32>,
    /// What distinguishes the latest; kept for its memory.
    key: Vec<u8>,
    /// Values of series for which there was no room.
    dropped: u64,
    /// The series of the last lookup.
    latest: Option<u32>,
}

/// What the program and its libraries publish.
#[derive(Debug, Clone)]
pub struct CountersSnapshot {
    /// Counters, by provider or meter, name and tags.
    pub counters: Vec<CounterSnapshot>,
    /// Whether all that there is was reported.
    pub all_instruments_reported: bool,
    /// What went wrong, each once.
    pub notices: Vec<MeterNotice>,
    /// Values that were left out, as there are too many counters.
    pub dropped: u64,
    /// The figures for a line of a table.
    pub stats: RuntimeStats,
    /// How long requests that were served took, by interval, oldest first; empty where the session has no such histogram.
    pub requests: Vec<RequestDurations>,
    /// The same of requests that were sent.
    pub sent_requests: Vec<RequestDurations>,
    /// Collections one by one.
    pub collections: CollectionMarks,
    /// Threads that wait for a lock at a time, on average over ten seconds; `None` where waits are not recorded, and in the first three seconds.
    pub lock_waiters: Option<f64>,
    /// Bytes a second of the events of waits for locks, where these were so many that they are not recorded for a while.
    pub too_many_lock_waits: Option<f64>,
}

/// Whether the session of counters has the events of collections.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum CollectionMarks {
    /// It has not.
    #[default]
    NotRecorded,
    /// The latest, oldest first.
    Recorded(Vec<GcMark>),
    /// There were so many bytes of them a second that they are not recorded for a while.
    TooMany(f64),
}

/// The counters without those that are reported twice: a group that is a meter is not shown as EventCounters, too.
pub fn without_duplicates(counters: &[CounterSnapshot]) -> impl Iterator<Item = &CounterSnapshot> {
    let of_meter = |counter: &&CounterSnapshot| counter.source == CounterSource::Meter;
    let meters: HashSet<&str> = counters.iter().filter(of_meter).map(|counter| counter.group.as_str()).collect();
    counters.iter().filter(move |counter| of_meter(counter) || !meters.contains(counter.group.as_str()))
}

impl Store {
    /// The series of the key, which is made where it is new; `None` where there is no room.
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

    /// Begins a key of these parts, none of which holds a NUL unit.
    fn set_key(&mut self, parts: [&[u8]; 5]) {
        self.key.clear();
        for part in parts {
            // What is longer than this differs before, or not at all.
            self.key.extend_from_slice(&part[..part.len().min(1024)]);
            self.key.extend_from_slice(&[0, 0]);
        }
    }
}

impl Counters {
    /// Another stream of the same session of counters begins.
    pub(super) fn restart(&mut self) {
        self.event_counters.restart();
    }

    pub(super) fn set_session(&mut self, session: CounterSession) {
        self.session = session;
    }
}

impl Analysis for Counters {
    type Snapshot = CountersSnapshot;

    fn feed(&mut self, known: &Known<'_>) -> Option<()> {
        match known.kind {
            EventKind::EventCounter => self.event_counters.feed(known, &self.session, &mut self.store),
            EventKind::Metrics => self.meters.feed(known, &self.session, &mut self.store),
            _ => Some(()),
        }
    }

    fn snapshot(&self, _view: &View<'_>) -> CountersSnapshot {
        let mut counters: Vec<_> = self.store.series.iter().filter_map(Series::snapshot).collect();
        counters.compact_sort_by(|a, b| (&a.group, &a.name, &a.tags).cmp(&(&b.group, &b.name, &b.tags)));
        CountersSnapshot {
            stats: RuntimeStats::new(&counters),
            counters,
            all_instruments_reported: self.meters.all_reported(),
            notices: self.meters.notices().to_vec(),
            dropped: self.store.dropped,
            requests: self.meters.served(),
            sent_requests: self.meters.sent(),
            collections: CollectionMarks::NotRecorded,
            lock_waiters: None,
            too_many_lock_waits: None,
        }
    }
}
