//! CPU use of a watched process and what limits it, over the last seconds, from /proc.

use std::collections::VecDeque;
use std::time::Duration;

use foldhash::HashMap;
use tokio::time::Instant;

use super::blocking::read_process;
use super::threads::limits_since;
use crate::model::{CpuConstraints, CpuLimit, CpuUse};
use crate::net::client::Client;

/// Approximate time covered, long enough that a burst is no finding.
const SPAN: Duration = Duration::from_secs(5);
/// Maximum number of threads examined.
const MAX_THREADS: usize = 1 << 14;
/// Mean number of threads per call of [`CpuMonitor::read`]: a reading opens one small file for each thread, so that of a process with more threads,
/// readings are less frequent.
const THREADS_PER_CALL: usize = 512;
/// Maximum number of threads whose state is read: of those that ran since the previous reading.
const MAX_STATES: usize = 128;

/// The latest readings of a process.
#[derive(Debug, Default)]
pub(super) struct CpuMonitor {
    /// By thread, at the latest reading: time on a processor, and time runnable without one. `None` before the first reading.
    threads: Option<HashMap<u32, [Duration; 2]>>,
    /// Runnable time of all threads together; only differences matter.
    runnable: Duration,
    /// Threads that may be in an uninterruptible wait: before the latest reading, they have run or have been in one. All others sleep.
    candidates: Vec<u32>,
    /// Those of them that were in one when they were last looked at.
    waiting: Vec<u32>,
    /// Number of calls until the next reading.
    left_out: usize,
    /// Oldest first.
    readings: VecDeque<Reading>,
}

#[derive(Debug)]
struct Reading {
    at: Instant,
    /// CPU time since the process started.
    cpu: Option<Duration>,
    /// `None` if the kernel does not measure thread times, or there are too many threads.
    runnable: Option<Duration>,
    limits: Vec<CpuLimit>,
    machine: Option<Duration>,
}

impl CpuMonitor {
    /// Takes another reading if one is due, on a thread for blocking calls: /proc can be slow. `None` if it does not show the process.
    pub(super) async fn read(&mut self, client: &Client) -> Option<CpuUse> {
        if let Some(left) = self.left_out.checked_sub(1) {
            self.left_out = left;
            return self.latest();
        }
        let at = Instant::now();
        let read = |client: &Client| (client.cpu_time(), client.scheduled_threads(MAX_THREADS), client.cpu_limits(), client.machine_busy());
        let (cpu, threads, limits, machine) = read_process(client, read).await?;
        self.take(at, cpu, threads, limits, machine)
    }

    /// Returns the number of threads that are in an uninterruptible wait, usually for a disk, shortly after a reading; `None` if unknown.
    pub(super) async fn disk_waiters(&mut self, client: &Client) -> Option<u64> {
        self.threads.as_ref()?;
        if self.candidates.is_empty() {
            return Some(0);
        }
        let candidates = self.candidates.clone();
        self.waiting = read_process(client, move |client| client.uninterruptible_threads(&candidates)).await??;
        Some(self.waiting.len() as u64)
    }

    fn take(
        &mut self,
        at: Instant,
        cpu: Option<Duration>,
        threads: Vec<(u32, [Duration; 2])>,
        limits: Vec<CpuLimit>,
        machine: Option<Duration>,
    ) -> Option<CpuUse> {
        self.left_out = threads.len() / THREADS_PER_CALL;
        // With a partial list, new threads cannot be recognized.
        let runnable = (!threads.is_empty() && threads.len() < MAX_THREADS).then(|| self.wait(&threads));
        if runnable.is_none() {
            self.threads = None;
        }
        while self.readings.get(1).is_some_and(|next| at.duration_since(next.at) >= SPAN) {
            self.readings.pop_front();
        }
        self.readings.push_back(Reading { at, cpu, runnable, limits, machine });
        self.latest()
    }

