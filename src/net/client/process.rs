//! What /proc shows of a client's process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;
use tokio::time::{Instant, sleep};

use super::{Cause, Client, ExchangeError};
use crate::ipc::{CommandCode, Variable};
use crate::model::{CpuLimit, ProcessKey, ResourceUse, SafeText, ThreadUse};
use crate::net::perf::Wait;
use crate::net::proc::{Proc, Threads};
use crate::net::process_exit;

/// Interval of checks whether all threads of a process are dead.
const THREAD_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// After a resume a runtime starts its next thread at once, unless it also waits for another port.
const START_TIMEOUT: Duration = Duration::from_secs(1);
const START_POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Client {
    /// Makes a directory take the place of /proc.
    #[cfg(test)]
    #[allow(dead_code, reason = "only tests for Linux use it")]
    pub(crate) fn with_proc(self, path: &std::path::Path) -> io::Result<Self> {
        Ok(Self { proc: Some(Arc::new(Proc::open(path)?)), ..self })
    }

    /// Returns the proc file system, if it shows this very process. A socket in a shared directory may name a pid of a namespace that we cannot
    /// see, and the process with that pid in our namespace is a different one.
    pub(in crate::net) fn own_proc(&self) -> Option<&Arc<Proc>> {
        self.proc.as_ref().filter(|proc| proc.exists(self.endpoint.key))
    }

    /// Reads a fact about the process; `None` if /proc does not show it.
    fn read<T>(&self, read: impl FnOnce(&Proc, u32) -> io::Result<T>) -> Option<T> {
        read(self.own_proc()?, self.endpoint.key.pid).ok()
    }

    /// Returns the pid of the process in its own pid namespace; `None` if unknown.
    pub(super) fn ns_pid(&self) -> Option<u64> {
        let proc = self.proc.as_deref()?;
        let ProcessKey { pid, .. } = self.endpoint.key;
        match self.own_proc() {
            Some(proc) => proc.identity(pid).ok().map(|identity| identity.ns_pid.into()),
            // In another namespace; known if it is part of the socket's name.
            None => (proc.is_real() && pid > 0).then_some(pid.into()),
        }
    }

    /// Returns the environment of the process when it was started; `None` if it is empty or not readable.
    pub(super) fn initial_environment(&self) -> Option<Vec<Variable>> {
        let variables = self.read(Proc::initial_environment)?;
        // The pid may have been reused since.
        (self.own_proc().is_some() && !variables.is_empty()).then_some(variables)
    }

    /// Returns the names of the threads of the process, by thread id in its pid namespace. Empty if /proc does not show them.
    pub fn thread_names(&self) -> HashMap<u64, SafeText> {
        let names = self.read(Proc::thread_names).into_iter().flatten();
        names.map(|(thread, name)| (thread, SafeText::from_bytes(&name))).collect()
    }

    /// Returns what the kernel shows that threads wait for, such as `futex` or `disk`, by thread id in its pid namespace. Running threads are not
    /// included; empty without the permission to trace the process.
    pub fn thread_waits(&self) -> HashMap<u64, &'static str> {
        let waits = self.read(Proc::thread_waits).into_iter().flatten();
        waits.filter_map(|(thread, function)| Some((thread, Wait::name_of(&function)?))).collect()
    }

    /// Returns the paths, as the process sees them, of the assemblies mapped into it, in order and at most `most`. Empty if /proc does not show
    /// them; assemblies that were loaded from memory or are part of a single-file program are not included.
    pub fn assemblies(&self, most: usize) -> Vec<SafeText> {
        self.read(Proc::assemblies).iter().flatten().take(most).map(|path| SafeText::from_path(path)).collect()
    }

    /// Returns the threads of the process with the CPU time that each has used so far, at most `most`. Empty if /proc does not show them.
    pub fn thread_times(&self, most: usize) -> Vec<ThreadUse> {
        self.read(|proc, pid| proc.thread_times(pid, most)).unwrap_or_default()
    }

    /// Returns the threads of the process, each with its time on a CPU and its time waiting for one so far; at most `most`. Empty if /proc does not
    /// show them.
    pub fn scheduled_threads(&self, most: usize) -> Vec<(u32, [Duration; 2])> {
        self.read(|proc, pid| proc.scheduled_threads(pid, most)).unwrap_or_default()
    }

    /// Returns those of the threads, given by their ids in our pid namespace, that are in an uninterruptible wait, usually for a disk; `None` if
    /// /proc does not show it.
    pub fn uninterruptible_threads(&self, threads: &[u32]) -> Option<Vec<u32>> {
        self.read(|proc, pid| proc.uninterruptible_threads(pid, threads))
    }

    /// Returns how long ago the process started; `None` if /proc does not show it.
    pub fn uptime(&self) -> Option<Duration> {
        self.read(Proc::uptime_of)
    }

    /// Returns the CPU time of the process so far, including threads that have exited; `None` if /proc does not show it.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.read(Proc::cpu_time)
    }

    /// Returns whether a file of this name is mapped into the process. Also `false` if /proc does not show that.
    pub fn maps(&self, name: &str) -> bool {
        self.own_proc().is_some_and(|proc| proc.maps_file(self.endpoint.key.pid, name))
    }

    /// Returns the CPU limits of the control groups of the process, innermost first, counted since the groups were created. Empty if unknown.
    pub fn cpu_limits(&self) -> Vec<CpuLimit> {
        self.own_proc().filter(|proc| proc.is_real()).map(|proc| proc.cpu_limits(self.endpoint.key.pid)).unwrap_or_default()
    }

    /// Returns memory, threads and open files of the process, with their limits, as far as /proc shows them.
    pub fn resources(&self) -> ResourceUse {
        self.own_proc().map(|proc| proc.resources(self.endpoint.key.pid)).unwrap_or_default()
    }

    /// Returns the total non-idle time of all processors of the machine since boot; `None` if /proc does not show it.
    pub fn machine_busy(&self) -> Option<Duration> {
        self.own_proc().filter(|proc| proc.is_real())?.machine_busy().ok()
    }

    /// Returns the peak resident memory of the process in bytes; `None` if /proc does not show it.
    pub fn peak_memory(&self) -> Option<u64> {
        self.read(Proc::peak_memory)
    }

    /// Checks that the runtime is running after its resume, which takes effect at once unless another diagnostic port holds it. A process that
    /// cannot be seen is taken to be running.
    ///
    /// # Errors
    /// [`Cause::StillSuspended`].
    pub async fn await_start(&self) -> Result<(), ExchangeError> {
        let began = Instant::now();
        while self.read(Proc::threads).is_some_and(Threads::is_suspended) {
            if began.elapsed() >= START_TIMEOUT {
                return Err(self.error(CommandCode::ResumeRuntime, Cause::StillSuspended));
            }
            sleep(START_POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Waits until the process exits. A connection need not end then: children may hold it, as the dump program of 3.1 does. Never returns if /proc
    /// does not show the process.
    pub async fn process_exit(&self) {
        tokio::select! {
            Ok(()) = process_exit::wait(self.endpoint.key.pid, || self.own_proc().is_some()) => {}
            () = self.all_threads_dead() => {}
        }
    }

    /// Waits until all threads of the process are dead, by polling: there is no notification while a tracer, such as a hung dump program, keeps
    /// them, nor before Linux 5.3.
    async fn all_threads_dead(&self) {
        if self.own_proc().is_none() {
            std::future::pending().await
        }
        while self.read(Proc::is_dead) == Some(false) {
            sleep(THREAD_POLL_INTERVAL).await;
        }
    }
}
