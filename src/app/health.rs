//! Health issues of a watched process, based on its runtime's counters and what the system shows about it.

use std::time::Duration;

use super::action::Action;
use super::findings::{ALLOCATIONS_ADVICE, HEAP_ADVICE, KeyAdvice, exceptions_finding, finding, gc_time_finding};
use super::recent::{exception_rate, full_collection_rate, gc_share, induced_rate, min_of_latest};
use super::resources::{STACKS_ADVICE, generation_sizes};
use super::{Finding, ResourceHistory, Tab, growth, stalls};
use crate::analysis::{CollectionMarks, CounterSnapshot, CountersSnapshot, RequestDurations};
use crate::clr::{COUNTERS_PROVIDER, HOSTING_PROVIDER, HTTP_CLIENT_PROVIDER};
use crate::diagnosis::{MIN_BUSY_CORES, MIN_CPU_WAITERS, MIN_THROTTLED_SHARE, Threshold, Thresholds};
use crate::model::{Bytes, CountRate, Counted, CpuUse, Nanoseconds, Percent};
use crate::sorting::CompactSort;

/// Advice for finding where CPU time goes.
pub(super) const CPU_ADVICE: Option<KeyAdvice> = Some((Action::WhySlow, ": why"));

const ROUTES_ADVICE: Option<KeyAdvice> = Some((Action::Profiles, ", http: routes"));

/// Consecutive values of the time spent in JIT: the startup of a program takes shorter.
const JIT_VALUES: usize = 20;
/// Share of the threshold of waiting threads below which many lock contentions are too short to matter.
const SHORT_CONTENTIONS: f64 = 0.25;
/// Seconds over which failed requests are counted, and the minimum number of failed requests.
const FAILED_REQUESTS: (usize, f64) = (10, 5.0);
/// Intervals with slow requests, of those in which requests ended.
const SLOW_INTERVALS: usize = 3;
/// Latest intervals that are considered: a few slow requests end in few intervals.
const REQUEST_INTERVALS: usize = 15;
/// Consecutive values of the free share of the GC heap, and the minimum free space in bytes: it is reused by the next allocations.
const FRAGMENTATION_VALUES: usize = 10;
const MIN_FREE_BYTES: f64 = 100e6;
/// Consecutive scans with a busy process.
const BUSY_SCANS: usize = 5;
/// Minimum number of CPU limit periods, usually of 100 ms each, for a throttled share.
const THROTTLED_PERIODS: u64 = 10;
/// The shortest time over which waiting for CPU is a finding.
const CPU_SPAN: Duration = Duration::from_secs(2);

listed! {
/// A problem of a watched process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthIssue {
    /// Paused for GC too much of the time.
    GcTime => "GC time",
    /// Work items wait in the thread pool queue.
    Queue => "pool queue",
    /// The thread pool keeps growing, or is large, so that few work items wait.
    PoolThreads => "pool size",
    Exceptions => "exceptions",
    /// Continuous lock contention.
    Contention => "locks",
    /// Threads that have been waiting for a lock for long.
    LockWaits => "long lock",
    /// Requests start, but none ends.
    RequestStall => "stuck HTTP",
    /// Frequent gen 2 collections.
    FullCollections => "gen 2 GCs",
    /// Gen 2 keeps growing.
    HeapGrowth => "heap growth",
    /// The program calls `GC.Collect` frequently.
    InducedCollections => "induced GCs",
    JitTime => "JIT",
    FailedRequests => "HTTP 5xx",
    SlowRequests => "slow HTTP",
    /// Outgoing requests take long, because another service is slow or keeps them open on purpose.
    SlowSentRequests => "slow calls",
    /// Throttled by a cgroup's CPU limit.
    CpuLimit => "CPU limit",
    /// Runnable threads wait for CPUs that other processes use.
    CpuWait => "CPU wait",
    /// Memory close to the limit of a control group.
    MemoryLimit => "low memory",
    /// The GC heap is close to its maximum size.
    HeapLimit => "heap limit",
    /// Outgoing requests wait for a connection.
    ConnectionQueue => "connections",
    /// The finalizer thread is blocked or busy for long.
    Finalizer => "finalizer",
    /// Most of the GC heap is free space between objects.
    Fragmentation => "fragmented",
    /// Memory outside the GC heap keeps growing.
    NativeMemory => "RSS growth",
    /// Threads outside the thread pool keep growing in number, or there are many.
    Threads => "threads",
    /// Open files keep growing in number, or are close to their limit.
    OpenFiles => "open files",
    /// Active timers keep growing in number.
    Timers => "timers",
    /// Loaded assemblies keep growing in number.
    Assemblies => "assemblies",
    /// Threads wait for a disk much of the time.
    DiskWaits => "disk",
}
/// Returns a short name, for a row of the table.
pub fn label(self) -> &'static str;
}

