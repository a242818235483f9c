//! CPU sampling of the threads of a process by the kernel (`perf_event_open(2)`). Perf events are opened only here.
//!
//! The process is not modified: the kernel interrupts the processor that a thread runs on, records its call chain by frame pointers, and continues.

#[cfg(target_os = "linux")]
mod buffer;
#[cfg(target_os = "linux")]
mod chain;
#[cfg_attr(not(target_os = "linux"), path = "../portable/perf_code.rs")]
mod code;
#[cfg(target_os = "linux")]
mod debug_symbols;
#[cfg(target_os = "linux")]
mod demangle;
#[cfg_attr(not(target_os = "linux"), path = "../portable/perf_error.rs")]
mod error;
mod frequency;
mod function;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod processors;
#[cfg(target_os = "linux")]
mod raw_stack;
mod sample;
#[cfg_attr(not(target_os = "linux"), path = "../portable/perf_sampler.rs")]
mod sampler;
#[cfg(target_os = "linux")]
mod thread;
#[cfg(target_os = "linux")]
mod unwind;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is sampled"))]
mod user_stack;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is sampled"))]
mod wait;
#[cfg(target_os = "linux")]
mod wait_stacks;

pub use code::{NativeCode, NativeFunctions, Unwinder};
pub use error::{PerfCause, PerfError};
pub use frequency::{Frequency, FrequencyError};
pub use function::{CodeChain, CodeFunction, CodeKind};
pub use sample::{BlockedTime, CpuSample, SampleLoss};
pub use sampler::CpuSampler;
pub use user_stack::{StackFrame, UserStack};
pub use wait::Wait;
