//! The clock that recordings use.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Reads CLOCK_MONOTONIC: the time since boot, excluding suspend.
pub fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// Reads the same clock in nanoseconds, the unit of event timestamps.
pub fn monotonic_ns() -> i64 {
    i64::try_from(monotonic().as_nanos()).unwrap_or(i64::MAX)
}
