//! The clock of recordings.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC: the time since boot without the time that the machine slept.
pub fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}
