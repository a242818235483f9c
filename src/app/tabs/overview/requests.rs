//! Graphs of a web application: request rate with failures, and durations.

use super::graphs::{Graph, Layer, history, last_seconds, seconds};
use crate::analysis::{CountersSnapshot, MeterNotice, RequestDurations};
use crate::app::health::hosting_counter;
use crate::app::tabs::quantity::{milliseconds, rate};
use crate::app::tabs::view::Role;
use crate::app::usage::History;
use crate::ipc::RuntimeVersion;
use crate::model::{Count, CountRate};

/// Draws requests per second, separating those that failed with a status of 500 or above.
pub(super) fn requests(counters: &CountersSnapshot, version: Option<&RuntimeVersion>) -> Option<Graph> {
    let ended = seconds(&history(hosting_counter(counters, "requests-per-second")?));
    let failed = hosting_counter(counters, "failed-requests").map(|counter| increase(&history(counter))).unwrap_or_default();
    let failed = last_seconds(&failed, ended.len(), 0.0);
    let (all, bad) = (*ended.last()?, failed.last().copied().unwrap_or(0.0));
    let served = ended.iter().zip(&failed).map(|(all, failed)| (all - failed.max(0.0)).max(0.0)).collect();
    let in_flight = hosting_counter(counters, "current-requests").and_then(|counter| counter.value).filter(|value| *value > 0.0);
    let mut now = rate(all);
    // Also per second, but the title has little room.
    now += &if bad > 0.0 { format!(", {} failed", CountRate(bad).to_string().trim_end_matches("/s")) } else { String::new() };
    now += &in_flight.map(|value| format!(", {} active", Count(value as u64))).unwrap_or_default();
    now += &missing_durations(counters, version).map(|why| format!(" · {why}")).unwrap_or_default();
    let layers = vec![
        Layer { label: "failed".to_owned(), role: Role::Bad, values: failed },
        Layer { label: "served".to_owned(), role: Role::Events, values: served },
    ];
    Some(Graph { title: "Requests", now, unit: rate, layers, marks: Vec::new() })
}

/// Returns why request durations are unknown.
fn missing_durations(counters: &CountersSnapshot, version: Option<&RuntimeVersion>) -> Option<&'static str> {
    let has = |is: fn(&MeterNotice) -> bool| counters.notices.iter().any(is);
    if !counters.requests.is_empty() {
        None
    } else if version.is_none_or(|version| version.major() < RequestDurations::SINCE) {
        Some("durations need .NET 8")
    } else if has(|notice| matches!(notice, MeterNotice::OtherSession(_))) {
        Some("durations: another session reads the meters")
    } else if has(|notice| matches!(notice, MeterNotice::HistogramLimit)) {
        Some("durations: too many histograms")
    } else {
        None
    }
}

/// Draws request durations: p50, p95 and p99 of each interval.
pub(super) fn durations(all: &[RequestDurations]) -> Option<Graph> {
    let newest = all.last()?;
    // In milliseconds, as the axis spans at least 1.
    let at = |interval: &RequestDurations| (interval.at, interval.quantiles.map_or([f64::NAN; 3], |all| all.map(|seconds| seconds * 1e3)));
    let now = match newest.quantiles {
        None => "no request ended".to_owned(),
        Some(quantiles) => {
            let [p50, p95, p99] = quantiles.map(|seconds| milliseconds(seconds * 1e3));
            // Combined over several routes, quantiles are estimates.
            format!("{}{p50}, {p95}, {p99}", if newest.combinations > 1 { "≈ " } else { "" })
        }
    };
    Some(quantile_graph(now, milliseconds, all.iter().map(at)))
}

/// Draws quantiles 0.5, 0.95 and 0.99. Since layers are stacked, each holds the difference to the quantile below.
fn quantile_graph(now: String, unit: fn(f64) -> String, all: impl Iterator<Item = (i64, [f64; 3])> + Clone) -> Graph {
    let layer = |(place, name): (usize, &str)| {
        let value = |quantiles: [f64; 3]| quantiles[place] - place.checked_sub(1).map_or(0.0, |before| quantiles[before]);
        let history: History = all.clone().map(|(at, quantiles)| (at, value(quantiles))).collect();
        Layer { label: name.to_owned(), role: Role::Part([1, 3, 0][place]), values: seconds(&history) }
    };
    let layers = ["p50", "p95", "p99"].into_iter().enumerate().map(layer).collect();
    Graph { title: "p50/p95/p99", now, unit, layers, marks: Vec::new() }
}

/// Draws the quantiles of a published histogram over time; `None` if its library publishes other quantiles. `unit` formats them.
pub(in crate::app::tabs) fn histogram(history: &[(i64, [f64; 3])], unit: fn(f64) -> String) -> Option<Graph> {
    let (_, newest) = history.last()?;
    let now = newest.map(unit).join(", ");
    Some(quantile_graph(now, unit, history.iter().copied()))
}

/// Converts a running total to its increase per second.
fn increase(totals: &History) -> History {
    let grown = |pair: &[(i64, f64)]| match pair {
        [(before, old), (at, new)] => Some((*at, (new - old).max(0.0) * 1e9 / at.saturating_sub(*before).max(1) as f64)),
        _ => None,
    };
    totals.windows(2).filter_map(grown).collect()
}
