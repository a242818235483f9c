//! Meters: events of `System.Diagnostics.Metrics`. Events and their fields are identified by name, as new versions of the library add some.

use std::fmt;

use crate::clr::COUNTERS_PROVIDER;
use crate::nettrace::Value;
use crate::sorting::CompactSort;
use crate::wire::Utf16;

use super::super::event_context::EventContext;
use super::durations::{Durations, RequestDurations};
use super::number::{number, pairs};
use super::series::{CounterKind, CounterSnapshot, CounterSource, Series};
use super::{CounterSession, Store};

/// Maximum number of notices kept.
const NOTICES: usize = 32;
/// Maximum length of a text, in characters.
const TEXT: usize = 400;
/// Meter and instruments that .NET 9 and 10 publish as counters although their values rise and fall.
const NON_MONOTONIC_COUNTERS: (&str, [&str; 2]) =
    (COUNTERS_PROVIDER, ["dotnet.thread_pool.queue.length", "dotnet.thread_pool.thread.count"]);

/// Reads the events of meters.
#[derive(Debug, Default)]
pub(super) struct Meters {
    pub(super) all_reported: bool,
    pub(super) notices: Vec<MeterNotice>,
    interval_s: Option<f64>,
    pub(super) served: Durations,
    pub(super) sent: Durations,
}

/// A problem that affects the values of meters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeterNotice {
    /// The number of tag combinations exceeds the session's limit: some are missing.
    TimeSeriesLimit,
    /// The number of histograms exceeds the session's limit: some are missing.
    HistogramLimit,
    /// The library reported an error.
    Error(String),
    /// An observable instrument's callback in the application failed.
    CallbackError(String),
    /// Another session reads the meters, and only one can: there are no values.
    OtherSession(String),
    /// A shared session has other limits: if it is requested again with these, both sessions get values.
    OtherLimits(MeterLimits),
}

/// Not sanitized.
impl fmt::Display for MeterNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeSeriesLimit => f.write_str("time series limit reached: some tag combinations are missing"),
            Self::HistogramLimit => f.write_str("histogram limit reached: some are missing"),
            Self::Error(message) => write!(f, "metrics error: {message}"),
            Self::CallbackError(message) => write!(f, "an instrument's callback failed: {message}"),
            Self::OtherSession(id) => write!(f, "session {id} reads the meters, and only one session can: their values may be missing"),
            Self::OtherLimits(_) => f.write_str("another session reads the meters, with other limits"),
        }
    }
}

/// Limits of a shared session, as text in the format of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterLimits {
    /// `MaxHistograms`.
    pub max_histograms: String,
    /// `MaxTimeSeries`.
    pub max_time_series: String,
    /// `RefreshInterval`, in seconds.
    pub refresh_interval: String,
}

/// The fields of all events together.
#[derive(Debug, Default)]
struct Fields<'a> {
    session: Option<Utf16<'a>>,
    client: Utf16<'a>,
    running_session: Utf16<'a>,
    meter: Utf16<'a>,
    instrument: Utf16<'a>,
    instrument_id: i64,
    unit: Utf16<'a>,
    tags: Utf16<'a>,
    rate: Option<Utf16<'a>>,
    value: Option<Utf16<'a>>,
    quantiles: Utf16<'a>,
    count: Option<i64>,
    sum: Option<f64>,
    error: Utf16<'a>,
    interval_start: u64,
    interval_end: u64,
    limits: [Utf16<'a>; 3],
}

impl<'a> Fields<'a> {
    fn read(context: &EventContext<'a>) -> Self {
        let mut fields = Self::default();
        for (field, value) in context.event.values() {
            match (field.name.as_str(), value) {
                ("sessionId", Value::Text(text)) => fields.session = Some(text),
                ("clientId" | "sharedIdentifier", Value::Text(text)) => fields.client = text,
                ("runningSessionId", Value::Text(text)) => fields.running_session = text,
                ("meterName", Value::Text(text)) => fields.meter = text,
                ("instrumentName", Value::Text(text)) => fields.instrument = text,
                ("instrumentId", Value::Int(id)) => fields.instrument_id = id,
                ("unit", Value::Text(text)) => fields.unit = text,
                ("tags", Value::Text(text)) => fields.tags = text,
                ("rate", Value::Text(text)) => fields.rate = Some(text),
                ("value" | "lastValue", Value::Text(text)) => fields.value = Some(text),
                ("quantiles", Value::Text(text)) => fields.quantiles = text,
                ("count", Value::Int(count)) => fields.count = Some(count),
                ("sum", Value::Float(sum)) => fields.sum = Some(sum),
                ("errorMessage" | "message", Value::Text(text)) => fields.error = text,
                ("intervalStartTime", Value::FileTime(time)) => fields.interval_start = time,
                ("intervalEndTime", Value::FileTime(time)) => fields.interval_end = time,
                ("expectedMaxHistograms", Value::Text(text)) => fields.limits[0] = text,
                ("expectedMaxTimeSeries", Value::Text(text)) => fields.limits[1] = text,
                ("expectedRefreshInterval", Value::Text(text)) => fields.limits[2] = text,
                _ => {}
            }
        }
        fields
    }
}

