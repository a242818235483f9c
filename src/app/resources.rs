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
    pub fn new(processors: usize) -> Self {
        Self { processors, ..Self::default() }
    }

    /// Adds the resources at this time, with the latest counters.
    pub fn push(&mut self, at: Duration, usage: ResourceUse, counters: &CountersSnapshot) {
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
        if waiting.len() < least {
            return None;
        }
        let mean = waiting.iter().sum::<u64>() as f64 / waiting.len() as f64;
        let text = mean_waiters(mean, "a disk");
        let finding = finding(Tab::Threads, text, "slow, or much is read or flushed", "");
        let excess = mean / thresholds.of(Threshold::DiskWaiters);
        Some((excess, Finding { live: STACKS_ADVICE, ..finding }))
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
mod tests;
