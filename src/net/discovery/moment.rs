//! The clocks of a scan.

use std::time::{Duration, Instant};

use crate::model::ProcessKey;

/// When a scan happens, on the two clocks that it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Instant,
    pub(super) uptime: Duration,
}

impl Moment {
    /// How long ago a process was started.
    pub(super) fn age(self, key: ProcessKey) -> Duration {
        self.uptime.saturating_sub(since_boot(key))
    }
}

/// When a process was started, as time since boot.
pub(in super::super) fn since_boot(key: ProcessKey) -> Duration {
    Duration::from_secs_f64(key.started as f64 / procfs::ticks_per_second() as f64)
}
