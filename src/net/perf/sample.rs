//! What a sampler gives.

use std::time::Duration;

use super::OffCpu;

/// What a thread executed at a moment, or where it waited until then.
#[derive(Debug, Clone, Copy)]
pub struct CpuSample<'a> {
    /// The thread, as its process numbers it.
    pub thread: u64,
    /// When, nanoseconds on the clock CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// How long it was blocked before, nanoseconds; `None` where it ran. A long wait is several samples.
    pub waited_ns: Option<u64>,
    /// Frames in the kernel, innermost first; empty where it did not run in the kernel, or that may not be seen.
    pub kernel: &'a [u64],
    /// Frames of the program, innermost first: the instruction pointer, and return addresses. They are as good as its frame pointers.
    pub user: &'a [u64],
    /// Whether the kernel cut the outermost frames off.
    pub cut: bool,
    /// Its stack itself, where that was kept.
    pub stack: Option<UserStack<'a>>,
}

/// The innermost part of the stack of a program on x86-64, and the registers that lead through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserStack<'a> {
    /// Where the program goes on.
    pub instruction_pointer: u64,
    /// The end of the stack.
    pub stack_pointer: u64,
    /// The frame of the function, where it keeps one.
    pub frame_pointer: u64,
    /// What is at the stack pointer and behind.
    pub bytes: &'a [u8],
}

/// A time in which a thread was blocked, nanoseconds on the clock CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockedTime {
    /// The thread, as its process numbers it.
    pub thread: u64,
    /// Since when.
    pub since: u64,
    /// Until when.
    pub until: u64,
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
    /// Threads whose waits have no stacks (any more): there were too many, or no room. Where the kernel shows none at all, none is counted.
    pub unfollowed: u64,
    /// Stacks of waits that had no room in a ring buffer.
    pub lost_waits: u64,
}
