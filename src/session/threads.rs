//! CPU use of the threads of a recorded process, from periodic readings of /proc.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::blocking::{Blocking, start_blocking};
use crate::analysis::ThreadCpu;
use crate::model::{CpuConstraints, CpuLimit, ThreadUse};
use crate::net::client::Client;
use crate::net::clock::monotonic_ns;

/// Interval between readings, for this number of threads: each reads four small files per thread. It is longer for more.
const READ_INTERVAL: Duration = Duration::from_secs(2);
const THREADS_PER_INTERVAL: usize = 512;
/// Time limit for the last reading.
const LAST_READ_LIMIT: Duration = Duration::from_secs(1);
/// Maximum number of threads per reading, and in total.
const MAX_THREADS: (usize, usize) = (4096, 4096);

/// Threads of a process since the start of a recording.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// By thread id: CPU and runnable time at the first reading, and the latest values. Threads that have exited are kept.
    known: BTreeMap<u64, ([Duration; 2], ThreadUse)>,
    due: Option<Instant>,
    /// The reading under way, on a thread for blocking calls: /proc is slow for a process with many threads or a busy memory map.
    reading: Option<Blocking<Reading>>,
    shown: Arc<[ThreadUse]>,
    /// CPU limits of its control groups, each from the reading that first found it.
    limits: Vec<CpuLimit>,
    /// Limits found by the latest reading, relative to the first.
    limits_since: Vec<CpuLimit>,
    /// Busy time of the whole machine at the first reading, and since then.
    machine: Option<(Duration, Duration)>,
    /// Whether there were more threads than a reading covers: a thread that appears later may be old.
    is_cut: bool,
    /// The time of the latest reading on the stream's clock, CLOCK_MONOTONIC, and the CPU times of its threads since the start of the recording.
    times: (i64, ThreadCpu),
}

/// What /proc shows at one time.
#[derive(Debug, Default)]
struct Reading {
    is_first: bool,
    threads: Vec<ThreadUse>,
    limits: Vec<CpuLimit>,
    machine_busy: Option<Duration>,
    /// CLOCK_MONOTONIC, nanoseconds.
    at: i64,
}

impl Threads {
    /// Starts a reading if one is due. Returns the threads if a reading has ended since the last call.
    pub(super) fn read_if_due(&mut self, client: &Client) -> Option<Arc<[ThreadUse]>> {
        if self.reading.as_ref().is_some_and(|reading| !reading.is_finished()) {
            return None;
        }
        // One that panicked has no result; the panic hook reports it.
        let read = self.reading.take().and_then(Blocking::into_result).map(|reading| self.apply(reading));
        if self.due.is_none_or(|due| due <= Instant::now()) {
            self.start(client);
        }
        read
    }

    /// Takes a last reading, and waits for it: for a short time, since /proc may not answer. Returns the threads.
    pub(super) async fn read_last(&mut self, client: &Client) -> Arc<[ThreadUse]> {
        let limit = Instant::now() + LAST_READ_LIMIT;
        // One that has already started is too early.
        for is_last in [false, true] {
            if is_last {
                self.start(client);
            }
            let Some(reading) = &mut self.reading else { continue };
            match timeout_at(limit, reading).await {
                Ok(Ok(reading)) => _ = self.apply(reading),
                Ok(Err(_)) => {}
                Err(_) => break,
            }
            self.reading = None;
        }
        self.shown.clone()
    }

    fn start(&mut self, client: &Client) {
        let is_first = self.due.replace(Instant::now() + READ_INTERVAL).is_none();
        let client = client.clone();
        self.reading = Some(start_blocking(move || {
            let (threads, limits) = (client.thread_times(MAX_THREADS.0), client.cpu_limits());
            let machine_busy = client.machine_busy();
            Reading { is_first, threads, limits, machine_busy, at: monotonic_ns() }
        }));
    }

    fn apply(&mut self, reading: Reading) -> Arc<[ThreadUse]> {
        let Reading { is_first, threads, limits, machine_busy, at } = reading;
        self.times.0 = at;
        self.due = self.due.map(|due| due + READ_INTERVAL * (threads.len() / THREADS_PER_INTERVAL) as u32);
        self.take(threads, is_first);
        self.take_limits(limits);
        if let Some(busy) = machine_busy {
            let began = self.machine.map_or(busy, |(began, _)| began);
            self.machine = Some((began, busy.saturating_sub(began)));
        }
        self.shown.clone()
    }

    /// Limits on the CPU time since the start of the recording.
    pub(super) fn cpu_constraints(&self) -> CpuConstraints {
        CpuConstraints::of(&self.limits_since, self.machine.map(|(_, since)| since))
    }

