//! Attribution of blocked time to the waits shown by runtime events: matches the intervals in which threads were blocked with the waits.

use std::collections::{BTreeMap, VecDeque};

use crate::analysis::{RuntimeWait, WaitReason};

/// How long blocked intervals are kept, in nanoseconds: events arrive later than they do.
const KEPT_NS: u64 = 5_000_000_000;
/// Maximum number of intervals kept per thread.
const MAX_INTERVALS: usize = 1 << 13;
/// Maximum number of waits kept until all blocked intervals before their end are known.
const MAX_WAITS: usize = 1 << 17;
/// Maximum delay after a GC until a thread that waited for it runs again, in nanoseconds: the processors may be busy.
const LATE_NS: u64 = 50_000_000;

/// Blocked intervals of threads. All times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Default)]
pub(super) struct BlockedIntervals {
    /// Start and end of each interval, by thread, oldest first.
    times: BTreeMap<u64, VecDeque<(u64, u64)>>,
    /// Waits not matched yet.
    waits: Vec<RuntimeWait>,
    /// Threads currently waiting for a lock, and when each began to wait.
    waiting: BTreeMap<u64, u64>,
    /// Time each thread was blocked for locks and GCs.
    known: BTreeMap<u64, BlockedTotals>,
}

#[derive(Debug, Clone, Copy, Default)]
struct BlockedTotals {
    lock_ns: u64,
    gc_ns: u64,
}

impl BlockedIntervals {
    /// Adds an interval in which a thread was blocked.
    pub(super) fn add(&mut self, thread: u64, since: u64, until: u64) {
        let times = self.times.entry(thread).or_default();
        if times.len() >= MAX_INTERVALS {
            times.pop_front();
        }
        times.push_back((since, until));
    }

    /// Adds waits shown by events: completed ones, and the current waits for locks.
    pub(super) fn add_waits(&mut self, waits: &[RuntimeWait], waiting: &[(u64, u64)]) {
        let room = MAX_WAITS.saturating_sub(self.waits.len());
        self.waits.extend(waits.iter().take(room));
        self.waiting = waiting.iter().copied().collect();
    }

