//! Figures of a recording according to the library, for comparison with other readers.

use std::collections::{BTreeMap, BTreeSet};

use dn_top::analysis::{Live, SampleFilter};
use dn_top::clr::payload::GcType;
use dn_top::nettrace::{Decoder, Limits};
use serde_json::{Value, json};

/// Nanoseconds as milliseconds with three decimals.
pub(crate) fn ms(ns: u64) -> f64 {
    (ns as f64 / 1e3).round() / 1e3
}

/// Returns the figures of a complete file.
pub(crate) fn of(bytes: &[u8]) -> Value {
    let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default());
    decoder.feed(bytes, &mut live).expect("a readable stream");
    assert!(decoder.finish(&mut live).is_complete());
    let snapshot = live.snapshot(live.end());
    let (totals, gc, waits, jit) = (snapshot.totals, snapshot.gc, snapshot.contention, snapshot.jit);
    let threads = live.profile().methods(SampleFilter::ALL, 0).threads;
    let kinds = [(GcType::BLOCKING, "NonConcurrentGC"), (GcType::BACKGROUND, "BackgroundGC"), (GcType::FOREGROUND, "ForegroundGC")];
    let of_kind = |kind| gc.causes.iter().filter(|cause| cause.kind == kind).map(|cause| cause.count).sum::<u64>();
    let present = |figures: Vec<(String, u64)>| figures.into_iter().filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>();
    let allocations = gc.allocations.map_or(Vec::new(), |allocations| allocations.top);
    let mut counts = BTreeMap::<_, (u64, u64)>::new();
    for count in live.throughput().counts() {
        let sum = counts.entry((count.provider, count.event_id)).or_default();
        *sum = (sum.0 + count.count, sum.1 + count.bytes);
    }
    json!({
        "events": totals.events,
        "counts": counts.iter().map(|((provider, id), sum)| (format!("{provider}/{id}"), *sum)).collect::<BTreeMap<_, _>>(),
        "lost": totals.dropped,
        "stacks": totals.stacks,
        "sequence_points": totals.sequence_points,
        "threads": totals.threads,
        "samples": present(threads.iter().map(|found| (found.thread.to_string(), found.samples.all())).collect()),
        "exceptions": present(snapshot.exceptions.types.into_iter().map(|kind| (kind.name, kind.count)).collect()),
        "allocations": allocations.into_iter().map(|kind| (kind.name, json!([kind.ticks, kind.bytes]))).collect::<BTreeMap<_, _>>(),
        "collections": present(gc.collections.iter().zip(0..).map(|(count, number)| (format!("gen{number}"), *count)).collect()),
        "collection_kinds": present(kinds.map(|(kind, name)| (name.to_owned(), of_kind(kind))).to_vec()),
        "pauses_ms": ms(gc.pauses.total_ns),
        "waits": [waits.count - waits.start_lost, waits.ended],
        "wait_ms": ms(waits.wait_ns),
        "jit": [jit.jitted, jit.time.as_ref().map_or(0, |time| time.il_bytes)],
        "jit_ms": ms(jit.time.as_ref().map_or(0, |time| time.total_ns)),
    })
}

/// Returns the differences to another reader, in the figures that it has.
pub(crate) fn differences(ours: &Value, reader: &str, theirs: &Value) -> Vec<String> {
    let figures = theirs.as_object().into_iter().flatten();
    let differ = figures.flat_map(|(figure, theirs)| parts_that_differ(figure, &ours[figure], theirs));
    differ.map(|(figure, ours, theirs)| format!("{figure}: {ours} of ours, {theirs} of {reader}")).collect()
}

fn parts_that_differ(figure: &str, ours: &Value, theirs: &Value) -> Vec<(String, Value, Value)> {
    if let (Value::Object(ours), Value::Object(theirs)) = (ours, theirs) {
        let names: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
        let of = |map: &serde_json::Map<String, Value>, name: &str| map.get(name).cloned().unwrap_or_default();
        return names
            .into_iter()
            .flat_map(|name| parts_that_differ(&format!("{figure} {name}"), &of(ours, name), &of(theirs, name)))
            .collect();
    }
    // 0 and 0.0 are equal, and sums of rounded numbers nearly so.
    let near = |a: &Value, b: &Value| a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| (a - b).abs() < 0.002);
    if ours == theirs || near(ours, theirs) { Vec::new() } else { vec![(figure.to_owned(), ours.clone(), theirs.clone())] }
}
