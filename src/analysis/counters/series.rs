//! A single counter: its latest value and its history.

use std::collections::VecDeque;

use super::super::ranking::push_latest;

/// Maximum number of values in the history.
const HISTORY: usize = 300;

/// A counter.
#[derive(Debug)]
pub(super) struct Series {
    /// Names, unit and kind; the values are added in a snapshot.
    pub(super) counter: CounterSnapshot,
    pub(super) reading: Reading,
    /// Whether a complete interval was read; before that there is no value.
    is_read: bool,
    history: VecDeque<(i64, f64)>,
    /// Quantiles of a histogram.
    quantiles: VecDeque<(i64, [f64; 3])>,
}

/// The latest values; those missing from the event are `None`.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) at: i64,
    pub(super) interval_s: Option<f64>,
    /// Time unit of the rate, in seconds: specified by the counter, otherwise its publishing interval; `None` if neither is known.
    pub(super) rate_scale_s: Option<f64>,
    pub(super) value: Option<f64>,
    pub(super) delta: Option<f64>,
    pub(super) total: Option<f64>,
    /// A change over too short a time to be reported on its own, and that time in seconds; added to the next change.
    pub(super) part: (f64, f64),
    pub(super) spread: Option<Spread>,
    pub(super) quantiles: Vec<(f64, f64)>,
    pub(super) count: Option<u64>,
    pub(super) sum: Option<f64>,
    pub(super) total_count: u64,
    pub(super) total_sum: f64,
}

listed! {
/// Source of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CounterSource {
    /// A provider of EventCounters.
    #[default]
    EventCounter => "event-counter",
    /// A meter of `System.Diagnostics.Metrics`.
    Meter => "meter",
}
/// Returns its name in JSON.
pub fn name(self) -> &'static str;
}

listed! {
/// Kind of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CounterKind {
    /// A value at a point in time, or the mean over an interval.
    #[default]
    Gauge => "gauge",
    /// A monotonic sum, shown as a rate.
    Counter => "counter",
    /// A sum that can rise and fall.
    UpDownCounter => "up-down-counter",
    /// The distribution of values in an interval.
    Histogram => "histogram",
}
/// Returns its name in JSON.
pub fn name(self) -> &'static str;
}

/// Statistics of the values of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Standard deviation.
    pub standard_deviation: f64,
    /// Number of values.
    pub count: u64,
}

/// Values of a histogram in its latest interval.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramReading {
    /// Quantiles as shares (0 to 1) and values; empty if nothing was recorded.
    pub quantiles: Vec<(f64, f64)>,
    /// Number of values recorded; `None` if the library does not publish it (before 8.0).
    pub count: Option<u64>,
    /// Sum of these values.
    pub sum: Option<f64>,
    /// Number of values recorded since the session started.
    pub total_count: u64,
    /// Sum of these values.
    pub total_sum: f64,
    /// Quantiles 0.5, 0.95 and 0.99 of the latest 300 intervals in which values were recorded, with the end of each interval, oldest first;
    /// empty if a library publishes different quantiles.
    pub history: Vec<(i64, [f64; 3])>,
}

/// A counter and its latest value. Unknown values are `None`, never 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CounterSnapshot {
    /// Source of the counter.
    pub source: CounterSource,
    /// Kind of the counter.
    pub kind: CounterKind,
    /// Provider or meter; not sanitized, as all text here.
    pub group: String,
    /// Counter name.
    pub name: String,
    /// Display name; the counter name if there is no other.
    pub display_name: String,
    /// Unit; may be empty.
    pub unit: String,
    /// Tags, which distinguish counters of the same name: `k=v,k2=v2`, not escaped; may be empty.
    pub tags: String,
    /// Latest value of a gauge, running total of a counter (since the session started, if the library does not publish it), median of a
    /// histogram.
    pub value: Option<f64>,
    /// Change of a counter in its latest interval.
    pub delta: Option<f64>,
    /// Change per second.
    pub rate: Option<f64>,
    /// Change per time unit of the counter, and that time unit in seconds; if the counter specifies none, its nominal publishing interval, not
    /// the measured length of the latest one.
    pub scaled_rate: Option<(f64, f64)>,
    /// Statistics of the values of an EventCounter in its interval.
    pub spread: Option<Spread>,
    /// Values of a histogram.
    pub histogram: Option<HistogramReading>,
    /// Length of the latest interval, in seconds.
    pub interval_s: Option<f64>,
    /// Time of the latest value, in nanoseconds since the start of the session.
    pub at: i64,
    /// The latest 300 values with their times, oldest first: the value of a gauge, the change per second of a counter, the highest quantile of
    /// a histogram.
    pub history: Vec<(i64, f64)>,
}

