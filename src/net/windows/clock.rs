//! The clock of recordings.

use std::time::Duration;

use sysinfo::System;

/// The time since boot, to a second: no safe interface gives the counter itself (`QueryPerformanceCounter`).
pub fn monotonic() -> Duration {
    Duration::from_secs(System::uptime())
}
