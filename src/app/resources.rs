//! Findings about the resources of a watched process: memory, threads and open files that keep growing or are about to reach a limit.

use std::collections::VecDeque;
use std::time::Duration;

use super::action::Action;
use super::findings::{Finding, HEAP_ADVICE, KeyAdvice, finding};
use super::growth::Growth;
use super::health::{CPU_ADVICE, runtime_counter};
use super::recent::{full_collection_rate, gc_share};
use super::stalls::{mean_waiters, thread_pool_finding};
use super::tabs::Tab;
use crate::analysis::CountersSnapshot;
use crate::diagnosis::{Threshold, Thresholds};
use crate::model::{Age, Bytes, Count, Limited, OpenFiles, Percent, ResourceUse};

/// Time over which growth is determined.
const GROWTH_SPAN: Duration = Duration::from_secs(60);
/// Time after which an idle thread of the pool ends (.NET runtime, `ThreadPoolThreadTimeoutMs`).
const IDLE_THREAD_TIME: Duration = Duration::from_secs(20);
/// Minimum time over which growth of timers is determined, as many timeouts are shorter, and that of open files while their limit is distant: the
/// clients of a program that has just started connect within that time.
const LONG_SPAN: Duration = Duration::from_secs(50);
/// Number of assemblies that only the largest programs load at startup.
const MANY_ASSEMBLIES: f64 = 1000.0;
/// Minimum number of threads per CPU for a large number of them: the pool has at least one, and the server GC at least two.
const THREADS_PER_CPU: usize = 4;
/// Time from which a limit is distant.
const DISTANT: Duration = Duration::from_secs(600);
/// Time up to which it is stated when a limit will be reached.
const FORESEEABLE: Duration = Duration::from_secs(24 * 3600);
/// The latest readings from which the mean number of threads that wait for a disk is determined, and their minimum number.
const DISK_READINGS: (usize, usize) = (15, 10);
/// Sizes of the generations after the latest collection, in bytes.
const GENERATION_SIZES: [&str; 5] = ["gen-0-size", "gen-1-size", "gen-2-size", "loh-size", "poh-size"];
/// EventCounters use decimal megabytes.
const MEGABYTE: f64 = 1e6;

pub(super) const STACKS_ADVICE: Option<KeyAdvice> = Some((Action::Stacks, ": what every thread is doing"));

/// The resources of a process over the last minute.
#[derive(Debug, Default)]
pub struct ResourceHistory {
    /// Oldest first.
    readings: VecDeque<Reading>,
    /// Number of CPUs; 0 if unknown.
    processors: usize,
}

#[derive(Debug)]
struct Reading {
    at: Duration,
    usage: ResourceUse,
    /// Managed memory, in bytes.
    managed: Option<f64>,
    /// Threads of the thread pool, which has findings of its own.
    pool_threads: f64,
    /// Active timers.
    timers: Option<f64>,
    /// Loaded assemblies.
    assemblies: Option<f64>,
}

impl ResourceHistory {
    /// Returns an empty history of a process on a machine with this number of CPUs; 0 if that is unknown.
    pub(super) fn new(processors: usize) -> Self {
        Self { processors, ..Self::default() }
    }

    /// Adds the resources at this time, with the latest counters.
    pub(super) fn push(&mut self, at: Duration, usage: ResourceUse, counters: &CountersSnapshot) {
        self.readings.push_back(Reading {
            at,
            usage,
            managed: managed(counters),
            pool_threads: latest(counters, "threadpool-thread-count").unwrap_or(0.0),
            timers: latest(counters, "active-timer-count"),
            assemblies: latest(counters, "assembly-count"),
        });
        while self.readings.get(1).is_some_and(|next| at.saturating_sub(next.at) >= GROWTH_SPAN) {
            self.readings.pop_front();
        }
    }

    /// Returns the latest values.
    pub fn latest(&self) -> Option<ResourceUse> {
        self.readings.back().map(|reading| reading.usage)
    }

    /// Returns how much a value has grown over the last minute, if it has been growing all the time.
    fn growth(&self, value: impl Fn(&Reading) -> Option<f64>) -> Option<Growth> {
        let values: Option<Vec<_>> = self.readings.iter().map(|reading| Some((reading.at, value(reading)?))).collect();
        Growth::of(&values?)
    }

