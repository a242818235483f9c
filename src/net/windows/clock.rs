//! The clock of recordings.

use std::time::Duration;

use sysinfo::System;

/// The time since boot, to a second: no safe interface gives the counter itself (`QueryPerformanceCounter`).
pub fn monotonic() -> Duration {
    Duration::from_secs(System::uptime())
}

/// The same in nanoseconds, as the times of events have it.
pub fn monotonic_ns() -> i64 {
    i64::try_from(monotonic().as_nanos()).unwrap_or(i64::MAX)
}
