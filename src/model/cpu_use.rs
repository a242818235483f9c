//! What a process took of the processors, and what kept it from taking more.

use std::fmt;
use std::time::Duration;

use super::Number;

/// What the threads of a process took of the processors over some time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuUse {
    /// The time.
    pub span: Duration,
    /// Time on a processor, of all threads together; `None` where that is not known.
    pub cpu: Option<Duration>,
    /// Time in which they were ready to run and had no processor, at least: what threads waited that have ended may be missing. `None` where that is not
    /// measured.
    pub runnable: Option<Duration>,
    /// What else decided that.
    pub supply: CpuSupply,
}

/// What else decides how much CPU a process gets.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuSupply {
    /// The CPU limit that held it back most, of several that held it back as much the lowest; `None` where there is none.
    pub limit: Option<CpuLimit>,
    /// The lowest CPU limit; `None` where there is none.
    pub lowest: Option<CpuLimit>,
    /// CPU time of all processes of its machine, and what a hypervisor took, over the same time; `None` where that is not known.
    pub machine: Option<Duration>,
}

/// The CPU limit of a control group, and how often it held back what is in the group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuLimit {
    /// Which control group: the inode number of its folder.
    pub group: u64,
    /// What all threads of the group together may take: processors.
    pub cores: f64,
    /// Periods of the limit in which something in the group ran.
    pub periods: u64,
    /// Of these, periods in which it had to wait for the next one.
    pub throttled: u64,
}

impl CpuLimit {
    /// What happened since an earlier look at the same limit.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let (periods, throttled) = (self.periods.saturating_sub(before.periods), self.throttled.saturating_sub(before.throttled));
        Self { periods, throttled, ..self }
    }

    /// The lowest of the limits of nested groups: the others cannot be reached.
    pub fn lowest(limits: &[Self]) -> Option<Self> {
        limits.iter().min_by(|a, b| a.cores.total_cmp(&b.cores)).copied()
    }

    /// Share of the periods in which it held something back.
    pub fn throttled_share(&self) -> f64 {
        self.throttled as f64 / self.periods.max(1) as f64
    }
}

impl fmt::Display for CpuLimit {
    /// Its processors: `0.5 CPUs`, `1 CPU`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} CPU{}", Number(self.cores), if self.cores == 1.0 { "" } else { "s" })
    }
}

impl CpuSupply {
    /// Of these limits the one that held back most, and the lowest.
    pub fn of(limits: &[CpuLimit], machine: Option<Duration>) -> Self {
        let most = |a: &&CpuLimit, b: &&CpuLimit| a.throttled.cmp(&b.throttled).then(b.cores.total_cmp(&a.cores));
        Self { limit: limits.iter().max_by(most).copied(), lowest: CpuLimit::lowest(limits), machine }
    }
}

impl CpuUse {
    /// Threads that had a processor at a time, on average; `None` where that is not known.
    pub fn cores(&self) -> Option<f64> {
        self.cpu.map(|cpu| self.per_time(cpu))
    }

    /// Threads that waited for a processor at a time, on average; `None` where that is not measured.
    pub fn waiting(&self) -> Option<f64> {
        self.runnable.map(|runnable| self.per_time(runnable))
    }

    /// Share of the time in which threads are ready to run that they wait for a processor.
    pub fn wait_share(&self) -> Option<f64> {
        let waiting = self.waiting()?;
        Some(waiting / (self.cores()? + waiting).max(1e-9))
    }

    /// Processors that all other processes used, on average; `None` where that is not known.
    pub fn others(&self) -> Option<f64> {
        Some((self.per_time(self.supply.machine?) - self.cores()?).max(0.0))
    }

    fn per_time(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.span.as_secs_f64().max(1e-9)
    }
}
