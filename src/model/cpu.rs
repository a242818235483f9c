//! CPU time of a process.

use std::time::Duration;

use super::SafeText;
use crate::analysis::{Counts, Origin, Profile, SampleCount};
use crate::clr::payload::SampleLosses;
use crate::sorting::CompactSort;

/// Prefixes of the names of threads that only collect garbage (.NET 6 and later; the kernel keeps 15 characters).
const GC_THREADS: [&str; 2] = [".NET Server GC", ".NET BGC"];

/// CPU time of a process, as sampled by the kernel.
#[derive(Debug, Clone, Default)]
pub struct CpuTime {
    /// The samples, all of running threads.
    pub profile: Profile,
    /// The waits of threads with work: stacks with managed code if possible, and durations as sample times. `None` if the kernel does not report
    /// them.
    pub waits: Option<Profile>,
    /// Blocked time of idle threads.
    pub idle: Duration,
    /// Time up to which samples were taken, nanoseconds on their clock; `None` if unknown, as for a file.
    pub now: Option<i64>,
    /// Duration of the sampling.
    pub elapsed: Duration,
    /// The window of [`recent_ns`](crate::analysis::SampleCount::recent_ns): the last two seconds, shorter at the start, and zero at the end.
    pub recent: Duration,
    /// All threads since sampling began, in no particular order; empty for a file.
    pub threads: Vec<CpuThread>,
    /// Samples that are missing.
    pub losses: SampleLosses,
    /// Threads whose waits have no stacks (or no longer), because there were too many.
    pub unfollowed: u64,
    /// Stacks of waits that did not fit into a ring buffer, or could not be read when a thread blocked after a second of work.
    pub lost_waits: u64,
    /// Samples whose stack was cut off by the kernel.
    pub cut: u64,
    /// Samples whose callers are missing, because code in between does not maintain the frame pointer.
    pub broken: u64,
}

/// The time of a thread on and off CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuThread {
    /// Thread id in the pid namespace of the process.
    pub thread: u64,
    /// Latest name.
    pub name: SafeText,
    /// Time on CPU since sampling began, in user and kernel mode. Exact.
    pub cpu: Duration,
    /// Time during which the thread was sampled, on and off CPU.
    pub wall: Duration,
    /// Runnable, but not on a CPU.
    pub runnable: Duration,
    /// Blocked time by reason, such as `lock` or `futex`; the largest first.
    pub waits: Vec<(&'static str, Duration)>,
}

impl CpuTime {
    /// Returns the samples of `counts` in the garbage collector, as far as its code is known, and all samples of its own threads.
    pub fn in_gc(&self, counts: &Counts<'_>) -> SampleCount {
        let threads: Vec<_> = self.threads.iter().filter(|thread| thread.only_collects()).map(|thread| thread.thread).collect();
        counts.within(Origin::Gc, |thread| threads.contains(&thread.thread))
    }
}

impl CpuThread {
    /// Whether it only collects garbage, by its name.
    pub fn only_collects(&self) -> bool {
        GC_THREADS.iter().any(|name| self.name.starts_with(name))
    }

    /// Returns where the thread spent its time off CPU, the largest first: shares of its wall time of at least half a percent.
    pub fn off_cpu(&self) -> Vec<(&'static str, f64)> {
        let share = |time: Duration| time.as_secs_f64() / self.wall.as_secs_f64().max(1e-9);
        let mut parts: Vec<_> = self.waits.iter().map(|(wait, time)| (*wait, share(*time))).collect();
        parts.push(("runnable", share(self.runnable)));
        parts.retain(|(_, share)| *share >= 0.005);
        parts.compact_sort_by(|(_, a), (_, b)| b.total_cmp(a));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_off_cpu_has_no_negligible_parts() {
        let ms = Duration::from_millis;
        let waits = vec![("lock", ms(4)), ("io", ms(5)), ("futex", ms(300))];
        let thread = CpuThread { wall: ms(1000), runnable: ms(50), waits, ..CpuThread::default() };
        assert_eq!(thread.off_cpu(), [("futex", 0.3), ("runnable", 0.05), ("io", 0.005)]);
        assert_eq!(CpuThread::default().off_cpu(), []);
    }
}
