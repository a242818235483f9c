//! Counters and meters of a process: what to collect, what the runtime is asked for, and the values as they are published.

mod monitor;
mod request;
mod selection;

pub use monitor::{CounterError, CounterEvent, CounterMonitor, CounterOptions};
pub use selection::CounterSelection;
