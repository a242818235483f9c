//! Sample figures of a process: its counters, and its heap.

use std::sync::Arc;
use std::time::Duration;

use crate::analysis::{
    CounterKind, CounterSnapshot, CounterSource, CountersSnapshot, HeapSnapshot, HeapType, HistogramReading, Live, MeterNotice, PathStep,
    RetainedType, Retention, RootPath, RuntimeStats,
};
use crate::app::WalkedHeap;

/// Counters published by a process's runtime, as shown by a watch after some seconds.
pub(crate) fn published(heap_mb: f64, allocated: f64, gc_percent: f64, exceptions: f64, queue: f64) -> Arc<CountersSnapshot> {
    use CounterKind::{Counter, Gauge};
    // The rate of exceptions is a mean over some seconds.
    let wave = |name: &str, second: i64| if name == "exception-count" && second > 37 { 0.0 } else { (second as f64 / 5.0).sin() / 4.0 };
    let runtime = |kind, name: &str, display_name: &str, unit: &str, value: f64| CounterSnapshot {
        source: CounterSource::EventCounter,
        kind,
        group: "System.Runtime".to_owned(),
        name: name.to_owned(),
        display_name: display_name.to_owned(),
        unit: unit.to_owned(),
        tags: String::new(),
        value: Some(if kind == Counter { value * 42.0 } else { value }),
        delta: (kind == Counter).then_some(value),
        rate: (kind == Counter).then_some(value),
        scaled_rate: (kind == Counter).then_some((value, 1.0)),
        spread: None,
        histogram: None,
        interval_s: Some(1.0),
        at: 42_000_000_000,
        history: (1..=42).map(|second| (second * 1_000_000_000, value * (1.0 + wave(name, second)))).collect(),
    };
    let counters = vec![
        runtime(Counter, "alloc-rate", "Allocation Rate", "B", allocated),
        runtime(Gauge, "cpu-usage", "CPU Usage", "%", 12.5),
        runtime(Counter, "exception-count", "Exception Count", "", exceptions),
        runtime(Gauge, "gc-heap-size", "GC Heap Size", "MB", heap_mb),
        runtime(Gauge, "threadpool-queue-length", "ThreadPool Queue Length", "", queue),
        runtime(Gauge, "time-in-gc", "% Time in GC since last GC", "%", gc_percent),
    ];
    let stats = RuntimeStats {
        heap: Some(heap_mb * 1e6),
        allocation_rate: Some(allocated),
        gc_time_percent: Some(gc_percent),
        exceptions: Some(exceptions),
        queue_length: Some(queue),
        ..RuntimeStats::default()
    };
    Arc::new(CountersSnapshot { counters, stats, ..Live::default().snapshot(0).counters })
}

/// Counters of a process without issues.
pub(crate) fn healthy() -> CountersSnapshot {
    (*published(61.0, 4e6, 1.0, 0.0, 0.0)).clone()
}

/// Adds a counter, and returns it.
pub(crate) fn add_counter<'a>(counters: &'a mut CountersSnapshot, group: &str, name: &str) -> &'a mut CounterSnapshot {
    let counter = CounterSnapshot { group: group.to_owned(), name: name.to_owned(), ..counters.counters[0].clone() };
    counters.counters.push(counter);
    counters.counters.last_mut().unwrap()
}

/// Published counters, and those of a meter.
pub(crate) fn metered() -> Arc<CountersSnapshot> {
    let mut snapshot = (*published(61.4, 4.2e6, 1.3, 3.0, 0.0)).clone();
    let meter = |kind, name: &str, unit: &str, tags: &str, value: f64| CounterSnapshot {
        source: CounterSource::Meter,
        kind,
        group: "Shop.Meter".to_owned(),
        name: name.to_owned(),
        display_name: name.to_owned(),
        unit: unit.to_owned(),
        tags: tags.to_owned(),
        value: Some(value),
        ..snapshot.counters[1].clone()
    };
    let histogram = |tags: &str, value: f64, count: u64| CounterSnapshot {
        histogram: Some(HistogramReading {
            quantiles: vec![(0.5, value), (0.95, value * 4.0), (0.99, value * 9.5)],
            count: Some(count),
            sum: Some(value * 1.4 * count as f64),
            total_count: count * 42,
            total_sum: value * 1.4 * 42.0 * count as f64,
            history: snapshot.counters[1]
                .history
                .iter()
                .enumerate()
                .map(|(second, (at, _))| {
                    let value = value * (1.0 + (second % 7) as f64 / 4.0);
                    (*at, [value, value * 4.0, value * 9.5])
                })
                .collect(),
        }),
        ..meter(CounterKind::Histogram, "checkout.duration", "ms", tags, value)
    };
    let shop =
        [meter(CounterKind::Gauge, "basket.items", "{item}", "", 7.25), histogram("pay=card", 19.0, 57), histogram("pay=invoice", 48.0, 3)];
    snapshot.counters.splice(0..0, shop);
    snapshot.notices.push(MeterNotice::TimeSeriesLimit);
    Arc::new(snapshot)
}

/// The result of the nth heap walk, with a growing cache.
pub(crate) fn walked_heap(walk: u64) -> Arc<WalkedHeap> {
    let named = |name: &str, module: &str, objects: u64, bytes: u64| HeapType { name: name.into(), module: module.into(), objects, bytes };
    let types = vec![
        named("Shop.Pricing.Quote", "Shop.Pricing", 20_000 * walk, 3_200_000 * walk),
        named("System.String", "System.Private.CoreLib", 41_210, 2_900_400),
        named(
            "System.Collections.Generic.Dictionary<System.String,Shop.Pricing.Quote>+Entry[]",
            "System.Private.CoreLib",
            3,
            500_000 * walk,
        ),
        named("System.Byte[]", "System.Private.CoreLib", 900 / walk, 410_000 / walk),
        named("", "", 12, 960),
    ];
    let (objects, bytes) = types.iter().fold((40, 1600), |(objects, bytes), named| (objects + named.objects, bytes + named.bytes));
    let step = |name: &str, count| PathStep::Objects { name: name.to_owned(), count };
    let cache = [step("Shop.Pricing.QuoteCache", 1), step(&types[2].name, 1), step(&types[0].name, 1)];
    let worker = [step("Shop.Pricing.Worker", 1), step("Shop.Pricing.Node", 640), PathStep::Omitted(3000), step(&types[0].name, 1)];
    let path =
        |root: &str, steps: &[PathStep], objects| RootPath { root: root.to_owned(), steps: steps.to_vec(), objects, bytes: 160 * objects };
    let of = |named: &HeapType, paths| Some(RetainedType { bytes: named.bytes * 3 / 2, paths });
    let paths = vec![path("static variable s_shared", &cache, 16_000 * walk), path("local variable", &worker, 4000 * walk)];
    let retained = vec![of(&types[0], paths), of(&types[1], Vec::new()), of(&types[2], Vec::new()), of(&types[3], Vec::new()), None];
    let heap =
        HeapSnapshot { objects, bytes, references: objects * 2, types, others: (2, 40, 1600), is_finished: true, problems: Vec::new() };
    let retention = Some(Retention { types: retained, unreached: 7 });
    Arc::new(WalkedHeap { heap, retention, took: Duration::from_millis(1240), trouble: None })
}
