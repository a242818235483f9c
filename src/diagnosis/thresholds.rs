//! Thresholds from which a value is a finding: for the overview, the findings of a recording, the causes of slowness and the health of watched
//! processes.

listed! {
/// A value with a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// Share of the time in GC pauses, in percent.
    GcTime => ("gc-time", "Time in GC pauses, % of the time, over 10 s", 10.0, (0.1, 100.0)),
    /// Exceptions per second.
    Exceptions => ("exceptions", "Exceptions per second, over 5 s", 50.0, (0.1, 1e6)),
    /// Mean number of threads waiting for locks at the same time.
    LockWaiters => ("lock-waiters", "Threads waiting for locks at a time, on average", 2.0, (0.1, 1e4)),
    /// Time for which a thread has been waiting for a lock, in seconds.
    LockWait => ("lock-wait", "Time for which a thread has been waiting for a lock, seconds", 10.0, (1.0, 3600.0)),
    /// Number of pool threads waiting for tasks at the same time.
    BlockedThreads => ("blocked-threads", "Pool threads waiting for tasks at a time", 5.0, (1.0, 1e4)),
    /// Heap growth from the first to the last of several consecutive full collections, in percent.
    HeapGrowth => ("heap-growth", "Heap growth over 4 or more full GCs, %", 30.0, (1.0, 1e4)),
    /// Minimum growth of gen 2, in MB.
    HeapGrowthSize => ("heap-growth-size", "Minimum growth of the heap or gen 2, MB", 10.0, (1.0, 1e6)),
    /// Thread pool queue length.
    QueueLength => ("queue-length", "Thread pool queue length, for 3 values in a row", 20.0, (1.0, 1e6)),
    /// Time in which work items wait and none completes, in seconds.
    PoolStall => ("pool-stall", "Time in which work items wait and none completes, seconds", 10.0, (1.0, 300.0)),
    /// Lock contentions per second.
    LockContentions => ("lock-contentions", "Lock contentions per second", 100.0, (0.1, 1e6)),
    /// Gen 2 collections per second.
    Gen2Collections => ("gen2-collections", "Gen 2 collections per second, over 10 s", 1.0, (0.01, 1e3)),
    /// Induced collections per second.
    InducedCollections => ("induced-collections", "Induced GCs per second, over 10 s", 1.0, (0.1, 1e3)),
    /// Time spent compiling, in percent of one core.
    JitTime => ("jit-time", "Time in JIT, % of one core, for 20 values in a row", 10.0, (0.1, 100.0)),
    /// Share of requests that failed, in percent.
    FailedRequests => ("failed-requests", "Failed requests, % of all, over 10 s", 5.0, (0.1, 100.0)),
    /// Quantile 0.95 of the request duration, in seconds.
    SlowRequests => (
        "slow-requests",
        "p95 request duration, seconds, for 3 values in a row; for outgoing requests, in all of 15 intervals with any, at least 3",
        1.0,
        (0.001, 3600.0),
    ),
    /// Time in which requests start and none ends, in seconds.
    RequestStall => ("request-stall", "Time in which at least 5 requests start and none ends, seconds", 20.0, (1.0, 300.0)),
    /// CPU usage, in percent of one core.
    Cpu => ("cpu", "CPU, % of one core, for 5 scans in a row", 90.0, (1.0, 1e5)),
    /// Share of the time in which threads are runnable that they wait for a CPU, in percent.
    CpuWait => ("cpu-wait", "Waiting for CPU, % of the time in which threads are runnable", 30.0, (1.0, 100.0)),
    /// Share of the periods of a CPU limit that are throttled, in percent.
    CpuThrottling => ("cpu-throttling", "Periods in which the CPU limit of a control group throttles, % of all", 25.0, (1.0, 100.0)),
    /// Used share of the memory limit of a control group, in percent.
    // By default, the GC heap may use 75 % of a memory limit, so the rest of the program needs an unusual amount.
    MemoryLimit => ("memory-limit", "Memory used, % of the limit of a control group", 90.0, (1.0, 100.0)),
    /// Size of the GC heap after a collection, in percent of its maximum.
    HeapLimit => ("heap-limit", "GC heap after a GC, % of its limit", 85.0, (1.0, 100.0)),
    /// Time for which the finalizer thread has not finished, in seconds.
    FinalizerWait => ("finalizer-wait", "Time for which the finalizer thread has not finished, seconds", 10.0, (0.1, 3600.0)),
    /// Free share of the GC heap after a collection, in percent.
    Fragmentation => ("fragmentation", "Free space in the GC heap, %, for 10 values in a row, from 100 MB on", 50.0, (1.0, 100.0)),
    /// Steady growth of memory outside the GC heap, in MB.
    NativeGrowth => ("native-growth", "Growth of memory, but not of the GC heap, MB in 20 to 60 s", 64.0, (1.0, 1e6)),
    /// Steady growth of the number of threads outside the thread pool.
    ThreadGrowth => ("thread-growth", "Growth of threads outside the thread pool in 20 to 60 s", 20.0, (1.0, 1e6)),
    /// Number of threads outside the thread pool.
    Threads => ("threads", "Threads outside the thread pool for 20 s, and at least 4 per CPU", 500.0, (1.0, 1e6)),
    /// Number of threads of the thread pool.
    PoolThreads => ("pool-threads", "Threads of the thread pool for 20 s, and at least 4 per CPU", 100.0, (1.0, 1e6)),
    /// Open files, in percent of their limit.
    OpenFiles => ("open-files", "Open files, % of their limit", 80.0, (1.0, 100.0)),
    /// Steady growth of the number of open files.
    OpenFileGrowth => (
        "open-file-growth",
        "Growth of open files in 20 to 60 s, or 50 to 60 s while their limit is distant",
        100.0,
        (1.0, 1e6),
    ),
    /// Steady growth of the number of active timers.
    TimerGrowth => ("timer-growth", "Growth of active timers in 50 to 60 s", 300.0, (1.0, 1e6)),
    /// Steady growth of the number of loaded assemblies.
    AssemblyGrowth => ("assembly-growth", "Growth of loaded assemblies in 50 to 60 s, or 20 to 60 s from 1000 on", 50.0, (1.0, 1e6)),
    /// Mean number of threads waiting for a disk at the same time.
    DiskWaiters => ("disk-waiters", "Threads waiting for a disk at a time, on average over 15 readings", 0.5, (0.01, 1e4)),
}
/// Returns the name in the configuration file, the description, the default, and the minimum and maximum.
fn row(self) -> (&'static str, &'static str, f64, (f64, f64));
}

