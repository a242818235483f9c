//! Why a process is slow: how much of its time goes into each possible cause, and the culprit of each in a sentence.

use std::time::Duration;

use crate::analysis::{Collection, Counts, Layer, OperationSnapshot, Origin, ProfileFrame, SampleCount, SampleFilter};
use crate::clr::payload::GcType;
use crate::model::{Bytes, Count, CountRate, Nanoseconds, Percent, RecordingAnalysis, ThreadUse};

use super::pane::Tab;
use super::source::Source;
use super::thresholds::{BLOCKED_THREAD_THRESHOLD, EXCEPTION_THRESHOLD, GC_TIME_THRESHOLD, GEN2_RATE_THRESHOLD, WAITER_THRESHOLD};

/// CPU time per time from which on a process counts as busy: cores.
const BUSY: f64 = 0.7;
/// Quantile 0.95 of the duration of requests from which on they are slow, nanoseconds.
const SLOW_REQUEST: f64 = 1e9;
/// Share of failed requests that is high.
const FAILED: f64 = 0.05;
/// Share of the time in which the pool is starved that is high.
const STARVED_SHARE: f64 = 0.05;
/// The pool is checked for starvation this often (.NET runtime, `GateActivitiesPeriodMs`), nanoseconds.
const STARVED: f64 = 0.5e9;
/// Growth of the heap from the first full collection to the last that counts, in how many of them, and the least in bytes.
const GROWTH: (f64, usize, u64) = (1.3, 4, 10_000_000);
/// The most that a cause weighs that is no defect by itself, whatever its share.
const HARMLESS: f64 = 0.95;

/// A possible cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its own code runs.
    Cpu,
    /// Collections, and a heap that grows.
    Gc,
    /// Threads wait for locks.
    Locks,
    /// Work waits for a thread of the pool.
    ThreadPool,
    /// Exceptions.
    Exceptions,
    /// Requests that it sends, and serves.
    Http,
    /// Threads wait for something else.
    Waiting,
}

impl Cause {
    /// All, in the order in which they are listed where they weigh the same.
    pub const ALL: [Self; 7] = [Self::ThreadPool, Self::Locks, Self::Gc, Self::Exceptions, Self::Http, Self::Cpu, Self::Waiting];

    /// Its name.
    pub fn title(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Gc => "GC and heap",
            Self::Locks => "Lock contention",
            Self::ThreadPool => "Thread pool",
            Self::Exceptions => "Exceptions",
            Self::Http => "HTTP",
            Self::Waiting => "Other waiting",
        }
    }

    /// The tab that shows it.
    pub fn tab(self) -> Tab {
        match self {
            Self::Cpu | Self::Waiting => Tab::Methods,
            Self::Gc => Tab::Gc,
            Self::Locks | Self::ThreadPool => Tab::Threads,
            Self::Exceptions => Tab::Exceptions,
            Self::Http => Tab::Http,
        }
    }
}

/// How much a cause slows a process down.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowdown {
    /// The cause.
    pub cause: Cause,
    /// Share of the time that the sentence names; more than 1 for several cores. `None` where it takes no share that can be measured.
    pub share: Option<f64>,
    /// How many times its threshold: from 1 on it is a problem. `None` where it was not measured.
    pub severity: Option<f64>,
    /// What was found, in a sentence. Not sanitised.
    pub text: String,
}

impl Slowdown {
    /// Whether it is above its threshold.
    pub fn is_problem(&self) -> bool {
        self.severity.is_some_and(|severity| severity >= 1.0)
    }
}

/// What a recording says of its process.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What is in the recording.
    pub analysis: &'a RecordingAnalysis,
    /// What its threads took of the processors; empty where that is not known.
    pub threads: &'a [ThreadUse],
    /// For how long that was watched: the analysis may be some time behind.
    pub elapsed: Duration,
    /// Profiles and providers that were recorded; empty where they are not known.
    pub what: &'a [String],
    /// Major version of the runtime, where it is known.
    pub runtime: Option<u32>,
}

/// All causes, the worst first; what was not measured comes last.
pub fn slowdowns(evidence: &Evidence<'_>) -> Vec<Slowdown> {
    let mut all: Vec<_> = Cause::ALL.into_iter().map(|cause| evidence.weigh(cause)).collect();
    all.sort_by(|a, b| b.severity.unwrap_or(-1.0).total_cmp(&a.severity.unwrap_or(-1.0)));
    all
}

