//! What a sampler gives.

use std::time::Duration;

use super::OffCpu;

/// What a thread executed at a moment.
#[derive(Debug, Clone, Copy)]
pub struct CpuSample<'a> {
    /// The thread, as its process numbers it.
    pub thread: u64,
    /// When, nanoseconds on the clock CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Frames in the kernel, innermost first; empty where it did not run in the kernel, or that may not be seen.
    pub kernel: &'a [u64],
    /// Frames of the program, innermost first: the instruction pointer, and return addresses. They are as good as its frame pointers.
    pub user: &'a [u64],
    /// Whether the kernel cut the outermost frames off.
    pub cut: bool,
}

/// A thread that is sampled, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuThread {
    /// The thread, as its process numbers it.
    pub thread: u64,
    /// Its latest name.
    pub name: String,
    /// Time on a processor since the sampling began, in the program and in the kernel.
    pub cpu: Duration,
    /// How long it was sampled: its time on a processor and off it.
    pub wall: Duration,
    /// Its time off a processor.
    pub off_cpu: OffCpu,
}

/// What there are no samples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleLoss {
    /// Records that had no room in a ring buffer.
    pub lost: u64,
    /// Times that the kernel stopped taking samples for a while, because they came too fast.
    pub throttled: u64,
    /// Records that could not be read.
    pub unreadable: u64,
    /// Threads that could not be sampled.
    pub threads: u64,
    /// Threads that ended before their events could be opened.
    pub short_threads: u64,
}
