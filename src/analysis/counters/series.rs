//! One counter: its latest value and its history.

use std::collections::VecDeque;

/// Values of the history.
const HISTORY: usize = 300;

/// A counter.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) identity: Identity,
    pub(super) reading: Reading,
    /// Whether a whole interval was read: before that there is nothing to show.
    is_read: bool,
    history: VecDeque<(i64, f64)>,
    /// Of a histogram.
    quantiles: VecDeque<(i64, [f64; 3])>,
}

/// What a counter is called and how its values are meant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity {
    pub(super) source: CounterSource,
    pub(super) kind: CounterKind,
    pub(super) group: String,
    pub(super) name: String,
    pub(super) display_name: String,
    pub(super) unit: String,
    pub(super) tags: String,
    /// Seconds that a rate is given for: what the counter specifies, else the interval that it is published in; `None` where neither is known.
    pub(super) rate_scale_s: Option<f64>,
}

/// The latest values; what an event does not have is `None`.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) at: i64,
    pub(super) interval_s: Option<f64>,
    pub(super) value: Option<f64>,
    pub(super) delta: Option<f64>,
    pub(super) total: Option<f64>,
    /// A change that came too early to be reported as one, and the seconds that it took: a part of the next.
    pub(super) part: (f64, f64),
    pub(super) spread: Option<Spread>,
    pub(super) quantiles: Vec<(f64, f64)>,
    pub(super) count: Option<u64>,
    pub(super) sum: Option<f64>,
    pub(super) total_count: u64,
    pub(super) total_sum: f64,
}

/// Who publishes a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CounterSource {
    /// A provider of EventCounters.
    EventCounter,
    /// A meter of `System.Diagnostics.Metrics`.
    Meter,
}

/// How the values of a counter are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CounterKind {
    /// A value as it was: a gauge, or the mean of an interval.
    Gauge,
    /// A sum that only grows: what matters is how fast.
    Counter,
    /// A sum that grows and shrinks.
    UpDownCounter,
    /// How values spread in an interval.
    Histogram,
}

/// How the values of an interval spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their standard deviation.
    pub standard_deviation: f64,
    /// How many.
    pub count: u64,
}

/// What a histogram has of its latest interval.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramReading {
    /// Shares (0 to 1) and the values that so many do not exceed; empty where nothing was recorded.
    pub quantiles: Vec<(f64, f64)>,
    /// How many values were recorded; `None` where the library does not tell (before 8.0).
    pub count: Option<u64>,
    /// Their sum.
    pub sum: Option<f64>,
    /// How many values were recorded since the session began.
    pub total_count: u64,
    /// Their sum.
    pub total_sum: f64,
    /// Quantiles 0.5, 0.95 and 0.99 of the latest 300 intervals in which values were recorded, and when these ended, oldest first; empty where a library
    /// publishes others.
    pub history: Vec<(i64, [f64; 3])>,
}

/// A counter and its latest value. What is not known is `None`, never 0.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterSnapshot {
    /// Who publishes it.
    pub source: CounterSource,
    /// How its values are meant.
    pub kind: CounterKind,
    /// Provider or meter; not sanitised, like all text here.
    pub group: String,
    /// Its name.
    pub name: String,
    /// A name for people; the same where there is no other.
    pub display_name: String,
    /// What is counted; can be empty.
    pub unit: String,
    /// Its tags, which distinguish it from others of its name: `k=v,k2=v2`, not escaped; can be empty.
    pub tags: String,
    /// The latest value of a gauge, the running total of a counter (since the session began, where the library does not tell), the median of a histogram.
    pub value: Option<f64>,
    /// How much a counter changed in its latest interval.
    pub delta: Option<f64>,
    /// The same for each second.
    pub rate: Option<f64>,
    /// The same for the time that the counter specifies, and that time in seconds; where it specifies none, the interval that it is published in, as it was
    /// requested and not as long as the latest took.
    pub scaled_rate: Option<(f64, f64)>,
    /// How the values of an EventCounter spread in its interval.
    pub spread: Option<Spread>,
    /// The values of a histogram.
    pub histogram: Option<HistogramReading>,
    /// Length of the latest interval, seconds.
    pub interval_s: Option<f64>,
    /// When the latest value came, nanoseconds since the start of the session.
    pub at: i64,
    /// The latest 300 values and when they came, oldest first: of a gauge its value, of a counter its change a second, of a histogram its highest
    /// quantile.
    pub history: Vec<(i64, f64)>,
}

impl Series {
    pub(super) fn new(identity: Identity) -> Self {
        Self { identity, reading: Reading::default(), is_read: false, history: VecDeque::new(), quantiles: VecDeque::new() }
    }

    /// A counter that was seen to fall is none that only grows, whatever it is published as: what matters of it is its value.
    pub(super) fn can_fall(&mut self) {
        if self.identity.kind == CounterKind::Counter {
            self.identity.kind = CounterKind::UpDownCounter;
            // These were rates.
            self.history.clear();
        }
    }

    /// The newest value of the history and when it came.
    pub(super) fn newest(&self) -> Option<(i64, f64)> {
        self.history.back().copied()
    }

    /// Puts the latest reading into the history, where it has a value.
    pub(super) fn record(&mut self) {
        self.is_read = true;
        let value = match self.identity.kind {
            CounterKind::Gauge | CounterKind::UpDownCounter => self.reading.value,
            CounterKind::Counter => self.rate(),
            CounterKind::Histogram => self.reading.quantiles.last().map(|(_, value)| *value),
        };
        let at = self.reading.at;
        push(&mut self.history, value.map(|value| (at, value)));
        let quantile = |share: f64| self.reading.quantiles.iter().find(|(known, _)| *known == share).map(|(_, value)| *value);
        let quantiles = quantile(0.5).zip(quantile(0.95)).zip(quantile(0.99));
        push(&mut self.quantiles, quantiles.map(|((p50, p95), p99)| (at, [p50, p95, p99])));
    }

    fn rate(&self) -> Option<f64> {
        let interval = self.reading.interval_s.filter(|seconds| *seconds > 0.0)?;
        Some(self.reading.delta? / interval)
    }

    /// What there is to show; `None` where only a part of an interval was read so far.
    pub(super) fn snapshot(&self) -> Option<CounterSnapshot> {
        self.is_read.then(|| self.latest())
    }

    fn latest(&self) -> CounterSnapshot {
        let Identity { source, kind, ref group, ref name, ref display_name, ref unit, ref tags, rate_scale_s } = self.identity;
        let reading = &self.reading;
        let median = || reading.quantiles.iter().find(|(share, _)| *share == 0.5).map(|(_, value)| *value);
        let rate = self.rate();
        let scale = rate_scale_s.or(reading.interval_s);
        CounterSnapshot {
            source,
            kind,
            group: group.clone(),
            name: name.clone(),
            display_name: if display_name.is_empty() { name.clone() } else { display_name.clone() },
            unit: unit.clone(),
            tags: tags.clone(),
            value: match kind {
                CounterKind::Gauge => reading.value,
                CounterKind::Counter | CounterKind::UpDownCounter => reading.value.or(reading.total),
                CounterKind::Histogram => median(),
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
        }
    }
}

/// Adds a value, where there is one; the oldest makes room.
fn push<T>(history: &mut VecDeque<T>, value: Option<T>) {
    if let Some(value) = value {
        if history.len() >= HISTORY {
            history.pop_front();
        }
        history.push_back(value);
    }
}
