//! Event rates over time, and lost events.

use std::collections::VecDeque;

use crate::nettrace::{Loss, LossKind, ThreadId};
use crate::sorting::CompactSort;

use super::ranking::push_latest;
use super::timeline::Timeline;

/// Maximum number of individual gaps kept.
const MAX_GAPS: usize = 256;
/// Interval in nanoseconds at which events are added to the timeline.
const BATCH: i64 = 10_000_000;
/// Gaps of a capture thread closer together than this are merged, in nanoseconds.
const CLOSE: i64 = 1_000_000_000;

/// Tracks event rates and losses over time.
#[derive(Debug, Default)]
pub(super) struct Rates {
    events: Timeline,
    lost: Timeline,
    gaps: VecDeque<Gap>,
    total_lost: u64,
    /// Events that are not on the timeline yet, and the start of their interval.
    batch: u32,
    batch_begin: i64,
}

/// Event rates over time, and lost events.
#[derive(Debug, Clone)]
pub struct RateSnapshot {
    /// Events per second over the last ten seconds.
    pub rate: f64,
    /// Number of events over time.
    pub events: Timeline,
    /// Total number of dropped events.
    pub total_lost: u64,
    /// Number of these detected in the last thirty seconds.
    pub recent_lost: u64,
    /// The latest gaps, newest first; at most 256.
    pub gaps: Vec<Gap>,
}

/// A gap in the trace: missing events of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Time before which events are missing, in nanoseconds since the start of the session.
    pub at: i64,
    /// Number of missing events.
    pub count: u64,
    /// The capture thread of the missing events.
    pub capture_thread: ThreadId,
}

impl Rates {
    #[inline]
    pub(super) fn event(&mut self, at: i64) {
        if at.wrapping_sub(self.batch_begin) as u64 >= BATCH as u64 || self.batch == u32::MAX {
            self.settle(at);
        }
        self.batch += 1;
    }

    fn settle(&mut self, at: i64) {
        if self.batch > 0 {
            self.events.add(self.batch_begin, f64::from(self.batch));
        }
        self.batch = 0;
        self.batch_begin = at.div_euclid(BATCH).saturating_mul(BATCH);
    }

    pub(super) fn lost(&mut self, at: i64, loss: &Loss) {
        // Events missing before the first event of a thread may precede the session.
        if loss.kind == LossKind::Start {
            return;
        }
        self.total_lost += u64::from(loss.count);
        self.lost.add(at, f64::from(loss.count));
        let near = |gap: &&mut Gap| gap.capture_thread == loss.capture_thread && at.saturating_sub(gap.at).saturating_abs() < CLOSE;
        if let Some(gap) = self.gaps.iter_mut().rev().take(16).find(near) {
            gap.count += u64::from(loss.count);
            return;
        }
        push_latest(&mut self.gaps, MAX_GAPS, Gap { at, count: loss.count.into(), capture_thread: loss.capture_thread });
    }

    pub(super) fn snapshot(&self, now: i64) -> RateSnapshot {
        let mut events = self.events.clone();
        if self.batch > 0 {
            events.add(self.batch_begin, f64::from(self.batch));
        }
        let mut gaps: Vec<_> = self.gaps.iter().copied().collect();
        gaps.compact_sort_by_key(|gap| std::cmp::Reverse(gap.at));
        RateSnapshot { rate: events.rate(now, 10), events, total_lost: self.total_lost, recent_lost: self.lost.sum(now, 30) as u64, gaps }
    }
}

/// Number of events over the last few seconds, kept in two numbers: an exponentially decaying count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecentRate {
    weight: f64,
    at: i64,
}

impl RecentRate {
    /// Time in nanoseconds after which the weight of an event has decayed to 1/e.
    const SPAN: f64 = 3e9;
    /// Rate below which there were no events recently: 5.7 seconds after a single event.
    const MIN_RATE: f64 = 0.05;

    fn at(self, now: i64) -> f64 {
        self.weight * (-(now.saturating_sub(self.at).max(0) as f64) / Self::SPAN).exp()
    }

    pub(super) fn add(&mut self, at: i64) {
        *self = Self { weight: self.at(at) + 1.0, at: self.at.max(at) };
    }

    pub(super) fn fold(&mut self, other: Self) {
        let at = self.at.max(other.at);
        *self = Self { weight: self.at(at) + other.at(at), at };
    }

    /// Returns the rate per second, corrected for sessions younger than the span; 0 once it is negligible.
    pub(super) fn rate(self, now: i64) -> f64 {
        let seconds = Self::SPAN / 1e9 * (1.0 - (-(now.max(1_000_000_000) as f64) / Self::SPAN).exp());
        let rate = self.at(now) / seconds;
        if rate < Self::MIN_RATE { 0.0 } else { rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn losses_of_a_thread_close_together_are_one_gap() {
        let mut rates = Rates::default();
        let mut lose = |at, thread, count, kind| {
            rates.lost(at, &Loss { count, kind, capture_thread: ThreadId::of(thread), timestamp: at });
        };
        lose(99 * SECOND, 1, 9, LossKind::Start);
        for (tenths, thread, count) in [(1000, 1, 2), (1005, 1, 3), (1006, 2, 4), (1020, 1, 5)] {
            lose(tenths * SECOND / 10, thread, count, LossKind::Gap);
        }
        let found = rates.snapshot(125 * SECOND);
        assert_eq!((found.total_lost, found.recent_lost), (14, 14), "before the first event of a thread, none may be missing");
        let gaps: Vec<_> = found.gaps.iter().map(|gap| (gap.at * 10 / SECOND, gap.capture_thread.thread, gap.count)).collect();
        assert_eq!(gaps, [(1020, 1, 5), (1006, 2, 4), (1000, 1, 5)]);
    }

    #[test]
    fn recent_rate_is_zero_some_seconds_after_the_last_event() {
        let mut rate = RecentRate::default();
        rate.add(60 * SECOND);
        assert!((rate.rate(60 * SECOND) - 1.0 / 3.0).abs() < 0.001);
        assert!(rate.rate(65 * SECOND) > 0.05);
        assert_eq!(rate.rate(66 * SECOND), 0.0);
    }

    /// Events of several threads are not in order.
    #[test]
    fn an_older_event_does_not_make_newer_ones_older() {
        let of = |events: &[i64]| {
            let mut rate = RecentRate::default();
            events.iter().for_each(|second| rate.add(second * SECOND));
            rate.rate(30 * SECOND)
        };
        assert!(of(&[30, 20]) >= of(&[30]) && of(&[30]) > 0.3, "{} {}", of(&[30, 20]), of(&[30]));
    }
}
