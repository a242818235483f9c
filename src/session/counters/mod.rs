//! Counters and meters of a process: what to collect, what is requested of the runtime, and the values as they are published.

mod monitor;
mod request;
mod selection;

pub use monitor::{CounterError, CounterEvent, CounterMonitor, CounterOptions};
pub use selection::CounterSelection;
