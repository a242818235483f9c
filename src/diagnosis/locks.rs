//! Lock waits in a recording: from contention events, and from threads that are blocked all the time.

use std::ops::Range;

use super::culprit::is_own;
use super::evidence::{Found, MAX_HARMLESS_SEVERITY};
use super::{Evidence, Source, Threshold};
use crate::analysis::StuckThreads;
use crate::model::{Counted, Percent};

/// Major versions of runtimes whose stacks do not show the method of a contended lock (seen in .NET 8 and 9; .NET Core 3.1 and .NET 10 show
/// it).
pub(super) const VERSIONS_HIDING_LOCKS: Range<u32> = 5..10;
/// Minimum share of the time for a thread to count as blocked all the time: the first samples arrive late.
const MIN_STUCK_SHARE: f64 = 0.7;
/// Minimum waiting time of a stuck thread, in nanoseconds.
const MIN_STUCK_NS: f64 = 1e9;

impl Evidence<'_> {
    pub(super) fn locks(&self) -> Result<Found, String> {
        let locks = &self.analysis.snapshot.contention;
        self.measured(Source::Contention, locks.count > 0)?;
        if let Some(gap) = Source::Contention.native_aot_gap(self.runtime).filter(|_| self.native_aot && locks.count == 0) {
            return Err(gap.to_owned());
        }
        let stuck_threads = self.stuck_threads();
        let wait_ns = self.lock_wait_ns(&stuck_threads);
        let at_a_time = wait_ns / self.duration();
        let share = self.thread_time().map(|time| (wait_ns / time).min(1.0));
        let severity = at_a_time / self.thresholds.of(Threshold::LockWaiters);
        let (of_locks, others): (Vec<_>, Vec<_>) = stuck_threads.into_iter().partition(|stuck| stuck.is_lock);
        // No program intends to wait for a lock all the time.
        let severity = if of_locks.is_empty() { severity } else { severity.max(1.0) };
        // A wait that may not be for a lock is not a problem in itself.
        let severity = if others.is_empty() { severity } else { severity.max(MAX_HARMLESS_SEVERITY) };
        let began = self.describe_contention(share, at_a_time);
        // A mere guess has no share.
        let share = share.filter(|_| began.is_some() || !of_locks.is_empty() || others.is_empty());
        let text = match (began, describe_stuck(&of_locks, &others)) {
            (Some(began), Some(stuck)) => format!("{began}. {stuck}."),
            (Some(began), None) => format!("{began}."),
            (None, Some(stuck)) if of_locks.is_empty() => format!("No new lock contention; {stuck}."),
            (None, Some(stuck)) => format!("{stuck}."),
            (None, None) => "No lock contention.".to_owned(),
        };
        Ok((share, severity, text))
    }

    /// Returns whether more threads wait for locks at a time than for a CPU, on average. A thread that waits for a CPU while it holds a lock holds up
    /// those that wait for the lock; they would also wait for each other on a machine without other load.
    pub(super) fn more_wait_for_locks(&self) -> bool {
        self.lock_wait_ns(&self.stuck_threads()) / self.duration() > self.program_cpu_use().waiting().unwrap_or(0.0)
    }

    /// Describes the waits that have events, as a sentence without a period.
    fn describe_contention(&self, share: Option<f64>, at_a_time: f64) -> Option<String> {
        let site = self.analysis.snapshot.contention.sites.first()?;
        let what = match share {
            Some(share) => format!("{} of thread time is spent in lock waits", Percent(share)),
            None => "Threads wait for locks".to_owned(),
        };
        let at_a_time = if at_a_time >= 1.0 { format!(", {at_a_time:.1} threads at a time") } else { String::new() };
        let place = if site.method.is_empty() { String::new() } else { format!("; most in {}", site.method) };
        Some(format!("{what}{at_a_time}{place}"))
    }

    /// Returns where application threads are blocked all the time. A wait that began before the recording and is not over has no event, nor has one
    /// for a lock that is no monitor. The samples of a thread in a convoy belong to many waits, whose events explain most of the time.
    pub(super) fn stuck_threads(&self) -> Vec<StuckThreads> {
        let (least_ns, waits) = (self.least_stuck_ns(), &self.analysis.snapshot.contention.threads);
        let is_one_wait = |thread| waits.get(&thread).is_none_or(|waits| waits.longest_ns >= least_ns || waits.total_ns < least_ns / 2);
        let mut stuck_threads = self.analysis.profile.stuck_threads(least_ns, is_one_wait);
        let hides_locks = self.runtime.is_none_or(|major| VERSIONS_HIDING_LOCKS.contains(&major));
        stuck_threads.retain(|stuck| stuck.is_lock || hides_locks && is_own(&stuck.method));
        stuck_threads
    }

    /// Returns the time that threads waited for locks, in nanoseconds: from events, plus the samples of threads whose wait has no event.
    pub(super) fn lock_wait_ns(&self, stuck_threads: &[StuckThreads]) -> f64 {
        let locks = &self.analysis.snapshot.contention;
        let blocked: usize = stuck_threads.iter().filter(|stuck| stuck.is_lock).map(|stuck| stuck.threads).sum();
        let with_events = locks.threads.values().filter(|waits| waits.longest_ns >= self.least_stuck_ns()).count();
        locks.wait_ns as f64 + blocked.saturating_sub(with_events) as f64 * self.duration()
    }

    /// Returns the minimum waiting time of a thread that is blocked all the time, in nanoseconds.
    fn least_stuck_ns(&self) -> u64 {
        (self.duration() * MIN_STUCK_SHARE).max(MIN_STUCK_NS) as u64
    }
}

