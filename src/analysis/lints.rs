//! What is wrong with a process, as far as a snapshot tells, and why one should think so.

use super::{CounterSnapshot, Snapshot};

/// Share of time that the program may stand for the collector.
const GC_SHARE: (f64, f64) = (0.10, 0.30);
/// Exceptions a second.
const EXCEPTIONS: (f64, f64) = (100.0, 1000.0);
/// Threads that wait for locks at any moment, on average, and how many waits a second make a convoy of it.
const WAITERS: (f64, f64) = (1.0, 4.0);
const WAITS: f64 = 10.0;
/// Times that the thread pool was starved in half a minute.
const STARVATIONS: (u64, u64) = (1, 10);
/// Full collections after each of which the heap was larger than after the one before.
const GROWING: usize = 5;
/// How much it must have grown by, as a factor and in bytes.
const GROWTH: (f64, u64) = (1.2, 10_000_000);
/// Values of a queue in a row that are not empty.
const QUEUED: (usize, f64) = (5, 20.0);

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Lint {
    /// What.
    pub kind: LintKind,
    /// How bad it is.
    pub severity: Severity,
    /// Why one should think so, in a sentence with figures. Names in it are not sanitised.
    pub why: String,
    /// What to do, in a sentence.
    pub advice: &'static str,
    /// Where to look.
    pub topic: Topic,
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LintKind {
    /// The program stands for the collector too much.
    TimeInGc,
    /// Work waits, and there are no threads for it.
    ThreadPoolStarvation,
    /// Exceptions are thrown all the time.
    ExceptionStorm,
    /// The heap is larger after every full collection.
    Gen2Growth,
    /// Threads wait for one another's locks all the time.
    LockConvoy,
    /// Events were dropped: all figures are too small.
    Loss,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Notice,
    /// Worth looking at.
    Warning,
    /// Hurts.
    Critical,
}

/// Where a person sees more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Collections, pauses, the heap and allocations.
    Gc,
    /// Exceptions.
    Exceptions,
    /// The thread pool.
    Threads,
    /// Locks.
    Locks,
    /// Where threads spend their time.
    Methods,
    /// The session itself.
    Session,
}

impl Snapshot {
    /// What is wrong, worst first.
    pub fn lints(&self) -> Vec<Lint> {
        let lints = [self.time_in_gc(), self.starvation(), self.exception_storm(), self.gen2_growth(), self.lock_convoy(), self.loss()];
        let mut lints: Vec<_> = lints.into_iter().flatten().collect();
        lints.sort_by_key(|lint| std::cmp::Reverse(lint.severity));
        lints
    }

    fn time_in_gc(&self) -> Option<Lint> {
        let pauses = &self.gc.pauses;
        let told = self.counters.vitals.gc_time_percent.map(|percent| percent / 100.0);
        // Without events of the collector, what the runtime publishes has to do.
        let share = if pauses.count > 0 { pauses.recent_share } else { told? };
        let severity = severity(share, GC_SHARE)?;
        let longest = if pauses.count > 0 { format!("; the longest pause took {:.1} ms", ms(pauses.longest_ns)) } else { String::new() };
        Some(Lint {
            kind: LintKind::TimeInGc,
            severity,
            why: format!("the program stands for collections {:.0} % of the time{longest}", share * 100.0),
            advice: "see which types are allocated most, and which generation is collected",
            topic: Topic::Gc,
        })
    }

    fn starvation(&self) -> Option<Lint> {
        let pool = &self.thread_pool;
        let starved = severity(pool.recent_starvations as f64, (STARVATIONS.0 as f64, STARVATIONS.1 as f64));
        let (severity, why) = match starved {
            Some(severity) => {
                let workers = pool.workers.map_or_else(String::new, |workers| format!(", {workers} by now"));
                let times = pool.recent_starvations;
                (severity, format!("work waited and no thread came free: the pool added threads {times} times in 30 s{workers}"))
            }
            None => {
                (Severity::Warning, format!("{:.0} work items wait for a thread, and did {} times before", self.queued()?, QUEUED.0 - 1))
            }
        };
        Some(Lint {
            kind: LintKind::ThreadPoolStarvation,
            severity,
            why,
            advice: "see what threads of the pool wait for: often it is Task.Wait, Task.Result or a lock",
            topic: Topic::Threads,
        })
    }