    /// Returns the finding for open files close to their limit, or growing in number, with the ratio to the threshold.
    pub(super) fn open_files(&self, thresholds: &Thresholds) -> Option<(f64, Finding)> {
        let OpenFiles { count: count @ Limited { used, limit }, kind } = self.latest()?.open_files?;
        let excess = count.share() / thresholds.share(Threshold::OpenFiles);
        let kind = kind.map(|kind| format!(", mostly {}", kind.name())).unwrap_or_default();
        let (excess, text) = if excess > 1.0 {
            (excess, format!("{used} of {limit} open files{kind}"))
        } else {
            let growth = self.growth(|reading| Some(reading.usage.open_files?.count.used as f64))?;
            let left = growth.span.as_secs_f64() * limit.saturating_sub(used) as f64 / growth.amount();
            let left = Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX);
            if left > DISTANT && growth.span < LONG_SPAN {
                return None;
            }
            let at = if left < FORESEEABLE { format!(" reached in {} at this rate", Age(left)) } else { String::new() };
            let text = format!("open files grew from {} to {} in {} (limit {limit}{at}{kind})", growth.from, growth.to, growth.time());
            (growth.amount() / thresholds.of(Threshold::OpenFileGrowth), text)
        };
        let finding = finding(Tab::Overview, text, "opening more fails at the limit", "");
        Some((excess, Finding { live: HEAP_ADVICE, ..finding }))
    }

    /// Returns the finding for threads outside the thread pool that are growing in number, or have grown before, with the ratio to the threshold.
    pub(super) fn threads(&self, thresholds: &Thresholds) -> Option<(f64, Finding)> {
        let outside = |reading: &Reading| Some(reading.usage.threads? as f64 - reading.pool_threads);
        let growing = self.growth(outside).map(|growth| (growth.amount() / thresholds.of(Threshold::ThreadGrowth), growth));
        let (excess, text, why) = if let Some((excess, growth)) = growing.filter(|(excess, _)| *excess > 1.0) {
            let (from, to) = (growth.from.max(0.0), growth.to.max(0.0));
            (excess, format!("threads outside the pool grew from {from} to {to} in {}", growth.time()), "more are created than end")
        } else {
            let threads = self.lasting_threads(outside)?;
            (
                threads / thresholds.of(Threshold::Threads),
                format!("{} threads outside the pool", Count(threads as u64)),
                "each takes memory for its stack",
            )
        };
        let finding = finding(Tab::Threads, text, why, "");
        Some((excess, Finding { live: STACKS_ADVICE, ..finding }))
    }

    /// Returns the finding for a growing thread pool, or one that has grown before, with the ratio to the threshold.
    pub(super) fn pool_threads(&self, thresholds: &Thresholds) -> Option<(f64, Finding)> {
        let growth = self.growth(|reading| Some(reading.pool_threads));
        let growing = growth.map(|growth| (growth.amount() / thresholds.of(Threshold::ThreadGrowth), growth));
        if let Some((excess, growth)) = growing.filter(|(excess, _)| *excess > 1.0) {
            let text = format!("the thread pool grew from {} to {} threads in {}", growth.from, growth.to, growth.time());
            return Some((excess, thread_pool_finding(text, "more and more of its threads are blocked or busy for long")));
        }
        // The pool adds threads above the number of CPUs if work items block, or up to a configured minimum.
        let threads = self.lasting_threads(|reading| Some(reading.pool_threads))?;
        let text = format!("the thread pool has {} threads", Count(threads as u64));
        let finding = finding(Tab::Threads, text, "work items block, or its minimum is high", "");
        Some((threads / thresholds.of(Threshold::PoolThreads), Finding { live: STACKS_ADVICE, ..finding }))
    }

    /// Returns the smallest number of some threads over the time in which idle ones of the pool end, if there are several per CPU.
    fn lasting_threads(&self, threads: impl Fn(&Reading) -> Option<f64>) -> Option<f64> {
        let latest = self.readings.back()?;
        let recent = self.readings.iter().rev().find(|reading| latest.at.saturating_sub(reading.at) >= IDLE_THREAD_TIME)?;
        let values: Option<Vec<f64>> = self.readings.iter().filter(|reading| reading.at >= recent.at).map(threads).collect();
        let least = values?.into_iter().fold(f64::INFINITY, f64::min);
        Some(least).filter(|least| least.is_finite() && *least >= (self.processors * THREADS_PER_CPU) as f64)
    }

    /// Returns the finding for a growing number of active timers, with the ratio to the threshold.
    pub(super) fn timers(&self, thresholds: &Thresholds) -> Option<(f64, Finding)> {
        let growth = self.growth(|reading| reading.timers).filter(|growth| growth.span >= LONG_SPAN)?;
        let (from, to) = (Count(growth.from as u64), Count(growth.to as u64));
        let text = format!("active timers grew from {from} to {to} in {}", growth.time());
        let finding = finding(Tab::Heap, text, "their timeouts are long, or they are never disposed", "");
        Some((growth.amount() / thresholds.of(Threshold::TimerGrowth), Finding { live: HEAP_ADVICE, ..finding }))
    }

    /// Returns the finding for a growing number of loaded assemblies, with the ratio to the threshold.
    pub(super) fn assemblies(&self, thresholds: &Thresholds) -> Option<(f64, Finding)> {
        let growth = self.growth(|reading| reading.assemblies)?;
        if growth.span < LONG_SPAN && growth.from < MANY_ASSEMBLIES {
            return None;
        }
        let (from, to) = (Count(growth.from as u64), Count(growth.to as u64));
        let text = format!("loaded assemblies grew from {from} to {to} in {}", growth.time());
        let finding = finding(Tab::Slowdown, text, "generated or loaded repeatedly", "");
        Some((growth.amount() / thresholds.of(Threshold::AssemblyGrowth), Finding { live: CPU_ADVICE, ..finding }))
    }

    /// Returns the finding for threads that wait for a disk, with the ratio to the threshold.
    pub(super) fn disk_waits(&self, thresholds: &Thresholds) -> Option<(f64, Finding)> {
        let (most, least) = DISK_READINGS;
        let waiting: Vec<_> = self.readings.iter().rev().take(most).filter_map(|reading| reading.usage.disk_waiters).collect();
        let mean = waiting.iter().sum::<u64>() as f64 / waiting.len().max(least) as f64;
        let text = mean_waiters(mean, "a disk");
        let finding = finding(Tab::Threads, text, "slow, or much is read or flushed", "");
        let excess = mean / thresholds.of(Threshold::DiskWaiters);
        (waiting.len() >= least).then_some((excess, Finding { live: STACKS_ADVICE, ..finding }))
    }

    /// Returns the finding for memory that grows outside the GC heap, with the ratio to the threshold.
    pub(super) fn native_memory(&self, thresholds: &Thresholds) -> Option<(f64, Finding)> {
        let growth = self.growth(|reading| Some(reading.usage.anonymous? as f64))?;
        let managed = |reading: &Reading| reading.managed;
        let first = self.readings.iter().find_map(managed)?;
        // Between two collections, it is not known how much of the heap is in use.
        let largest = self.readings.iter().filter_map(managed).fold(first, f64::max);
        let native = growth.amount() - (largest - first);
        if native < growth.amount() / 2.0 {
            return None;
        }
        let text = format!("memory outside the GC heap grew by {} in {}", Bytes(native as u64), growth.time());
        let finding = finding(Tab::Overview, text, "allocated by native code, or by Marshal.AllocHGlobal", "");
        Some((native / (thresholds.of(Threshold::NativeGrowth) * MEGABYTE), finding))
    }

    /// Returns the finding for memory close to the limit of a control group, with the ratio to the threshold.
    pub(super) fn memory_limit(&self, thresholds: &Thresholds) -> Option<(f64, Finding)> {
        let memory @ Limited { used, limit } = self.latest()?.memory?;
        let text = format!("{} of memory used, {} of the limit {}", Bytes(used), Percent(memory.share()), Bytes(limit));
        let finding = finding(Tab::Overview, text, "the kernel kills the process at the limit", "");
        Some((memory.share() / thresholds.share(Threshold::MemoryLimit), Finding { live: HEAP_ADVICE, ..finding }))
    }

    /// Returns the finding for a GC heap close to its maximum size, with the ratio to the threshold.
    pub(super) fn heap_limit(&self, counters: &CountersSnapshot, thresholds: &Thresholds) -> Option<(f64, Finding)> {
        let limit = self.latest()?.heap_limit?;
        let paused = gc_share(counters).unwrap_or(0.0) / thresholds.share(Threshold::GcTime);
        let collecting = paused.max(full_collection_rate(counters).unwrap_or(0.0) / thresholds.of(Threshold::Gen2Collections));
        // The limit is one of committed memory, but a healthy heap also commits what it does not need.
        let committed = latest(counters, "gc-committed").filter(|_| collecting > 1.0).unwrap_or(0.0) * MEGABYTE;
        let used = generation_sizes(counters)?.max(committed) as u64;
        let heap = Limited { used, limit };
        // A larger heap has another limit, from a file that is not visible here.
        let heap = Some(heap).filter(|heap| heap.share() <= 1.05)?;
        let text = format!("GC heap {}, {} of its limit {}", Bytes(used), Percent(heap.share()), Bytes(limit));
        let finding = finding(Tab::Gc, text, "GCs free little, then allocations fail", "its history");
        let excess = heap.share() / thresholds.share(Threshold::HeapLimit);
        // It is the cause of the collections, which exceed their threshold by a little less.
        let excess = if excess > 1.0 { excess.max(collecting * 1.01) } else { excess };
        Some((excess, Finding { live: HEAP_ADVICE, ..finding }))
    }
}

