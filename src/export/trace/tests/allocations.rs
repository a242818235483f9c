//! Allocations and their rates.

use super::*;

pub(super) fn allocation_tick(bytes: u64) -> Vec<u8> {
    let mut payload = vec![0; 10];
    [bytes, 1].iter().for_each(|number| payload.put_u64(*number));
    payload.put_utf16z("T");
    payload.put_u32(0);
    [0, 24].iter().for_each(|number| payload.put_u64(*number));
    payload
}

/// Returns process, time in milliseconds and value of each allocation rate.
fn allocation_rates(bytes: &[u8]) -> Vec<(u64, f64, f64)> {
    let rates = chromium(bytes, "name", "Allocation rate (B/s)");
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let mut rates: Vec<_> =
        rates.iter().map(|rate| (rate["pid"].as_u64().unwrap(), number(&rate["ts"]) / 1e3, number(&rate["args"]["value"]))).collect();
    rates.sort_by(|a, b| a.partial_cmp(b).unwrap());
    rates
}

#[test]
fn random_samples_replace_allocation_ticks_and_have_the_weight_of_their_size() {
    let mut sampled = vec![0; 14];
    sampled.put_utf16z("T[]");
    [0, 1_000_000].iter().for_each(|number| sampled.put_u64(*number));
    let tick = |at| (at, kind(RUNTIME, 10, 4), allocation_tick(100_000));
    let bytes = stream(&[tick(1), tick(2), (3, kind(RUNTIME, 303, 0), sampled), tick(4)]);
    assert_eq!(allocation_rates(&bytes), [(7, 1.0, 12_000_570.0)]);
}

#[test]
fn allocation_rates_of_processes_are_separate() {
    let mut encoder = CollectorEncoder::new(&TraceHeader::default());
    let tick = encoder.metadata(&kind(RUNTIME, 10, 4), true);
    for (at, process, bytes) in [(1, 5, 100), (50, 6, 300), (500, 5, 1)] {
        encoder.event(tick, (process, process.into()), at * 1_000_000, &[], None, &allocation_tick(bytes));
    }
    let expected = [(5, 1.0, 1000.0), (5, 101.0, 0.0), (5, 500.0, 10.0), (6, 50.0, 3000.0), (6, 150.0, 0.0)];
    assert_eq!(allocation_rates(&encoder.finish()), expected);
}
