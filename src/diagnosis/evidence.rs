//! Evaluates each possible cause.

use std::time::Duration;

use super::culprit::{Culprit, dispatch_ns, is_logger};
use super::{
    Cause, Evidence, GROWING_COLLECTIONS, MIN_BUSY_CORES, MIN_CPU_WAITERS, MIN_THROTTLED_SHARE, Slowdown, Source, Threshold, Thresholds,
    starved_share,
};
use crate::analysis::{Layer, OperationSnapshot, Origin, SampleCount, SampleFilter, Snapshot};
use crate::clr::payload::{GcReason, GcType};
use crate::model::{Bytes, Count, CountRate, Counted, CpuUse, Nanoseconds, Percent, ThreadUse};

/// Share of CPU time spent throwing exceptions that counts as high.
const DISPATCH_SHARE: f64 = 0.2;
/// First runtime version that dispatches exceptions in managed code, which is visible in its own samples.
const MANAGED_DISPATCH_VERSION: u32 = 9;
/// Share of CPU time spent on log messages that counts as high.
const LOGGING_SHARE: f64 = 0.3;
/// Share of the time with a starved pool that counts as high.
const STARVED_SHARE: f64 = 0.05;
/// Maximum severity of a growing heap.
const MAX_GROWTH_SEVERITY: f64 = 1.5;
/// Factor over the longest time between two full collections, and part of the recorded time, after which the next one is overdue.
const OVERDUE: u64 = 2;
const GROWTH_PARTS: u64 = 4;
/// Prefix of the names of threads that sample other threads and send events (.NET 6 and later). They run no managed code.
const RECORDING_THREADS: &str = ".NET EventPipe";
/// Why time in JIT is unknown.
const NO_JIT_TIME: &str =
    "this recording has neither CPU samples of the kernel (profile cpu) nor times of compiled methods (profile startup)";
/// Maximum severity of a cause that is not a problem in itself, whatever its share.
pub(super) const MAX_HARMLESS_SEVERITY: f64 = 0.95;

/// Severity of requests of which none ends: they may be long polling.
const STALLED_SEVERITY: f64 = 0.97;
/// Minimum number of requests that started before the latest seconds, over which the rate of starts is determined.
const MIN_STALLED: f64 = 5.0;
const RATE_SECONDS: f64 = 10.0;

/// Share, severity and sentence of a measured cause.
pub(super) type Found = (Option<f64>, f64, String);

