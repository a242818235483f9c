//! How long all threads stood for the collector.

use std::collections::VecDeque;

use foldhash::HashMap;

use crate::clr::payload::SuspendBegin;
use crate::nettrace::ThreadId;

use super::super::distribution::Distribution;
use super::super::timeline::{Merge, Timeline};

/// Threads that suspend others at the same time: there are two or three.
const SUSPENDERS: usize = 64;
/// Pauses that are kept one by one.
const RECENT: usize = 1024;

/// Pairs the begin of a suspension with the end of the restart.
///
/// The sampling profiler suspends a thousand times a second, and its events stand between those of the collector. But the thread that suspends also restarts,
/// and the events of one thread come in their order: so they are paired by thread.
#[derive(Debug)]
pub(super) struct Pauses {
    suspending: HashMap<ThreadId, Suspension>,
    times: Distribution,
    total: Timeline,
    longest: Timeline,
    recent: VecDeque<Pause>,
}

#[derive(Debug, Clone, Copy)]
struct Suspension {
    begin: i64,
    for_gc: bool,
}

/// A time that all threads stood for the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    pub(super) begin: i64,
    pub(super) end: i64,
}

impl Pause {
    pub(super) fn nanoseconds(self) -> u64 {
        u64::try_from(self.end.saturating_sub(self.begin)).unwrap_or(0)
    }
}

/// How long the program stood for the collector. From the begin of a suspension until all threads run again; times in nanoseconds.
#[derive(Debug, Clone)]
pub struct PauseSnapshot {
    /// Pauses: a background collection has two.
    pub count: u64,
    /// All of them together.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// Quantiles 0.5, 0.95 and 0.99; `None` before the first pause.
    pub quantiles_ns: Option<[u64; 3]>,
    /// Share of the last ten seconds that the program stood, 0 to 1.
    pub recent_share: f64,
    /// The longest pause of a step.
    pub longest: Timeline,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            suspending: HashMap::default(),
            times: Distribution::default(),
            total: Timeline::new(Merge::Sum),
            longest: Timeline::new(Merge::Max),
            recent: VecDeque::new(),
        }
    }
}

impl Pauses {
    pub(super) fn suspend(&mut self, at: i64, thread: ThreadId, begin: SuspendBegin) {
        if self.suspending.len() >= SUSPENDERS && !self.suspending.contains_key(&thread) {
            self.suspending.clear();
        }
        self.suspending.insert(thread, Suspension { begin: at, for_gc: begin.is_for_gc() });
    }

    /// All threads run again.
    pub(super) fn restarted(&mut self, at: i64, thread: ThreadId) {
        let Some(Suspension { begin, for_gc: true }) = self.suspending.remove(&thread) else { return };
        let pause = Pause { begin, end: at };
        self.times.add(pause.nanoseconds());
        self.total.add(at, pause.nanoseconds() as f64);
        self.longest.add(at, pause.nanoseconds() as f64);
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(pause);
    }

    /// The latest pauses, oldest first.
    pub(super) fn recent(&self) -> impl Iterator<Item = &Pause> {
        self.recent.iter()
    }

    pub(super) fn lost(&mut self, thread: ThreadId) {
        self.suspending.remove(&thread);
    }

    pub(super) fn snapshot(&self, now: i64) -> PauseSnapshot {
        PauseSnapshot {
            count: self.times.count(),
            total_ns: self.times.sum(),
            longest_ns: self.times.largest(),
            quantiles_ns: self.times.quantiles(),
            recent_share: (self.total.rate(now, 10) / 1e9).clamp(0.0, 1.0),
            longest: self.longest.clone(),
        }
    }
}
