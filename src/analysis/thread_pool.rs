//! The thread pool: how many workers, why, and whether they are enough. And how many threads are created.

use std::collections::VecDeque;

use crate::clr::EventKind;
use crate::clr::payload::{self, AdjustmentReason, AdjustmentSample, MinMaxThreads, Workers};

use super::known::{Analysis, Known, View};
use super::timeline::{Merge, Timeline};

/// Adjustments that are kept one by one.
const RECENT: usize = 64;
/// Seconds that count as the latest.
const LATELY: u32 = 30;
/// Reasons that are distinguished; the last stands for all that are not known.
const REASONS: usize = 16;

/// Watches the thread pool.
#[derive(Debug)]
pub(super) struct ThreadPool {
    workers: Option<(i64, u32)>,
    workers_over_time: Timeline,
    adjustments: [u64; REASONS],
    starvation_over_time: Timeline,
    /// The fewest workers that it wanted.
    fewest: u32,
    blocked: u32,
    most_blocked: u32,
    blocked_over_time: Timeline,
    recent: VecDeque<Adjustment>,
    throughput: Throughput,
    bounds: Option<MinMaxThreads>,
    enqueued: u64,
    dequeued: u64,
    threads_created: u64,
}

/// The thread pool and the threads.
#[derive(Debug, Clone)]
pub struct ThreadPoolSnapshot {
    /// Workers, by the latest event; `None` where none came.
    pub workers: Option<u32>,
    /// Workers over time: the most of each step.
    pub workers_over_time: Timeline,
    /// Fewest and most workers, as the program set them.
    pub bounds: Option<(u16, u16)>,
    /// Work items completed per second, as the pool last measured them over a time that is in the session; `None` before that.
    pub throughput: Option<f64>,
    /// Changes of the wanted number of workers by reason, those that happened.
    pub adjustments: Vec<(AdjustmentReason, u64)>,
    /// Times that the pool was starved: work waited for half a second and no worker came free.
    pub starvations: u64,
    /// Of these, those of the last thirty seconds.
    pub recent_starvations: u64,
    /// Workers that waited for tasks, the most at a time: those that others were made for.
    pub blocked: u32,
    /// The same of the last thirty seconds.
    pub recent_blocked: u32,
    /// The latest changes, newest first: no more than 64.
    pub recent: Vec<Adjustment>,
    /// Work items that went into the queue and came out; 0 where the session does not ask for that (keyword threadtransfer, verbose).
    pub work_items: (u64, u64),
    /// Managed threads that were created. Their ends are not in a stream: no runtime writes ThreadTerminated to it.
    pub threads_created: u64,
}

/// A change of the pool's target number of workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    /// Nanoseconds since the start of the session.
    pub at: i64,
    /// Workers from then on.
    pub workers: u32,
    /// Work items completed per second since the change before; `None` where that was not measured, or over a time that began before the session.
    pub throughput: Option<f64>,
    /// Why.
    pub reason: AdjustmentReason,
}

/// What the pool measures, without what it measured over a time that began before the session.
///
/// The first sample of a pool spans all the time since its clock was 0, which is the start of the machine, not of the pool: two work items that took
/// 10 ms come out at 0.001 per second. The average that follows the sample contains it.
#[derive(Debug, Default)]
struct Throughput {
    latest: Option<f64>,
    /// A sample was seen: those after it span a time that is in the session.
    sampled: bool,
    /// A sample was seen since the latest change.
    sampled_since_change: bool,
    /// The average of the next change contains only such samples.
    average_is_whole: bool,
}

impl Throughput {
    fn sample(&mut self, per_second: f64) {
        if self.sampled {
            self.latest = Some(per_second);
        }
        (self.sampled, self.sampled_since_change) = (true, true);
    }

    /// The average since the change before, at a change.
    fn average(&mut self, per_second: f64) -> Option<f64> {
        // The runtime writes 0 where nothing was measured since the change before.
        let known = self.average_is_whole && (self.sampled_since_change || per_second > 0.0);
        (self.average_is_whole, self.sampled_since_change) = (self.sampled, false);
        known.then_some(per_second)
    }
}