impl HealthIssue {
    /// Returns whether the causes of slowness of a recording do not include it: events do not show requests that never end, and what grows, or
    /// is about to reach a limit, takes no time yet.
    pub fn is_no_cause(self) -> bool {
        matches!(
            self,
            Self::RequestStall
                | Self::ConnectionQueue
                | Self::PoolThreads
                | Self::HeapGrowth
                | Self::MemoryLimit
                | Self::HeapLimit
                | Self::Fragmentation
                | Self::NativeMemory
                | Self::Threads
                | Self::OpenFiles
                | Self::Timers
                | Self::Assemblies
                | Self::DiskWaits
        )
    }

    /// Returns the finding if the figure exceeds its threshold: the observation, why it matters and what to do. Its severity is the ratio of the two.
    fn finding(
        self,
        counters: &CountersSnapshot,
        cpu: Option<CpuUse>,
        resources: &ResourceHistory,
        thresholds: &Thresholds,
    ) -> Option<Finding> {
        let of = |threshold| thresholds.of(threshold);
        let counter = |name| runtime_counter(counters, name);
        let (excess, finding) = match self {
            Self::GcTime => {
                let share = gc_share(counters)?;
                (share / thresholds.share(Threshold::GcTime), gc_time_finding(share, thresholds))
            }
            Self::Exceptions => {
                let rate = exception_rate(counters)?;
                (rate / of(Threshold::Exceptions), exceptions_finding(rate, "", thresholds))
            }
            Self::Queue => stalls::thread_pool(counters, thresholds)?,
            Self::PoolThreads if Self::Queue.finding(counters, cpu, resources, thresholds).is_some() => return None,
            Self::PoolThreads => resources.pool_threads(thresholds)?,
            Self::LockWaits => stalls::lock_waits(&counters.long_lock_waits_ns, thresholds)?,
            Self::RequestStall => stalls::requests(counters, thresholds)?,
            Self::Contention => {
                let (excess, text) = lock_contention(counters, thresholds)?;
                (excess, finding(Tab::Threads, text, "lock contention limits throughput", "waiting methods"))
            }
            Self::FullCollections => {
                let rate = full_collection_rate(counters)?;
                let reason = match counters.collections {
                    CollectionMarks::Recorded(_) => "large or long-lived objects allocated continuously",
                    // Without marks, it is not known which are induced.
                    CollectionMarks::NotRecorded | CollectionMarks::TooMany(_) => "large or long-lived objects, or calls of GC.Collect",
                };
                let finding = finding(Tab::Gc, format!("{} gen 2 collections", CountRate(rate)), reason, "why");
                // Induced collections are an issue of their own.
                let excess = (rate - induced_rate(counters).unwrap_or(0.0)) / of(Threshold::Gen2Collections);
                (excess, Finding { live: ALLOCATIONS_ADVICE, ..finding })
            }
            Self::InducedCollections => {
                let rate = induced_rate(counters)?;
                let text = format!("{} induced GCs", CountRate(rate));
                (rate / of(Threshold::InducedCollections), finding(Tab::Gc, text, "the program calls GC.Collect", "why"))
            }
            Self::JitTime => {
                let history = &counter("time-in-jit")?.history;
                // Milliseconds per second are tenths of a percent.
                let excess = min_of_latest(history, JIT_VALUES)? / (of(Threshold::JitTime) * 10.0);
                let text = format!("{} of a core is spent in JIT", Percent(history.last()?.1 / 1000.0));
                let finding = finding(Tab::Jit, text, "code is compiled or loaded continuously", "");
                (excess, Finding { live: Some((Action::Profiles, ", startup: methods")), ..finding })
            }
            Self::FailedRequests => {
                let share = failed_requests(counters)?;
                let finding = finding(Tab::Http, format!("{} of requests fail", Percent(share)), "HTTP status 5xx", "");
                (share / thresholds.share(Threshold::FailedRequests), Finding { live: ROUTES_ADVICE, ..finding })
            }
            Self::SlowRequests | Self::SlowSentRequests => {
                let (ended, what) = match self {
                    Self::SlowRequests => (&counters.requests, "requests"),
                    _ => (&counters.sent_requests, "outgoing requests"),
                };
                let seconds = slow_requests(ended)?;
                let text = format!("p95 of {what} {}", Nanoseconds((seconds * 1e9) as u64));
                let finding = finding(Tab::Http, text, "1 in 20 takes that long or longer; usual for long polling", "");
                (seconds / of(Threshold::SlowRequests), Finding { live: ROUTES_ADVICE, ..finding })
            }
            Self::HeapGrowth => growth::heap(counters, thresholds)?,
            Self::CpuLimit => {
                let (cpu, limit) = (cpu?, cpu?.constraints.limit?);
                let text = format!("throttled in {} of periods, CPU limit {limit}", Percent(limit.throttled_share()));
                let finding = finding(Tab::Slowdown, text, "its threads are stopped until the next period", "");
                (throttling_excess(&cpu, thresholds)?, Finding { live: CPU_ADVICE, ..finding })
            }
            Self::CpuWait => {
                let cpu = cpu?;
                let others = cpu.others().map(|others| format!(" (others use {others:.1} CPUs)")).unwrap_or_default();
                let text = format!("runnable threads wait for a CPU {} of the time{others}", Percent(cpu.wait_share()?));
                let finding = finding(Tab::Slowdown, text, "other threads use the CPUs", "");
                (cpu_wait_excess(&cpu, thresholds)?, Finding { live: CPU_ADVICE, ..finding })
            }
            Self::MemoryLimit => resources.memory_limit(thresholds)?,
            Self::HeapLimit => resources.heap_limit(counters, thresholds)?,
            Self::ConnectionQueue => {
                let seconds = connection_queue_time(counters)?;
                let text = format!("outgoing requests wait {} on average for a connection", Nanoseconds((seconds * 1e9) as u64));
                let finding = finding(Tab::Http, text, "all connections are in use, or opening one is slow", "");
                // It is the cause of slow outgoing requests, which exceed their threshold by a little more.
                let requests = slow_requests(&counters.sent_requests).filter(|requests| seconds > requests / 2.0);
                let excess = seconds.max(requests.unwrap_or(0.0) * 1.01) / of(Threshold::SlowRequests);
                (excess, Finding { live: ROUTES_ADVICE, ..finding })
            }
            Self::Finalizer => {
                let wait = counters.finalizer_wait?;
                let text = format!("the finalizer thread is blocked or busy, {} queued", Counted(wait.queued, "object"));
                let finding = finding(Tab::Threads, text, "memory of objects with finalizers is not freed", "");
                (wait.waiting_ns as f64 / 1e9 / of(Threshold::FinalizerWait), Finding { live: STACKS_ADVICE, ..finding })
            }
            Self::Fragmentation => {
                let share = min_of_latest(&counter("gc-fragmentation")?.history, FRAGMENTATION_VALUES)? / 100.0;
                let size = generation_sizes(counters)?;
                let free = Some(size * share).filter(|free| *free >= MIN_FREE_BYTES)?;
                // Free space that was returned to the system, or never used, takes up no memory.
                let resident = resources.latest().and_then(|latest| latest.anonymous);
                if resident.is_some_and(|resident| free > resident as f64) {
                    return None;
                }
                let text = format!("{} of the GC heap is free: {} of {}", Percent(share), Bytes(free as u64), Bytes(size as u64));
                let finding = finding(Tab::Gc, text, "gaps between objects that are pinned or not moved", "its history");
                (share / thresholds.share(Threshold::Fragmentation), Finding { live: HEAP_ADVICE, ..finding })
            }
            Self::NativeMemory => resources.native_memory(thresholds)?,
            Self::Threads => resources.threads(thresholds)?,
            Self::OpenFiles => resources.open_files(thresholds)?,
            Self::Timers => resources.timers(thresholds)?,
            Self::Assemblies => resources.assemblies(thresholds)?,
            Self::DiskWaits => resources.disk_waits(thresholds)?,
        };
        let is_exceeded = match self {
            Self::Queue | Self::JitTime | Self::CpuLimit | Self::CpuWait => excess >= 1.0,
            _ => excess > 1.0,
        };
        is_exceeded.then_some(Finding { recorded: false, severity: excess, ..finding })
    }
}