    /// Adds how long each thread was runnable since the previous reading. The time of threads that have exited since then is not known.
    fn wait(&mut self, threads: &[(u32, [Duration; 2])]) -> Duration {
        let before = self.threads.replace(threads.iter().copied().collect());
        let has_run = |(thread, now): &(u32, [Duration; 2])| before.as_ref().is_none_or(|before| before.get(thread) != Some(now));
        let waiting = std::mem::take(&mut self.waiting);
        let candidates = threads.iter().filter(|thread| waiting.contains(&thread.0) || has_run(thread));
        self.candidates = candidates.map(|(thread, _)| *thread).take(MAX_STATES).collect();
        for (thread, now) in threads {
            let before = before.as_ref().and_then(|before| before.get(thread)).copied().unwrap_or_default();
            // The thread id may have been reused.
            let is_same = before[0] <= now[0] && before[1] <= now[1];
            self.runnable += if is_same { now[1] - before[1] } else { now[1] };
        }
        self.runnable
    }

    /// Returns the differences between the oldest and the latest reading.
    fn latest(&self) -> Option<CpuUse> {
        let (oldest, newest) = (self.readings.front()?, self.readings.back()?);
        let is_known = newest.runnable.is_some() || !newest.limits.is_empty();
        let difference = |(now, before): (Duration, Duration)| now.saturating_sub(before);
        let cpu = newest.cpu.zip(oldest.cpu).map(difference);
        let measured = self.readings.iter().all(|reading| reading.runnable.is_some());
        let runnable = newest.runnable.zip(oldest.runnable).filter(|_| measured).map(difference);
        let (mut first, mut limits) = (Vec::new(), Vec::new());
        for reading in &self.readings {
            limits = limits_since(&mut first, reading.limits.clone());
        }
        let machine = newest.machine.zip(oldest.machine).map(difference);
        let span = newest.at.duration_since(oldest.at);
        is_known.then(|| CpuUse { span, cpu, runnable, constraints: CpuConstraints::of(&limits, machine) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn cpu_use_covers_the_last_seconds() {
        let (begin, mut monitor) = (Instant::now(), CpuMonitor::default());
        // Milliseconds of the process, and of each thread with and without a processor.
        let mut read = |second: u32, cpu: u32, threads: &[(u32, u32, u32)], throttled| {
            let threads = threads.iter().map(|(thread, cpu, runnable)| (*thread, [*cpu * MS, *runnable * MS])).collect();
            let limit = CpuLimit { group: 1, cores: 0.5, periods: u64::from(second) * 10, throttled };
            monitor.take(begin + second * 1000 * MS, Some(cpu * MS), threads, vec![limit], Some(second * 1500 * MS))
        };
        let first = read(1, 20_000, &[(1, 9000, 100)], 7).unwrap();
        assert_eq!(
            (first.span, first.cpu, first.runnable),
            (Duration::ZERO, Some(Duration::ZERO), Some(Duration::ZERO)),
            "what was before the watch does not count"
        );
        // The second thread is new; the first exits, and others start and exit unseen.
        read(2, 20_300, &[(1, 9200, 400), (2, 100, 200)], 8);
        let found = read(3, 21_500, &[(2, 200, 400)], 17).unwrap();
        assert_eq!((found.span, found.cpu, found.runnable), (2000 * MS, Some(1500 * MS), Some(700 * MS)));
        assert_eq!(found.constraints.limit.map(|limit| (limit.periods, limit.throttled)), Some((20, 10)));
        assert_eq!((found.constraints.machine, found.others()), (Some(3000 * MS), Some(0.75)));
        for second in 4..=20 {
            read(second, 21_500, &[(2, 200, 400)], 17);
        }
        let later = read(21, 22_000, &[(2, 700, 400)], 17).unwrap();
        assert_eq!(
            (later.span, later.cpu, later.runnable),
            (5000 * MS, Some(500 * MS), Some(Duration::ZERO)),
            "only the latest seconds count"
        );
    }

    /// Reading the states of all threads each time would double the cost of a reading.
    #[test]
    fn only_threads_that_may_wait_for_a_disk_are_candidates() {
        let (begin, mut monitor) = (Instant::now(), CpuMonitor::default());
        let mut read = |threads: &[(u32, u32)], waiting: &[u32]| {
            let threads = threads.iter().map(|(thread, cpu)| (*thread, [*cpu * MS, MS])).collect();
            monitor.take(begin, Some(MS), threads, Vec::new(), None);
            monitor.waiting = waiting.to_vec();
            monitor.candidates.clone()
        };
        assert_eq!(read(&[(1, 10), (2, 10), (3, 10)], &[1, 3]), [1, 2, 3], "it is not known since when each is in its state");
        assert_eq!(read(&[(1, 10), (2, 10), (3, 10)], &[3]), [1, 3], "the second one still sleeps");
        assert_eq!(read(&[(1, 11), (2, 10), (3, 10), (4, 1)], &[]), [1, 3, 4], "one has run, and one is new");
        assert_eq!(read(&[(1, 11), (2, 10), (4, 1)], &[]), [0; 0]);
        let many: Vec<_> = (0..500).map(|thread| (thread, 1)).collect();
        assert_eq!(read(&many, &[]).len(), MAX_STATES);
    }

    #[test]
    fn many_threads_are_read_less_often() {
        let (begin, mut monitor) = (Instant::now(), CpuMonitor::default());
        let mut read = |second: u32, threads: u32| {
            let threads = (0..threads).map(|thread| (thread, [MS, MS * second])).collect();
            let found = monitor.take(begin + second * 1000 * MS, Some(MS), threads, Vec::new(), None).unwrap();
            (found.runnable, monitor.left_out)
        };
        assert_eq!(read(1, 511), (Some(Duration::ZERO), 0));
        assert_eq!(read(2, 2000), (Some(511 * MS + 1489 * 2 * MS), 3), "some are new");
        assert_eq!(read(6, 2000), (Some(511 * 5 * MS + 1489 * 6 * MS), 3), "all of them count");
    }

    #[test]
    fn unmeasured_values_are_none() {
        let (begin, mut monitor) = (Instant::now(), CpuMonitor::default());
        assert_eq!(monitor.take(begin, None, Vec::new(), Vec::new(), Some(MS)), None);
        let limit = CpuLimit { group: 1, cores: 0.5, periods: 1, throttled: 1 };
        let limited = monitor.take(begin + 1000 * MS, None, Vec::new(), vec![limit], None).unwrap();
        assert_eq!((limited.cpu, limited.cores(), limited.runnable, limited.constraints.machine), (None, None, None, None));
        assert_eq!(limited.constraints.limit, Some(limit.since(limit)), "it has just been moved to this group");
        let mut monitor = CpuMonitor::default();
        let mut runnable = |second, threads: usize| {
            let threads = (0..threads as u32).map(|thread| (thread, [MS, second * MS])).collect();
            monitor.take(begin + second * 1000 * MS, Some(MS), threads, vec![limit], Some(MS)).unwrap().runnable
        };
        assert_eq!([runnable(1, MAX_THREADS), runnable(2, MAX_THREADS)], [None; 2], "more threads than are looked at");
        assert_eq!([runnable(8, 1), runnable(13, 1)], [None, Some(5 * MS)]);
        assert_eq!([runnable(14, 0), runnable(15, 1), runnable(16, 1)], [None; 3], "unknown in between");
    }

    #[test]
    fn time_of_a_thread_whose_id_is_reused_counts_as_a_whole() {
        let (begin, mut monitor) = (Instant::now(), CpuMonitor::default());
        let mut runnable = |second: u32, cpu: u32, runnable: u32| {
            let threads = vec![(1, [cpu * MS, runnable * MS])];
            monitor.take(begin + second * 1000 * MS, None, threads, Vec::new(), None).unwrap().runnable
        };
        runnable(1, 50, 50);
        assert_eq!(runnable(2, 10, 60), Some(60 * MS));
        assert_eq!(runnable(3, 20, 30), Some(90 * MS));
    }
}
