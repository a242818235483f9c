//! The thread pool: number of workers, adjustments and starvation. Also counts created threads.

use std::collections::VecDeque;

use crate::clr::EventKind;
use crate::clr::payload::{self, AdjustmentReason, AdjustmentSample, MinMaxThreads, Workers};

use super::event_context::EventContext;
use super::ranking::push_latest;
use super::timeline::{Maxima, Timeline};

/// Maximum number of individual adjustments kept.
const RECENT: usize = 64;
/// Length of the window for recent values, in seconds.
const RECENT_SECONDS: u32 = 30;
/// Number of distinct adjustment reasons; the last represents all unknown ones.
const REASONS: usize = 16;

/// Analyses the events of the thread pool.
#[derive(Debug, Default)]
pub(super) struct ThreadPool {
    workers: Option<(i64, u32)>,
    workers_over_time: Maxima,
    adjustments: [u64; REASONS],
    starvation_over_time: Timeline,
    /// The lowest target number of workers, after the first adjustment.
    lowest_target: Option<u32>,
    blocked: u32,
    most_blocked: u32,
    blocked_over_time: Maxima,
    recent: VecDeque<Adjustment>,
    throughput: Throughput,
    bounds: Option<MinMaxThreads>,
    enqueued: u64,
    dequeued: u64,
    threads_created: u64,
}

/// The thread pool and threads of a recording.
#[derive(Debug, Clone)]
pub struct ThreadPoolSnapshot {
    /// Number of workers, by the latest event; `None` if there was none.
    pub workers: Option<u32>,
    /// Maximum number of workers over time.
    pub workers_over_time: Timeline,
    /// Minimum and maximum number of workers, as configured by the application.
    pub bounds: Option<(u16, u16)>,
    /// Completed work items per second, as last measured by the pool over a period within the session; `None` before that.
    pub throughput: Option<f64>,
    /// Adjustments of the target number of workers by reason; only reasons that occurred.
    pub adjustments: Vec<(AdjustmentReason, u64)>,
    /// Number of starvation events: work waited for half a second and no worker became available.
    pub starvations: u64,
    /// Number of these in the last thirty seconds.
    pub recent_starvations: u64,
    /// Maximum number of workers blocked on tasks at the same time, for which the pool added others.
    pub blocked: u32,
    /// The same over the last thirty seconds.
    pub recent_blocked: u32,
    /// The latest adjustments, newest first; at most 64.
    pub recent: Vec<Adjustment>,
    /// Number of work items enqueued and dequeued; 0 unless recorded (keyword threadtransfer, verbose).
    pub work_items: (u64, u64),
    /// Number of managed threads created. Their ends are unknown: no runtime writes ThreadTerminated to the stream.
    pub threads_created: u64,
}

/// An adjustment of the pool's target number of workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    /// Time, in nanoseconds since the start of the session.
    pub at: i64,
    /// New target number of workers.
    pub workers: u32,
    /// Completed work items per second since the previous adjustment; `None` if not measured, or measured over a period that began before the
    /// session.
    pub throughput: Option<f64>,
    /// Reason.
    pub reason: AdjustmentReason,
}

/// Throughput measured by the pool, without values measured over a period that began before the session.
///
/// The first sample of a pool covers all the time since its clock was 0, which is the boot of the machine, not the start of the pool: two work
/// items completed in 10 ms appear as 0.001 per second. The average after the sample includes it.
#[derive(Debug, Default)]
struct Throughput {
    latest: Option<f64>,
    /// A sample was seen: later ones cover periods within the session.
    sampled: bool,
    /// A sample was seen since the latest adjustment.
    sampled_since_change: bool,
    /// The average of the next adjustment includes only samples within the session.
    is_average_within_session: bool,
}

impl Throughput {
    fn sample(&mut self, per_second: f64) {
        if self.sampled {
            self.latest = Some(per_second);
        }
        (self.sampled, self.sampled_since_change) = (true, true);
    }

    /// Processes the average since the previous adjustment.
    fn average(&mut self, per_second: f64) -> Option<f64> {
        // The runtime writes 0 if nothing was measured since the previous adjustment.
        let known = self.is_average_within_session && (self.sampled_since_change || per_second > 0.0);
        (self.is_average_within_session, self.sampled_since_change) = (self.sampled, false);
        known.then_some(per_second)
    }
}

impl ThreadPool {
    fn workers(&mut self, at: i64, count: u32) {
        self.workers_over_time.add(at, f64::from(count));
        // Events of different threads arrive out of order.
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
        let lowest = self.lowest_target.map_or(workers, |lowest| lowest.min(workers));
        self.lowest_target = Some(lowest);
        if reason == AdjustmentReason::COOPERATIVE_BLOCKING {
            self.blocked = workers.saturating_sub(self.bounds.map_or(lowest, |bounds| u32::from(bounds.min_workers)));
            self.most_blocked = self.most_blocked.max(self.blocked);
            self.blocked_over_time.add(at, f64::from(self.blocked));
        }
        push_latest(&mut self.recent, RECENT, Adjustment { at, workers, throughput: self.throughput.average(throughput), reason });
    }

    pub(super) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        match context.kind {
            EventKind::Workers => {
                let Workers { active, .. } = context.payload()?;
                self.workers(context.at, active);
            }
            EventKind::Adjustment => self.adjusted(context.at, context.payload()?),
            EventKind::AdjustmentSample => {
                let AdjustmentSample { throughput } = context.payload()?;
                self.throughput.sample(throughput);
            }
            EventKind::MinMaxThreads => self.bounds = Some(context.payload()?),
            EventKind::WorkEnqueue => self.enqueued += 1,
            EventKind::WorkDequeue => self.dequeued += 1,
            EventKind::ThreadCreated => self.threads_created += 1,
            _ => {}
        }
        Some(())
    }

    pub(super) fn snapshot(&self, now: i64) -> ThreadPoolSnapshot {
        let recent_values = self.blocked_over_time.recent(now, RECENT_SECONDS as usize);
        let happened = self.adjustments.iter().enumerate().filter(|(_, count)| **count > 0);
        ThreadPoolSnapshot {
            workers: self.workers.map(|(_, count)| count),
            workers_over_time: Timeline::clone(&self.workers_over_time),
            bounds: self.bounds.map(|bounds| (bounds.min_workers, bounds.max_workers)),
            throughput: self.throughput.latest,
            adjustments: happened.map(|(reason, count)| (AdjustmentReason(reason as u32), *count)).collect(),
            starvations: self.adjustments[AdjustmentReason::STARVATION.0 as usize],
            recent_starvations: self.starvation_over_time.sum(now, RECENT_SECONDS) as u64,
            blocked: self.most_blocked,
            // The value remains valid until another one is reported.
            recent_blocked: recent_values.into_iter().fold(f64::from(self.blocked), f64::max) as u32,
            recent: self.recent.iter().rev().copied().collect(),
            work_items: (self.enqueued, self.dequeued),
            threads_created: self.threads_created,
        }
    }
}
