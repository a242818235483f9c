//! Counters and meters of a process: the selection, the request to the runtime, and the published values.

mod monitor;
mod options;
mod request;
mod selection;

pub use monitor::{CounterError, CounterEvent, CounterMonitor};
pub use options::CounterOptions;
pub use selection::CounterSelection;