    /// Length of the thread pool's queue, where it was not empty for a while.
    fn queued(&self) -> Option<f64> {
        // The instrument of that name calls itself a counter, whose history is of its changes.
        let queue = |counter: &&CounterSnapshot| counter.group == "System.Runtime" && counter.name == "threadpool-queue-length";
        let history = &self.counters.counters.iter().find(queue)?.history;
        let last = history.get(history.len().checked_sub(QUEUED.0)?..)?;
        (last.iter().all(|(_, length)| *length >= QUEUED.1)).then_some(last.last()?.1)
    }

    fn exception_storm(&self) -> Option<Lint> {
        let told = self.counters.vitals.exceptions.unwrap_or(0.0);
        let rate = if self.exceptions.thrown > 0 { self.exceptions.rate } else { told };
        let severity = severity(rate, EXCEPTIONS)?;
        let most = self.exceptions.types.first().map_or_else(String::new, |most| format!(", most of them {}", most.name));
        Some(Lint {
            kind: LintKind::ExceptionStorm,
            severity,
            why: format!("{rate:.0} exceptions a second{most}"),
            advice: "see who throws them: an exception costs as much as thousands of calls",
            topic: Topic::Exceptions,
        })
    }

    fn gen2_growth(&self) -> Option<Lint> {
        let full = self.gc.recent.iter().filter(|collection| collection.generation >= 2).filter_map(|collection| collection.heap_after);
        let sizes: Vec<u64> = full.take(GROWING).collect();
        let (newest, oldest) = (*sizes.first()?, *sizes.last()?);
        // The newest comes first.
        let grows = sizes.len() == GROWING && sizes.is_sorted_by(|newer, older| newer > older);
        let enough = newest as f64 > oldest as f64 * GROWTH.0 && newest - oldest > GROWTH.1;
        (grows && enough).then(|| Lint {
            kind: LintKind::Gen2Growth,
            severity: Severity::Warning,
            why: format!(
                "after each of the last {GROWING} full collections the heap was larger than before: {:.0} MB, now {:.0} MB",
                oldest as f64 / 1e6,
                newest as f64 / 1e6
            ),
            advice: "look at what is on the heap twice, some time apart: what grows is held by somebody",
            topic: Topic::Gc,
        })
    }

    fn lock_convoy(&self) -> Option<Lint> {
        let locks = &self.contention;
        let severity = severity(locks.recent_waiters, WAITERS).filter(|_| locks.rate >= WAITS)?;
        let place = locks
            .sites
            .first()
            .filter(|site| !site.method.is_empty())
            .map_or_else(String::new, |site| format!(", most in {}", site.method));
        Some(Lint {
            kind: LintKind::LockConvoy,
            severity,
            why: format!("{:.1} threads wait for locks at any moment, {:.0} times a second{place}", locks.recent_waiters, locks.rate),
            advice: "see where they wait: hold the lock for less, or split it",
            topic: Topic::Locks,
        })
    }

    fn loss(&self) -> Option<Lint> {
        let (recent, total) = (self.rates.recent_lost, self.rates.total_lost);
        (total > 0).then(|| Lint {
            kind: LintKind::Loss,
            severity: if recent > 0 { Severity::Warning } else { Severity::Notice },
            why: format!("the runtime dropped {total} events, {recent} of them in the last 30 s: figures are too small"),
            advice: "ask for fewer events, or for a larger buffer",
            topic: Topic::Session,
        })
    }
}

fn ms(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// How bad a figure is, given from where on it is worth looking at and from where on it hurts.
fn severity(figure: f64, (warning, critical): (f64, f64)) -> Option<Severity> {
    match figure {
        _ if figure >= critical => Some(Severity::Critical),
        _ if figure >= warning => Some(Severity::Warning),
        _ => None,
    }
}
