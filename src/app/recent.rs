//! Recent values of counters and recent collections: a single high value is no issue.

use std::ops::RangeInclusive;

use super::health::runtime_counter;
use crate::analysis::{CollectionMarks, CounterSnapshot, CountersSnapshot, GcMark};

/// Minimum and maximum number of values of which a rate is the mean. The minimum applies to processes that have been watched for a shorter time.
const RATE_VALUES: RangeInclusive<usize> = 3..=5;
/// The same for gen 2 collections: one is often followed by another, also in a program that rarely has any.
const FULL_COLLECTION_VALUES: RangeInclusive<usize> = 5..=10;
/// Minimum and maximum seconds over which induced collections are counted.
const INDUCED_SECONDS: RangeInclusive<i64> = 3..=10;
/// The same for the share of time paused for GC: a single long pause of a large heap is no issue.
const PAUSE_SECONDS: RangeInclusive<i64> = 5..=10;
/// The same for the counter of the pauses.
const PAUSE_VALUES: RangeInclusive<usize> = 5..=10;
const SECOND: i64 = 1_000_000_000;

/// Returns the smallest known one of the latest `count` values; `None` if there are fewer values, or none of them is known.
pub(super) fn min_of_latest(history: &[(i64, f64)], count: usize) -> Option<f64> {
    let recent = &history[history.len().checked_sub(count)?..];
    recent.iter().map(|(_, value)| *value).filter(|value| !value.is_nan()).reduce(f64::min)
}

/// Returns the mean of the latest values of a rate.
fn mean_rate(counter: &CounterSnapshot, count: RangeInclusive<usize>) -> Option<f64> {
    // Older runtimes include everything since process start in the first interval of a session.
    let values = counter.history.get(1..)?;
    let recent = &values[values.len().saturating_sub(*count.end())..];
    let is_known = recent.len() >= *count.start();
    is_known.then(|| recent.iter().map(|(_, rate)| rate).sum::<f64>() / recent.len() as f64)
}

/// Returns exceptions per second.
pub(super) fn exception_rate(counters: &CountersSnapshot) -> Option<f64> {
    runtime_counter(counters, "exception-count").map_or(counters.stats.exceptions, |counter| mean_rate(counter, RATE_VALUES))
}

/// Returns gen 2 collections per second.
pub(super) fn full_collection_rate(counters: &CountersSnapshot) -> Option<f64> {
    let counter = runtime_counter(counters, "gen-2-gc-count");
    counter.map_or(counters.stats.collections[2], |counter| mean_rate(counter, FULL_COLLECTION_VALUES))
}

/// Returns the pauses of the latest seconds, and their number.
fn recent_marks(counters: &CountersSnapshot, seconds: &RangeInclusive<i64>) -> Option<(impl Iterator<Item = GcMark>, f64)> {
    let CollectionMarks::Recorded(marks) = &counters.collections else { return None };
    let newest = counters.counters.iter().map(|counter| counter.at).max()?;
    let seconds = (newest / SECOND).clamp(*seconds.start(), *seconds.end());
    let recent = marks.iter().copied().filter(move |mark| mark.at > newest.saturating_sub(seconds * SECOND));
    Some((recent, seconds as f64))
}

/// Returns induced collections per second, if collections are recorded individually.
pub(super) fn induced_rate(counters: &CountersSnapshot) -> Option<f64> {
    let (marks, seconds) = recent_marks(counters, &INDUCED_SECONDS)?;
    Some(marks.filter(|mark| mark.is_induced).count() as f64 / seconds)
}

