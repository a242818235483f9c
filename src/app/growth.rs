//! Steady growth of a value, as of something that leaks.

use std::time::Duration;

use super::findings::{Finding, HEAP_ADVICE, finding};
use super::health::runtime_counter;
use super::tabs::Tab;
use crate::analysis::{CountersSnapshot, Snapshot};
use crate::diagnosis::{GROWING_COLLECTIONS, Thresholds};
use crate::model::{Bytes, Nanoseconds};

/// Minimum time over which growth is determined: a burst of work, such as the startup of a program, is shorter.
const MIN_SPAN: Duration = Duration::from_secs(20);
/// Parts of the time, each of which must have contributed this share of the growth.
const PARTS: (u32, f64) = (4, 0.1);
/// Minimum time over which gen 2 and the LOH grow without regard to gen 2 collections, and the minimum growth in bytes.
const UNCOLLECTED_SPAN: Duration = Duration::from_secs(55);
const MIN_UNCOLLECTED_BYTES: f64 = 64e6;

/// Why a growing heap matters.
pub(super) const HEAP_GROWTH_REASON: &str = "a leak continues, a filling cache stops";
/// The same in a narrow terminal.
pub(super) const HEAP_GROWTH_BRIEFLY: &str = "leak or cache";
/// Factor over the longest time between two gen 2 collections after which the next one is overdue.
const OVERDUE: u64 = 2;
/// Share of the mean rate of growth at which a growing heap has nearly stopped to grow.
const SLOWED: f64 = 0.25;
const SECOND: i64 = 1_000_000_000;

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
        // A part without values is infinite, and the pair after it does not grow.
        let grows = |pair: &[f64]| pair[1] - pair[0] > growth.amount() * share;
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
    let survived = survivors(counters);
    let (what, sizes) = match survived.as_slice() {
        [] => ("gen 2 grew from", collected_sizes(counters)),
        _ => ("gen 2 GCs leave more:", survived),
    };
    let latest = counters.counters.iter().map(|counter| counter.at).max().unwrap_or(0);
    let (what, (why, briefly), growth) = match collected_growth(&sizes, latest, thresholds) {
        Some(growth) => (what, (HEAP_GROWTH_REASON, HEAP_GROWTH_BRIEFLY), growth),
        None => {
            let why = "a leak or a cache, unless the next gen 2 GC frees it";
            ("gen 2 and LOH grew from", (why, "leak, cache or garbage"), uncollected_growth(counters)?)
        }
    };
    let (from, to) = (Bytes(growth.from as u64), Bytes(growth.to as u64));
    let finding = finding(Tab::Gc, format!("{what} {from} to {to} in {}", growth.time()), why, "its history");
    Some((growth.to / growth.from.max(1.0) / thresholds.heap_growth(), Finding { briefly, live: HEAP_ADVICE, ..finding }))
}

/// Returns what each gen 2 collection left, in bytes, with its time; at most one value a second.
fn survivors(counters: &CountersSnapshot) -> Vec<(i64, f64)> {
    let mut sizes: Vec<(i64, f64)> = Vec::new();
    for collection in &counters.full_collections {
        sizes.pop_if(|(at, _)| collection.at / SECOND == *at / SECOND);
        sizes.push((collection.at, collection.survived as f64));
    }
    sizes
}

/// Returns the size of gen 2 in each second with a gen 2 collection, if collections are not recorded individually. After a background
/// collection, it includes garbage.
fn collected_sizes(counters: &CountersSnapshot) -> Vec<(i64, f64)> {
    let histories = ["gen-2-gc-count", "gen-2-size"].map(|name| runtime_counter(counters, name).map(|counter| &counter.history));
    let [Some(collected), Some(sizes)] = histories else { return Vec::new() };
    // GCs of younger generations promote into gen 2 as well, until it is collected.
    // Counters of the same moment are published one after another.
    let is_collected = |at: i64| {
        let after = collected.partition_point(|(other, _)| *other < at);
        let nearest = [after.checked_sub(1), Some(after)].into_iter().flatten().filter_map(|place| collected.get(place));
        nearest.min_by_key(|(other, _)| other.abs_diff(at)).is_some_and(|(_, count)| *count > 0.0)
    };
    sizes.iter().copied().filter(|(at, _)| is_collected(*at)).collect()
}

