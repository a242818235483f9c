//! The clock of recordings.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC: the time since boot without the time that the machine slept.
pub fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// The same in nanoseconds, as the times of events have it.
pub fn monotonic_ns() -> i64 {
    i64::try_from(monotonic().as_nanos()).unwrap_or(i64::MAX)
}