/// Returns the latest value of a counter of the runtime.
fn latest(counters: &CountersSnapshot, name: &str) -> Option<f64> {
    runtime_counter(counters, name)?.value
}

/// Returns the size of the GC heap after the latest collection, in bytes.
pub(super) fn generation_sizes(counters: &CountersSnapshot) -> Option<f64> {
    GENERATION_SIZES.iter().filter_map(|name| latest(counters, name)).reduce(|sum, size| sum + size)
}

/// Returns an upper bound of managed memory in bytes: what the latest collection left committed (.NET 5 and later), and the heap now, which
/// includes what was allocated since.
fn managed(counters: &CountersSnapshot) -> Option<f64> {
    let heap = counters.stats.heap?;
    Some(heap + latest(counters, "gc-committed").unwrap_or(0.0) * MEGABYTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::test_app::{add_counter, healthy, published};
    use crate::clr::COUNTERS_PROVIDER;
    use crate::model::OpenFileKind;

    /// Returns the history of a process that is read once a second, given its values at each second.
    fn history(seconds: u64, usage: impl Fn(u64) -> ResourceUse, heap_mb: impl Fn(u64) -> f64) -> ResourceHistory {
        let mut history = ResourceHistory::default();
        for second in 0..=seconds {
            history.push(Duration::from_secs(100 + second), usage(second), &published(heap_mb(second), 4e6, 1.0, 0.0, 0.0));
        }
        history
    }

    /// Returns the text if the threshold is exceeded.
    fn text(found: Option<(f64, Finding)>) -> Option<String> {
        found.filter(|(excess, _)| *excess > 1.0).map(|(_, finding)| finding.text)
    }

    #[test]
    fn steady_growth_is_found_and_a_burst_is_not() {
        let threads = |seconds, threads: fn(u64) -> u64| {
            let usage = |second| ResourceUse { threads: Some(threads(second)), ..ResourceUse::default() };
            text(history(seconds, usage, |_| 60.0).threads(&Thresholds::default()))
        };
        let grew = |text: &str| Some(format!("threads outside the pool grew {text}"));
        assert_eq!(threads(20, |second| 30 + second * 2), grew("from 30 to 70 in 20 s"));
        assert_eq!(threads(19, |second| 30 + second * 9), None, "too short");
        assert_eq!(threads(20, |second| 30 + second), None, "by 20 threads");
        assert_eq!(threads(90, |second| 30 + second * 2), grew("from 90 to 210 in 60 s"), "over the last minute");
        assert_eq!(threads(20, |second| 30 + second.min(14) * 9), None, "it has stopped");
        assert_eq!(threads(60, |second| if second < 30 { 30 } else { 400 }), None, "a single step");
        assert_eq!(threads(60, |second| 30 + second % 20 * 9), None, "it shrinks again");
        assert_eq!(threads(20, |_| 501).as_deref(), Some("501 threads outside the pool"));
        assert_eq!(threads(20, |_| 500), None);
        assert_eq!(threads(19, |_| 900), None, "too short");
        assert_eq!(threads(30, |second| if second < 15 { 30 } else { 900 }), None, "for 15 s");
    }

    #[test]
    fn growth_of_the_thread_pool_is_not_a_leak_of_threads() {
        let mut history = ResourceHistory::default();
        for second in 0..=30 {
            let mut counters = healthy();
            add_counter(&mut counters, COUNTERS_PROVIDER, "threadpool-thread-count").value = Some(4.0 * second as f64);
            let usage = ResourceUse { threads: Some(30 + second * 4), ..ResourceUse::default() };
            history.push(Duration::from_secs(second), usage, &counters);
        }
        assert_eq!(text(history.threads(&Thresholds::default())), None);
    }

    /// Returns the history of a process that is read once a second, with a counter.
    fn history_of(seconds: u64, name: &str, value: impl Fn(u64) -> f64) -> ResourceHistory {
        let mut history = ResourceHistory::default();
        for second in 0..=seconds {
            let mut counters = healthy();
            add_counter(&mut counters, COUNTERS_PROVIDER, name).value = Some(value(second));
            history.push(Duration::from_secs(second), ResourceUse::default(), &counters);
        }
        history
    }

    #[test]
    fn growing_thread_pool_and_timers_are_found() {
        let pool = |value: fn(u64) -> f64| text(history_of(30, "threadpool-thread-count", value).pool_threads(&Thresholds::default()));
        assert_eq!(pool(|second| 4.0 + second as f64).as_deref(), Some("the thread pool grew from 4 to 34 threads in 30 s"));
        assert_eq!(pool(|second| 4.0 + second as f64 / 2.0), None, "by 15");
        assert_eq!(pool(|second| if second < 5 { 4.0 } else { 50.0 }), None, "a burst");
        assert_eq!(pool(|_| 101.0).as_deref(), Some("the thread pool has 101 threads"));
        assert_eq!(pool(|_| 100.0), None);
        assert_eq!(pool(|second| if second < 15 { 4.0 } else { 500.0 }), None, "for 15 s");
        let on_many_cpus = |processors| {
            let readings = history_of(30, "threadpool-thread-count", |_| 300.0).readings;
            text(ResourceHistory { readings, processors }.pool_threads(&Thresholds::default()))
        };
        assert_eq!((on_many_cpus(76), on_many_cpus(75).is_some()), (None, true), "4 per CPU");
        let timers = |seconds, value: fn(u64) -> f64| text(history_of(seconds, "active-timer-count", value).timers(&Thresholds::default()));
        assert_eq!(timers(55, |second| 20.0 + second as f64 * 40.0).as_deref(), Some("active timers grew from 20 to 2.2k in 55 s"));
        assert_eq!(timers(45, |second| 20.0 + second as f64 * 40.0), None, "too short");
        assert_eq!(timers(60, |second| 20.0 + second.min(30) as f64 * 40.0), None, "timeouts of 30 s");
        assert_eq!(timers(60, |second| 20.0 + second as f64 * 5.0), None, "by 300");
    }

    #[test]
    fn growing_number_of_assemblies_is_found() {
        let assemblies =
            |seconds, value: fn(u64) -> f64| text(history_of(seconds, "assembly-count", value).assemblies(&Thresholds::default()));
        assert_eq!(assemblies(55, |second| 40.0 + second as f64).as_deref(), Some("loaded assemblies grew from 40 to 95 in 55 s"));
        assert_eq!(assemblies(45, |second| 40.0 + second as f64 * 9.0), None, "too short: a program that starts");
        assert!(assemblies(20, |second| 1000.0 + second as f64 * 9.0).is_some(), "no program starts with that many");
        assert_eq!(assemblies(60, |second| 40.0 + second.min(30) as f64 * 9.0), None, "it has started");
        assert_eq!(assemblies(60, |second| 40.0 + second as f64 * 0.8), None, "by 48");
    }

    #[test]
    fn waits_for_a_disk_are_found_if_they_are_frequent() {
        let waiting = |readings: u64, waiters: fn(u64) -> Option<u64>| {
            let usage = |second| ResourceUse { disk_waiters: waiters(second), ..ResourceUse::default() };
            text(history(readings - 1, usage, |_| 60.0).disk_waits(&Thresholds::default()))
        };
        assert_eq!(waiting(15, |second| Some(second % 3)).as_deref(), Some("1.0 threads on average wait for a disk"));
        assert_eq!(waiting(60, |second| Some(if second < 45 { 0 } else { 3 })).as_deref(), Some("3 threads at a time wait for a disk"));
        assert_eq!(waiting(20, |second| Some(u64::from(second % 3 == 0))), None, "a third of the time");
        assert_eq!(waiting(9, |_| Some(3)), None, "too few readings");
        assert_eq!(waiting(60, |_| None), None, "unknown");
    }

    #[test]
    fn open_files_are_found_by_growth_or_by_limit() {
        let files_after = |seconds, limit: u64, count: fn(u64) -> u64| {
            let usage = |second| {
                let count = Limited { used: count(second), limit };
                ResourceUse { open_files: Some(OpenFiles { count, kind: Some(OpenFileKind::Socket) }), ..ResourceUse::default() }
            };
            text(history(seconds, usage, |_| 60.0).open_files(&Thresholds::default()))
        };
        let files = |limit, count| files_after(20, limit, count);
        let grew = "open files grew from 200 to 600 in 20 s (limit 4096 reached in 2m at this rate, mostly sockets)";
        assert_eq!(files(4096, |second| 200 + second * 20).as_deref(), Some(grew));
        assert_eq!(files(1024, |second| 200 + second * 5), None, "by 100");
        let slowly = |second| 200 + second * 6;
        assert_eq!(files(100_000, slowly), None, "the limit is distant");
        let grew = "open files grew from 200 to 500 in 50 s (limit 100000 reached in 4h 36m at this rate, mostly sockets)";
        assert_eq!(files_after(50, 100_000, slowly).as_deref(), Some(grew));
        assert_eq!(files(1024, |_| 820).as_deref(), Some("820 of 1024 open files, mostly sockets"));
        assert_eq!(files(1024, |_| 819), None, "80 %");
    }

    #[test]
    fn memory_outside_the_gc_heap_is_distinguished_from_the_heap() {
        let grown = |mb_per_second: u64, heap_mb: fn(u64) -> f64| {
            let usage = |second| ResourceUse { anonymous: Some((50 + second * mb_per_second) * 1_000_000), ..ResourceUse::default() };
            text(history(20, usage, heap_mb).native_memory(&Thresholds::default()))
        };
        let native = "memory outside the GC heap grew by 200 MB in 20 s";
        assert_eq!(grown(10, |_| 5.0).as_deref(), Some(native));
        assert_eq!(grown(3, |_| 5.0), None, "by 60 MB");
        assert_eq!(grown(10, |second| 5.0 + second as f64 * 9.0), None, "it is the heap");
        assert_eq!(grown(10, |second| 5.0 + (second % 11) as f64 * 12.0), None, "a collection freed what was allocated");
    }

    #[test]
    fn memory_close_to_a_limit_is_found() {
        let used = |used| {
            let usage = ResourceUse { memory: Some(Limited { used, limit: 200_000_000 }), ..ResourceUse::default() };
            text(history(0, |_| usage, |_| 60.0).memory_limit(&Thresholds::default()))
        };
        assert_eq!(used(180_000_000), None);
        assert_eq!(used(182_000_000).as_deref(), Some("182 MB of memory used, 91 % of the limit 200 MB"));
        let mut counters = healthy();
        add_counter(&mut counters, COUNTERS_PROVIDER, "gen-2-size").value = Some(90e6);
        let heap = |limit| {
            let usage = ResourceUse { heap_limit: Some(limit), ..ResourceUse::default() };
            text(history(0, |_| usage, |_| 60.0).heap_limit(&counters, &Thresholds::default()))
        };
        assert_eq!(heap(100_000_000).as_deref(), Some("GC heap 90.0 MB, 90 % of its limit 100 MB"));
        assert_eq!(heap(106_000_000), None, "85 %");
        assert_eq!(heap(80_000_000), None, "that is not its limit");
        let committed = |gc_percent| {
            let mut counters = counters.clone();
            add_counter(&mut counters, COUNTERS_PROVIDER, "gc-committed").value = Some(119.0);
            counters.stats.gc_time_percent = Some(gc_percent);
            let usage = ResourceUse { heap_limit: Some(120_000_000), ..ResourceUse::default() };
            history(0, |_| usage, |_| 60.0).heap_limit(&counters, &Thresholds::default())
        };
        assert_eq!(text(committed(10.0)), None, "it need not use what it has committed");
        assert_eq!(text(committed(50.0)).as_deref(), Some("GC heap 119 MB, 99 % of its limit 120 MB"));
        assert!(committed(50.0).unwrap().0 > 5.0, "listed before the collections that it causes");
    }
}
