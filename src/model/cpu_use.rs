//! The CPU use of a process, and what limited it.

use std::fmt;
use std::time::Duration;

use super::Number;

/// CPUs in use on average from which threads of different processes may wait for one another.
const MIN_BUSY_CPUS: f64 = 0.75;

/// CPU use of the threads of a process over some time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuUse {
    /// Length of the period.
    pub span: Duration,
    /// Time on CPU, summed over all threads; `None` if unknown.
    pub cpu: Option<Duration>,
    /// Lower bound of the time in which threads were runnable but not on a CPU: that of ended threads may be missing. `None` if not measured.
    pub runnable: Option<Duration>,
    /// What else limited the CPU use.
    pub constraints: CpuConstraints,
}

/// What limits the CPU use of a process from outside.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuConstraints {
    /// The CPU limit that throttled most often; the lowest of several equal ones; `None` if there is none.
    pub limit: Option<CpuLimit>,
    /// The lowest CPU limit; `None` if there is none.
    pub lowest: Option<CpuLimit>,
    /// CPU time of all processes of the machine, plus time stolen by a hypervisor, over the same period; `None` if unknown.
    pub machine: Option<Duration>,
}

/// The CPU limit of a control group, and how often it throttled the group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuLimit {
    /// Identifies the control group: the inode number of its folder.
    pub group: u64,
    /// Limit for all threads of the group together, in CPUs.
    pub cores: f64,
    /// Periods of the limit in which the group ran.
    pub periods: u64,
    /// Periods among these in which it was throttled.
    pub throttled: u64,
}

impl CpuLimit {
    /// Returns the difference from an earlier reading of the same limit.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let (periods, throttled) = (self.periods.saturating_sub(before.periods), self.throttled.saturating_sub(before.throttled));
        Self { periods, throttled, ..self }
    }

    /// Returns the lowest limit of nested groups: the others cannot be reached.
    pub fn lowest(limits: &[Self]) -> Option<Self> {
        limits.iter().min_by(|a, b| a.cores.total_cmp(&b.cores)).copied()
    }

    /// Returns the share of throttled periods.
    pub fn throttled_share(&self) -> f64 {
        self.throttled as f64 / self.periods.max(1) as f64
    }
}

impl fmt::Display for CpuLimit {
    /// Formats the number of CPUs: `0.5 CPUs`, `1 CPU`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} CPU{}", Number(self.cores), if self.cores == 1.0 { "" } else { "s" })
    }
}

impl CpuConstraints {
    /// Selects the limit that throttled most often, and the lowest one.
    pub fn of(limits: &[CpuLimit], machine: Option<Duration>) -> Self {
        let most = |a: &&CpuLimit, b: &&CpuLimit| a.throttled.cmp(&b.throttled).then(b.cores.total_cmp(&a.cores));
        Self { limit: limits.iter().max_by(most).copied(), lowest: CpuLimit::lowest(limits), machine }
    }
}

impl CpuUse {
    /// Returns the average number of threads on CPU; `None` if unknown.
    pub fn cores(&self) -> Option<f64> {
        self.cpu.map(|cpu| self.per_time(cpu))
    }

    /// Returns the average number of threads waiting for a CPU; `None` if not measured.
    pub fn waiting(&self) -> Option<f64> {
        self.runnable.map(|runnable| self.per_time(runnable))
    }

    /// Returns the share of waiting for a CPU in the time in which threads are runnable.
    pub fn wait_share(&self) -> Option<f64> {
        let waiting = self.waiting()?;
        Some(waiting / (self.cores()? + waiting).max(1e-9))
    }

    /// Returns the average number of CPUs used by all other processes; `None` if unknown.
    pub fn others(&self) -> Option<f64> {
        Some((self.per_time(self.constraints.machine?) - self.cores()?).max(0.0))
    }

    /// Returns whether other processes use more CPU time than this one, and so much that one CPU at least is often busy: a thread that wakes up on an
    /// idle CPU waits a moment as well, which adds up if its runs are as short.
    pub fn competes_with_others(&self) -> bool {
        let compared = self.cores().zip(self.others());
        compared.is_some_and(|(own, others)| others > own && own + others >= MIN_BUSY_CPUS)
    }

    fn per_time(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.span.as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_of_a_limit_are_counted_between_two_readings() {
        let reading = |periods, throttled| CpuLimit { group: 1, cores: 2.0, periods, throttled };
        assert_eq!(reading(150, 40).since(reading(100, 30)), reading(50, 10));
        assert_eq!(reading(3, 1).since(reading(100, 30)), reading(0, 0), "the group was replaced");
    }
}
