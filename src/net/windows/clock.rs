//! The clock of recordings.

use std::time::Duration;

use sysinfo::System;

/// Returns the time since boot in whole seconds: no safe interface provides the counter itself (`QueryPerformanceCounter`).
pub fn monotonic() -> Duration {
    Duration::from_secs(System::uptime())
}

/// Returns the same in nanoseconds, as in the timestamps of events.
pub fn monotonic_ns() -> i64 {
    i64::try_from(monotonic().as_nanos()).unwrap_or(i64::MAX)
}
