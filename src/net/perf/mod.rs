//! Samples of what the threads of a process execute, taken by the kernel (`perf_event_open(2)`): the only place that opens perf events.
//!
//! Nothing is done to the process: the kernel interrupts the processor that a thread runs on, notes its call chain by frame pointers, and goes on.

#[cfg(unix)]
mod buffer;
#[cfg(unix)]
mod chain;
#[cfg_attr(windows, path = "../windows/perf_code.rs")]
mod code;
#[cfg(unix)]
mod demangle;
#[cfg_attr(windows, path = "../windows/perf_error.rs")]
mod error;
mod frequency;
mod function;
#[cfg(unix)]
mod kernel;
mod sample;
#[cfg_attr(windows, path = "../windows/perf_sampler.rs")]
mod sampler;
#[cfg(unix)]
mod thread;
#[cfg(unix)]
mod unwind;
#[cfg_attr(windows, allow(dead_code, reason = "nothing is sampled"))]
mod wait;
#[cfg(unix)]
mod wait_stacks;

pub use code::{NativeCode, NativeFunctions, Unwinder};
pub use error::PerfError;
pub use frequency::{Frequency, FrequencyError};
pub use function::{CodeChain, CodeFunction, CodeKind};
pub use sample::{CpuSample, CpuThread, SampleLoss, UserStack};
pub use sampler::CpuSampler;
pub use wait::{OffCpu, Wait};
