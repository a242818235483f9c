//! When events came, and where they are missing.

use std::collections::VecDeque;

use crate::nettrace::{Loss, LossKind, ThreadId};
use crate::sorting::CompactSort;

use super::timeline::{Merge, Timeline};

/// Holes that are kept one by one.
const HOLES: usize = 256;
/// Events are put on the time line this many nanoseconds at a time.
const BATCH: i64 = 10_000_000;
/// A capture thread's holes this close together are one, nanoseconds.
const CLOSE: i64 = 1_000_000_000;

/// Events over time.
#[derive(Debug)]
pub(super) struct Rates {
    events: Timeline,
    lost: Timeline,
    holes: VecDeque<Hole>,
    total_lost: u64,
    /// Events that are not on the time line yet, and from when to when they came.
    batch: u32,
    batch_begin: i64,
}

/// When events came, and where they are missing.
#[derive(Debug, Clone)]
pub struct RateSnapshot {
    /// Events a second over the last ten seconds.
    pub rate: f64,
    /// Events by step.
    pub events: Timeline,
    /// All that were dropped.
    pub total_lost: u64,
    /// Of these, those that were noticed in the last thirty seconds.
    pub recent_lost: u64,
    /// The latest holes, newest first: no more than 256.
    pub holes: Vec<Hole>,
}

/// A place in the trace where events of a thread are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// The moment before which they are missing, nanoseconds since the start of the session.
    pub at: i64,
    /// How many.
    pub count: u64,
    /// The thread that would have written them.
    pub capture_thread: ThreadId,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            events: Timeline::new(Merge::Sum),
            lost: Timeline::new(Merge::Sum),
            holes: VecDeque::new(),
            total_lost: 0,
            batch: 0,
            batch_begin: i64::MIN,
        }
    }
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
        self.batch_begin = at - at.rem_euclid(BATCH).min(at.saturating_sub(i64::MIN));
    }

    pub(super) fn lost(&mut self, at: i64, loss: &Loss) {
        // What is missing before the first event of a thread may have been before the session.
        if loss.kind == LossKind::Start {
            return;
        }
        self.total_lost += u64::from(loss.count);
        self.lost.add(at, f64::from(loss.count));
        let near = |hole: &&mut Hole| hole.capture_thread == loss.capture_thread && at.saturating_sub(hole.at).saturating_abs() < CLOSE;
        if let Some(hole) = self.holes.iter_mut().rev().take(16).find(near) {
            hole.count += u64::from(loss.count);
            return;
        }
        if self.holes.len() >= HOLES {
            self.holes.pop_front();
        }
        self.holes.push_back(Hole { at, count: loss.count.into(), capture_thread: loss.capture_thread });
    }

    pub(super) fn snapshot(&self, now: i64) -> RateSnapshot {
        let mut events = self.events.clone();
        if self.batch > 0 {
            events.add(self.batch_begin, f64::from(self.batch));
        }
        let mut holes: Vec<_> = self.holes.iter().copied().collect();
        holes.compact_sort_by_key(|hole| std::cmp::Reverse(hole.at));
        RateSnapshot { rate: events.rate(now, 10), events, total_lost: self.total_lost, recent_lost: self.lost.sum(now, 30) as u64, holes }
    }
}

/// How many came in the last seconds, in the memory of two numbers: each counts less and less with time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecentRate {
    weight: f64,
    at: i64,
}

impl RecentRate {
    /// Nanoseconds after which one counts but a third.
    const SPAN: f64 = 3e9;

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

    /// How many a second. In a session that is younger than the span, there were fewer that could count.
    pub(super) fn rate(self, now: i64) -> f64 {
        let seconds = Self::SPAN / 1e9 * (1.0 - (-(now.max(1_000_000_000) as f64) / Self::SPAN).exp());
        self.at(now) / seconds
    }
}