impl Default for ThreadPool {
    fn default() -> Self {
        Self {
            workers: None,
            workers_over_time: Timeline::new(Merge::Max),
            adjustments: [0; REASONS],
            starvation_over_time: Timeline::new(Merge::Sum),
            fewest: u32::MAX,
            blocked: 0,
            most_blocked: 0,
            blocked_over_time: Timeline::new(Merge::Max),
            recent: VecDeque::with_capacity(RECENT),
            throughput: Throughput::default(),
            bounds: None,
            enqueued: 0,
            dequeued: 0,
            threads_created: 0,
        }
    }
}

impl ThreadPool {
    fn workers(&mut self, at: i64, count: u32) {
        self.workers_over_time.add(at, f64::from(count));
        // Events of different threads come out of order.
        if self.workers.is_none_or(|(last, _)| last <= at) {
            self.workers = Some((at, count));
        }
    }

    fn adjusted(&mut self, at: i64, adjustment: payload::Adjustment) {
        let payload::Adjustment { throughput, workers, reason } = adjustment;
        self.adjustments[(reason.0 as usize).min(REASONS - 1)] += 1;
        if reason == AdjustmentReason::STARVATION {
            self.starvation_over_time.add(at, 1.0);
        }
        self.fewest = self.fewest.min(workers);
        if reason == AdjustmentReason::COOPERATIVE_BLOCKING {
            self.blocked = workers.saturating_sub(self.bounds.map_or(self.fewest, |bounds| u32::from(bounds.min_workers)));
            self.most_blocked = self.most_blocked.max(self.blocked);
            self.blocked_over_time.add(at, f64::from(self.blocked));
        }
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Adjustment { at, workers, throughput: self.throughput.average(throughput), reason });
    }
}

impl Analysis for ThreadPool {
    type Snapshot = ThreadPoolSnapshot;

    fn feed(&mut self, known: &Known<'_>) -> Option<()> {
        match known.kind {
            EventKind::Workers => {
                let Workers { active, .. } = known.payload()?;
                self.workers(known.at, active);
            }
            EventKind::Adjustment => self.adjusted(known.at, known.payload()?),
            EventKind::AdjustmentSample => {
                let AdjustmentSample { throughput } = known.payload()?;
                self.throughput.sample(throughput);
            }
            EventKind::MinMaxThreads => self.bounds = Some(known.payload()?),
            EventKind::WorkEnqueue => self.enqueued += 1,
            EventKind::WorkDequeue => self.dequeued += 1,
            EventKind::ThreadCreated => self.threads_created += 1,
            _ => {}
        }
        Some(())
    }

    fn snapshot(&self, view: &View<'_>) -> ThreadPoolSnapshot {
        let lately = self.blocked_over_time.recent(view.now, LATELY as usize);
        let happened = self.adjustments.iter().enumerate().filter(|(_, count)| **count > 0);
        ThreadPoolSnapshot {
            workers: self.workers.map(|(_, count)| count),
            workers_over_time: self.workers_over_time.clone(),
            bounds: self.bounds.map(|bounds| (bounds.min_workers, bounds.max_workers)),
            throughput: self.throughput.latest,
            adjustments: happened.map(|(reason, count)| (AdjustmentReason(reason as u32), *count)).collect(),
            starvations: self.adjustments[AdjustmentReason::STARVATION.0 as usize],
            recent_starvations: self.starvation_over_time.sum(view.now, LATELY) as u64,
            blocked: self.most_blocked,
            // It stays as it is until something else is reported.
            recent_blocked: lately.into_iter().fold(f64::from(self.blocked), f64::max) as u32,
            recent: self.recent.iter().rev().copied().collect(),
            work_items: (self.enqueued, self.dequeued),
            threads_created: self.threads_created,
        }
    }
}
