//! The few figures by which one process is compared with another.

use super::series::CounterSnapshot;

/// How a process is, by what its runtime publishes: EventCounters of `System.Runtime`, or else the meter of that name (.NET 9). What is not
/// reported is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RuntimeStats {
    /// Processor time, percent of all processors.
    pub cpu_percent: Option<f64>,
    /// Memory that it has in use, bytes.
    pub working_set: Option<f64>,
    /// Size of the collector's heap, bytes.
    pub heap: Option<f64>,
    /// Bytes allocated a second.
    pub allocation_rate: Option<f64>,
    /// Time spent in collections, percent of the time since the collection before (EventCounter; nothing once there was none for ten intervals) or of
    /// the interval (meter).
    pub gc_time_percent: Option<f64>,
    /// Collections of each generation a second.
    pub collections: [Option<f64>; 3],
    /// Exceptions a second.
    pub exceptions: Option<f64>,
    /// Waits for locks a second.
    pub contentions: Option<f64>,
    /// Work items that wait for a thread.
    pub queue_length: Option<f64>,
    /// Threads of the thread pool.
    pub pool_threads: Option<f64>,
}

const GROUP: &str = "System.Runtime";
/// EventCounters tell megabytes of a million bytes.
const MEGABYTE: f64 = 1e6;
/// Intervals without a collection after which there is no time in collections.
const QUIET: usize = 10;

impl RuntimeStats {
    pub(super) fn new(counters: &[CounterSnapshot]) -> Self {
        let of = |name: &'static str| counters.iter().filter(move |counter| counter.group == GROUP && counter.name == name);
        let value = |name| of(name).find_map(|counter| counter.value);
        // Older runtimes put everything since their start into the first interval of a session.
        let rate = |name| of(name).filter(|counter| counter.history.len() > 1).find_map(|counter| counter.rate);
        // An instrument has one series for each combination of tags.
        let values = |name| sum(of(name).map(|counter| counter.value));
        let rates = |name| sum(of(name).map(|counter| counter.rate));
        let generation = |tag: &'static str| {
            sum(of("dotnet.gc.collections").filter(move |counter| counter.tags.ends_with(tag)).map(|counter| counter.rate))
        };
        let processors = value("dotnet.process.cpu.count").filter(|count| *count > 0.0);
        let cpu = || Some(rates("dotnet.process.cpu.time")? / processors? * 100.0);
        // The counter stays what the last collection made it, however long ago that was.
        let is_quiet = |counter: &CounterSnapshot| {
            let history = &counter.history;
            history.len() >= QUIET && history[history.len() - QUIET..].iter().all(|(_, rate)| *rate == 0.0)
        };
        let are_collecting = !of("gen-0-gc-count").any(is_quiet);
        Self {
            cpu_percent: value("cpu-usage").or_else(cpu),
            working_set: value("working-set").map(|mb| mb * MEGABYTE).or_else(|| values("dotnet.process.memory.working_set")),
            heap: value("gc-heap-size").map(|mb| mb * MEGABYTE).or_else(|| values("dotnet.gc.last_collection.heap.size")),
            allocation_rate: rate("alloc-rate").or_else(|| rates("dotnet.gc.heap.total_allocated")),
            gc_time_percent: value("time-in-gc")
                .map(|percent| if are_collecting { percent } else { 0.0 })
                .or_else(|| rates("dotnet.gc.pause.time").map(|share| share * 100.0)),
            collections: [("gen-0-gc-count", "gen0"), ("gen-1-gc-count", "gen1"), ("gen-2-gc-count", "gen2")]
                .map(|(counter, tag)| rate(counter).or_else(|| generation(tag))),
            exceptions: rate("exception-count").or_else(|| rates("dotnet.exceptions")),
            contentions: rate("monitor-lock-contention-count").or_else(|| rates("dotnet.monitor.lock_contentions")),
            queue_length: value("threadpool-queue-length").or_else(|| values("dotnet.thread_pool.queue.length")),
            pool_threads: value("threadpool-thread-count").or_else(|| values("dotnet.thread_pool.thread.count")),
        }
    }
}

/// The sum of those that are there; `None` where none is.
fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|a, b| a + b)
}
