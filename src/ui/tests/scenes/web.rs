//! A web program whose garbage collections are marked individually.

use std::sync::Arc;

use crate::analysis::{CollectionMarks, CounterKind, GcMark, RequestDurations};
use crate::app::test_app::{TestApp, add_counter, metered, published};
use crate::clr::HOSTING_PROVIDER;

use super::keyed;

/// A value as a function of the second.
type At = fn(f64) -> f64;

/// Requests become slower, and some fail.
pub(super) fn web_overview(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "w");
    let mut counters = (*published(61.4, 4.2e6, 1.3, 3.0, 0.0)).clone();
    let values: [(&str, CounterKind, At); 3] = [
        ("requests-per-second", CounterKind::Counter, |second| 180.0 + 40.0 * (second / 4.0).sin()),
        ("failed-requests", CounterKind::Gauge, |second| 30.0 * (second - 30.0).max(0.0)),
        ("current-requests", CounterKind::Gauge, |_| 12.0),
    ];
    for (name, kind, value) in values {
        let counter = add_counter(&mut counters, HOSTING_PROVIDER, name);
        counter.kind = kind;
        counter.history.iter_mut().zip(1..).for_each(|((_, old), second)| *old = value(f64::from(second)));
        counter.value = counter.history.last().map(|(_, value)| *value);
    }
    let interval = |second: i64| {
        let median = 0.004 * second as f64;
        let quantiles = Some([median, 3.0 * median, 4.0 * median]);
        RequestDurations { at: second * 1_000_000_000, quantiles, count: 180, combinations: 3 }
    };
    counters.requests = (1..=42).map(interval).collect();
    let mark = |second: i64| {
        let generation = [0, 0, 1, 0, 0, 2][second as usize % 6];
        GcMark { at: second * 1_000_000_000, pause_ns: 2_000_000 + 9_000_000 * u64::from(generation), generation, is_induced: false }
    };
    counters.collections = CollectionMarks::Recorded((1..=42).map(mark).collect());
    app.publish(&[Arc::new(counters)]);
    app
}

/// A web program that is watched, but not recorded.
pub(super) fn live_requests(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "w");
    let mut counters = (*metered()).clone();
    let histogram = counters.counters.iter().find(|counter| counter.histogram.is_some()).cloned().unwrap();
    for (route, status, count) in [("/orders/{id}", 200, 1200), ("/orders/{id}", 500, 42), ("", 404, 7)] {
        let mut counter = histogram.clone();
        (counter.group, counter.name) = ("Microsoft.AspNetCore.Hosting".to_owned(), "http.server.request.duration".to_owned());
        counter.tags = format!("http.request.method=GET,http.response.status_code={status}");
        if !route.is_empty() {
            counter.tags += &format!(",http.route={route}");
        }
        let reading = counter.histogram.as_mut().unwrap();
        (reading.total_count, reading.history) = (count, vec![(0, [0.012, 0.045, 0.31])]);
        counters.counters.push(counter);
    }
    app.publish(&[Arc::new(counters)]);
    app.press("⏎9⇥");
    app
}