/// Returns the ratio of the share of throttled periods to its threshold, or of the share of time spent waiting, whichever is higher. `None` if
/// something else is throttled.
fn throttling_excess(cpu: &CpuUse, thresholds: &Thresholds) -> Option<f64> {
    let limit = cpu.constraints.limit.filter(|limit| limit.periods >= THROTTLED_PERIODS)?;
    // If the process itself is hardly runnable, something else in its cgroup is throttled.
    let wants = cpu.cores()? + cpu.waiting().unwrap_or(0.0) >= MIN_BUSY_CORES.min(limit.cores / 2.0);
    let wait = wait_excess(cpu, thresholds).filter(|_| limit.throttled_share() >= MIN_THROTTLED_SHARE);
    let excess = (limit.throttled_share() / thresholds.share(Threshold::CpuThrottling)).max(wait.unwrap_or(0.0));
    wants.then_some(excess)
}

/// Returns the ratio of the share of time in which threads wait for CPUs used by other processes to its threshold.
fn cpu_wait_excess(cpu: &CpuUse, thresholds: &Thresholds) -> Option<f64> {
    let is_throttled = cpu.constraints.limit.is_some_and(|limit| limit.throttled_share() >= MIN_THROTTLED_SHARE);
    let excess = wait_excess(cpu, thresholds)?;
    let is_machine = cpu.competes_with_others() && cpu.waiting()? >= MIN_CPU_WAITERS;
    (!is_throttled && is_machine).then_some(excess)
}

