//! What threads were blocked for, as events of the runtime show: when each was blocked is known, and when there were waits.

use std::collections::{BTreeMap, VecDeque};

use crate::analysis::{RuntimeWait, WaitReason};

/// How long times are kept in which threads were blocked, nanoseconds: events come later than these do.
const KEPT_NS: u64 = 5_000_000_000;
/// Most of these of one thread.
const MOST: usize = 1 << 13;
/// Most waits that are kept until all blocked times before their end are known.
const MOST_WAITS: usize = 1 << 17;
/// How much later than a collection is over a thread runs again that waited for it, nanoseconds, at most: others may have the processors.
const LATE_NS: u64 = 50_000_000;

/// Blocked times of threads. All are nanoseconds on the clock CLOCK_MONOTONIC.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    /// By thread, oldest first: from when to when.
    times: BTreeMap<u64, VecDeque<(u64, u64)>>,
    /// What is not matched yet.
    waits: Vec<RuntimeWait>,
    /// Threads that wait for a lock, and since when.
    waiting: BTreeMap<u64, u64>,
    /// How long threads were blocked for a lock, and for collections.
    known: BTreeMap<u64, Known>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    lock_ns: u64,
    gc_ns: u64,
}

impl Blocked {
    /// A thread was blocked in this time.
    pub(super) fn add(&mut self, thread: u64, since: u64, until: u64) {
        let times = self.times.entry(thread).or_default();
        if times.len() >= MOST {
            times.pop_front();
        }
        times.push_back((since, until));
    }

    /// Takes the waits that events show: those that are over, and those for locks that are not.
    pub(super) fn add_waits(&mut self, waits: &[RuntimeWait], waiting: &[(u64, u64)]) {
        let room = MOST_WAITS.saturating_sub(self.waits.len());
        self.waits.extend(waits.iter().take(room));
        self.waiting = waiting.iter().copied().collect();
    }

    /// Matches blocked times and waits before a moment up to which all times have come.
    pub(super) fn match_until(&mut self, until: u64) {
        let Self { times, waits, known, .. } = self;
        waits.retain(|wait| {
            let is_due = wait.end <= until;
            if is_due {
                match wait.thread {
                    Some(thread) => {
                        let ns = times.get_mut(&thread).map_or(0, |times| take_within(times, wait));
                        known.entry(thread).or_default().lock_ns += ns;
                    }
                    None => times.iter_mut().for_each(|(thread, times)| {
                        let ns = take_begun_within(times, wait);
                        if ns > 0 {
                            known.entry(*thread).or_default().gc_ns += ns;
                        }
                    }),
                }
            }
            !is_due
        });
        let oldest = until.saturating_sub(KEPT_NS);
        times.retain(|_, times| {
            while times.front().is_some_and(|(_, until)| *until < oldest) {
                times.pop_front();
            }
            !times.is_empty()
        });
    }

    /// How long a thread that is sampled since then has been blocked for what events show, nanoseconds.
    pub(super) fn of(&self, thread: u64, began: u64, now: u64) -> [(WaitReason, u64); 2] {
        let Known { lock_ns, gc_ns } = self.known.get(&thread).copied().unwrap_or_default();
        let waiting = self.waiting.get(&thread).map_or(0, |since| now.saturating_sub((*since).max(began)));
        [(WaitReason::Lock, lock_ns + waiting), (WaitReason::Gc, gc_ns)]
    }
}

/// How long a thread was blocked within a wait of its own. No other wait has these times.
fn take_within(times: &mut VecDeque<(u64, u64)>, wait: &RuntimeWait) -> u64 {
    let first = times.partition_point(|(_, until)| *until <= wait.begin);
    let end = times.partition_point(|(since, _)| *since < wait.end);
    let overlap = |(since, until): (u64, u64)| until.min(wait.end).saturating_sub(since.max(wait.begin));
    times.drain(first..end.max(first)).map(overlap).sum()
}

/// How long a thread was blocked by a collection. It ran until then, and does again soon after; what managed code waits for otherwise, it began to before.
fn take_begun_within(times: &mut VecDeque<(u64, u64)>, wait: &RuntimeWait) -> u64 {
    let first = times.partition_point(|(since, _)| *since < wait.begin);
    let end = times.partition_point(|(since, until)| *since < wait.end && *until <= wait.end.saturating_add(LATE_NS));
    times.drain(first..end.max(first)).map(|(since, until)| until - since).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn wait(reason: WaitReason, thread: Option<u64>, begin: u64, end: u64) -> RuntimeWait {
        RuntimeWait { reason, thread, begin: begin * MS, end: end * MS }
    }

    /// Milliseconds for locks, and for collections.
    fn of(blocked: &Blocked, thread: u64) -> [u64; 2] {
        blocked.of(thread, 10 * MS, 1000 * MS).map(|(_, ns)| ns / MS)
    }

    #[test]
    fn blocked_times_are_matched_with_waits() {
        let mut blocked = Blocked::default();
        for (thread, since, until) in [(7, 100, 110), (7, 111, 120), (7, 130, 140), (8, 104, 109), (9, 90, 300), (10, 105, 200)] {
            blocked.add(thread, since * MS, until * MS);
        }
        let waits = [wait(WaitReason::Lock, Some(7), 99, 121), wait(WaitReason::Gc, None, 103, 108), wait(WaitReason::Lock, Some(5), 1, 9)];
        blocked.add_waits(&waits, &[(9, 950 * MS), (8, 5 * MS)]);
        blocked.match_until(105 * MS);
        assert_eq!(of(&blocked, 7), [0, 0], "more of it may come");
        blocked.match_until(150 * MS);
        // What was blocked before the collection, or longer than it, waits for something else.
        assert_eq!([7, 8, 9, 10].map(|thread| of(&blocked, thread)), [[19, 0], [990, 5], [50, 0], [0, 0]]);
        // Each time is of one wait.
        blocked.add_waits(&waits, &[]);
        blocked.match_until(150 * MS);
        assert_eq!([7, 8, 9].map(|thread| of(&blocked, thread)), [[19, 0], [0, 5], [0, 0]]);
        blocked.match_until(150 * MS + KEPT_NS);
        assert_eq!(blocked.times.keys().copied().collect::<Vec<_>>(), [9, 10], "older times are of no use");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut blocked = Blocked::default();
        for at in 0..2 * MOST as u64 {
            blocked.add(7, 10 * at, 10 * at + 5);
        }
        assert_eq!(blocked.times[&7].len(), MOST);
        let waits = vec![wait(WaitReason::Lock, Some(7), 1, 2); MOST_WAITS + 1];
        blocked.add_waits(&waits, &[]);
        blocked.add_waits(&waits, &[]);
        assert_eq!(blocked.waits.len(), MOST_WAITS);
        // A damaged one does no harm.
        blocked.add_waits(&[], &[(7, u64::MAX)]);
        blocked.match_until(u64::MAX);
        assert!(blocked.times.is_empty() && blocked.of(7, u64::MAX, 5) == [(WaitReason::Lock, 0), (WaitReason::Gc, 0)]);
    }
}