impl Meters {
    pub(super) fn feed(&mut self, context: &EventContext<'_>, session: &CounterSession, store: &mut Store) -> Option<()> {
        let fields = Fields::read(context);
        let is_ours = |id: Utf16<'_>| session.meter_session.as_ref().is_none_or(|own| id == **own);
        if fields.session.is_some_and(|id| !is_ours(id)) {
            return Some(());
        }
        match context.event.metadata.name.as_str() {
            "CollectionStart" => {
                let ticks = fields.interval_end.saturating_sub(fields.interval_start);
                self.interval_s = (ticks > 0).then_some(ticks as f64 / 1e7);
            }
            "CollectionStop" => {
                self.served.end(context.at);
                self.sent.end(context.at);
            }
            "CounterRateValuePublished" => self.sum(context, &fields, CounterKind::Counter, store),
            "UpDownCounterRateValuePublished" => self.sum(context, &fields, CounterKind::UpDownCounter, store),
            "GaugeValuePublished" => {
                if let Some(series) = self.series(context, &fields, CounterKind::Gauge, store) {
                    series.reading.value = fields.value.and_then(number);
                    series.record();
                }
            }
            "HistogramValuePublished" | "Base2ExponentialHistogramValuePublished" => self.histogram(context, &fields, store),
            "InitialInstrumentEnumerationComplete" => self.all_reported = true,
            "TimeSeriesLimitReached" => self.note(MeterNotice::TimeSeriesLimit),
            "HistogramLimitReached" => self.note(MeterNotice::HistogramLimit),
            "Error" => self.note(MeterNotice::Error(fields.error.prefix(TEXT))),
            "ObservableInstrumentCallbackError" => self.note(MeterNotice::CallbackError(fields.error.prefix(TEXT))),
            // Sent to all sessions, including the one that reads the meters.
            "MultipleSessionsNotSupportedError" if session.meter_session.is_some() && !is_ours(fields.running_session) => {
                self.note(MeterNotice::OtherSession(fields.running_session.prefix(TEXT)));
            }
            "MultipleSessionsConfiguredIncorrectlyError" if session.meter_client.as_ref().is_some_and(|own| fields.client == **own) => {
                let [max_histograms, max_time_series, refresh_interval] = fields.limits.map(|limit| limit.prefix(TEXT));
                self.note(MeterNotice::OtherLimits(MeterLimits { max_histograms, max_time_series, refresh_interval }));
            }
            _ => {}
        }
        Some(())
    }

    fn sum(&self, context: &EventContext<'_>, fields: &Fields<'_>, kind: CounterKind, store: &mut Store) {
        let Some(series) = self.series(context, fields, kind, store) else { return };
        let reading = &mut series.reading;
        // Empty in the first interval, and if nothing was counted.
        reading.delta = fields.rate.and_then(number);
        reading.value = fields.value.and_then(number);
        if let Some(delta) = reading.delta {
            reading.total = Some(reading.total.unwrap_or(0.0) + delta);
            if delta < 0.0 {
                series.mark_non_monotonic();
            }
        }
        series.record();
    }

    fn histogram(&mut self, context: &EventContext<'_>, fields: &Fields<'_>, store: &mut Store) {
        let Some(series) = self.series(context, fields, CounterKind::Histogram, store) else { return };
        let reading = &mut series.reading;
        pairs(fields.quantiles, &mut reading.quantiles);
        reading.quantiles.compact_sort_by(|a, b| a.0.total_cmp(&b.0));
        reading.count = fields.count.map(i64::unsigned_abs);
        reading.sum = fields.sum.filter(|sum| sum.is_finite());
        reading.total_count = reading.total_count.saturating_add(reading.count.unwrap_or(0));
        reading.total_sum += reading.sum.unwrap_or(0.0);
        series.record();
        match (series.counter.group.as_str(), series.counter.name.as_str()) {
            RequestDurations::SERVED => self.served.add(&series.reading),
            RequestDurations::SENT => self.sent.add(&series.reading),
            _ => {}
        }
    }

    fn series<'s>(
        &self,
        context: &EventContext<'_>,
        fields: &Fields<'_>,
        kind: CounterKind,
        store: &'s mut Store,
    ) -> Option<&'s mut Series> {
        let id = fields.instrument_id.to_le_bytes();
        let (meter, instrument) = (fields.meter.as_bytes(), fields.instrument.as_bytes());
        store.set_key([b"M", meter, instrument, fields.tags.as_bytes(), &id]);
        let series = store.series(|| {
            let (group, name) = (fields.meter.prefix(TEXT), fields.instrument.prefix(TEXT));
            let is_non_monotonic = group == NON_MONOTONIC_COUNTERS.0 && NON_MONOTONIC_COUNTERS.1.contains(&name.as_str());
            Series::new(CounterSnapshot {
                source: CounterSource::Meter,
                kind: if is_non_monotonic { CounterKind::UpDownCounter } else { kind },
                group,
                name,
                unit: fields.unit.prefix(TEXT),
                tags: fields.tags.prefix(TEXT),
                ..CounterSnapshot::default()
            })
        })?;
        series.reading.at = context.at;
        (series.reading.interval_s, series.reading.rate_scale_s) = (self.interval_s, Some(1.0));
        Some(series)
    }

    fn note(&mut self, notice: MeterNotice) {
        if self.notices.len() < NOTICES && !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }
}