/// Share, severity and sentence of a cause that was measured.
type Found = (Option<f64>, f64, String);

impl Evidence<'_> {
    fn weigh(&self, cause: Cause) -> Slowdown {
        let found = match cause {
            Cause::Cpu => self.cpu(),
            Cause::Gc => self.gc(),
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

    /// Nanoseconds that were recorded.
    fn duration(&self) -> f64 {
        self.analysis.snapshot.recorded_ns.max(1) as f64
    }

    /// Why there can be no events of a source. Where none came and it is not known whether they were recorded, nothing is claimed.
    fn measured(&self, source: Source, seen: bool) -> Result<(), String> {
        match source.is_in(self.what, self.analysis.cpu.is_none()) {
            _ if seen => Ok(()),
            Some(true) => Ok(()),
            Some(false) => Err(format!("this recording has no {} (profile slow has)", source.events())),
            None => Err(format!("no {} in this recording: none occurred, or they were not recorded", source.events())),
        }
    }

    fn cpu(&self) -> Result<Found, String> {
        let cores = match (&self.analysis.cpu, self.threads) {
            (Some(cpu), []) => cpu.profile.count(SampleFilter::BUSY).samples().running_ns as f64 / self.duration(),
            (None, []) => return Err("CPU time is read from /proc while a process is recorded on this machine".to_owned()),
            (_, threads) => {
                let cpu: Duration = threads.iter().map(|thread| thread.cpu).sum();
                cpu.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
            }
        };
        let counts = self.analysis.profile(false).count(SampleFilter::BUSY);
        let own = Culprit::of(&counts, |samples| samples.running_ns);
        let text = match own.method {
            // A process that hardly runs has no hot method.
            Some(method) if cores >= 0.1 => format!("{} of one core is used; most of it in {method}.", Percent(cores)),
            _ => format!("{} of one core is used.", Percent(cores)),
        };
        // It may be meant to work: any defect weighs more.
        Ok((Some(cores), (cores / BUSY).min(1.0), text))
    }

    fn gc(&self) -> Result<Found, String> {
        let gc = &self.analysis.snapshot.gc;
        self.measured(Source::Collections, gc.collections.iter().sum::<u64>() > 0)?;
        let share = gc.pauses.total_ns as f64 / self.duration();
        let full = gc.collections[2] as f64 * 1e9 / self.duration();
        let longest = if gc.pauses.count > 0 { format!(", longest {}", Nanoseconds(gc.pauses.longest_ns)) } else { String::new() };
        let mut text = format!("All threads are paused for {} of the time{longest}", Percent(share));
        if full > GEN2_RATE_THRESHOLD {
            text += &format!("; {} gen 2 collections", CountRate(full));
            // A reason that most of them have.
            let reasons = gc.recent.iter().filter(|collection| collection.generation == 2).map(|collection| collection.reason);
            let (large, all) = reasons.fold((0, 0), |(large, all), reason| (large + usize::from(reason.is_large()), all + 1));
            text += if large * 2 > all { ": large objects are allocated all the time" } else { "" };
        }
        let mut severity = (share / GC_TIME_THRESHOLD).max(full / GEN2_RATE_THRESHOLD);
        if let Some((from, to)) = growth(&gc.recent) {
            let induced = if gc.induced > 0 { " (some are induced)" } else { "" };
            text = format!("The heap grew from {} to {}: full collections{induced} leave more each time. {text}", Bytes(from), Bytes(to));
            severity = severity.max(to as f64 / from.max(1) as f64 / GROWTH.0).max(1.0);
        }
        Ok((Some(share), severity, text + "."))
    }

    fn locks(&self) -> Result<Found, String> {
        let locks = &self.analysis.snapshot.contention;
        self.measured(Source::Contention, locks.count > 0)?;
        let waiters = locks.wait_ns as f64 / self.duration();
        let share = self.thread_time().map(|time| (locks.wait_ns as f64 / time).min(1.0));
        let text = match (share, locks.sites.first()) {
            (_, None) => "No thread waited for a lock.".to_owned(),
            (share, Some(site)) => {
                let what = match share {
                    Some(share) => format!("{} of the threads' time waits for locks", Percent(share)),
                    None => "Threads wait for locks".to_owned(),
                };
                let place = if site.method.is_empty() { String::new() } else { format!("; most in {}", site.method) };
                let at_a_time = if waiters >= 1.0 { format!(", {waiters:.1} threads at a time") } else { String::new() };
                format!("{what}{at_a_time}{place}.")
            }
        };
        Ok((share, waiters / WAITER_THRESHOLD, text))
    }

    fn thread_pool(&self) -> Result<Found, String> {
        let pool = &self.analysis.snapshot.thread_pool;
        let seen = pool.workers.is_some() || !pool.adjustments.is_empty() || pool.throughput.is_some();
        self.measured(Source::ThreadPool, seen)?;
        let starved = (pool.starvations as f64 * STARVED / self.duration()).min(1.0);
        let blocked = f64::from(pool.blocked) / f64::from(BLOCKED_THREAD_THRESHOLD);
        let severity = blocked.max(starved / STARVED_SHARE);
        let counts = self.analysis.profile.count(SampleFilter { running: false, ..SampleFilter::ALL });
        let place = || Culprit::of(&counts, |samples| samples.waiting_ns).method.map(|method| format!("; most wait in {method}"));
        let text = match (pool.starvations, pool.blocked) {
            (0, blocked) if blocked >= BLOCKED_THREAD_THRESHOLD => {
                format!("{blocked} pool threads wait for tasks that need a pool thread themselves{}.", place().unwrap_or_default())
            }
            (0, _) => "No work waited for a thread.".to_owned(),
            (times, _) => format!(
                "Work waited for a thread in at least {} of the time: the pool was starved {times} times{}.",
                Percent(starved),
                place().unwrap_or_default()
            ),
        };
        Ok((Some(starved).filter(|_| pool.starvations > 0 || pool.blocked == 0), severity, text))
    }

    fn exceptions(&self) -> Result<Found, String> {
        let exceptions = &self.analysis.snapshot.exceptions;
        self.measured(Source::Exceptions, exceptions.thrown > 0)?;
        let rate = exceptions.thrown as f64 * 1e9 / self.duration();
        let text = match exceptions.types.first() {
            None => "None was thrown.".to_owned(),
            Some(kind) => {
                let share = kind.count as f64 / exceptions.thrown.max(1) as f64;
                let thrower = kind.last.frames.iter().find(|frame| is_own(frame)).map(|frame| format!(", thrown in {frame}"));
                format!("{} exceptions; {} are {}{}.", CountRate(rate), Percent(share), kind.name, thrower.unwrap_or_default())
            }
        };
        // How long a throw takes is in no event.
        Ok((None, rate / EXCEPTION_THRESHOLD, text))
    }

    fn http(&self) -> Result<Found, String> {
        const SENT_SINCE: u32 = 5;
        let operations = &self.analysis.snapshot.activities.operations;
        let of = |layer: Layer| operations.iter().find(|operation| operation.layer == layer && operation.started > 0);
        let (client, server) = (of(Layer::Client), of(Layer::Server));
        self.measured(Source::Activities, client.is_some() || server.is_some())?;
        let total = |operation: &OperationSnapshot| operation.mean_ns.unwrap_or(0.0) * operation.ended as f64;
        let weight = |operation: &OperationSnapshot| {
            let p95 = operation.quantiles_ns.map_or(0.0, |[_, p95, _]| p95 as f64);
            (p95 / SLOW_REQUEST).max(operation.failed as f64 / operation.started as f64 / FAILED)
        };
        // That a request which is served is slow is what is to be explained.
        let served = server.map(|server| weight(server).min(HARMLESS));
        let sent = client.map(&weight);
        match (client, server) {
            (Some(client), _) if sent >= served => {
                let share = server.map(|server| total(client) / total(server).max(1.0)).filter(|share| *share <= 1.0);
                let of = share.map(|share| format!(": {} of the time of served requests", Percent(share))).unwrap_or_default();
                Ok((share, sent.unwrap_or(0.0), format!("{}{of}.", requests("sent", client))))
            }
            (_, Some(server)) => Ok((None, served.unwrap_or(0.0), format!("{}.", requests("served", server)))),
            _ if self.runtime.is_some_and(|major| major < SENT_SINCE) => {
                Err(format!("requests that are sent are reported from .NET {SENT_SINCE} on, and none was served"))
            }
            _ => Ok((None, 0.0, "No request was sent or served.".to_owned())),
        }
    }

    fn waiting(&self) -> Result<Found, String> {
        let time = self.thread_time().ok_or("no thread was sampled")?;
        let counts = self.analysis.profile.count(SampleFilter { running: false, ..SampleFilter::ALL });
        let locks = self.analysis.snapshot.contention.wait_ns;
        let own = Culprit::of(&counts, |samples| samples.waiting_ns);
        let share = own.total.saturating_sub(locks) as f64 / time;
        let site = self.analysis.snapshot.contention.sites.first().map(|site| site.method.as_str());
        let place = own.method.filter(|method| site != Some(method.as_str())).map(|method| format!("; most in {method}"));
        let text = format!("{} of the threads' time waits for something else{}.", Percent(share), place.unwrap_or_default());
        // Threads that wait are no defect: most have nothing to do.
        Ok((Some(share), share * HARMLESS, text))
    }

    /// Nanoseconds of all managed threads together, as sampled.
    fn thread_time(&self) -> Option<f64> {
        let time = self.analysis.profile.count(SampleFilter::ALL).samples().all_ns();
        (time > 0).then_some(time as f64)
    }
}

/// `Requests sent: p95 1.2 s, 3 of 60 failed, most time with http://..`.
fn requests(which: &str, operation: &OperationSnapshot) -> String {
    let p95 = operation.quantiles_ns.map(|[_, p95, _]| format!("p95 {}, ", Nanoseconds(p95))).unwrap_or_default();
    let most = operation.subjects.first().map(|subject| format!(", most time with {}", subject.text)).unwrap_or_default();
    let unfinished = if operation.running > 0 { format!(", {} in progress", Count(operation.running)) } else { String::new() };
    format!("Requests {which}: {p95}{} of {} failed{unfinished}{most}", Count(operation.failed), Count(operation.started))
}

/// Whether the heap was larger after most full collections than after the one before: its bytes after the first and the last.
fn growth(newest_first: &[Collection]) -> Option<(u64, u64)> {
    let full = newest_first.iter().rev().filter(|collection| collection.generation == 2 && collection.kind != GcType::FOREGROUND);
    let sizes: Vec<u64> = full.filter_map(|collection| collection.heap_after).collect();
    let ((&from, &to), (factor, least, bytes)) = (sizes.first().zip(sizes.last())?, GROWTH);
    let rising = sizes.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let grows = sizes.len() >= least && rising * 4 >= (sizes.len() - 1) * 3 && to >= from.saturating_add(bytes);
    (grows && to as f64 >= from as f64 * factor).then_some((from, to))
}

/// The code of the program itself that the time of some samples goes to.
struct Culprit {
    /// Nanoseconds of stacks that have such code.
    total: u64,
    /// The method that is nearest to the leaf in most of that time.
    method: Option<String>,
}

impl Culprit {
    fn of(counts: &Counts<'_>, time: impl Fn(SampleCount) -> u64) -> Self {
        let profile = counts.profile();
        let nodes = counts.totals().len();
        // The nearest own method of every node; a parent has a smaller number than its children.
        let mut nearest: Vec<Option<&str>> = vec![None; nodes];
        let mut by_method = foldhash::HashMap::<&str, u64>::default();
        for node in 1..nodes as u32 {
            let own = profile.frame_of(node).filter(|frame| is_own_frame(frame)).map(|frame| frame.name.as_str());
            nearest[node as usize] = own.or(nearest[profile.parent(node) as usize]);
            if let Some(method) = nearest[node as usize] {
                *by_method.entry(method).or_default() += time(counts.own_of(node));
            }
        }
        let most = by_method.iter().filter(|(_, time)| **time > 0).max_by_key(|(name, time)| (**time, std::cmp::Reverse(**name)));
        Self { total: by_method.values().sum(), method: most.map(|(name, _)| (*name).to_owned()) }
    }
}

fn is_own_frame(frame: &ProfileFrame) -> bool {
    frame.is_known() && frame.origin == Origin::Managed && is_own(&frame.name)
}

/// Whether a method is not part of .NET itself.
pub(super) fn is_own(method: &str) -> bool {
    const LIBRARY: [&str; 6] = ["System.", "Microsoft.", "Internal.", "Interop", "dynamicClass.", "0x"];
    !LIBRARY.iter().any(|start| method.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{ContentionSite, ExceptionType, Live, Profile, RecentSnapshot, Snapshot, ThrownException};
    use crate::clr::SLOW;
    use crate::clr::payload::GcReason;

    fn analysis(change: impl Fn(&mut Snapshot)) -> RecordingAnalysis {
        let mut snapshot = Live::default().snapshot(20_000_000_000);
        change(&mut snapshot);
        let (events, recent, profile) = (Vec::new(), RecentSnapshot::default(), Profile::default());
        RecordingAnalysis { snapshot, events, recent, profile, cpu: None }
    }

    /// Of a process whose threads took so much CPU time in 20 s.
    fn weighed(change: impl Fn(&mut Snapshot), cpu_ms: u64, what: &[&str], runtime: u32) -> Vec<Slowdown> {
        let what: Vec<_> = what.iter().map(|name| (*name).to_owned()).collect();
        let thread = ThreadUse { thread: 1, name: "main".into(), cpu: Duration::from_millis(cpu_ms), state: 'R' };
        let elapsed = Duration::from_secs(20);
        slowdowns(&Evidence { analysis: &analysis(change), threads: &[thread], elapsed, what: &what, runtime: Some(runtime) })
    }

    fn full_collections(snapshot: &mut Snapshot, megabytes: &[u64]) {
        let full = |(number, size): (usize, &u64)| Collection {
            number: number as u32,
            generation: 2,
            reason: GcReason(1),
            kind: GcType::BLOCKING,
            start: number as i64,
            end: number as i64,
            pause_ns: None,
            heap_before: None,
            heap_after: Some(size * 1_000_000),
            promoted: None,
        };
        snapshot.gc.recent = megabytes.iter().enumerate().map(full).rev().collect();
        snapshot.gc.collections[2] = megabytes.len() as u64;
    }

    fn thrown(snapshot: &mut Snapshot, count: u64) {
        let frames = ["System.ThrowHelper.Throw", "Shop.Orders.Check"].map(str::to_owned).to_vec();
        let (type_name, message) = ("Shop.NotFound".to_owned(), String::new());
        let thread = crate::analysis::ThreadId::default();
        let last = ThrownException { at: 0, thread, hresult: 0, rethrown: false, type_name: type_name.clone(), message, frames };
        snapshot.exceptions.thrown = count;
        snapshot.exceptions.types = vec![ExceptionType { name: type_name, count: count / 4 * 3, rate: 0.0, last }];
    }

    fn waited(snapshot: &mut Snapshot, seconds: u64) {
        let wait_ns = seconds * 1_000_000_000;
        let method = "Shop.Orders.Price".to_owned();
        snapshot.contention.sites = vec![ContentionSite { method, count: 9, unfinished: 0, wait_ns, longest_ns: 1 }];
        (snapshot.contention.count, snapshot.contention.wait_ns) = (9, wait_ns);
    }

    /// A change of a snapshot, CPU time in milliseconds, and the worst cause of that with its share and sentence.
    type Case = (fn(&mut Snapshot), u64, Cause, Option<f64>, &'static str);

    #[test]
    fn the_worst_cause_is_first_and_names_the_culprit() {
        let cases: [Case; 8] = [
            (|_| {}, 19_000, Cause::Cpu, Some(0.95), "95 % of one core is used."),
            // The CPU is what all others take; the cause is what they are.
            (
                |snapshot| (snapshot.gc.pauses.total_ns, snapshot.gc.collections) = (5_000_000_000, [90, 4, 0]),
                20_000,
                Cause::Gc,
                Some(0.25),
                "All threads are paused for 25 % of the time.",
            ),
            (
                |snapshot| full_collections(snapshot, &[20, 50, 70, 60, 90]),
                100,
                Cause::Gc,
                Some(0.0),
                "The heap grew from 20.0 MB to 90.0 MB: full collections leave more each time. All threads are paused for 0 % of the time.",
            ),
            (
                |snapshot| waited(snapshot, 90),
                500,
                Cause::Locks,
                None,
                "Threads wait for locks, 4.5 threads at a time; most in Shop.Orders.Price.",
            ),
            (
                |snapshot| snapshot.thread_pool.starvations = 4,
                500,
                Cause::ThreadPool,
                Some(0.1),
                "Work waited for a thread in at least 10 % of the time: the pool was starved 4 times.",
            ),
            (
                |snapshot| snapshot.thread_pool.blocked = 9,
                500,
                Cause::ThreadPool,
                None,
                "9 pool threads wait for tasks that need a pool thread themselves.",
            ),
            (
                |snapshot| thrown(snapshot, 40_000),
                20_000,
                Cause::Exceptions,
                None,
                "2.0k/s exceptions; 75 % are Shop.NotFound, thrown in Shop.Orders.Check.",
            ),
            // The worse of two.
            (
                |snapshot| {
                    thrown(snapshot, 1_200);
                    waited(snapshot, 400);
                },
                500,
                Cause::Locks,
                None,
                "Threads wait for locks, 20.0 threads at a time; most in Shop.Orders.Price.",
            ),
        ];
        for (change, cpu, cause, share, text) in cases {
            let all = weighed(change, cpu, &[SLOW], 9);
            assert_eq!((all[0].cause, all[0].share, all[0].text.as_str(), all[0].is_problem()), (cause, share, text, true));
            assert_eq!(all.len(), Cause::ALL.len());
        }
    }

    #[test]
    fn a_process_that_is_well_has_no_problem() {
        let small: [fn(&mut Snapshot); 5] = [
            |_| {},
            |snapshot| waited(snapshot, 30),
            |snapshot| thrown(snapshot, 900),
            |snapshot| snapshot.gc.pauses.total_ns = 1_900_000_000,
            |snapshot| full_collections(snapshot, &[90, 60, 100, 70, 110]),
        ];
        for change in small {
            let all = weighed(change, 10_000, &[SLOW], 9);
            assert!(!all.iter().any(Slowdown::is_problem), "{all:#?}");
        }
    }

    #[test]
    fn what_was_not_measured_is_not_claimed() {
        let not_measured = |what: &[&str], runtime: u32| -> Vec<(Cause, String)> {
            let all = weighed(|_| {}, 100, what, runtime);
            let missing = all.iter().filter(|slowdown| slowdown.severity.is_none());
            missing.map(|slowdown| (slowdown.cause, slowdown.text.clone())).collect()
        };
        let causes = |what: &[&str], runtime: u32| not_measured(what, runtime).into_iter().map(|(cause, _)| cause).collect::<Vec<_>>();
        assert_eq!(causes(&[SLOW], 9), [Cause::Waiting]);
        let (cause, text) = not_measured(&[SLOW], 3).remove(0);
        assert_eq!(cause, Cause::Http);
        assert_eq!(text, "Not measured: requests that are sent are reported from .NET 5 on, and none was served.");
        assert_eq!(causes(&["gc-collect"], 9), [Cause::ThreadPool, Cause::Locks, Cause::Exceptions, Cause::Http, Cause::Waiting]);
        let (_, text) = not_measured(&["gc-collect"], 9).remove(1);
        assert_eq!(text, "Not measured: this recording has no lock contention (profile slow has).");
        // What a file holds beyond its events is not known.
        assert_eq!(causes(&[], 9).len(), 6);
        let (_, text) = not_measured(&[], 9).remove(1);
        assert_eq!(text, "Not measured: no lock contention in this recording: none occurred, or they were not recorded.");
        let file = analysis(|_| {});
        let all = slowdowns(&Evidence { analysis: &file, threads: &[], elapsed: Duration::ZERO, what: &[], runtime: None });
        assert!(all.iter().all(|slowdown| slowdown.severity.is_none()), "{all:#?}");
    }

    #[test]
    fn the_code_of_the_program_is_named() {
        let scripted = crate::ui::tests::analysis::scripted();
        let thread = ThreadUse { thread: 11, name: "main".into(), cpu: Duration::from_secs(40), state: 'R' };
        let all =
            slowdowns(&Evidence { analysis: &scripted, threads: &[thread], elapsed: Duration::from_secs(42), what: &[], runtime: Some(9) });
        let text = |cause| all.iter().find(|slowdown| slowdown.cause == cause).unwrap().text.clone();
        assert_eq!(text(Cause::Cpu), "95 % of one core is used; most of it in Shop.Pricing.PriceEngine.PriceBasket.");
        assert!(text(Cause::Locks).contains("Shop.Pricing.PriceEngine.PriceBasket"), "{}", text(Cause::Locks));
        assert!(text(Cause::Exceptions).ends_with("thrown in Shop.Pricing.Discounts.Apply."), "{}", text(Cause::Exceptions));
        assert!(text(Cause::Gc).contains("The heap grew from "), "{}", text(Cause::Gc));
        assert!(text(Cause::Http).contains("p95 ") && text(Cause::Http).contains("https://stock.local/"), "{}", text(Cause::Http));
    }
}
