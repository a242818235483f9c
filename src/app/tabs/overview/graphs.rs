//! Graphs of a process.

use super::collections::collections;
use super::requests::{durations, requests};
use super::{MEMORY_GRAPH, THREADS};
use crate::analysis::{CounterKind, CounterSnapshot, CountersSnapshot};
use crate::app::health::runtime_counter;
use crate::app::state::State;
use crate::app::tabs::quantity::{bytes, rate};
use crate::app::tabs::view::Role;
use crate::app::usage::History;
use crate::model::{ByteRate, Bytes, Count, Process};

/// A quantity over time.
pub struct Graph {
    pub title: &'static str,
    /// The newest value with its unit.
    pub now: String,
    /// Formats a value on the axis.
    pub unit: fn(f64) -> String,
    /// The layers, stacked from the bottom. All have the same length.
    pub layers: Vec<Layer>,
    /// Marks of single moments, drawn above the layers.
    pub marks: Vec<Mark>,
}

/// A mark at a single moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Seconds before the newest value.
    pub ago: f64,
    pub value: f64,
    /// The character it is drawn as.
    pub sign: char,
    pub role: Role,
}

/// A layer of a graph.
pub struct Layer {
    /// Name and newest value; empty if it is the only layer.
    pub label: String,
    pub role: Role,
    /// One value per second, the newest last; NaN where there is none.
    pub values: Vec<f64>,
}

