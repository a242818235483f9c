//! Samples of what the threads of a process execute: the kernel of Linux takes them, and Windows gives them to administrators only, over other interfaces.

#[path = "../perf/frequency.rs"]
mod frequency;
#[allow(dead_code, reason = "its types alone are used here")]
#[path = "../perf/wait.rs"]
mod wait;

use std::time::Duration;

use thiserror::Error;

pub use self::frequency::{Frequency, FrequencyError};
pub use self::wait::{OffCpu, Wait};
use super::client::Client;
use super::proc::CodeMapping;

/// What a thread executed at a moment.
#[derive(Debug, Clone, Copy)]
pub struct CpuSample<'a> {
    /// The thread, as its process numbers it.
    pub thread: u64,
    /// When, nanoseconds.
    pub time_ns: u64,
    /// Frames in the kernel, innermost first.
    pub kernel: &'a [u64],
    /// Frames of the program, innermost first.
    pub user: &'a [u64],
    /// Whether the outermost frames are missing.
    pub cut: bool,
}

/// A thread that is sampled, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuThread {
    /// The thread, as its process numbers it.
    pub thread: u64,
    /// Its latest name.
    pub name: String,
    /// Time on a processor since the sampling began.
    pub cpu: Duration,
    /// How long it was sampled.
    pub wall: Duration,
    /// Its time off a processor.
    pub off_cpu: OffCpu,
}

/// What there are no samples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleLoss {
    /// Records that had no room in a ring buffer.
    pub lost: u64,
    /// Times that the kernel stopped taking samples for a while.
    pub throttled: u64,
    /// Records that could not be read.
    pub unreadable: u64,
    /// Threads that could not be sampled.
    pub threads: u64,
}

/// What kind of code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// A library or a program of native code.
    Image,
    /// A .NET assembly that was compiled ahead of time (ReadyToRun).
    Assembly,
    /// Memory that the process wrote itself: JIT-compiled methods and stubs.
    Generated,
    /// The kernel.
    Kernel,
}

/// Code with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFunction {
    /// Its first address.
    pub start: u64,
    /// Bytes.
    pub size: u32,
    /// Its name; empty where it is not known. Not sanitised.
    pub name: String,
    /// The file that it is of, without folder. Not sanitised.
    pub image: String,
    /// What it is.
    pub kind: CodeKind,
}

/// The frames of a call chain that are code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeChain<'a> {
    /// Innermost first.
    pub frames: &'a [u64],
    /// Whether it ends before the function that a thread begins with.
    pub broken: bool,
}

/// Why a process cannot be sampled.
#[derive(Debug, Error)]
pub enum PerfError {
    /// Not on this system.
    #[error(
        "process {0} cannot be sampled: CPU samples are taken by the Linux kernel (perf_event_open), and Windows has no such interface; \
         `dn-top report` and traces use the runtime's own sampler"
    )]
    Unsupported(u32),
    /// It has ended.
    #[error("process {0} cannot be sampled: it has ended")]
    Ended(u32),
}

impl PerfError {
    /// Whether it is a matter of rights.
    pub fn is_denied(&self) -> bool {
        false
    }

    /// A command or a setting that would allow it: there is none.
    pub fn remedy(&self) -> &'static str {
        ""
    }

    /// Whether the process is not there any more.
    pub fn is_ended(&self) -> bool {
        false
    }
}

/// The code of a process, of which nothing is known.
#[derive(Debug)]
pub struct NativeCode;

/// A sampler. There is none.
pub enum CpuSampler {}

impl Client {
    /// Nothing is sampled on Windows.
    ///
    /// # Errors
    /// Always.
    pub fn sample_cpu(&self, _: Frequency) -> Result<CpuSampler, PerfError> {
        let pid = self.endpoint().key.pid;
        Err(if self.shared_proc().is_some() { PerfError::Unsupported(pid) } else { PerfError::Ended(pid) })
    }

    /// The code of the process, of which nothing is known.
    pub fn native_code(&self) -> Option<NativeCode> {
        Some(NativeCode)
    }
}

impl NativeCode {
    pub(crate) fn mappings(&self) -> impl Iterator<Item = &CodeMapping> {
        std::iter::empty()
    }

    /// None of it is generated.
    pub fn has_generated(&self) -> bool {
        false
    }

    /// Nothing changes.
    pub fn refresh(&mut self) {}

    /// None of it is known to be code.
    pub fn chain<'a>(&mut self, _: &'a [u64]) -> CodeChain<'a> {
        CodeChain { frames: &[], broken: true }
    }

    /// None is known.
    pub fn function(&mut self, _: u64) -> Option<CodeFunction> {
        None
    }

    /// None has a name.
    pub fn kernel_function(&mut self, address: u64) -> CodeFunction {
        CodeFunction { start: address, size: 1, name: String::new(), image: "kernel".to_owned(), kind: CodeKind::Kernel }
    }
}

#[expect(missing_docs, reason = "nothing of it can be called")]
impl CpuSampler {
    pub fn drain(&mut self, _: impl FnMut(&CpuSample<'_>)) {
        match *self {}
    }

    pub fn is_alive(&self) -> bool {
        match *self {}
    }

    pub fn sees_kernel(&self) -> bool {
        match *self {}
    }

    pub fn loss(&self) -> SampleLoss {
        match *self {}
    }

    pub fn period_ns(&self) -> u64 {
        match *self {}
    }

    pub fn threads(&mut self) -> Vec<CpuThread> {
        match *self {}
    }
}
