//! EventCounters and meters.

use super::script::MS;
use super::{Bytes, Script};
use crate::analysis::{CounterKind, CounterSession, CounterSnapshot, CountersSnapshot, Live, MeterLimits, MeterNotice};
use crate::nettrace::{Field, FieldType};

pub(super) const S: i64 = 1000 * MS;

/// A field of an event: name and value.
#[derive(Clone, Copy)]
enum Part<'a> {
    Text(&'a str, &'a str),
    Float(&'a str, f64),
    Single(&'a str, f32),
    Int(&'a str, u32),
    Time(&'a str, u64),
}
use Part::{Float, Int, Single, Text, Time};

fn fields(parts: &[Part<'_>]) -> (Vec<Field>, Bytes) {
    let mut bytes = Bytes::default();
    let mut fields = Vec::new();
    for part in parts {
        let (name, kind);
        (name, kind, bytes) = match *part {
            Text(name, text) => (name, FieldType::String, bytes.text(text)),
            Float(name, value) => (name, FieldType::Double, bytes.f64(value)),
            Single(name, value) => (name, FieldType::Single, bytes.u32(value.to_bits())),
            Int(name, value) => (name, FieldType::Int32, bytes.u32(value)),
            Time(name, value) => (name, FieldType::DateTime, bytes.u64(value)),
        };
        fields.push(Field { name: name.into(), kind });
    }
    (fields, bytes)
}

fn event_counter(script: &mut Script, at: i64, parts: &[Part<'_>]) {
    let (inner, bytes) = fields(parts);
    let payload = FieldType::Object(vec![Field { name: "Payload".into(), kind: FieldType::Object(inner) }]);
    script.shape = parts.len() as u32;
    script.described("Shop", "EventCounters", &[("", payload)], at, bytes);
}

pub(super) fn mean(script: &mut Script, at: i64, name: &str, value: f64, count: u32, series: &str) {
    let parts = [
        Text("Name", name),
        Text("DisplayName", "The mean"),
        Float("Mean", value),
        Float("StandardDeviation", 0.5),
        Int("Count", count),
        Float("Min", value - 1.0),
        Float("Max", value + 1.0),
        Single("IntervalSec", 1.0),
        Text("Series", series),
        Text("CounterType", "Mean"),
        Text("Metadata", "route:/a"),
        Text("DisplayUnits", "ms"),
    ];
    event_counter(script, at, &parts);
}

fn sum(script: &mut Script, at: i64, name: &str, increment: f64, interval: f32, scale: &str, series: &str) {
    let parts = [
        Text("Name", name),
        Text("DisplayName", ""),
        Text("DisplayRateTimeScale", scale),
        Float("Increment", increment),
        Single("IntervalSec", interval),
        Text("Metadata", ""),
        Text("Series", series),
        Text("CounterType", "Sum"),
        Text("DisplayUnits", ""),
    ];
    event_counter(script, at, &parts);
}

fn counters(script: &mut Script, session: CounterSession) -> CountersSnapshot {
    let mut live = Live::default();
    live.set_counter_session(session);
    script.play_to(&mut live);
    let snapshot = live.snapshot(live.newest());
    assert_eq!(snapshot.unreadable, 0);
    snapshot.counters
}

fn named<'a>(counters: &'a CountersSnapshot, name: &str) -> &'a CounterSnapshot {
    counters.counters.iter().find(|counter| counter.name == name).expect(name)
}

#[test]
fn mean_and_sum_event_counters_are_decoded() {
    let mut script = Script::new();
    for second in 1..=3 {
        mean(&mut script, second * S, "latency", second as f64, 10, "Interval=1000");
        sum(&mut script, second * S, "requests", 30.0, 0.5, "00:01:00", "Interval=500");
        sum(&mut script, second * S, "pause", 4.0, 1.0 + second as f32 / 1000.0, "", "Interval=1000");
    }
    mean(&mut script, 4 * S, "latency", 0.0, 0, "Interval=1000");
    let found = counters(&mut script, CounterSession::default());
    assert_eq!(found.counters.iter().map(|counter| counter.name.as_str()).collect::<Vec<_>>(), ["latency", "pause", "requests"]);
    let latency = named(&found, "latency");
    assert_eq!((latency.kind, latency.value, latency.spread, latency.at), (CounterKind::Gauge, None, None, 4 * S), "no values, no mean");
    assert_eq!(latency.history, [(S, 1.0), (2 * S, 2.0), (3 * S, 3.0)]);
    assert_eq!((latency.display_name.as_str(), latency.unit.as_str(), latency.tags.as_str()), ("The mean", "ms", "route=/a"));
    let requests = named(&found, "requests");
    assert_eq!((requests.kind, requests.delta, requests.rate), (CounterKind::Counter, Some(30.0), Some(60.0)));
    assert_eq!((requests.scaled_rate, requests.value), (Some((3600.0, 60.0)), Some(90.0)));
    let pause = named(&found, "pause");
    let rate = 4.0 / f64::from(1.003_f32);
    assert_eq!((pause.rate, pause.scaled_rate), (Some(rate), Some((rate, 1.0))), "for the nominal interval");
}

#[test]
fn other_interval_is_used_only_if_own_interval_is_absent() {
    let session = CounterSession { interval_ms: Some(1000), ..CounterSession::default() };
    let mut script = Script::new();
    sum(&mut script, 0, "n", 1.0, 1.0, "", "Interval=1000");
    sum(&mut script, S / 10, "n", 100.0, 0.1, "", "Interval=100");
    sum(&mut script, S, "n", 1.0, 1.0, "", "Interval=1000");
    sum(&mut script, 3 * S, "n", 100.0, 0.1, "", "Interval=100");
    assert_eq!(named(&counters(&mut script, session.clone()), "n").value, Some(2.0));
    // Another client requested a shorter interval, at which all sessions now receive values.
    let mut script = Script::new();
    sum(&mut script, 0, "n", 1.0, 1.0, "", "Interval=1000");
    for tick in 1..=50 {
        sum(&mut script, tick * S / 10, "n", 2.0, 0.1, "00:00:01", "Interval=100");
    }
    let found = counters(&mut script, session);
    let counter = named(&found, "n");
    assert_eq!((counter.value, counter.rate.map(f64::round)), (Some(1.0 + 2.0 * 20.0), Some(20.0)));
}

/// Any code can write such events.
#[test]
fn rate_over_no_time_is_unknown() {
    for interval in [0.0, -1.0, f32::NAN] {
        let mut script = Script::new();
        sum(&mut script, S, "n", 5.0, interval, "", "");
        let found = counters(&mut script, CounterSession::default());
        assert_eq!((named(&found, "n").delta, named(&found, "n").rate), (Some(5.0), None), "{interval}");
    }
}

/// .NET Core 3.1 publishes twice in each interval.
#[test]
fn early_increment_is_added_to_the_next_one() {
    let mut script = Script::new();
    for second in 1..=3 {
        sum(&mut script, second * S, "exceptions", 84.0, 0.998, "00:00:01", "Interval=1000");
        sum(&mut script, second * S + S / 500, "exceptions", 1.0, 0.002, "00:00:01", "Interval=1000");
    }
    let found = counters(&mut script, CounterSession::default());
    let exceptions = named(&found, "exceptions");
    let times: Vec<i64> = exceptions.history.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [S, 2 * S, 3 * S], "what comes early is not shown");
    let rates: Vec<f64> = exceptions.history.iter().map(|(_, rate)| rate.round()).collect();
    assert_eq!(rates, [84.0, 85.0, 85.0], "and not lost");
    assert_eq!((exceptions.delta, exceptions.value), (Some(85.0), Some(255.0)), "the total is that of all");
}

const METRICS: &str = "System.Diagnostics.Metrics";

fn metrics(script: &mut Script, at: i64, name: &str, parts: &[Part<'_>]) {
    let (fields, bytes) = fields(parts);
    let fields: Vec<_> = fields.into_iter().map(|field| (field.name, field.kind)).collect();
    let fields: Vec<_> = fields.iter().map(|(name, kind)| (name.as_str(), kind.clone())).collect();
    script.shape = parts.len() as u32;
    script.described(METRICS, name, &fields, at, bytes);
}

fn value(script: &mut Script, at: i64, session: &str, event: &str, instrument: &str, tags: &str, values: &[Part<'_>]) {
    let mut parts = vec![
        Text("sessionId", session),
        Text("meterName", "Shop"),
        Text("meterVersion", ""),
        Text("instrumentName", instrument),
        Text("unit", "{item}"),
        Text("tags", tags),
    ];
    parts.extend_from_slice(values);
    metrics(script, at, event, &parts);
}

#[test]
fn all_instrument_kinds_are_decoded() {
    let session = CounterSession { meter_session: Some("me".into()), ..CounterSession::default() };
    let mut script = Script::new();
    let begin = [
        Text("sessionId", "me"),
        Text("meterName", "Shop"),
        Text("meterVersion", ""),
        Text("instrumentName", "sold"),
        Text("instrumentType", "Counter`1"),
        Text("unit", "{item}"),
        Text("description", "Things that were sold."),
    ];
    metrics(&mut script, 0, "InstrumentPublished", &begin);
    metrics(&mut script, 0, "BeginInstrumentReporting", &begin);
    metrics(&mut script, 0, "InitialInstrumentEnumerationComplete", &[Text("sessionId", "me")]);
    let second = 10_000_000;
    let interval = [Text("sessionId", "me"), Time("intervalStartTime", 7 * second), Time("intervalEndTime", 9 * second)];
    metrics(&mut script, S, "CollectionStart", &interval);
    for (at, session, tags, rate, total) in [
        (S, "me", "kind=a", "", "100"),
        (2 * S, "me", "kind=a", "4", "104"),
        (2 * S, "me", "kind=b", "1", "1"),
        (2 * S, "other", "kind=a", "9", "9"),
    ] {
        let values = [Text("rate", rate), Text("value", total), Int("instrumentId", 1)];
        value(&mut script, at, session, "CounterRateValuePublished", "sold", tags, &values);
    }
    value(
        &mut script,
        2 * S,
        "me",
        "UpDownCounterRateValuePublished",
        "open",
        "",
        &[Text("rate", "-3"), Text("value", "7"), Int("instrumentId", 2)],
    );
    // Before version 1, counters did not report a total.
    value(&mut script, S, "me", "CounterRateValuePublished", "old", "", &[Text("rate", "2")]);
    value(&mut script, 2 * S, "me", "CounterRateValuePublished", "old", "", &[Text("rate", "3")]);
    value(&mut script, S, "me", "GaugeValuePublished", "heat", "", &[Text("lastValue", "21.5"), Int("instrumentId", 3)]);
    value(&mut script, 2 * S, "me", "GaugeValuePublished", "heat", "", &[Text("lastValue", ""), Int("instrumentId", 3)]);
    for round in 1..=2 {
        let spread = [Text("quantiles", "0.5=19;0.95=94;0.99=99"), Int("count", 100), Float("sum", 4950.0), Int("instrumentId", 4)];
        value(&mut script, round * S, "me", "HistogramValuePublished", "took", "", &spread);
    }
    value(&mut script, 2 * S, "me", "HistogramValuePublished", "old took", "", &[Text("quantiles", "0.5=1")]);
    let found = counters(&mut script, session);
    assert!(found.all_instruments_reported);
    let sold: Vec<_> =
        found.counters.iter().filter(|counter| counter.name == "sold").map(|c| (c.tags.as_str(), c.value, c.delta, c.rate)).collect();
    assert_eq!(sold, [("kind=a", Some(104.0), Some(4.0), Some(2.0)), ("kind=b", Some(1.0), Some(1.0), Some(0.5))]);
    assert_eq!(named(&found, "sold").history, [(2 * S, 2.0)], "an empty text is no value, and not 0");
    let open = named(&found, "open");
    assert_eq!(
        (open.kind, open.value, open.delta, &open.history[..]),
        (CounterKind::UpDownCounter, Some(7.0), Some(-3.0), &[(2 * S, 7.0)][..])
    );
    assert_eq!(named(&found, "old").value, Some(5.0));
    assert_eq!((named(&found, "heat").value, &named(&found, "heat").history[..]), (None, &[(S, 21.5)][..]));
    let took = named(&found, "took").histogram.as_ref().unwrap();
    assert_eq!(took.quantiles, [(0.5, 19.0), (0.95, 94.0), (0.99, 99.0)]);
    assert_eq!((took.count, took.sum, took.total_count, took.total_sum), (Some(100), Some(4950.0), 200, 9900.0));
    assert_eq!((named(&found, "took").value, named(&found, "took").history[1]), (Some(19.0), (2 * S, 99.0)));
    assert_eq!(took.history.last(), Some(&(2 * S, [19.0, 94.0, 99.0])));
    assert_eq!(named(&found, "old took").histogram.as_ref().unwrap().count, None);
}

/// .NET 9 publishes two non-monotonic values of the thread pool as counters; any counter that falls is treated the same way.
#[test]
fn non_monotonic_counters_are_shown_as_up_down_counters() {
    let mut script = Script::new();
    let interval = [Text("sessionId", "me"), Time("intervalStartTime", 10_000_000), Time("intervalEndTime", 20_000_000)];
    metrics(&mut script, 0, "CollectionStart", &interval);
    let mut publish = |at: i64, meter: &str, name: &str, rate: &str, total: &str| {
        let parts = [
            Text("sessionId", "me"),
            Text("meterName", meter),
            Text("instrumentName", name),
            Text("unit", ""),
            Text("tags", ""),
            Text("rate", rate),
            Text("value", total),
        ];
        metrics(&mut script, at, "CounterRateValuePublished", &parts);
    };
    for (second, threads, queue) in [(1, ("", "5"), ("", "10")), (2, ("0", "5"), ("-3", "7")), (3, ("1", "6"), ("2", "9"))] {
        publish(second * S, "System.Runtime", "dotnet.thread_pool.thread.count", threads.0, threads.1);
        publish(second * S, "System.Runtime", "dotnet.thread_pool.queue.length", queue.0, queue.1);
        publish(second * S, "Shop", "open", queue.0, queue.1);
        publish(second * S, "Shop", "dotnet.thread_pool.thread.count", threads.0, threads.1);
    }
    for (second, rate, total) in [(1, "", "5"), (2, "4", "9"), (3, "-2", "7")] {
        publish(second * S, "Shop", "late", rate, total);
    }
    let found = counters(&mut script, CounterSession::default());
    let of = |group: &str, name: &str| {
        let counter = found.counters.iter().find(|counter| counter.group == group && counter.name == name).unwrap();
        (counter.kind, counter.value, counter.delta, counter.history.iter().map(|(_, value)| *value).collect::<Vec<_>>())
    };
    let amount = CounterKind::UpDownCounter;
    assert_eq!(of("System.Runtime", "dotnet.thread_pool.thread.count"), (amount, Some(6.0), Some(1.0), vec![5.0, 5.0, 6.0]));
    assert_eq!(of("System.Runtime", "dotnet.thread_pool.queue.length"), (amount, Some(9.0), Some(2.0), vec![10.0, 7.0, 9.0]));
    assert_eq!(of("Shop", "open"), (amount, Some(9.0), Some(2.0), vec![7.0, 9.0]), "no rates among its values");
    assert_eq!(of("Shop", "late"), (amount, Some(7.0), Some(-2.0), vec![7.0]), "it fell after it had a rate");
    assert_eq!(of("Shop", "dotnet.thread_pool.thread.count").0, CounterKind::Counter, "another meter's");
}

#[test]
fn each_meter_problem_is_reported_once() {
    let session = CounterSession { meter_session: Some("SHARED".into()), meter_client: Some("c1".into()), ..CounterSession::default() };
    let mut script = Script::new();
    for _ in 0..2 {
        metrics(&mut script, 0, "TimeSeriesLimitReached", &[Text("sessionId", "SHARED")]);
        metrics(&mut script, 0, "HistogramLimitReached", &[Text("sessionId", "SHARED")]);
        metrics(&mut script, 0, "HistogramLimitReached", &[Text("sessionId", "other")]);
        metrics(&mut script, 0, "ObservableInstrumentCallbackError", &[Text("sessionId", "SHARED"), Text("errorMessage", "boom")]);
        metrics(&mut script, 0, "MultipleSessionsNotSupportedError", &[Text("runningSessionId", "SHARED")]);
        metrics(&mut script, 0, "MultipleSessionsNotSupportedError", &[Text("runningSessionId", "other")]);
        for client in ["c1", "c2"] {
            let limits = [
                Text("clientId", client),
                Text("expectedMaxHistograms", "10"),
                Text("actualMaxHistograms", "20"),
                Text("expectedMaxTimeSeries", client),
                Text("actualMaxTimeSeries", "1"),
                Text("expectedRefreshInterval", "5"),
                Text("actualRefreshInterval", "1"),
            ];
            metrics(&mut script, 0, "MultipleSessionsConfiguredIncorrectlyError", &limits);
        }
    }
    assert_eq!(
        counters(&mut script, session).notices,
        [
            MeterNotice::TimeSeriesLimit,
            MeterNotice::HistogramLimit,
            MeterNotice::CallbackError("boom".into()),
            MeterNotice::OtherSession("other".into()),
            MeterNotice::OtherLimits(MeterLimits {
                max_histograms: "10".into(),
                max_time_series: "c1".into(),
                refresh_interval: "5".into()
            }),
        ]
    );
}

#[test]
fn counters_beyond_the_limit_are_dropped() {
    let mut script = Script::new();
    for tag in 0..2100 {
        value(&mut script, 0, "", "GaugeValuePublished", "g", &tag.to_string(), &[Text("lastValue", "1")]);
    }
    let found = counters(&mut script, CounterSession::default());
    assert_eq!((found.counters.len(), found.dropped), (2000, 100));
}
