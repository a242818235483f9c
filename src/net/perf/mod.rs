//! Samples of what the threads of a process execute, taken by the kernel (`perf_event_open(2)`): the only place that opens perf events.
//!
//! Nothing is done to the process: the kernel interrupts the processor that a thread runs on, notes its call chain by frame pointers, and goes on.

mod buffer;
mod chain;
mod code;
mod demangle;
mod error;
mod frequency;
mod kernel;
mod sampler;
mod wait;

pub use code::{CodeChain, CodeFunction, CodeKind, NativeCode};
pub use error::PerfError;
pub use frequency::{Frequency, FrequencyError};
pub use sampler::{CpuSample, CpuSampler, CpuThread, SampleLoss};
pub use wait::{OffCpu, Wait};
