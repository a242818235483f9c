//! CPU usage of a process between two scans.

use std::time::{Duration, Instant};

/// The kernel counts CPU time in ticks of 10 ms (Windows: 16 ms): over a shorter interval than this a percentage would be noise.
const MIN_INTERVAL: Duration = Duration::from_millis(400);
/// The first percentage may be rough: a list that is printed once does not wait longer.
const FIRST_INTERVAL: Duration = Duration::from_millis(90);

/// The CPU time of a process at a scan, and its usage up to then.
#[derive(Debug)]
pub(super) struct CpuUsage {
    time: Duration,
    at: Instant,
    percent: Option<f64>,
}

impl CpuUsage {
    pub(super) fn new(time: Duration, at: Instant) -> Self {
        Self { time, at, percent: None }
    }

    /// Returns the usage until now in percent of one core, given the CPU time so far.
    pub(super) fn percent(&mut self, time: Duration, now: Instant) -> Option<f64> {
        let span = now.saturating_duration_since(self.at);
        if span >= if self.percent.is_some() { MIN_INTERVAL } else { FIRST_INTERVAL } {
            let used = time.saturating_sub(self.time).as_secs_f64();
            *self = Self { time, at: now, percent: Some(100.0 * used / span.as_secs_f64()) };
        }
        self.percent
    }
}
