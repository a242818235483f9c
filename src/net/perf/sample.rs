//! The data that a sampler produces.

use super::UserStack;

/// The call chain of a thread at a moment, or of a wait that lasted until then.
#[derive(Debug, Clone, Copy)]
pub struct CpuSample<'a> {
    /// Thread ID in the pid namespace of the process.
    pub thread: u64,
    /// Time on CLOCK_MONOTONIC, in nanoseconds.
    pub time_ns: u64,
    /// Preceding time for which it was blocked, in nanoseconds; `None` if it was running. A long wait yields several samples.
    pub waited_ns: Option<u64>,
    /// Kernel frames, innermost first; empty if it did not run in the kernel, or if kernel frames are not visible.
    pub kernel: &'a [u64],
    /// User frames, innermost first: the instruction pointer, then return addresses. As reliable as the program's frame pointers.
    pub user: &'a [u64],
    /// Whether the kernel cut off the outermost frames.
    pub cut: bool,
    /// The raw stack, if recorded.
    pub stack: Option<UserStack<'a>>,
}

/// A period in which a thread was blocked, in nanoseconds on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockedTime {
    /// Thread ID in the pid namespace of the process.
    pub thread: u64,
    /// Start.
    pub since: u64,
    /// End.
    pub until: u64,
}

/// What the samples lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleLoss {
    /// Records that did not fit in a ring buffer.
    pub lost: u64,
    /// Times that the kernel throttled sampling because samples came too fast.
    pub throttled: u64,
    /// Records that could not be parsed.
    pub unreadable: u64,
    /// Threads that could not be sampled.
    pub threads: u64,
    /// Threads that ended before their events could be opened.
    pub short_threads: u64,
    /// Threads whose waits have no stacks, or no longer: too many waits, or too little room. Stays 0 if kernel stacks are not visible at all.
    pub unfollowed: u64,
    /// Wait stacks that did not fit in a ring buffer, or could not be read when a thread blocked after a second of work.
    pub lost_waits: u64,
}
