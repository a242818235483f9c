//! EventCounters: events named `EventCounters` of any provider, in two payload layouts.

use foldhash::HashMap;

use crate::nettrace::{Value, Values};
use crate::wire::Utf16;

use super::super::event_context::EventContext;
use super::number::seconds;
use super::series::{CounterKind, CounterSnapshot, CounterSource, Series, Spread};
use super::{CounterSession, Store};

/// Maximum number of providers whose interval is tracked.
const PROVIDERS: usize = 1024;
/// Maximum length of a name, in characters.
const NAME: usize = 200;
/// Minimum share of the provider's interval that a change must span to be reported. .NET Core 3.1 publishes twice per interval, often a few
/// milliseconds apart: such a change is not a rate on its own and is added to the next.
const MIN_INTERVAL_SHARE: f64 = 0.75;

/// Reads EventCounters.
#[derive(Debug, Default)]
pub(super) struct EventCounters {
    /// By metadata index: time of the last value with the session's own interval.
    own_at: HashMap<u32, i64>,
}

/// The fields of both payload layouts; fields missing from one are present in the other.
#[derive(Debug, Default)]
struct Payload<'a> {
    name: Utf16<'a>,
    display_name: Utf16<'a>,
    unit: Utf16<'a>,
    metadata: Utf16<'a>,
    series: Utf16<'a>,
    rate_scale: Utf16<'a>,
    mean: Option<f64>,
    increment: Option<f64>,
    deviation: f64,
    min: f64,
    max: f64,
    count: i64,
    interval_s: f64,
}

impl<'a> Payload<'a> {
    /// Reads the fields, which may be nested: the outermost object has no name, the one in it is called Payload.
    fn read(&mut self, values: Values<'a>, depth: u32) {
        for (field, value) in values {
            match (field.name.as_str(), value) {
                (_, Value::Object(inner)) if depth < 3 => self.read(inner, depth + 1),
                ("Name", Value::Text(text)) => self.name = text,
                ("DisplayName", Value::Text(text)) => self.display_name = text,
                ("DisplayUnits", Value::Text(text)) => self.unit = text,
                ("Metadata", Value::Text(text)) => self.metadata = text,
                ("Series", Value::Text(text)) => self.series = text,
                ("DisplayRateTimeScale", Value::Text(text)) => self.rate_scale = text,
                ("Mean", Value::Float(number)) => self.mean = Some(number),
                ("Increment", Value::Float(number)) => self.increment = Some(number),
                ("StandardDeviation", Value::Float(number)) => self.deviation = number,
                ("Min", Value::Float(number)) => self.min = number,
                ("Max", Value::Float(number)) => self.max = number,
                ("Count", Value::Int(number)) => self.count = number,
                ("IntervalSec", Value::Float(number)) => self.interval_s = number,
                _ => {}
            }
        }
    }

    /// Returns the provider's interval in milliseconds, from its series.
    fn interval_ms(&self) -> Option<u32> {
        let mut digits = self.series.chars();
        "Interval=".chars().all(|expected| digits.next() == Some(expected)).then_some(())?;
        digits.try_fold(0_u32, |number, digit| number.checked_mul(10)?.checked_add(digit.to_digit(10)?))
    }
}

impl EventCounters {
    pub(super) fn feed(&mut self, context: &EventContext<'_>, session: &CounterSession, store: &mut Store) -> Option<()> {
        let mut payload = Payload::default();
        payload.read(context.event.values(), 0);
        if payload.name.is_empty() || (payload.mean.is_none() && payload.increment.is_none()) {
            return None;
        }
        if !self.is_own(context, &payload, session) {
            return Some(());
        }
        let metadata = context.event.metadata;
        let is_sum = payload.increment.is_some();
        store.set_key([b"E", metadata.provider.as_bytes(), payload.name.as_bytes(), payload.metadata.as_bytes(), b""]);
        let series = store.series(|| {
            Series::new(CounterSnapshot {
                source: CounterSource::EventCounter,
                kind: if is_sum { CounterKind::Counter } else { CounterKind::Gauge },
                group: metadata.provider.clone(),
                name: payload.name.prefix(NAME),
                display_name: payload.display_name.prefix(NAME),
                unit: payload.unit.prefix(NAME),
                // Tags are formatted as those of meters.
                tags: payload.metadata.prefix(NAME).replace(':', "="),
                ..CounterSnapshot::default()
            })
        })?;
        // The nominal publishing interval; the measured one varies.
        let nominal_s = || Some(f64::from(payload.interval_ms()?) / 1000.0);
        let reading = &mut series.reading;
        reading.rate_scale_s = seconds(payload.rate_scale).or_else(nominal_s).filter(|seconds| *seconds > 0.0);
        let mut interval_s = Some(payload.interval_s).filter(|seconds| seconds.is_finite() && *seconds > 0.0);
        let mut delta = payload.increment.filter(|increment| increment.is_finite());
        if let Some(delta) = delta {
            reading.total = Some(reading.total.unwrap_or(0.0) + delta);
        }
        if let (Some(delta), Some(seconds)) = (&mut delta, &mut interval_s) {
            let (before, took) = std::mem::take(&mut reading.part);
            *delta += before;
            *seconds += took;
            if payload.interval_ms().is_some_and(|reported| *seconds < f64::from(reported) / 1000.0 * MIN_INTERVAL_SHARE) {
                reading.part = (*delta, *seconds);
                return Some(());
            }
        }
        reading.at = context.at;
        reading.interval_s = interval_s;
        reading.delta = delta;
        // An interval without writes has no mean; a polled counter has one value per interval.
        reading.value = payload.mean.filter(|mean| mean.is_finite() && payload.count != 0);
        reading.spread = payload.mean.filter(|_| payload.count > 1).map(|_| Spread {
            min: payload.min,
            max: payload.max,
            standard_deviation: payload.deviation,
            count: payload.count.unsigned_abs(),
        });
        series.record();
        Some(())
    }

    /// Starts a new stream, which has its own metadata.
    pub(super) fn restart(&mut self) {
        self.own_at.clear();
    }

    /// Returns whether to accept a value: it has the requested interval, or there are no values with the requested interval.
    fn is_own(&mut self, context: &EventContext<'_>, payload: &Payload<'_>, session: &CounterSession) -> bool {
        let (Some(requested), Some(reported)) = (session.interval_ms, payload.interval_ms()) else { return true };
        let provider = context.event.metadata.index;
        if requested == reported {
            if self.own_at.len() < PROVIDERS || self.own_at.contains_key(&provider) {
                self.own_at.insert(provider, context.at);
            }
            return true;
        }
        let timeout_ns = i64::from(requested) * 3_000_000;
        self.own_at.get(&provider).is_none_or(|last| context.at.saturating_sub(*last) > timeout_ns)
    }
}
