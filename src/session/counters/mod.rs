//! Counters and meters of a process: the selection, the request to the runtime, and the published values.

mod monitor;
mod request;
mod selection;

use std::time::Duration;

pub use monitor::{CounterError, CounterEvent, CounterMonitor};
pub use selection::CounterSelection;

use crate::ipc::BufferMb;

/// Options of a counters session.
#[derive(Debug, Clone)]
pub struct CounterOptions {
    /// The counters and meters to collect.
    pub selection: CounterSelection,
    /// Interval between values.
    pub interval: Duration,
    /// Maximum number of histograms the runtime reports.
    pub max_histograms: u32,
    /// Maximum number of time series the runtime reports for one instrument.
    pub max_time_series: u32,
    /// Size of the event buffer in the target process.
    pub buffer: BufferMb,
    /// Whether to record individual GCs and lock contention, each as long as there are not too many events.
    pub collections: bool,
}

impl CounterOptions {
    /// Uses the default limits of dotnet-counters.
    pub fn new(selection: CounterSelection, interval: Duration, buffer: BufferMb) -> Self {
        Self { selection, interval, max_histograms: 10, max_time_series: 1000, buffer, collections: false }
    }
}