impl Evidence<'_> {
    pub(super) fn evaluate(&self, cause: Cause) -> Slowdown {
        let found = match cause {
            Cause::Cpu => self.cpu(),
            Cause::CpuWait => self.cpu_wait(),
            Cause::Logging => self.logging(),
            Cause::Gc => self.gc(),
            Cause::Jit => self.jit(),
            Cause::Locks => self.locks(),
            Cause::ThreadPool => self.thread_pool(),
            Cause::Exceptions => self.exceptions(),
            Cause::Http => self.http(),
            Cause::Waiting => self.waiting(),
        };
        match found {
            Ok((share, severity, text)) => Slowdown { cause, share, severity: Some(severity), text },
            Err(why) => Slowdown { cause, share: None, severity: None, text: format!("Not measured: {why}.") },
        }
    }

    /// Returns the recorded time in nanoseconds.
    pub(super) fn duration(&self) -> f64 {
        self.analysis.snapshot.recorded_ns.max(1) as f64
    }

    /// Returns an error if there can be no events of a source, or if there are none and it is unknown whether they were recorded.
    pub(super) fn measured(&self, source: Source, seen: bool) -> Result<(), String> {
        match source.is_in(self.recorded) {
            _ if seen => Ok(()),
            Some(true) => Ok(()),
            Some(false) => Err(format!("this recording has no {} (recorded by profile slow)", source.events())),
            None => Err(format!("no {} in this recording: none occurred, or they were not recorded", source.events())),
        }
    }

    fn cpu(&self) -> Result<Found, String> {
        let cores = match (&self.analysis.cpu, self.threads) {
            (Some(cpu), []) => cpu.profile.count(SampleFilter::BUSY).samples().running_ns as f64 / self.duration(),
            _ => self.cpu_use().cores().ok_or("without kernel samples, CPU time is only measured live, for processes of this machine")?,
        };
        let counts = self.analysis.profile(false).count(SampleFilter::BUSY);
        let own = Culprit::of(&counts, |samples| samples.running_ns);
        let text = match own.method {
            // A nearly idle process has no hot method.
            Some(method) if cores >= MIN_BUSY_CORES => {
                let calls = own.calls.map(|call| format!(", which calls {call}")).unwrap_or_default();
                format!("{} of one core is used; most of it in {method}{calls}.", Percent(cores))
            }
            _ => format!("{} of one core is used.", Percent(cores)),
        };
        // High CPU usage may be intended: any other problem is more severe.
        Ok((Some(cores), (cores / self.thresholds.share(Threshold::Cpu)).min(1.0), text))
    }

    fn cpu_wait(&self) -> Result<Found, String> {
        let cpu = self.program_cpu_use();
        let ((cores, waiting), share) = cpu
            .cores()
            .zip(cpu.waiting())
            .zip(cpu.wait_share())
            .ok_or("CPU wait time is only measured live, for processes of this machine")?;
        if cores + waiting < MIN_BUSY_CORES {
            let text = format!("Threads are rarely runnable, and then wait for a CPU {} of the time.", Percent(share));
            return Ok((Some(share), 0.0, text));
        }
        let text = format!("Runnable threads wait for a CPU {} of the time", Percent(share));
        let severity = share / self.thresholds.share(Threshold::CpuWait);
        if let Some(limit) = cpu.constraints.limit.filter(|limit| limit.throttled_share() >= MIN_THROTTLED_SHARE) {
            let share_of_periods = Percent(limit.throttled_share());
            let what = format!("the CPU limit of its control group, {limit}, throttled it in {share_of_periods} of periods");
            return Ok((Some(share), severity, format!("{text}: {what}.")));
        }
        // Having more threads than CPUs is not a problem of the machine: look at what they run.
        let is_machine = cpu.competes_with_others() && waiting >= MIN_CPU_WAITERS;
        let severity = if is_machine { severity } else { severity.min(MAX_HARMLESS_SEVERITY) };
        let others = cpu.others().map(|others| format!(", all others {others:.1}")).unwrap_or_default();
        let uses = format!("the process uses {cores:.1} CPUs{others}");
        if waiting < share.min(MIN_CPU_WAITERS) {
            // Short runs can wait as long as they run, so the overall waiting time counts.
            let text = format!("Runnable threads wait for a CPU for at most {} of the time; {uses}.", Percent(waiting));
            return Ok((Some(waiting), severity * waiting / MIN_CPU_WAITERS, text));
        }
        Ok((Some(share), severity, format!("{text}; {uses}.")))
    }

    fn logging(&self) -> Result<Found, String> {
        let counts = self.analysis.profile(false).count(SampleFilter::BUSY);
        let busy = counts.samples().running_ns;
        match (self.analysis.profile(false).count(SampleFilter::ALL).samples().all(), busy) {
            (0, _) => return Err("no thread was sampled".to_owned()),
            (_, 0) => return Ok((None, 0.0, "No sampled thread ran.".to_owned())),
            _ => {}
        }
        let logging = Culprit::below_frame(&counts, |frame| is_logger(&frame.name), |samples| samples.running_ns);
        let share = logging.total as f64 / busy as f64;
        let place = logging.method.map(|method| format!("; most by {method}")).unwrap_or_default();
        let is_cpu = self.analysis.cpu.is_some() || self.analysis.profile.has_cpu_times;
        let time = if is_cpu { "CPU time" } else { "sampled time" };
        // Logging does not slow down a nearly idle process.
        let severity = if self.busy_cores() >= MIN_BUSY_CORES { share / LOGGING_SHARE } else { 0.0 };
        Ok((Some(share), severity, format!("{} of the {time} is spent on log messages{place}.", Percent(share))))
    }

    fn gc(&self) -> Result<Found, String> {
        let gc = &self.analysis.snapshot.gc;
        self.measured(Source::Collections, gc.collections.iter().sum::<u64>() > 0)?;
        let share = self.analysis.snapshot.gc_share(true);
        let full = gc.collections[2] as f64 * 1e9 / self.duration();
        let longest = if gc.pauses.count > 0 { format!(", longest {}", Nanoseconds(gc.pauses.longest_ns)) } else { String::new() };
        let mut text = format!("All threads are paused for {} of the time{longest}", Percent(share));
        if full > self.thresholds.of(Threshold::Gen2Collections) {
            text += &format!("; {} gen 2 collections", CountRate(full));
            // A reason shared by most of them.
            let full = || gc.recent.iter().filter(|collection| collection.generation == 2);
            let most = |is: fn(GcReason) -> bool| full().filter(|collection| is(collection.reason)).count() * 2 > full().count();
            text += match () {
                () if most(GcReason::is_large_object) => ": large objects are allocated all the time",
                () if most(GcReason::is_induced) => ": most are induced (GC.Collect)",
                () => "",
            };
        }
        let mut severity = (share / self.thresholds.share(Threshold::GcTime)).max(full / self.thresholds.of(Threshold::Gen2Collections));
        if let Some((from, to)) = growth(&self.analysis.snapshot, self.thresholds) {
            let induced = if gc.induced > 0 { " (some are induced)" } else { "" };
            let what = format!("The heap grew from {} to {}", Bytes(from), Bytes(to));
            text = format!("{what}: full GCs{induced} leave more (leak or cache). {text}");
            // A growing heap does not slow down the process yet: what does comes first.
            severity = severity.max((to as f64 / from.max(1) as f64 / self.thresholds.heap_growth()).clamp(1.0, MAX_GROWTH_SEVERITY));
        }
        if let Some(wait) = gc.finalizer_wait.filter(|wait| wait.queued > 0) {
            let excess = wait.waiting_ns as f64 / 1e9 / self.thresholds.of(Threshold::FinalizerWait);
            if excess >= 1.0 {
                let (time, objects) = (Nanoseconds(wait.waiting_ns), Counted(wait.queued, "object"));
                text = format!("The finalizer thread is blocked or busy for {time}, {objects} queued. {text}");
                severity = severity.max(excess);
            }
        }
        Ok((Some(share), severity, text + "."))
    }

    fn jit(&self) -> Result<Found, String> {
        let jit = &self.analysis.snapshot.jit;
        let of_core = |ns: u64| ns as f64 / self.duration();
        let (share, text) = match (&jit.time, &self.analysis.cpu, jit.background) {
            (Some(time), ..) => (of_core(time.total_ns), format!("of one core is spent in JIT: {}.", Counted(time.count, "method"))),
            (None, Some(cpu), _) => {
                let counts = cpu.profile.count(SampleFilter::BUSY);
                let compiled = Culprit::below_frame(&counts, |frame| frame.origin == Origin::Jit, |samples| samples.running_ns);
                let place = compiled.method.map(|method| format!("; most of it for {method}")).unwrap_or_default();
                (of_core(compiled.total), format!("of one core is spent in JIT{place}."))
            }
            (None, None, Some((ns, _))) => (of_core(ns), "of one core is spent recompiling methods; other JIT is not measured.".to_owned()),
            (None, None, None) => return Err(NO_JIT_TIME.to_owned()),
        };
        Ok((Some(share), share / self.thresholds.share(Threshold::JitTime), format!("{} {text}", Percent(share))))
    }

    fn thread_pool(&self) -> Result<Found, String> {
        let pool = &self.analysis.snapshot.thread_pool;
        let seen = pool.workers.is_some() || !pool.adjustments.is_empty() || pool.throughput.is_some();
        self.measured(Source::ThreadPool, seen)?;
        let starved = starved_share(pool.starvations, self.duration());
        let blocked = f64::from(pool.blocked) / f64::from(self.thresholds.blocked_threads());
        // On a busy machine, work occasionally waits that long.
        let severity = if pool.starvations > 1 { blocked.max(starved / STARVED_SHARE) } else { blocked };
        let counts = self.analysis.profile.count(SampleFilter { running: false, ..SampleFilter::ALL });
        let place = || Culprit::of(&counts, |samples| samples.waiting_ns).method.map(|method| format!("; most wait in {method}"));
        let text = match (pool.starvations, pool.blocked) {
            (0, blocked) if blocked >= self.thresholds.blocked_threads() => {
                let waiting = if blocked == 1 { "1 pool thread waits".to_owned() } else { format!("{blocked} pool threads wait") };
                format!("{waiting} for tasks to complete (sync over async){}.", place().unwrap_or_default())
            }
            // A pool that keeps starting work is not starved, however long its queue is.
            (0, _) => "No thread pool starvation; the length of its queue is not recorded.".to_owned(),
            (times, _) => format!(
                "The thread pool was starved for at least {} of the time ({}){}.",
                Percent(starved),
                Counted(times, "time"),
                place().unwrap_or_default()
            ),
        };
        Ok((Some(starved).filter(|_| pool.starvations > 0 || pool.blocked == 0), severity, text))
    }

    fn exceptions(&self) -> Result<Found, String> {
        let exceptions = &self.analysis.snapshot.exceptions;
        self.measured(Source::Exceptions, exceptions.thrown > 0)?;
        let Some(kind) = exceptions.types.first() else { return Ok((None, 0.0, "No exception was thrown.".to_owned())) };
        let rate = exceptions.thrown as f64 * 1e9 / self.duration();
        let of_type = kind.count as f64 / exceptions.thrown.max(1) as f64;
        let thrown = exceptions.stacks.of(Some(&kind.name));
        let thrower = Culprit::of(&thrown, SampleCount::all).method.map(|method| format!(", most thrown in {method}"));
        let dispatch = self.dispatch_share();
        let cost = match dispatch {
            // A lower bound of 0 is not informative.
            Some((0.0, _)) => String::new(),
            Some((share, time)) => format!(" At least {} of the {time} is spent throwing them.", Percent(share)),
            None => " Their CPU time is not measured: profile cpu records it.".to_owned(),
        };
        let text = format!("{} exceptions; {} are {}{}.{cost}", CountRate(rate), Percent(of_type), kind.name, thrower.unwrap_or_default());
        let share = dispatch.map(|(share, _)| share).filter(|share| *share > 0.0);
        // Exceptions do not slow down a nearly idle process.
        let cost = if self.busy_cores() >= MIN_BUSY_CORES { share.unwrap_or(0.0) / DISPATCH_SHARE } else { 0.0 };
        let severity = (rate / self.thresholds.of(Threshold::Exceptions)).max(cost);
        Ok((share, severity, text))
    }

    /// Returns the share of running samples spent throwing exceptions, and the kind of these samples; `None` if samples would not show it:
    /// before .NET 9, the runtime's own samples show the throwing method but not the dispatch.
    fn dispatch_share(&self) -> Option<(f64, &'static str)> {
        let counts = self.analysis.profile(false).count(SampleFilter::BUSY);
        let (busy, dispatch) = (counts.samples().running_ns, dispatch_ns(&counts));
        let is_cpu = self.analysis.cpu.is_some();
        let is_shown = is_cpu || dispatch > 0 || self.runtime.is_some_and(|major| major >= MANAGED_DISPATCH_VERSION);
        (is_shown && busy > 0).then(|| (dispatch as f64 / busy as f64, if is_cpu { "CPU time" } else { "sampled time" }))
    }

    fn http(&self) -> Result<Found, String> {
        const CLIENT_REQUESTS_VERSION: u32 = 5;
        let operations = &self.analysis.snapshot.activities.operations;
        let of = |layer: Layer| operations.iter().find(|operation| operation.layer == layer && operation.started > 0);
        let (client, server) = (of(Layer::Client), of(Layer::Server));
        self.measured(Source::Activities, client.is_some() || server.is_some())?;
        let total = |operation: &OperationSnapshot| operation.mean_ns.unwrap_or(0.0) * operation.ended as f64;
        let slow = |operation: &OperationSnapshot| {
            let p95 = operation.quantiles_ns.map_or(0.0, |[_, p95, _]| p95 as f64 / 1e9);
            p95 / self.thresholds.of(Threshold::SlowRequests)
        };
        let failing = self.thresholds.share(Threshold::FailedRequests);
        let failed = |operation: &OperationSnapshot| operation.failed as f64 / operation.started as f64 / failing;
        let is_long = self.duration() >= self.thresholds.of(Threshold::RequestStall) * 1e9;
        let stalled = |operation: &OperationSnapshot| if is_long && is_stalled(operation) { STALLED_SEVERITY } else { 0.0 };
        // A slow incoming request is the symptom to be explained, not a cause.
        let served = server.map(|server| slow(server).min(MAX_HARMLESS_SEVERITY).max(failed(server)).max(stalled(server)));
        let sent = client.map(|client| slow(client).max(failed(client)).max(stalled(client)));
        match (client, server) {
            (Some(client), _) if sent >= served => {
                let share = server.map(|server| total(client) / total(server).max(1.0)).filter(|share| *share <= 1.0);
                let of = share.map(|share| format!(": {} of the time of served requests", Percent(share))).unwrap_or_default();
                Ok((share, sent.unwrap_or(0.0), format!("{}{of}.", requests("sent", client))))
            }
            (_, Some(server)) => Ok((None, served.unwrap_or(0.0), format!("{}.", requests("served", server)))),
            _ if self.runtime.is_some_and(|major| major < CLIENT_REQUESTS_VERSION) => {
                Err(format!("outgoing requests are reported by .NET {CLIENT_REQUESTS_VERSION} and later, and none was served"))
            }
            _ => Ok((None, 0.0, "No request was sent or served.".to_owned())),
        }
    }

    fn waiting(&self) -> Result<Found, String> {
        let missing = match self.native_aot {
            true => "NativeAOT does not sample threads",
            false => "this recording has no thread time (recorded by profile slow)",
        };
        let time = self.thread_time().ok_or(missing)?;
        let counts = self.analysis.profile.count(SampleFilter { running: false, ..SampleFilter::ALL });
        let locks = self.lock_wait_ns(&self.stuck_threads());
        let own = Culprit::of(&counts, |samples| samples.waiting_ns);
        // Samples do not distinguish waiting for a CPU from other waits.
        let sampled: Vec<_> = counts.threads().iter().filter_map(|sampled| sampled.thread.in_process()).collect();
        let of_sampled = self.threads.iter().filter(|thread| sampled.contains(&thread.thread));
        let ready = of_sampled.filter_map(|thread| thread.runnable).sum::<Duration>().as_nanos() as f64;
        let share = (own.total as f64 - locks - ready).max(0.0) / time;
        let site = self.analysis.snapshot.contention.sites.first().map(|site| site.method.as_str());
        let is_most = share * time > ready;
        let place = own.method.filter(|method| is_most && site != Some(method.as_str())).map(|method| format!("; most in {method}"));
        let text = format!("{} of thread time is spent in other waits{}.", Percent(share), place.unwrap_or_default());
        // Waiting threads are not a problem: most of them are idle.
        Ok((Some(share), share * MAX_HARMLESS_SEVERITY, text))
    }

    /// Returns the CPU usage of all threads, as measured by the kernel.
    fn cpu_use(&self) -> CpuUse {
        self.cpu_use_of(|_| true)
    }

    /// Returns the CPU usage of the program: threads that only serve diagnostic tools are not slow for any other reason.
    pub(super) fn program_cpu_use(&self) -> CpuUse {
        let sampled = self.analysis.profile.diagnostics_threads();
        let is_sampled = |thread: u64| sampled.keys().any(|sampled| sampled.in_process() == Some(thread));
        self.cpu_use_of(|thread| !thread.name.starts_with(RECORDING_THREADS) && !is_sampled(thread.thread))
    }

    /// Returns the CPU usage of some threads.
    fn cpu_use_of(&self, is_counted: impl Fn(&ThreadUse) -> bool) -> CpuUse {
        let threads = || self.threads.iter().filter(|thread| is_counted(thread));
        CpuUse {
            span: self.elapsed,
            cpu: (!self.threads.is_empty()).then(|| threads().map(|thread| thread.cpu).sum()),
            runnable: threads().any(|thread| thread.runnable.is_some()).then(|| threads().filter_map(|thread| thread.runnable).sum()),
            constraints: self.cpu_constraints,
        }
    }

    /// Returns the mean number of threads running at the same time, from samples.
    fn busy_cores(&self) -> f64 {
        self.analysis.profile(false).count(SampleFilter::BUSY).samples().running_ns as f64 / self.duration()
    }

    /// Returns the total time of all sampled threads except those that serve diagnostic tools, in nanoseconds: a program with few threads would
    /// otherwise seem to wait less while its counters are read.
    pub(super) fn thread_time(&self) -> Option<f64> {
        let profile = &self.analysis.profile;
        let time = profile
            .diagnostics_threads()
            .values()
            .fold(profile.count(SampleFilter::ALL).samples().all_ns(), |time, of_thread| time.saturating_sub(*of_thread));
        (time > 0).then_some(time as f64)
    }
}

