//! Times that threads ran, and waited for a processor.

use std::io;
use std::time::Duration;

use procfs::process::Stat;

use super::{Proc, field, parse, ticks, words};
use crate::model::{SafeText, ThreadUse};

impl Proc {
    /// Returns the processor usage of at most `most` threads of a process so far, by their ID in the innermost pid namespace.
    pub(crate) fn thread_times(&self, pid: u32, most: usize) -> io::Result<Vec<ThreadUse>> {
        self.map_threads(pid, most, |tid, folder| {
            // Exact times are read first: if a thread that still exists has none, the kernel does not measure them.
            let exact = self.scheduled(folder);
            // A thread that has exited has no times.
            let name = self.thread_name(folder).ok()?;
            let Stat { utime, stime, state, .. } = self.stat_of(folder).ok()?;
            Some(ThreadUse {
                thread: self.identity_of(folder, tid).ok()?.ns_pid.into(),
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