impl Reading {
    fn quantile(&self, share: f64) -> Option<f64> {
        self.quantiles.iter().find(|(known, _)| *known == share).map(|(_, value)| *value)
    }

    /// Returns the quantiles 0.5, 0.95 and 0.99, which the library publishes; `None` if another library publishes others.
    pub(super) fn published_quantiles(&self) -> Option<[f64; 3]> {
        Some([self.quantile(0.5)?, self.quantile(0.95)?, self.quantile(0.99)?])
    }
}

impl Series {
    pub(super) fn new(counter: CounterSnapshot) -> Self {
        Self { counter, reading: Reading::default(), is_read: false, history: VecDeque::new(), quantiles: VecDeque::new() }
    }

    /// Reclassifies a counter whose value fell: it is not monotonic, whatever it is published as, so its value is shown instead of its rate.
    pub(super) fn mark_non_monotonic(&mut self) {
        if self.counter.kind == CounterKind::Counter {
            self.counter.kind = CounterKind::UpDownCounter;
            // The history contains rates.
            self.history.clear();
        }
    }

    /// Returns the newest value of the history with its time.
    pub(super) fn newest(&self) -> Option<(i64, f64)> {
        self.history.back().copied()
    }

    /// Adds the latest reading to the history if it has a value.
    pub(super) fn record(&mut self) {
        self.is_read = true;
        let value = match self.counter.kind {
            CounterKind::Gauge | CounterKind::UpDownCounter => self.reading.value,
            CounterKind::Counter => self.rate(),
            CounterKind::Histogram => self.reading.quantiles.last().map(|(_, value)| *value),
        };
        let at = self.reading.at;
        if let Some(value) = value {
            push_latest(&mut self.history, HISTORY, (at, value));
        }
        if let Some(quantiles) = self.reading.published_quantiles() {
            push_latest(&mut self.quantiles, HISTORY, (at, quantiles));
        }
    }

    fn rate(&self) -> Option<f64> {
        Some(self.reading.delta? / self.reading.interval_s?)
    }

    /// Returns the snapshot; `None` if only part of an interval was read so far.
    pub(super) fn snapshot(&self) -> Option<CounterSnapshot> {
        self.is_read.then(|| self.latest())
    }

    fn latest(&self) -> CounterSnapshot {
        let Self { counter, reading, .. } = self;
        let rate = self.rate();
        let scale = reading.rate_scale_s.or(reading.interval_s);
        let kind = counter.kind;
        CounterSnapshot {
            display_name: if counter.display_name.is_empty() { &counter.name } else { &counter.display_name }.clone(),
            value: match kind {
                CounterKind::Gauge => reading.value,
                CounterKind::Counter | CounterKind::UpDownCounter => reading.value.or(reading.total),
                CounterKind::Histogram => reading.quantile(0.5),
            },
            delta: reading.delta,
            rate,
            scaled_rate: rate.zip(scale).map(|(rate, scale)| (rate * scale, scale)),
            spread: reading.spread,
            histogram: (kind == CounterKind::Histogram).then(|| HistogramReading {
                quantiles: reading.quantiles.clone(),
                count: reading.count,
                sum: reading.sum,
                total_count: reading.total_count,
                total_sum: reading.total_sum,
                history: self.quantiles.iter().copied().collect(),
            }),
            interval_s: reading.interval_s,
            at: reading.at,
            history: self.history.iter().copied().collect(),
            ..counter.clone()
        }
    }
}
