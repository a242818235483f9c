//! Uptimes, and the times that threads ran and waited for a processor.

use std::io;
use std::time::Duration;

use procfs::process::Stat;

use super::status::field;
use super::{Proc, parse, ticks, words};
use crate::model::{SafeText, ThreadUse};

impl Proc {
    /// Returns the time since boot.
    pub(crate) fn uptime(&self) -> io::Result<Duration> {
        let bytes = self.read("uptime", 256)?;
        let seconds = words(&bytes).next().and_then(parse::<f64>);
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns how long ago a process started.
    pub(crate) fn uptime_of(&self, pid: u32) -> io::Result<Duration> {
        let started = Duration::from_secs_f64(self.stat(pid)?.starttime as f64 / procfs::ticks_per_second() as f64);
        Ok(self.uptime()?.saturating_sub(started))
    }

    /// Returns the processor usage of at most `most` threads of a process so far, by their ID in the innermost pid namespace.
    pub(crate) fn thread_times(&self, pid: u32, most: usize) -> io::Result<Vec<ThreadUse>> {
        self.map_threads(pid, most, |tid, folder| {
            // Exact times are read first: if a thread that still exists has none, the kernel does not measure them.
            let exact = self.scheduled(folder);
            // A thread that has exited has no times.
            let name = self.thread_name(folder).ok()?;
            let Stat { utime, stime, state, .. } = self.stat_of(folder).ok()?;
            Some(ThreadUse {
                thread: self.inner_thread_id(folder, tid)?,
                name: SafeText::from_bytes(&name),
                cpu: exact.map_or_else(|| ticks(utime + stime), |[cpu, _]| cpu),
                runnable: exact.map(|[_, runnable]| runnable),
                state,
            })
        })
    }

    /// Returns processor time and time waiting for a processor, by thread, of at most `most` threads. Threads without such a measurement are
    /// left out.
    pub(crate) fn scheduled_threads(&self, pid: u32, most: usize) -> io::Result<Vec<(u32, [Duration; 2])>> {
        self.map_threads(pid, most, |tid, folder| Some((tid, self.scheduled(folder)?)))
    }

    /// Returns those of the threads that are in an uninterruptible wait (`proc_pid_stat(5)`: state `D`), usually for a disk.
    pub(crate) fn uninterruptible_threads(&self, pid: u32, threads: &[u32]) -> io::Result<Vec<u32>> {
        let is_waiting = |tid: &u32| self.stat_of(&format!("{pid}/task/{tid}")).is_ok_and(|stat| stat.state == 'D');
        Ok(threads.iter().copied().filter(is_waiting).collect())
    }

    /// Returns processor time and time waiting for a processor of a thread, given its directory (kernel,
    /// `Documentation/scheduler/sched-stats.rst`). `None` if the kernel does not measure them, in which case it reports zeros.
    fn scheduled(&self, folder: &str) -> Option<[Duration; 2]> {
        let text = self.read(&format!("{folder}/schedstat"), 128).ok()?;
        let mut values = words(&text).map_while(parse::<u64>);
        let (cpu, runnable) = values.next().zip(values.next())?;
        (cpu > 0).then(|| [cpu, runnable].map(Duration::from_nanos))
    }

    /// Returns the processor time of a process so far, including threads that have exited (`proc_pid_stat(5)`).
    pub(crate) fn cpu_time(&self, pid: u32) -> io::Result<Duration> {
        let Stat { utime, stime, .. } = self.stat(pid)?;
        Ok(ticks(utime + stime))
    }

    /// Returns the non-idle time of all processors together since boot, including time stolen by a hypervisor (`proc_stat(5)`).
    pub(crate) fn machine_busy(&self) -> io::Result<Duration> {
        let bytes = self.read("stat", 2048)?;
        let values: Vec<u64> = words(field(&bytes, b"cpu ")).map_while(parse::<u64>).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal.
        let [user, nice, system, _, _, interrupts, soft, stolen, ..] = values[..] else { return Err(io::ErrorKind::InvalidData.into()) };
        Ok(ticks([user, nice, system, interrupts, soft, stolen].into_iter().fold(0, u64::saturating_add)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::net::fake_proc::{FakeProc, fake};

    #[test]
    fn threads_in_an_uninterruptible_wait_are_found() {
        let place = FakeProc::new();
        place.add(&fake(7));
        for (thread, state) in [(7, 'S'), (8, 'D'), (9, 'R')] {
            let stat = fs::read_to_string(place.path("proc/7/stat")).unwrap().replace(" S ", &format!(" {state} "));
            fs::write(place.path(&format!("proc/7/task/{thread}/stat")), stat).unwrap();
        }
        let proc = Proc::open(&place.path("proc")).unwrap();
        let found = |threads: &[u32]| proc.uninterruptible_threads(7, threads).unwrap();
        assert_eq!(found(&[7, 8, 9]), [8]);
        assert_eq!(found(&[7, 10]), [0; 0], "one has exited");
    }

    /// The kernel reports zeros if it does not measure them.
    #[test]
    fn times_that_are_not_measured_are_not_zero() {
        let place = FakeProc::new();
        place.add(&fake(7));
        let proc = Proc::open(&place.path("proc")).unwrap();
        for (text, expected) in [("0 0 0\n", vec![]), ("5000 70 3\n", vec![(7, [5000, 70].map(Duration::from_nanos))])] {
            fs::write(place.path("proc/7/task/7/schedstat"), text).unwrap();
            assert_eq!(proc.scheduled_threads(7, 9).unwrap(), expected);
        }
    }
}
