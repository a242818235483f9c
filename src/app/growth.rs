//! Steady growth of a value, as of something that leaks.

use std::time::Duration;

use super::findings::{Finding, HEAP_ADVICE, finding};
use super::health::runtime_counter;
use super::tabs::Tab;
use crate::analysis::CountersSnapshot;
use crate::diagnosis::{GROWING_COLLECTIONS, Thresholds};
use crate::model::{Bytes, Nanoseconds};

/// Minimum time over which growth is determined: a burst of work, such as the startup of a program, is shorter.
const MIN_SPAN: Duration = Duration::from_secs(20);
/// Parts of the time, each of which must have contributed this share of the growth.
const PARTS: (u32, f64) = (4, 0.1);
/// Minimum time over which gen 2 and the LOH grow without regard to gen 2 collections, and the minimum growth in bytes.
const UNCOLLECTED_SPAN: Duration = Duration::from_secs(55);
const MIN_UNCOLLECTED_BYTES: f64 = 64e6;

/// The growth of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Growth {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) span: Duration,
}

impl Growth {
    /// Returns how much a value has grown, if it has been growing all the time: by more in each part of the time than noise would explain.
    /// `values` are in the order of their times.
    pub(super) fn of(values: &[(Duration, f64)]) -> Option<Self> {
        let ((begin, from), (end, to)) = (*values.first()?, *values.last()?);
        let growth = Self { from, to, span: end.saturating_sub(begin) };
        if growth.span < MIN_SPAN || growth.amount() <= 0.0 {
            return None;
        }
        let (parts, share) = PARTS;
        let mut least = vec![f64::INFINITY; parts as usize];
        for (at, value) in values {
            let part = (at.saturating_sub(begin).as_nanos() * u128::from(parts) / growth.span.as_nanos()) as usize;
            let least = &mut least[part.min(parts as usize - 1)];
            *least = least.min(*value);
        }
        // In the last part, up to now.
        least.push(to);
        let grows = |pair: &[f64]| pair[1].is_finite() && pair[1] - pair[0] > growth.amount() * share;
        least.windows(2).all(grows).then_some(growth)
    }

    pub(super) fn amount(&self) -> f64 {
        self.to - self.from
    }

    pub(super) fn time(&self) -> Nanoseconds {
        Nanoseconds(self.span.as_secs() * 1_000_000_000)
    }
}

/// Returns the finding for a GC heap that grows, with the ratio to the threshold.
pub(super) fn heap(counters: &CountersSnapshot, thresholds: &Thresholds) -> Option<(f64, Finding)> {
    let (collected, uncollected) = (gen2_growth(counters, thresholds), uncollected_growth(counters));
    let (generations, why) = match collected {
        Some(_) => ("gen 2", "more survives each full GC"),
        None => ("gen 2 and LOH", "possibly a leak, unless the next gen 2 GC frees it"),
    };
    let growth = collected.or(uncollected)?;
    let (from, to) = (Bytes(growth.from as u64), Bytes(growth.to as u64));
    let finding = finding(Tab::Gc, format!("{generations} grew from {from} to {to} in {}", growth.time()), why, "its history");
    Some((growth.to / growth.from.max(1.0) / thresholds.heap_growth(), Finding { live: HEAP_ADVICE, ..finding }))
}

/// Returns the growth in bytes if gen 2 was larger after each of its latest collections: of a large heap, a few of them leave little more, but
/// all of them since it began to grow do.
fn gen2_growth(counters: &CountersSnapshot, thresholds: &Thresholds) -> Option<Growth> {
    // GCs of younger generations promote into gen 2 as well, until it is collected.
    let collected = &runtime_counter(counters, "gen-2-gc-count")?.history;
    // Counters of the same moment are published one after another.
    let is_collected = |at: i64| {
        let after = collected.partition_point(|(other, _)| *other < at);
        let nearest = [after.checked_sub(1), Some(after)].into_iter().flatten().filter_map(|place| collected.get(place));
        nearest.min_by_key(|(other, _)| other.abs_diff(at)).is_some_and(|(_, count)| *count > 0.0)
    };
    let mut sizes: Vec<(i64, f64)> = runtime_counter(counters, "gen-2-size")?.history.clone();
    sizes.retain(|(at, _)| is_collected(*at));
    let growths = sizes.windows(2).rev().take_while(|pair| pair[0].1 < pair[1].1).count();
    let ((begin, from), (end, to)) = (*sizes.get(sizes.len().checked_sub(growths + 1)?)?, *sizes.last()?);
    let grows = growths >= GROWING_COLLECTIONS && to - from > thresholds.heap_growth_bytes();
    grows.then(|| Growth { from, to, span: Duration::from_nanos(end.abs_diff(begin)) })
}

/// Returns the growth in bytes if gen 2 and the LOH have been growing for long. Some of that may be garbage: a heap that is large has few gen 2
/// collections.
fn uncollected_growth(counters: &CountersSnapshot) -> Option<Growth> {
    let [gen2, large] = ["gen-2-size", "loh-size"].map(|name| runtime_counter(counters, name));
    let sizes = gen2?.history.iter().rev().zip(large?.history.iter().rev()).rev();
    let sizes: Vec<_> = sizes.map(|((at, gen2), (_, large))| (Duration::from_nanos(at.unsigned_abs()), gen2 + large)).collect();
    Growth::of(&sizes).filter(|growth| growth.span >= UNCOLLECTED_SPAN && growth.amount() >= MIN_UNCOLLECTED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::test_app::published;

    #[test]
    fn heap_that_is_not_collected_grows_possibly() {
        let found = |seconds: i64, size: fn(f64) -> f64| {
            let mut counters = (*published(61.0, 4e6, 1.0, 0.0, 0.0)).clone();
            for (name, share) in [("gen-2-size", 0.75), ("loh-size", 0.25)] {
                let mut counter = counters.counters[0].clone();
                counter.name = name.to_owned();
                counter.history = (0..=seconds).map(|second| (second * 1_000_000_000, size(second as f64) * share)).collect();
                counters.counters.push(counter);
            }
            heap(&counters, &Thresholds::default()).filter(|(excess, _)| *excess > 1.0).map(|(_, finding)| (finding.text, finding.why))
        };
        let why = "possibly a leak, unless the next gen 2 GC frees it";
        assert_eq!(found(60, |second| 100e6 + second * 5e6), Some(("gen 2 and LOH grew from 100 MB to 400 MB in 60 s".to_owned(), why)));
        assert_eq!(found(50, |second| 100e6 + second * 5e6), None, "too short");
        assert_eq!(found(60, |second| 10e6 + second * 1e6), None, "by 60 MB");
        assert_eq!(found(60, |second| 1e9 + second * 5e6), None, "by 30 %");
        assert_eq!(found(200, |second| 1e9 + second * 5e6).map(|(_, why)| why), Some(why));
        assert_eq!(found(60, |second| 100e6 + second.min(40.0) * 5e6), None, "it has stopped");
        assert_eq!(found(60, |second| 100e6 + second % 30.0 * 20e6), None, "it was freed");
    }
}