/// Returns the ratio of the share of time in which threads wait for a CPU to its threshold; `None` if they are rarely runnable.
fn wait_excess(cpu: &CpuUse, thresholds: &Thresholds) -> Option<f64> {
    let is_known = cpu.span >= CPU_SPAN && cpu.cores()? + cpu.waiting()? >= MIN_BUSY_CORES;
    is_known.then_some(cpu.wait_share()? / thresholds.share(Threshold::CpuWait))
}

/// Returns the higher of two ratios to their thresholds, lock contentions or waiting threads, and its text.
fn lock_contention(counters: &CountersSnapshot, thresholds: &Thresholds) -> Option<(f64, String)> {
    let count = |rate: f64| (rate / thresholds.of(Threshold::LockContentions), format!("{} lock contentions", CountRate(rate)));
    let least = thresholds.of(Threshold::LockWaiters) * SHORT_CONTENTIONS;
    let matters = |_: &f64| counters.lock_waiters.is_none_or(|waiters| waiters >= least);
    // Long waits are an issue of their own.
    let long = stalls::long_lock_waits(&counters.long_lock_waits_ns, thresholds) as f64;
    let waiters = |waiters: f64| ((waiters - long) / thresholds.of(Threshold::LockWaiters), stalls::mean_waiters(waiters, "locks"));
    let found = [counters.lock_waiters.map(waiters), counters.stats.contentions.filter(matters).map(count)];
    found.into_iter().flatten().max_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// Returns the share of the latest requests that failed, if several did.
fn failed_requests(counters: &CountersSnapshot) -> Option<f64> {
    let (seconds, at_least) = FAILED_REQUESTS;
    // Both counters only increase.
    let [failed, all] = ["failed-requests", "total-requests"].map(|name| {
        let history = &hosting_counter(counters, name)?.history;
        let (newest, before) = (history.last()?.1, history[history.len().saturating_sub(seconds + 1)].1);
        Some(newest - before)
    });
    let (failed, all) = (failed?, all?);
    (failed >= at_least && all > 0.0).then(|| (failed / all).min(1.0))
}

/// Returns the 95th percentile of request durations, seconds: the smallest of the latest intervals in which requests ended.
fn slow_requests(intervals: &[RequestDurations]) -> Option<f64> {
    let recent = intervals.iter().rev().take(REQUEST_INTERVALS).filter_map(|interval| Some(interval.quantiles?[1]));
    let (count, least) = recent.take(SLOW_INTERVALS).fold((0, f64::INFINITY), |(count, least), p95| (count + 1, p95.min(least)));
    (count == SLOW_INTERVALS).then_some(least)
}

/// Returns how long outgoing requests waited for a connection, in seconds: the smallest average of the latest intervals in which requests got one.
fn connection_queue_time(counters: &CountersSnapshot) -> Option<f64> {
    let time = |version: &str| {
        let counter = counters.find(HTTP_CLIENT_PROVIDER, &format!("http{version}-requests-queue-duration"))?;
        let intervals = counter.history.iter().rev().take(REQUEST_INTERVALS).map(|(_, milliseconds)| milliseconds / 1000.0);
        let recent: Vec<f64> = intervals.filter(|seconds| *seconds > 0.0).take(SLOW_INTERVALS).collect();
        (recent.len() == SLOW_INTERVALS).then(|| recent.into_iter().fold(f64::INFINITY, f64::min))
    };
    ["11", "20"].into_iter().filter_map(time).reduce(f64::max)
}

/// Returns the finding for a process that constantly uses a core, and for how long. `cpu` holds the latest scans: percent of one core, oldest first,
/// each with its time in nanoseconds.
pub(super) fn busy_core_finding(cpu: &[(i64, f64)], thresholds: &Thresholds) -> Option<(Finding, Duration)> {
    let least = min_of_latest(cpu, BUSY_SCANS)?;
    let now = cpu.iter().rev().map(|(_, percent)| *percent).find(|percent| !percent.is_nan())?;
    let is_busy = |percent: f64| percent.is_nan() || percent >= thresholds.of(Threshold::Cpu);
    // The time between two scans is attributed to the later one.
    let since = cpu.iter().rev().take_while(|(_, percent)| is_busy(*percent)).last().map_or(0, |(at, _)| *at);
    let until = cpu.last().map_or(0, |(at, _)| *at);
    // High CPU use may be intended, so any other finding is more severe.
    (least >= thresholds.of(Threshold::Cpu)).then(|| {
        let finding =
            finding(Tab::Methods, format!("CPU {now:.0} % of a core"), "a thread runs all the time, or several are busy", "hot methods");
        (Finding { recorded: false, severity: 1.0, ..finding }, Duration::from_nanos(until.abs_diff(since)))
    })
}

/// Finds a counter of ASP.NET Core.
pub(super) fn hosting_counter<'a>(counters: &'a CountersSnapshot, name: &str) -> Option<&'a CounterSnapshot> {
    counters.find(HOSTING_PROVIDER, name)
}

/// Finds a counter of the runtime.
pub(super) fn runtime_counter<'a>(counters: &'a CountersSnapshot, name: &str) -> Option<&'a CounterSnapshot> {
    counters.find(COUNTERS_PROVIDER, name)
}

/// Returns all issues of a process according to its counters, CPU use and resources, the worst first.
pub fn health_issues(
    counters: &CountersSnapshot,
    cpu: Option<CpuUse>,
    resources: &ResourceHistory,
    thresholds: &Thresholds,
) -> Vec<(HealthIssue, Finding)> {
    let found = |issue: HealthIssue| Some((issue, issue.finding(counters, cpu, resources, thresholds)?));
    let mut found: Vec<_> = HealthIssue::ALL.into_iter().filter_map(found).collect();
    found.compact_sort_by(|(_, a), (_, b)| b.severity.total_cmp(&a.severity));
    found
}