impl Threshold {
    /// Returns the name in the configuration file.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns the description with unit and range.
    pub fn description(self) -> String {
        let (_, description, _, (least, largest)) = self.row();
        format!("{description}; {least} to {largest}")
    }

    /// Returns the default value.
    pub fn default_value(self) -> f64 {
        self.row().2
    }
}

/// The thresholds in effect, each within its range.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds([f64; Threshold::ALL.len()]);

impl Default for Thresholds {
    fn default() -> Self {
        Self(Threshold::ALL.map(Threshold::default_value))
    }
}

impl Thresholds {
    /// Sets a threshold.
    ///
    /// # Errors
    /// Describes the valid range if the value is outside it.
    pub fn set(&mut self, threshold: Threshold, value: f64) -> Result<(), String> {
        let (name, _, _, (least, largest)) = threshold.row();
        if !(least..=largest).contains(&value) {
            return Err(format!("{name} must be a number from {least} to {largest}"));
        }
        self.0[threshold as usize] = value;
        Ok(())
    }

    /// Returns a value, in the unit of the configuration file. Never 0.
    pub fn of(&self, threshold: Threshold) -> f64 {
        self.0[threshold as usize]
    }

    /// Returns a percentage as a fraction.
    pub fn share(&self, threshold: Threshold) -> f64 {
        self.of(threshold) / 100.0
    }

    /// Returns the minimum heap growth, as a factor.
    pub fn heap_growth(&self) -> f64 {
        1.0 + self.share(Threshold::HeapGrowth)
    }

    /// Returns the minimum growth of gen 2, in bytes.
    pub fn heap_growth_bytes(&self) -> f64 {
        self.of(Threshold::HeapGrowthSize) * 1e6
    }

    /// Returns the number of pool threads waiting for tasks at the same time.
    pub fn blocked_threads(&self) -> u32 {
        self.of(Threshold::BlockedThreads).ceil() as u32
    }
}

/// Number of consecutive full collections from which heap growth is determined.
pub const GROWING_COLLECTIONS: usize = 4;
/// CPU usage below which a process is nearly idle, in cores.
pub const MIN_BUSY_CORES: f64 = 0.1;
/// Mean number of threads waiting for a CPU from which the machine may be overloaded: a thread with very short runs waits about as long for
/// its turn even if nothing else runs.
pub const MIN_CPU_WAITERS: f64 = 0.25;
/// Interval at which the pool checks for starvation (.NET runtime, `GateActivitiesPeriodMs`), in nanoseconds.
const STARVATION_CHECK_NS: f64 = 0.5e9;

/// Returns the minimum share of a time in nanoseconds in which a thread pool with this number of starvation events was starved.
pub fn starved_share(starvations: u64, nanoseconds: f64) -> f64 {
    (starvations as f64 * STARVATION_CHECK_NS / nanoseconds.max(1.0)).min(1.0)
}

/// Share of throttled periods from which a CPU limit is the cause of waiting.
pub const MIN_THROTTLED_SHARE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range_and_invalid_values_are_rejected() {
        let mut all = Thresholds::default();
        for threshold in Threshold::ALL {
            all.set(threshold, threshold.default_value()).unwrap();
            for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
                assert!(all.set(threshold, wrong).unwrap_err().starts_with(threshold.name()), "{threshold:?} {wrong}");
            }
        }
        assert_eq!(all, Thresholds::default());
        all.set(Threshold::BlockedThreads, 1.5).unwrap();
        assert_eq!(all.blocked_threads(), 2, "1.5 threads are rounded up to 2");
    }
}