/// Returns the share of time paused for GC. Before .NET 8, there is only a counter of the share since the previous collection: of two collections in
/// a row it is high, however rare they are, so that it says nothing if there are too many to record.
pub(super) fn gc_share(counters: &CountersSnapshot) -> Option<f64> {
    let are_too_many = matches!(counters.collections, CollectionMarks::TooMany(_));
    let of_latest = || counters.stats.gc_time_percent.filter(|_| !are_too_many).map(|percent| percent / 100.0);
    // Milliseconds per second.
    let counted = |counter| mean_rate(counter, PAUSE_VALUES).map(|ms| ms / 1000.0);
    // Not every runtime has the events of pauses.
    let is_marked = matches!(&counters.collections, CollectionMarks::Recorded(marks) if !marks.is_empty());
    let paused =
        || recent_marks(counters, &PAUSE_SECONDS).map(|(marks, seconds)| (marks.map(|mark| mark.pause_ns as f64).sum::<f64>(), seconds));
    match paused().filter(|_| is_marked) {
        Some((paused_ns, seconds)) => Some((paused_ns / SECOND as f64 / seconds).min(1.0)),
        None => runtime_counter(counters, "total-pause-time-by-gc").map_or_else(of_latest, counted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::test_app::{add_counter, published};
    use crate::clr::COUNTERS_PROVIDER;

    /// Returns counters with the history of a runtime counter, one value a second.
    fn counters(name: &str, values: &[f64]) -> CountersSnapshot {
        let mut counters = (*published(61.0, 4e6, 30.0, 0.0, 0.0)).clone();
        counters.counters.retain(|counter| counter.name != name);
        add_counter(&mut counters, COUNTERS_PROVIDER, name).history =
            (1..).map(|second| second * SECOND).zip(values.iter().copied()).collect();
        counters
    }

    #[test]
    fn rates_are_means_of_several_values() {
        let exceptions = |values: &[f64]| exception_rate(&counters("exception-count", values));
        assert_eq!(exceptions(&[9000.0, 1.0, 2.0]), None, "too few, and the first value is of the whole time before");
        assert_eq!(exceptions(&[9000.0, 1.0, 2.0, 3.0]), Some(2.0));
        assert_eq!(exceptions(&[900.0, 900.0, 0.0, 0.0, 0.0, 0.0, 200.0]), Some(40.0), "a burst");
        let full = |values: &[f64]| full_collection_rate(&counters("gen-2-gc-count", values));
        assert_eq!(full(&[9.0, 2.0, 2.0, 2.0, 2.0]), None);
        assert_eq!(full(&[9.0, 2.0, 2.0, 2.0, 2.0, 2.0]), Some(2.0));
        assert_eq!(full(&[&[0.0; 20][..], &[3.0]].concat()), Some(0.3), "several in a row");
    }

    #[test]
    fn gc_share_is_that_of_the_latest_pauses() {
        let share = |ago_ms: &[i64], pause_ms: u64| {
            let mut counters = counters("exception-count", &[0.0]);
            let mark = |ago| GcMark { at: 42 * SECOND - ago * 1_000_000, pause_ns: pause_ms * 1_000_000, generation: 1, is_induced: false };
            counters.collections = CollectionMarks::Recorded(ago_ms.iter().map(|ago| mark(*ago)).collect());
            gc_share(&counters)
        };
        assert_eq!(share(&[900, 850], 20), Some(0.004), "two in a row, the second at once after the first");
        assert_eq!(share(&[7000, 5000, 3000, 1000], 500), Some(0.2));
        assert_eq!(share(&[10_500], 500), Some(0.0), "some time ago");
        assert_eq!(share(&[], 0), Some(0.3), "pauses are not recorded");
    }

    #[test]
    fn gc_share_is_that_of_all_pauses_if_they_are_too_many_to_record() {
        let share = |name, values: &[f64]| {
            let mut counters = counters(name, values);
            counters.collections = CollectionMarks::TooMany(1e6);
            gc_share(&counters)
        };
        assert_eq!(share("exception-count", &[0.0; 20]), None, "unknown");
        let share = |values: &[f64]| share("total-pause-time-by-gc", values);
        assert_eq!(share(&[9000.0, 260.0, 260.0, 260.0, 260.0]), None);
        assert_eq!(share(&[9000.0, 260.0, 260.0, 260.0, 260.0, 260.0]), Some(0.26));
        assert_eq!(share(&[&[0.0; 20][..], &[1000.0]].concat()), Some(0.1), "a single long pause");
    }
}
