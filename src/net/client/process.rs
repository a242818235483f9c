//! What /proc shows of the process of a client.

use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;
use tokio::time::{Instant, sleep};

use super::{Cause, Client, ExchangeError};
use crate::ipc::CommandCode;
use crate::model::{CpuLimit, ProcessKey, SafeText, ThreadUse};
use crate::net::proc::{Proc, Threads};
use crate::net::process_exit;

/// How often it is looked whether the threads of a process are dead.
const LOOK_AT_THREADS: Duration = Duration::from_secs(2);
/// After its resume a runtime has its next thread at once, unless it waits for another port, too.
const START_LIMIT: Duration = Duration::from_secs(1);
const START_PAUSE: Duration = Duration::from_millis(20);

impl Client {
    /// Where /proc shows this very process. Over a shared directory comes a pid of a namespace that we cannot see, and ours of that number is
    /// another process.
    pub(super) fn own_proc(&self) -> Option<&Proc> {
        self.proc.as_deref().filter(|proc| proc.shows(self.endpoint.key))
    }

    /// The same, to keep.
    pub(in crate::net) fn shared_proc(&self) -> Option<Arc<Proc>> {
        self.proc.as_ref().filter(|proc| proc.shows(self.endpoint.key)).map(Arc::clone)
    }

    /// The pid that the process has in its own pid namespace; `None` where nothing shows it.
    pub(super) fn inner_pid(&self) -> Option<u64> {
        let proc = self.proc.as_deref()?;
        let ProcessKey { pid, .. } = self.endpoint.key;
        match self.own_proc() {
            Some(proc) => proc.identity(pid).ok().map(|identity| identity.ns_pid.into()),
            // Of another namespace, where the name of its socket has it.
            None => (proc.is_of_kernel() && pid > 0).then_some(pid.into()),
        }
    }

    /// Names of the threads of the process, by their numbers in its PID namespace. Empty where /proc does not show them.
    pub fn thread_names(&self) -> HashMap<u64, SafeText> {
        let names = self.own_proc().and_then(|proc| proc.thread_names(self.endpoint.key.pid).ok()).unwrap_or_default();
        names.into_iter().map(|(thread, name)| (thread, SafeText::from_bytes(&name))).collect()
    }

    /// The paths, as the process sees them, of the assemblies that it has mapped, in order and no more than `most`. Empty where /proc does not show them;
    /// those that were loaded from memory, or are part of a single file, are in no list.
    pub fn assemblies(&self, most: usize) -> Vec<SafeText> {
        let paths = self.own_proc().and_then(|proc| proc.assemblies(self.endpoint.key.pid).ok()).unwrap_or_default();
        paths.iter().take(most).map(|path| SafeText::new(&path.to_string_lossy())).collect()
    }

    /// The threads of the process with what each took of the processors so far, no more than `most`. Empty where /proc does not show them.
    pub fn thread_times(&self, most: usize) -> Vec<ThreadUse> {
        self.own_proc().and_then(|proc| proc.thread_times(self.endpoint.key.pid, most).ok()).unwrap_or_default()
    }

    /// The threads of the process, each with the time that it had on a processor so far and the time that it waited for one; no more than `most`. Empty where
    /// /proc does not show them.
    pub fn scheduled_threads(&self, most: usize) -> Vec<(u32, [Duration; 2])> {
        self.own_proc().and_then(|proc| proc.scheduled_threads(self.endpoint.key.pid, most).ok()).unwrap_or_default()
    }

    /// Time of the process on processors so far, also that of its threads that have ended; `None` where /proc does not show it.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.own_proc()?.cpu_time(self.endpoint.key.pid).ok()
    }

    /// Whether a file of this name is mapped into the process. `false` also where /proc does not show that.
    pub fn maps(&self, name: &str) -> bool {
        self.own_proc().is_some_and(|proc| proc.maps_file(self.endpoint.key.pid, name))
    }

    /// The CPU limits of the control groups of the process, the innermost first, counted since these were made. Empty where none is known.
    pub fn cpu_limits(&self) -> Vec<CpuLimit> {
        self.own_proc().filter(|proc| proc.is_of_kernel()).map(|proc| proc.cpu_limits(self.endpoint.key.pid)).unwrap_or_default()
    }

    /// Time of all processors of its machine together that was not idle since boot; `None` where /proc does not show it.
    pub fn machine_busy(&self) -> Option<Duration> {
        self.own_proc().filter(|proc| proc.is_of_kernel())?.machine_busy().ok()
    }

    /// The most memory that the process ever had resident, bytes; `None` where /proc does not show it.
    pub fn peak_memory(&self) -> Option<u64> {
        self.own_proc()?.peak_memory(self.endpoint.key.pid).ok()
    }

    /// Checks whether the runtime runs after its resume, which it does at once unless another diagnostic port holds it. What is not seen is taken to.
    ///
    /// # Errors
    /// [`Cause::StillSuspended`].
    pub async fn await_start(&self) -> Result<(), ExchangeError> {
        let waits = || self.own_proc().and_then(|proc| proc.threads(self.endpoint.key.pid).ok()).is_some_and(Threads::waits);
        let began = Instant::now();
        while waits() {
            if began.elapsed() >= START_LIMIT {
                return Err(self.error(CommandCode::ResumeRuntime, Cause::StillSuspended));
            }
            sleep(START_PAUSE).await;
        }
        Ok(())
    }

    /// Waits for the end of the process. A connection need not end with it: children may hold it, as the dump program of 3.1 does. It takes for ever
    /// where /proc does not show the process.
    pub async fn process_exit(&self) {
        tokio::select! {
            Ok(()) = process_exit::wait(self.endpoint.key.pid, || self.own_proc().is_some()) => {}
            () = self.death() => {}
        }
    }

    /// Waits until all threads of the process are dead. Nothing wakes us up then where a tracer keeps them, as a dump program that hangs does, nor
    /// before Linux 5.3.
    async fn death(&self) {
        if self.own_proc().is_none() {
            std::future::pending().await
        }
        while self.own_proc().is_some_and(|proc| proc.is_dead(self.endpoint.key.pid).is_ok_and(|is_dead| !is_dead)) {
            sleep(LOOK_AT_THREADS).await;
        }
    }
}