    /// Matches blocked intervals and waits up to this time, by which all intervals have arrived.
    pub(super) fn match_until(&mut self, until: u64) {
        let Self { times, waits, known, .. } = self;
        waits.retain(|wait| {
            let is_due = wait.end <= until;
            if is_due {
                if wait.reason == WaitReason::Gc {
                    times.iter_mut().for_each(|(thread, times)| {
                        let ns = take_begun_within(times, wait);
                        if ns > 0 {
                            known.entry(*thread).or_default().gc_ns += ns;
                        }
                    });
                } else if let Some(times) = times.get_mut(&wait.thread) {
                    // Thread ids are those of events, which may be made up.
                    known.entry(wait.thread).or_default().lock_ns += take_within(times, wait);
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

    /// How long a thread, sampled since `began`, has been blocked for locks and GCs, in nanoseconds.
    pub(super) fn of(&self, thread: u64, began: u64, now: u64) -> [(WaitReason, u64); 2] {
        let BlockedTotals { lock_ns, gc_ns } = self.known.get(&thread).copied().unwrap_or_default();
        let waiting = self.waiting.get(&thread).map_or(0, |since| now.saturating_sub((*since).max(began)));
        [(WaitReason::Lock, lock_ns + waiting), (WaitReason::Gc, gc_ns)]
    }
}

/// Removes the intervals within a wait of the thread and returns the time blocked. They are not matched with any other wait.
fn take_within(times: &mut VecDeque<(u64, u64)>, wait: &RuntimeWait) -> u64 {
    let first = times.partition_point(|(_, until)| *until <= wait.begin);
    let end = times.partition_point(|(since, _)| *since < wait.end);
    let overlap = |(since, until): (u64, u64)| until.min(wait.end).saturating_sub(since.max(wait.begin));
    times.drain(first..end.max(first)).map(overlap).sum()
}

/// Removes the intervals caused by a GC and returns their time. Such an interval begins within the GC and ends soon after it; other waits of
/// managed code began before.
fn take_begun_within(times: &mut VecDeque<(u64, u64)>, wait: &RuntimeWait) -> u64 {
    let first = times.partition_point(|(since, _)| *since < wait.begin);
    let end = times.partition_point(|(since, until)| *since < wait.end && *until <= wait.end.saturating_add(LATE_NS));
    times.drain(first..end.max(first)).map(|(since, until)| until - since).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn wait(reason: WaitReason, thread: u64, begin: u64, end: u64) -> RuntimeWait {
        RuntimeWait { reason, thread, begin: begin * MS, end: end * MS }
    }

    /// Milliseconds blocked for locks, and for GCs.
    fn of(blocked: &BlockedIntervals, thread: u64) -> [u64; 2] {
        blocked.of(thread, 10 * MS, 1000 * MS).map(|(_, ns)| ns / MS)
    }

    #[test]
    fn blocked_times_are_matched_with_waits() {
        let mut blocked = BlockedIntervals::default();
        for (thread, since, until) in
            [(7, 100, 110), (7, 111, 120), (7, 130, 140), (8, 104, 109), (9, 90, 300), (10, 105, 200), (11, 90, 130)]
        {
            blocked.add(thread, since * MS, until * MS);
        }
        let lock = |thread, begin, end| wait(WaitReason::Lock, thread, begin, end);
        let waits = [lock(7, 99, 121), wait(WaitReason::Gc, 12, 103, 108), lock(5, 1, 9), lock(11, 95, 121)];
        blocked.add_waits(&waits, &[(9, 950 * MS), (8, 5 * MS)]);
        blocked.match_until(105 * MS);
        assert_eq!(of(&blocked, 7), [0, 0], "more of it may come");
        blocked.match_until(150 * MS);
        assert_eq!(of(&blocked, 11), [26, 0], "only what is within the wait");
        // Intervals that began before the GC, or are longer than it, have another cause.
        assert_eq!([7, 8, 9, 10].map(|thread| of(&blocked, thread)), [[19, 0], [990, 5], [50, 0], [0, 0]]);
        // Each interval is matched with one wait.
        blocked.add_waits(&waits, &[]);
        blocked.match_until(150 * MS);
        assert_eq!([7, 8, 9].map(|thread| of(&blocked, thread)), [[19, 0], [0, 5], [0, 0]]);
        blocked.match_until(150 * MS + KEPT_NS);
        assert_eq!(blocked.times.keys().copied().collect::<Vec<_>>(), [9, 10], "older times are of no use");
    }

    #[test]
    fn kept_intervals_and_waits_are_bounded() {
        let mut blocked = BlockedIntervals::default();
        for at in 0..2 * MAX_INTERVALS as u64 {
            blocked.add(7, 10 * at, 10 * at + 5);
        }
        assert_eq!(blocked.times[&7].len(), MAX_INTERVALS);
        let waits = vec![wait(WaitReason::Lock, 7, 1, 2); MAX_WAITS + 1];
        blocked.add_waits(&waits, &[]);
        blocked.add_waits(&waits, &[]);
        assert_eq!(blocked.waits.len(), MAX_WAITS);
        blocked.waits.clear();
        let made_up: Vec<_> = (1000..2000).map(|thread| wait(WaitReason::Lock, thread, 1, 2)).collect();
        blocked.add_waits(&made_up, &[]);
        blocked.match_until(2 * MS);
        assert!(blocked.waits.is_empty() && blocked.known.is_empty(), "threads that were never blocked need no memory");
        // Damaged waits are harmless.
        blocked.add_waits(&[], &[(7, u64::MAX)]);
        blocked.match_until(u64::MAX);
        assert!(blocked.times.is_empty() && blocked.of(7, u64::MAX, 5) == [(WaitReason::Lock, 0), (WaitReason::Gc, 0)]);
    }
}
