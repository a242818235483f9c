//! Allocation rates of processes, from allocation events.

use std::collections::BTreeMap;

use super::output::Output;
use super::writer::Counter;

/// Interval of the rates, nanoseconds.
const INTERVAL: i64 = 100_000_000;
/// Maximum number of processes; beyond it their current intervals are dropped.
const MAX_PROCESSES: usize = 65_536;

/// Sums the allocations of each process, and outputs a rate per interval.
#[derive(Debug, Default)]
pub(super) struct AllocationRates {
    /// By process, in an order that does not depend on a hash seed.
    steps: BTreeMap<u32, Step>,
}

/// The allocations of a process in the current interval.
#[derive(Debug, Clone, Copy)]
struct Step {
    bytes: u64,
    end: i64,
    /// Whether the process samples its allocations at random. Its ticks, which stand for the same allocations, are then left out.
    is_sampled: bool,
}

impl AllocationRates {
    /// Adds the allocation that an event stands for, in bytes. Returns false if the event is left out.
    pub(super) fn add(&mut self, process: u32, at: i64, bytes: u64, is_sampled: bool, output: &mut Output<'_>) -> bool {
        if self.steps.len() >= MAX_PROCESSES {
            self.steps.clear();
        }
        let step = self.steps.entry(process).or_insert(Step { bytes: 0, end: i64::MIN, is_sampled });
        step.is_sampled |= is_sampled;
        if step.is_sampled != is_sampled {
            return false;
        }
        let ended = *step;
        if at >= step.end {
            (step.bytes, step.end) = (0, at.saturating_add(INTERVAL));
        }
        step.bytes = step.bytes.saturating_add(bytes);
        if at >= ended.end {
            ended.write(process, at, output);
        }
        true
    }

    /// Outputs the rates of the last intervals.
    pub(super) fn finish(self, newest: i64, output: &mut Output<'_>) {
        self.steps.into_iter().for_each(|(process, step)| step.write(process, newest, output));
    }
}

impl Step {
    /// Outputs the rate of the interval, after which nothing was allocated until `next`.
    fn write(self, process: u32, next: i64, output: &mut Output<'_>) {
        let Self { bytes, end, .. } = self;
        if bytes > 0 {
            output.counter(process, &Counter::AllocationRate, end - INTERVAL, bytes as f64 * 1e9 / INTERVAL as f64);
            if next >= end.saturating_add(INTERVAL) {
                output.counter(process, &Counter::AllocationRate, end, 0.0);
            }
        }
    }
}