/// Describes threads blocked all the time, as a sentence without a period.
fn describe_stuck(of_locks: &[StuckThreads], others: &[StuckThreads]) -> Option<String> {
    let threads = |places: &[StuckThreads]| Counted(places.iter().map(|place| place.threads as u64).sum(), "thread");
    match (of_locks, others) {
        ([_, ..], _) => Some(format!("{} waited for locks all the time; {}", threads(of_locks), methods(of_locks))),
        ([], [_, ..]) => Some(format!("{} waited all the time, for a lock or in native code; {}", threads(others), methods(others))),
        ([], []) => None,
    }
}

/// Names the waiting methods: all of a few, as they may block one another.
fn methods(places: &[StuckThreads]) -> String {
    match places {
        [one, other] => format!("in {} and {}", one.method, other.method),
        [one, other, third] => format!("in {}, {} and {}", one.method, other.method, third.method),
        _ => format!("most in {}", places.first().map_or("", |place| place.method.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_waiting_methods_are_all_named() {
        let stuck = |methods: &[&str], is_lock| -> Vec<_> {
            methods.iter().map(|method| StuckThreads { method: (*method).to_owned(), threads: 1, is_lock }).collect()
        };
        for (methods, expected) in [
            (&["A.Pay"][..], "most in A.Pay"),
            (&["A.Pay", "B.Audit"], "in A.Pay and B.Audit"),
            (&["A.Pay", "B.Audit", "C.Report"], "in A.Pay, B.Audit and C.Report"),
            (&["A.Pay", "B.Audit", "C.Report", "D.Close"], "most in A.Pay"),
        ] {
            let threads = Counted(methods.len() as u64, "thread");
            let (in_locks, others) = (stuck(methods, true), stuck(methods, false));
            assert_eq!(describe_stuck(&in_locks, &others), Some(format!("{threads} waited for locks all the time; {expected}")));
            let hidden = format!("{threads} waited all the time, for a lock or in native code; {expected}");
            assert_eq!(describe_stuck(&[], &others), Some(hidden));
        }
        assert_eq!(describe_stuck(&[], &[]), None);
    }
}
