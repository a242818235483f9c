//! Counters and meters of a process: the selection, the request to the runtime, and the published values.

mod monitor;
mod request;
mod selection;

pub use monitor::{CounterError, CounterEvent, CounterMonitor, CounterOptions};
pub use selection::CounterSelection;