/// Returns the growth in bytes if each of the latest gen 2 collections left more than the one before: of a large heap, a few of them leave little
/// more, but all of them since it began to grow do.
fn collected_growth(sizes: &[(i64, f64)], now: i64, thresholds: &Thresholds) -> Option<Growth> {
    let growths = sizes.windows(2).rev().take_while(|pair| pair[0].1 < pair[1].1).count();
    let grown = &sizes[sizes.len().checked_sub(growths + 1)?..];
    let ((begin, from), (end, to)) = (*grown.first()?, *grown.last()?);
    let growth = Growth { from, to, span: Duration::from_nanos(end.abs_diff(begin)) };
    // A cache that is nearly full grows slowly.
    let (at, before) = grown[grown.len().checked_sub(2)?];
    let has_slowed = (to - before) / end.abs_diff(at) as f64 * end.abs_diff(begin) as f64 <= growth.amount() * SLOWED;
    // The next collection is overdue: since the latest one, there has been no growth that would have caused it.
    let longest = grown.windows(2).map(|pair| pair[0].0.abs_diff(pair[1].0)).max()?;
    let is_over = end.abs_diff(now) > longest.saturating_mul(OVERDUE).max(MIN_SPAN.as_nanos() as u64);
    let grows = growths >= GROWING_COLLECTIONS && growth.amount() > thresholds.heap_growth_bytes();
    (grows && !is_over && !has_slowed && growth.span >= MIN_SPAN).then_some(growth)
}

/// Returns the growth in bytes if gen 2 and the LOH have been growing for long. Some of that may be garbage: a heap that is large has few gen 2
/// collections.
fn uncollected_growth(counters: &CountersSnapshot) -> Option<Growth> {
    let [gen2, large] = ["gen-2-size", "loh-size"].map(|name| runtime_counter(counters, name));
    let sizes = gen2?.history.iter().rev().zip(large?.history.iter().rev()).rev();
    let sizes: Vec<_> = sizes.map(|((at, gen2), (_, large))| (Duration::from_nanos(at.unsigned_abs()), gen2 + large)).collect();
    Growth::of(&sizes).filter(|growth| growth.span >= UNCOLLECTED_SPAN && growth.amount() >= MIN_UNCOLLECTED_BYTES)
}

