//! The key figures by which processes are compared.

use super::series::CounterSnapshot;
use crate::clr::COUNTERS_PROVIDER;

/// Key figures of a process, from the EventCounters of `System.Runtime`, or else from the meter of that name (.NET 9). Figures that are not
/// published are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RuntimeStats {
    /// CPU usage, in percent of all processors.
    pub cpu_percent: Option<f64>,
    /// GC heap size, in bytes.
    pub heap: Option<f64>,
    /// Allocation rate, in bytes per second.
    pub allocation_rate: Option<f64>,
    /// Time in GC, in percent of the interval, from the total of the pauses (.NET 8 and later). Older runtimes only publish that of the latest
    /// collection, in percent of the time since the previous one; 0 after ten intervals without a collection.
    pub gc_time_percent: Option<f64>,
    /// Collections per second, by generation.
    pub collections: [Option<f64>; 3],
    /// Exceptions per second.
    pub exceptions: Option<f64>,
    /// Lock contentions per second.
    pub contentions: Option<f64>,
    /// Thread pool queue length.
    pub queue_length: Option<f64>,
}

/// EventCounters use decimal megabytes.
const MEGABYTE: f64 = 1e6;
/// Number of intervals without a collection after which the time in GC is 0.
const IDLE_INTERVALS: usize = 10;

impl RuntimeStats {
    pub(super) fn new(counters: &[CounterSnapshot]) -> Self {
        let of = |name: &'static str| counters.iter().filter(move |counter| counter.group == COUNTERS_PROVIDER && counter.name == name);
        let value = |name| of(name).find_map(|counter| counter.value);
        // Older runtimes include everything since process start in the first interval of a session.
        let rate = |name| of(name).filter(|counter| counter.history.len() > 1).find_map(|counter| counter.rate);
        // An instrument has one series per combination of tags.
        let values = |name| sum(of(name).map(|counter| counter.value));
        let rates = |name| sum(of(name).map(|counter| counter.rate));
        let generation = |tag: &'static str| {
            sum(of("dotnet.gc.collections").filter(move |counter| counter.tags.ends_with(tag)).map(|counter| counter.rate))
        };
        let processors = value("dotnet.process.cpu.count").filter(|count| *count > 0.0);
        let cpu = || Some(rates("dotnet.process.cpu.time")? / processors? * 100.0);
        // The counter keeps the value of the last collection, however long ago that was.
        let is_idle = |counter: &CounterSnapshot| {
            let history = &counter.history;
            history.len() >= IDLE_INTERVALS && history[history.len() - IDLE_INTERVALS..].iter().all(|(_, rate)| *rate == 0.0)
        };
        let are_collecting = !of("gen-0-gc-count").any(is_idle);
        let of_latest = || value("time-in-gc").map(|percent| if are_collecting { percent } else { 0.0 });
        Self {
            cpu_percent: value("cpu-usage").or_else(cpu),
            heap: value("gc-heap-size").map(|mb| mb * MEGABYTE).or_else(|| values("dotnet.gc.last_collection.heap.size")),
            allocation_rate: rate("alloc-rate").or_else(|| rates("dotnet.gc.heap.total_allocated")),
            gc_time_percent: match of("total-pause-time-by-gc").next() {
                Some(_) => rate("total-pause-time-by-gc").map(|ms_per_second| ms_per_second / 10.0),
                None => rates("dotnet.gc.pause.time").map(|share| share * 100.0).or_else(of_latest),
            },
            collections: [("gen-0-gc-count", "gen0"), ("gen-1-gc-count", "gen1"), ("gen-2-gc-count", "gen2")]
                .map(|(counter, tag)| rate(counter).or_else(|| generation(tag))),
            exceptions: rate("exception-count").or_else(|| rates("dotnet.exceptions")),
            contentions: rate("monitor-lock-contention-count").or_else(|| rates("dotnet.monitor.lock_contentions")),
            queue_length: value("threadpool-queue-length").or_else(|| values("dotnet.thread_pool.queue.length")),
        }
    }
}

/// Returns the sum of the values that are present; `None` if there are none.
fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|a, b| a + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(name: &str, history: &[f64]) -> CounterSnapshot {
        let last = history.last().copied();
        let history = history.iter().zip(1..).map(|(value, at)| (at, *value)).collect();
        let (group, name) = (COUNTERS_PROVIDER.to_owned(), name.to_owned());
        CounterSnapshot { group, name, value: last, rate: last, history, ..CounterSnapshot::default() }
    }

    /// It includes everything since the start of the process.
    #[test]
    fn the_first_interval_of_a_session_has_no_rate() {
        let exceptions = |history: &[f64]| RuntimeStats::new(&[counter("exception-count", history)]).exceptions;
        assert_eq!((exceptions(&[900.0]), exceptions(&[900.0, 2.0])), (None, Some(2.0)));
    }

    #[test]
    fn time_in_gc_is_that_of_the_latest_collection_for_ten_intervals() {
        let percent = |collections: &[f64]| {
            RuntimeStats::new(&[counter("time-in-gc", &[7.0]), counter("gen-0-gc-count", collections)]).gc_time_percent
        };
        let (mut collecting, idle) = ([0.0; 10], [0.0; 10]);
        collecting[0] = 1.0;
        assert_eq!([percent(&collecting), percent(&idle[1..]), percent(&idle)], [Some(7.0), Some(7.0), Some(0.0)]);
    }

    /// The latest of many collections can follow right after another.
    #[test]
    fn time_in_gc_is_that_of_all_pauses_if_published() {
        let percent = |name, history: &[f64]| RuntimeStats::new(&[counter("time-in-gc", &[90.0]), counter(name, history)]).gc_time_percent;
        assert_eq!(percent("total-pause-time-by-gc", &[5000.0]), None, "the total since the start");
        assert_eq!(percent("total-pause-time-by-gc", &[5000.0, 260.0]), Some(26.0));
        assert_eq!(percent("dotnet.gc.pause.time", &[0.25]), Some(25.0));
    }

    #[test]
    fn cpu_time_is_a_share_of_all_processors() {
        let percent = |processors| {
            RuntimeStats::new(&[counter("dotnet.process.cpu.time", &[2.0]), counter("dotnet.process.cpu.count", &[processors])]).cpu_percent
        };
        assert_eq!((percent(4.0), percent(0.0)), (Some(50.0), None));
    }
}
