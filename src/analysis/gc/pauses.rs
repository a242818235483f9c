//! GC pauses.

use std::collections::VecDeque;

use crate::nettrace::ThreadId;

use super::super::distribution::Distribution;
use super::super::ranking::push_latest;
use super::super::timeline::{Maxima, Timeline};
use super::suspensions::{Pause, Suspensions};

/// Maximum number of individual pauses kept.
const RECENT: usize = 1024;

/// Counts and measures pauses.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    pub(super) suspensions: Suspensions,
    times: Distribution,
    total: Timeline,
    longest: Maxima,
    recent: VecDeque<Pause>,
}

/// GC pauses, from the start of the suspension until all threads are resumed. Times in nanoseconds.
#[derive(Debug, Clone)]
pub struct PauseSnapshot {
    /// Number of pauses; a background collection has two.
    pub count: u64,
    /// Total duration.
    pub total_ns: u64,
    /// Longest pause.
    pub longest_ns: u64,
    /// Quantiles 0.5, 0.95 and 0.99; `None` before the first pause.
    pub quantiles_ns: Option<[u64; 3]>,
    /// Share of the last ten seconds spent paused, 0 to 1.
    pub recent_share: f64,
    /// Longest pause over time.
    pub longest: Timeline,
}

impl Pauses {
    /// Handles the end of a restart: all threads are running again.
    pub(super) fn restarted(&mut self, at: i64, thread: ThreadId) {
        let Some(pause) = self.suspensions.end(at, thread) else { return };
        self.times.add(pause.nanoseconds());
        self.total.add(at, pause.nanoseconds() as f64);
        self.longest.add(at, pause.nanoseconds() as f64);
        push_latest(&mut self.recent, RECENT, pause);
    }

    /// Returns the latest pauses, oldest first.
    pub(super) fn recent(&self) -> impl Iterator<Item = &Pause> {
        self.recent.iter()
    }

    pub(super) fn snapshot(&self, now: i64) -> PauseSnapshot {
        PauseSnapshot {
            count: self.times.count(),
            total_ns: self.times.sum(),
            longest_ns: self.times.largest(),
            quantiles_ns: self.times.quantiles(),
            recent_share: (self.total.rate(now, 10) / 1e9).clamp(0.0, 1.0),
            longest: Timeline::clone(&self.longest),
        }
    }
}