    /// The time of the latest reading on the stream's clock, CLOCK_MONOTONIC, and the CPU times of its threads.
    pub(super) fn cpu_times(&self) -> (i64, ThreadCpu) {
        self.times.clone()
    }

    fn take_limits(&mut self, now: Vec<CpuLimit>) {
        // The process has exited: keep the last limits.
        if !now.is_empty() {
            self.limits_since = limits_since(&mut self.limits, now);
        }
    }

    fn take(&mut self, times: Vec<ThreadUse>, first: bool) {
        self.times.1.clear();
        self.is_cut |= times.len() >= MAX_THREADS.0;
        for time in times {
            let room = self.known.len() < MAX_THREADS.1;
            let (thread, cpu) = (time.thread, time.cpu);
            let before = match self.known.get_mut(&thread) {
                Some((before, known)) => {
                    // The thread id was reused.
                    if cpu < known.cpu {
                        *before = <[Duration; 2]>::default();
                    }
                    *known = time;
                    *before
                }
                None => {
                    // CPU time before the recording does not count; a thread created later used all of its time since.
                    let before = if first || self.is_cut { [cpu, time.runnable.unwrap_or_default()] } else { <[Duration; 2]>::default() };
                    if room {
                        self.known.insert(thread, (before, time));
                    }
                    before
                }
            };
            self.times.1.push((thread, u64::try_from(cpu.saturating_sub(before[0]).as_nanos()).unwrap_or(u64::MAX)));
        }
        let since = |([cpu, runnable], now): &([Duration; 2], ThreadUse)| ThreadUse {
            cpu: now.cpu.saturating_sub(*cpu),
            runnable: now.runnable.map(|time| time.saturating_sub(*runnable)),
            ..now.clone()
        };
        self.shown = self.known.values().map(since).collect();
    }
}

/// Returns the changes of the current limits since each was first found. A process that was moved to another control group has different limits.
pub(super) fn limits_since(first: &mut Vec<CpuLimit>, now: Vec<CpuLimit>) -> Vec<CpuLimit> {
    first.retain(|known| now.iter().any(|limit| limit.group == known.group));
    let since = |limit: CpuLimit| match first.iter().find(|known| known.group == limit.group) {
        Some(known) => limit.since(*known),
        None => {
            first.push(limit);
            limit.since(limit)
        }
    };
    now.into_iter().map(since).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_cpu_time_is_excluded_and_ended_threads_are_kept() {
        let thread = |thread, seconds| {
            let (cpu, runnable) = (Duration::from_secs(seconds), Some(Duration::from_secs(2 * seconds)));
            ThreadUse { thread, name: format!("t{thread}").into(), cpu, runnable, state: 'S' }
        };
        let mut threads = Threads::default();
        threads.take(vec![thread(9, 100), thread(7, 5)], true);
        threads.take(vec![thread(9, 103), thread(8, 2)], false);
        assert_eq!(threads.shown[..], [thread(7, 0), thread(8, 2), thread(9, 3)]);
        assert_eq!(threads.cpu_times().1, [(9, 3_000_000_000), (8, 2_000_000_000)], "what has ended has no time");
        // A thread id is reused.
        threads.take(vec![thread(9, 1)], false);
        assert_eq!(threads.shown[..], [thread(7, 0), thread(8, 2), thread(9, 1)]);
        threads.take((10..9000).map(|id| thread(id, 1)).collect(), false);
        assert_eq!(threads.shown.len(), MAX_THREADS.1);
    }

    #[test]
    fn most_throttling_cpu_limit_is_shown() {
        let limit = |group, cores, periods, throttled| CpuLimit { group, cores, periods, throttled };
        let mut threads = Threads::default();
        assert_eq!(threads.cpu_constraints(), CpuConstraints::default());
        threads.take_limits(vec![limit(1, 0.5, 100, 90), limit(2, 2.0, 1000, 900)]);
        threads.take_limits(vec![limit(1, 0.5, 140, 128), limit(2, 2.0, 1040, 901)]);
        let half = Some(limit(1, 0.5, 40, 38));
        assert_eq!(threads.cpu_constraints().limit, half, "what was before the recording does not count");
        threads.take_limits(Vec::new());
        assert_eq!(threads.cpu_constraints().limit, half, "it has ended");
        threads.take_limits(vec![limit(3, 1.0, 7, 7), limit(2, 2.0, 1050, 901)]);
        assert_eq!(threads.cpu_constraints().limit, Some(limit(2, 2.0, 50, 1)), "of the group that it was moved to nothing is known yet");
        threads.take_limits(vec![limit(3, 0.7, 17, 14), limit(2, 2.0, 1060, 901)]);
        assert_eq!(threads.cpu_constraints().limit, Some(limit(3, 0.7, 10, 7)));
    }
}