impl State {
    pub(super) fn graphs(&self, process: &Process, counters: Option<&CountersSnapshot>) -> Vec<Graph> {
        let usage = &self.usage;
        let cores = match self.options.processors {
            0 => String::new(),
            1 => " of one core".to_owned(),
            cores => format!(" of a core, {} of {cores}", percent(process.usage.cpu_percent.unwrap_or(0.0) / cores as f64)),
        };
        let single = |title, unit: fn(f64) -> String, role, history: &[(i64, f64)], more: String| {
            let values = seconds(history);
            let now = *values.iter().rev().find(|value| value.is_finite())?;
            let layers = vec![Layer { label: String::new(), role, values }];
            Some(Graph { title, now: format!("{}{more}", unit(now)), unit, layers, marks: Vec::new() })
        };
        let figure = |title, unit, role, counter: Option<&CounterSnapshot>| single(title, unit, role, &history(counter?), String::new());
        let of = |name: &str| runtime_counter(counters?, name);
        let either = |one: &str, other: &str| of(one).or_else(|| of(other));
        let count: fn(f64) -> String = |value| Count(value as u64).to_string();
        let share = |title, counter: &CounterSnapshot, per_percent: f64, more: &str| {
            let shares: History = history(counter).into_iter().map(|(at, value)| (at, value / per_percent)).collect();
            single(title, percent, Role::Events, &shares, more.to_owned())
        };
        let gc_time = || {
            let paused = of("total-pause-time-by-gc").and_then(|counter| share(GC_TIME, counter, MS_PER_SECOND, ""));
            let metered = || of("dotnet.gc.pause.time").and_then(|counter| share(GC_TIME, counter, SECONDS_PER_SECOND, ""));
            paused.or_else(metered).or_else(|| gc_time(of("time-in-gc"), of("gen-0-gc-count")))
        };
        [
            single("CPU", percent, Role::Events, &usage.cpu(process.key), cores),
            counters.and_then(|counters| requests(counters, process.runtime.as_ref())),
            counters.and_then(|counters| durations(&counters.requests)),
            counters.and_then(heap),
            gc_time(),
            figure(
                "Allocation rate",
                |value| ByteRate(value).to_string(),
                Role::Bytes,
                either("alloc-rate", "dotnet.gc.heap.total_allocated"),
            ),
            figure("Exceptions", rate, Role::Events, either("exception-count", "dotnet.exceptions")),
            counters.and_then(collections),
            figure("Thread pool queue", count, Role::Bytes, either("threadpool-queue-length", "dotnet.thread_pool.queue.length")),
            either("monitor-lock-contention-count", "dotnet.monitor.lock_contentions").and_then(|counter| {
                let is_off = counters.is_some_and(|counters| counters.too_many_lock_waits.is_some());
                let more = if is_off { "  not timed" } else { "" };
                single("Lock contention", rate, Role::Events, &history(counter), more.to_owned())
            }),
            figure("Thread pool threads", count, Role::Bytes, either("threadpool-thread-count", "dotnet.thread_pool.thread.count")),
            figure("Completed work items", rate, Role::Events, of("threadpool-completed-items-count")),
            // NativeAOT programs have the counter as well, but it is always 0.
            of("time-in-jit")
                .filter(|_| !process.native_aot)
                .and_then(|counter| share("Time in JIT", counter, MS_PER_SECOND, " of a core")),
            single(MEMORY_GRAPH, bytes, Role::Bytes, &usage.rss(process.key), String::new()),
            single(THREADS, count, Role::Bytes, &usage.threads(process.key), String::new()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Formats percent, with a decimal if small.
fn percent(value: f64) -> String {
    if value < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

const GC_TIME: &str = "Time in GC";
/// How many milliseconds or seconds per second are one percent.
const MS_PER_SECOND: f64 = 10.0;
const SECONDS_PER_SECOND: f64 = 0.01;
/// The megabytes of EventCounters are 10^6 bytes.
const MEGABYTE: f64 = 1e6;
/// Seconds without a collection after which the time in GC is taken as 0.
const GC_IDLE_SECONDS: usize = 10;
const SECOND: i64 = 1_000_000_000;

/// Returns the history of a counter. The first value of a monotonic counter is skipped if there are others: it can be the total since process
/// start.
pub(in crate::app::tabs) fn rates(counter: &CounterSnapshot) -> &[(i64, f64)] {
    match counter.history.as_slice() {
        [_, others @ ..] if counter.kind == CounterKind::Counter && !others.is_empty() => others,
        all => all,
    }
}

/// Returns the history of a counter in bytes instead of megabytes, see [`rates`].
pub(super) fn history(counter: &CounterSnapshot) -> History {
    let scale = if counter.unit == "MB" { MEGABYTE } else { 1.0 };
    rates(counter).iter().map(|(at, value)| (*at, value * scale)).collect()
}

/// Resamples to one value per second up to the newest. A value applies to the time since the previous one.
pub(super) fn seconds(history: &[(i64, f64)]) -> Vec<f64> {
    const MAX_SECONDS: usize = 300;
    let (Some((first, _)), Some((last, _))) = (history.first(), history.last()) else { return Vec::new() };
    let ago = |at: i64| usize::try_from(last.saturating_sub(at).saturating_add(SECOND / 2) / SECOND).unwrap_or(0);
    let len = (ago(*first) + 1).min(MAX_SECONDS);
    let mut values = vec![f64::NAN; len];
    let mut end = 0;
    for (place, (at, value)) in history.iter().enumerate().rev() {
        let until = place.checked_sub(1).map_or(ago(*at) + 1, |before| ago(history[before].0)).max(ago(*at) + 1).min(len);
        while end < until {
            values[len - 1 - end] = *value;
            end += 1;
        }
    }
    values
}

/// Resamples to one value per second, the last `len` of them; values missing at the start are `missing`.
pub(super) fn last_seconds(history: &[(i64, f64)], len: usize, missing: f64) -> Vec<f64> {
    let mut values = seconds(history);
    values.drain(..values.len().saturating_sub(len));
    values.splice(..0, vec![missing; len - values.len()]);
    values
}

/// Draws the sizes of the generations after the last collection, and the bytes allocated since.
fn heap(counters: &CountersSnapshot) -> Option<Graph> {
    const PARTS: [(&str, &str); 5] =
        [("gen 2", "gen-2-size"), ("LOH", "loh-size"), ("POH", "poh-size"), ("gen 1", "gen-1-size"), ("gen 0", "gen-0-size")];
    let of = |name| runtime_counter(counters, name);
    let total = of("gc-heap-size").or_else(|| of("dotnet.gc.last_collection.heap.size"))?;
    let whole = seconds(&history(total));
    let now = match *whole.last()? {
        // .NET Core 3.1 publishes whole megabytes.
        0.0 if total.unit == "MB" => "<1 MB".to_owned(),
        now => bytes(now),
    };
    let mut rest = whole.clone();
    let mut layers = Vec::new();
    for (place, (name, counter)) in PARTS.into_iter().enumerate() {
        let Some(counter) = of(counter) else { continue };
        let part = last_seconds(&history(counter), whole.len(), f64::NAN);
        if part.iter().any(|value| *value > 0.0) {
            for (rest, value) in rest.iter_mut().zip(&part) {
                *rest = (*rest - value.max(0.0)).max(0.0);
            }
            let label = format!("{name} {}", Bytes(part.last().map_or(0, |value| *value as u64)));
            layers.push(Layer { label, role: Role::Part(place), values: part });
        }
    }
    if layers.is_empty() {
        layers.push(Layer { label: String::new(), role: Role::Bytes, values: whole });
    } else {
        let label = format!("since last GC {}", Bytes(rest.last().map_or(0, |value| *value as u64)));
        layers.push(Layer { label, role: Role::Part(PARTS.len()), values: rest });
    }
    Some(Graph { title: "GC heap", now, unit: bytes, layers, marks: Vec::new() })
}

/// Draws percent of time in GC, as published before .NET 8: the counter keeps its value until the next collection, however long ago the last one
/// was.
fn gc_time(share: Option<&CounterSnapshot>, collections: Option<&CounterSnapshot>) -> Option<Graph> {
    let mut values = seconds(&history(share?));
    let collected = collections.map(|counter| seconds(&history(counter))).unwrap_or_default();
    for (ago, value) in values.iter_mut().rev().enumerate() {
        let end = collected.len().saturating_sub(ago);
        if end >= GC_IDLE_SECONDS && collected[end - GC_IDLE_SECONDS..end].iter().all(|rate| *rate == 0.0) {
            *value = 0.0;
        }
    }
    let now = format!("{}  of the latest GC", percent(*values.last()?));
    let layers = vec![Layer { label: String::new(), role: Role::Events, values }];
    Some(Graph { title: GC_TIME, now, unit: percent, layers, marks: Vec::new() })
}