/// Returns the heap sizes of a recording before and after, and the time between in nanoseconds, if each of the latest full collections left more
/// than the one before.
pub(super) fn recorded_growth(snapshot: &Snapshot, thresholds: &Thresholds) -> Option<(u64, u64, u64)> {
    let full = snapshot.gc.recent.iter().filter(|collection| collection.generation == 2);
    let sizes: Vec<(u64, i64)> = full.filter_map(|collection| Some((collection.heap_after?, collection.end))).collect();
    let growths = sizes.windows(2).take_while(|pair| pair[0].0 > pair[1].0).count();
    let ((to, end), (from, begin)) = (*sizes.first()?, *sizes.get(growths)?);
    let grows = growths + 1 >= GROWING_COLLECTIONS
        && end.abs_diff(begin) >= MIN_SPAN.as_nanos() as u64
        && to as f64 > from as f64 * thresholds.heap_growth()
        && to.saturating_sub(from) as f64 >= thresholds.heap_growth_bytes();
    grows.then_some((from, to, end.abs_diff(begin)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{CollectionMarks, FullCollection, GcMark};
    use crate::app::ResourceHistory;
    use crate::app::health::health_issues;
    use crate::app::test_app::{TestApp, add_counter, healthy};
    use crate::clr::COUNTERS_PROVIDER;

    #[test]
    fn heap_grows_if_more_survives_each_collection() {
        // How many seconds ago each gen 2 collection ended, and the megabytes that survived it.
        let found = |collections: &[(i64, u64)]| {
            let mut counters = healthy();
            let full = |(ago, mb): &(i64, u64)| FullCollection { at: (42 - ago) * SECOND, survived: mb * 1_000_000 };
            counters.full_collections = collections.iter().map(full).collect();
            heap(&counters, &Thresholds::default()).filter(|(excess, _)| *excess > 1.0).map(|(_, finding)| finding.text)
        };
        let grew = Some("gen 2 GCs leave more: 20.0 MB to 90.0 MB in 24 s".to_owned());
        assert_eq!(found(&[(36, 30), (24, 20), (18, 40), (12, 60), (6, 70), (0, 90)]), grew);
        assert_eq!(found(&[(24, 20), (18, 40), (12, 60), (6, 70), (6, 80), (0, 90)]), grew, "two in a second");
        assert_eq!(found(&[(24, 20), (18, 40), (12, 60), (6, 80), (6, 70), (0, 90)]), grew, "the later of two in a second");
        assert_eq!(found(&[(40, 20), (34, 40), (28, 60), (22, 70), (16, 90)]), grew, "16 s ago");
        assert_eq!(found(&[(45, 20), (39, 40), (33, 60), (27, 70), (21, 90)]), None, "no longer: the cache is full");
        assert!(found(&[(65, 20), (53, 40), (48, 60), (46, 70), (22, 90)]).is_some(), "they are rare");
        assert_eq!(found(&[(45, 20), (39, 40), (33, 60), (27, 70), (3, 75)]), None, "it has nearly stopped");
        assert_eq!(found(&[(16, 20), (12, 40), (8, 60), (4, 70), (0, 90)]), None, "in 16 s: a program that starts");
        assert_eq!(found(&[(24, 20), (18, 40), (12, 60), (6, 70), (0, 70)]), None);
    }

    /// A process sends any times.
    #[test]
    fn corrupt_times_do_not_overflow() {
        let mut counters = healthy();
        for counter in &mut counters.counters {
            (counter.at, counter.history) = (i64::MIN, vec![(i64::MAX, 1.0), (i64::MIN, 2.0), (i64::MAX, 3.0)]);
        }
        let times = [i64::MIN, i64::MAX, i64::MIN, -1, i64::MAX, i64::MIN, i64::MAX];
        counters.full_collections = times.into_iter().zip(1..).map(|(at, times)| FullCollection { at, survived: times << 30 }).collect();
        let mark = |at| GcMark { at, pause_ns: u64::MAX, generation: 1, is_induced: true };
        counters.collections = CollectionMarks::Recorded(times.map(mark).into());
        health_issues(&counters, None, &ResourceHistory::default(), &Thresholds::default());
        heap(&counters, &Thresholds::default());
        let (mut app, ticket) = TestApp::watching();
        app.count(ticket, counters);
    }

    #[test]
    fn heap_that_is_not_collected_grows_possibly() {
        let found = |seconds: i64, size: fn(f64) -> f64| {
            let mut counters = healthy();
            for (name, share) in [("gen-2-size", 0.75), ("loh-size", 0.25)] {
                let history = (0..=seconds).map(|second| (second * 1_000_000_000, size(second as f64) * share)).collect();
                add_counter(&mut counters, COUNTERS_PROVIDER, name).history = history;
            }
            heap(&counters, &Thresholds::default()).filter(|(excess, _)| *excess > 1.0).map(|(_, finding)| (finding.text, finding.why))
        };
        let why = "a leak or a cache, unless the next gen 2 GC frees it";
        assert_eq!(found(60, |second| 100e6 + second * 5e6), Some(("gen 2 and LOH grew from 100 MB to 400 MB in 60 s".to_owned(), why)));
        assert_eq!(found(50, |second| 100e6 + second * 5e6), None, "too short");
        assert_eq!(found(60, |second| 10e6 + second * 1e6), None, "by 60 MB");
        assert_eq!(found(60, |second| 1e9 + second * 5e6), None, "by 30 %");
        assert_eq!(found(200, |second| 1e9 + second * 5e6).map(|(_, why)| why), Some(why));
        assert_eq!(found(60, |second| 100e6 + second.min(40.0) * 5e6), None, "it has stopped");
        assert_eq!(found(60, |second| 100e6 + second.min(40.0) * 5e6 + second * 1e5), None, "it has nearly stopped");
        assert_eq!(found(60, |second| 100e6 + second % 30.0 * 20e6), None, "it was freed");
    }
}