/// Returns whether none of the requests has ended, although several began some time ago.
fn is_stalled(operation: &OperationSnapshot) -> bool {
    let earlier = operation.started as f64 - operation.rate * RATE_SECONDS;
    operation.running == operation.started && earlier >= MIN_STALLED
}

/// Formats a sentence such as `Requests sent: p95 1.2 s, 3 of 60 failed, most time with http://..`.
fn requests(which: &str, operation: &OperationSnapshot) -> String {
    if operation.running == operation.started {
        return format!("Requests {which}: none of {} ended", Count(operation.started));
    }
    let p95 = operation.quantiles_ns.map(|[_, p95, _]| format!("p95 {}, ", Nanoseconds(p95))).unwrap_or_default();
    let most = operation.subjects.first().filter(|subject| !subject.text.is_empty());
    let most = most.map(|subject| format!(", most time with {}", subject.text)).unwrap_or_default();
    let unfinished = if operation.running > 0 { format!(", {} in progress", Count(operation.running)) } else { String::new() };
    let failed = if operation.lacks_status() { "ended with an exception" } else { "failed" };
    format!("Requests {which}: {p95}{} of {} {failed}{unfinished}{most}", Count(operation.failed), Count(operation.started))
}

/// Returns the heap size in bytes after the first and the last full collection, if the heap grew from one to the next in most of them, until the
/// end of the recording: after a warm-up it does not.
fn growth(snapshot: &Snapshot, thresholds: &Thresholds) -> Option<(u64, u64)> {
    let newest_first = &snapshot.gc.recent;
    let full = newest_first.iter().rev().filter(|collection| collection.generation == 2 && collection.kind != GcType::FOREGROUND);
    let full: Vec<_> = full.filter_map(|collection| Some((collection.end, collection.heap_after?))).collect();
    let (sizes, ends): (Vec<u64>, Vec<i64>) = full.iter().map(|(end, size)| (*size, *end)).unzip();
    // The next full collection is overdue: there has been no growth that would have caused it.
    let longest = ends.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max()?;
    let since = snapshot.now.abs_diff(*ends.last()?);
    if since > longest.saturating_mul(OVERDUE).max(snapshot.recorded_ns / GROWTH_PARTS) {
        return None;
    }
    let (&from, &to) = sizes.first().zip(sizes.last())?;
    let rising = sizes.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let grows = sizes.len() >= GROWING_COLLECTIONS
        && rising * 4 >= (sizes.len() - 1) * 3
        && to >= from.saturating_add(thresholds.heap_growth_bytes() as u64);
    (grows && to as f64 >= from as f64 * thresholds.heap_growth()).then_some((from, to))
}
