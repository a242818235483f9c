//! CPU time of a process.

use std::time::Duration;

use super::SafeText;
use crate::analysis::Profile;
use crate::sorting::CompactSort;

/// CPU time of a process, as the kernel samples it.
#[derive(Debug, Clone, Default)]
pub struct CpuTime {
    /// The samples. All are of threads that ran.
    pub profile: Profile,
    /// Where threads that had work were blocked, in managed code as far as there is any: the time of a sample is that of a wait. `None` where the kernel does
    /// not show it.
    pub waits: Option<Profile>,
    /// How long threads were blocked that had no work.
    pub idle: Duration,
    /// The moment up to which they were taken, nanoseconds on their clock; `None` where that is not known, of a file.
    pub now: Option<i64>,
    /// How long samples were taken.
    pub elapsed: Duration,
    /// The time that [`recent_ns`](crate::analysis::SampleCount::recent_ns) is of: the last two seconds, less in the beginning, and none once it is over.
    pub recent: Duration,
    /// All threads since the sampling began, in no order; none of a file.
    pub threads: Vec<CpuThread>,
    /// Samples that had no room in a ring buffer.
    pub lost: u64,
    /// Samples that could not be read.
    pub unreadable: u64,
    /// Times that the kernel took no samples for a while, because they came too fast.
    pub throttled: u64,
    /// Threads that could not be sampled.
    pub missed_threads: u64,
    /// Threads that ended before they could be sampled.
    pub short_threads: u64,
    /// Threads whose waits have no stacks (any more), because there were too many.
    pub unfollowed: u64,
    /// Stacks of waits that had no room in a ring buffer.
    pub lost_waits: u64,
    /// Samples of stacks that the kernel cut off.
    pub cut: u64,
    /// Samples of stacks whose callers are missing, because code in between does not keep the frame pointer.
    pub broken: u64,
    /// Whether samples show what runs in the kernel.
    pub sees_kernel: bool,
}

/// The time of a thread on a processor and off it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuThread {
    /// Its number in the PID namespace of the process.
    pub thread: u64,
    /// Its latest name.
    pub name: SafeText,
    /// Time on a processor since the sampling began, in the program and in the kernel. It is exact.
    pub cpu: Duration,
    /// How long it was sampled: its time on a processor and off it.
    pub wall: Duration,
    /// Runnable, while other threads had the processor.
    pub runnable: Duration,
    /// Blocked, by what it waited for, such as `lock` or `futex`; most first.
    pub waits: Vec<(&'static str, Duration)>,
}

impl CpuThread {
    /// Where it was while it was on no processor, most first: shares of its wall time of half a percent and more.
    pub fn off_cpu(&self) -> Vec<(&'static str, f64)> {
        let share = |time: Duration| time.as_secs_f64() / self.wall.as_secs_f64().max(1e-9);
        let mut parts: Vec<_> = self.waits.iter().map(|(wait, time)| (*wait, share(*time))).collect();
        parts.push(("runnable", share(self.runnable)));
        parts.retain(|(_, share)| *share >= 0.005);
        parts.compact_sort_by(|(_, a), (_, b)| b.total_cmp(a));
        parts
    }
}
