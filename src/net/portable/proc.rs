//! Reads the state of a process from the system.
//!
//! Every read is of one pid, and may fail for benign reasons: the process has exited, or belongs to another user. Callers treat a failure as
//! unknown, never as the end of a list. Text is returned raw; it is sanitized where it becomes a value of [`crate::model`].

#[allow(dead_code, reason = "no path of a library is known here")]
#[path = "../proc/entry.rs"]
mod entry;
mod settings;
mod simulated;
#[allow(dead_code, reason = "no names of threads are known here")]
#[path = "../proc/threads.rs"]
mod threads;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use super::{served, system};
use crate::ipc::Variable;
use crate::model::{CpuLimit, ProcessKey, ResourceUse, RunState, ThreadUse};

pub(crate) use entry::entry_name;
pub(crate) use threads::Threads;

/// The processes of the machine, or simulated ones.
#[derive(Debug)]
pub(crate) enum Proc {
    /// The processes of the machine.
    Machine(Mutex<System>),
    /// Simulated processes, with their facts in a directory.
    Simulated(PathBuf),
}

/// The identity of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The last number of its user's account.
    pub(crate) uid: u32,
    /// Process ID: there is only one pid namespace.
    pub(crate) ns_pid: u32,
}

/// Start time and state of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    /// Seconds since the Unix epoch.
    pub(crate) starttime: u64,
    /// State letter as on Linux: any listed process counts as running.
    pub(crate) state: char,
}

/// An executable mapping of a process; not available here.
#[derive(Debug)]
pub(crate) struct CodeMapping {
    pub(crate) range: Range<u64>,
    pub(crate) file_offset: u64,
    pub(crate) path: Vec<u8>,
}

/// Facts about a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) key: Option<ProcessKey>,
    /// Pid of a simulated process in its container.
    pub(super) ns_pid: Option<u32>,
    pub(super) name: String,
    /// The file of its program, if accessible.
    pub(super) program: Option<PathBuf>,
    pub(super) parent: Option<u32>,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<String>,
    /// Account of its user: a number, or a security identifier on Windows; `None` if the process is not accessible.
    pub(super) account: Option<String>,
    pub(super) cpu: Duration,
    /// Resident memory, in bytes.
    pub(super) memory: u64,
    /// Private writable memory, in bytes.
    pub(super) private: u64,
    pub(super) threads: u32,
    pub(super) is_running: Option<bool>,
    pub(super) container: Option<String>,
    pub(super) socket: Option<PathBuf>,
    pub(super) user: Option<String>,
}

impl Proc {
    /// Opens the processes of the machine if the path is empty, or those with facts in the directory.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return Ok(Self::Machine(Mutex::new(System::new())));
        }
        if path.is_dir() { Ok(Self::Simulated(path.to_owned())) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Whether these are the processes of the machine.
    pub(crate) fn is_real(&self) -> bool {
        matches!(self, Self::Machine(_))
    }

    /// Lists all processes.
    pub(super) fn list(&self) -> io::Result<Vec<Facts>> {
        match self {
            Self::Machine(system) => {
                let mut system = system.lock().unwrap_or_else(PoisonError::into_inner);
                system.refresh_processes_specifics(ProcessesToUpdate::All, true, refresh_kind());
                let threads = system::thread_counts();
                let threads = |process: &sysinfo::Process| threads.get(&process.pid().as_u32()).copied().unwrap_or_default();
                Ok(system.processes().values().map(|process| Facts { threads: threads(process), ..Facts::of(process) }).collect())
            }
            Self::Simulated(folder) => simulated::list(folder),
        }
    }

    /// Returns the current facts about a process.
    pub(super) fn facts(&self, pid: u32) -> io::Result<Facts> {
        match self {
            Self::Machine(system) => {
                let mut system = system.lock().unwrap_or_else(PoisonError::into_inner);
                let pid = Pid::from_u32(pid);
                system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, refresh_kind());
                system.process(pid).map(Facts::of).ok_or_else(|| io::ErrorKind::NotFound.into())
            }
            Self::Simulated(folder) => simulated::read(folder, pid),
        }
    }

    /// Whether the process exists.
    pub(crate) fn exists(&self, key: ProcessKey) -> bool {
        self.stat(key.pid).is_ok_and(|stat| stat.starttime == key.started)
    }

    /// Returns start time and state.
    pub(crate) fn stat(&self, pid: u32) -> io::Result<Stat> {
        let starttime = self.facts(pid)?.key.map_or(0, |key| key.started);
        Ok(Stat { starttime, state: 'R' })
    }

    pub(crate) fn identity(&self, pid: u32) -> io::Result<Identity> {
        let facts = self.facts(pid)?;
        Ok(Identity { uid: facts.uid(), ns_pid: facts.ns_pid.unwrap_or(pid) })
    }

    /// Returns what is known about the startup state of the runtime.
    pub(crate) fn threads(&self, pid: u32) -> io::Result<Threads> {
        Ok(self.facts(pid)?.threads())
    }

    /// Returns whether the runtime is suspended at startup, as far as known.
    pub(crate) fn run_state(&self, pid: u32) -> RunState {
        self.facts(pid).map(|facts| facts.run_state()).unwrap_or_default()
    }

    /// Returns the time since boot.
    pub(crate) fn uptime(&self) -> io::Result<Duration> {
        Ok(Duration::from_secs(System::uptime()))
    }

    /// Returns how long ago a process started.
    pub(crate) fn uptime_of(&self, pid: u32) -> io::Result<Duration> {
        let started = UNIX_EPOCH + Duration::from_secs(self.stat(pid)?.starttime);
        Ok(SystemTime::now().duration_since(started).unwrap_or_default())
    }

    /// Returns the arguments, starting with the program's name.
    pub(crate) fn arguments(&self, pid: u32) -> io::Result<Vec<Vec<u8>>> {
        Ok(self.facts(pid)?.arguments())
    }

    /// Returns the variables of the initial environment.
    pub(crate) fn initial_environment(&self, pid: u32) -> io::Result<Vec<Variable>> {
        Ok(self.facts(pid)?.variables())
    }

    /// Names of threads: not available through any safe interface.
    pub(crate) fn thread_names(&self, _: u32) -> io::Result<Vec<(u64, Vec<u8>)>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Waits of threads: not available through any safe interface.
    pub(crate) fn thread_waits(&self, _: u32) -> io::Result<Vec<(u64, Vec<u8>)>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the non-idle time of all processors together since boot.
    pub(crate) fn machine_busy(&self) -> io::Result<Duration> {
        if self.is_real() { system::machine_busy() } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    /// CPU limits of control groups, which do not exist here.
    pub(crate) fn cpu_limits(&self, _: u32) -> Vec<CpuLimit> {
        Vec::new()
    }

    /// Memory, threads and open files: not available with their limits.
    pub(crate) fn resources(&self, _: u32) -> ResourceUse {
        ResourceUse::default()
    }

    /// Mapped assemblies: not available through any safe interface.
    pub(crate) fn assemblies(&self, _: u32) -> io::Result<BTreeSet<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Times of threads: not available through any safe interface.
    pub(crate) fn thread_times(&self, _: u32, _: usize) -> io::Result<Vec<ThreadUse>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the processor time of a process so far, including threads that have exited.
    pub(crate) fn cpu_time(&self, pid: u32) -> io::Result<Duration> {
        self.facts(pid).map(|facts| facts.cpu)
    }

    /// Times of threads: not available through any safe interface.
    pub(crate) fn scheduled_threads(&self, _: u32, _: usize) -> io::Result<Vec<(u32, [Duration; 2])>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// States of threads: not available through any safe interface.
    pub(crate) fn uninterruptible_threads(&self, _: u32, _: &[u32]) -> io::Result<Vec<u32>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the peak resident memory of a process, in bytes.
    pub(crate) fn peak_memory(&self, pid: u32) -> io::Result<u64> {
        if self.is_real() { system::peak_memory(pid) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    /// Whether a library with this name is loaded, including a .NET library that contains native code.
    pub(crate) fn maps_file(&self, pid: u32, name: &str) -> bool {
        self.is_real() && system::has_module(pid, name)
    }

    /// Whether a process has exited.
    pub(crate) fn is_dead(&self, pid: u32) -> io::Result<bool> {
        Ok(self.facts(pid).is_err())
    }

    /// Addresses of its code: not available through any safe interface.
    pub(crate) fn code_mappings(&self, _: u32) -> io::Result<Vec<CodeMapping>> {
        Err(io::Error::other("code addresses are available on Linux only"))
    }

    /// Whether the program was compiled by NativeAOT: taken not to be, until evident from the runtime's replies.
    pub(crate) fn is_native_aot(&self, _: u32) -> Option<bool> {
        Some(false)
    }
}

fn refresh_kind() -> ProcessRefreshKind {
    let once = UpdateKind::OnlyIfNotSet;
    ProcessRefreshKind::nothing().with_cpu().with_memory().with_user(once).with_cmd(once).with_exe(once).with_environ(once)
}

impl Facts {
    fn of(process: &sysinfo::Process) -> Self {
        let text = |words: &[OsString]| words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let name = process.exe().map_or(process.name(), Path::as_os_str).to_string_lossy().into_owned();
        Self {
            key: Some(ProcessKey { pid: process.pid().as_u32(), started: process.start_time() }),
            name,
            program: process.exe().map(Path::to_owned),
            parent: process.parent().map(Pid::as_u32),
            arguments: text(process.cmd()),
            environment: text(process.environ()),
            account: system::account_of(process),
            cpu: Duration::from_millis(process.accumulated_cpu_time()),
            memory: process.memory(),
            private: system::private_memory(process),
            ..Self::default()
        }
    }

    /// Returns the variables of its environment. Windows keeps the current folders of drives in it, such as `=C:=C:\Users`.
    fn variables(&self) -> Vec<Variable> {
        let pairs = self.environment.iter().filter_map(|entry| entry.split_once('=')).filter(|(name, _)| !name.is_empty());
        pairs.map(|(name, value)| Variable { name: name.to_owned(), value: value.to_owned() }).collect()
    }

    pub(super) fn uid(&self) -> u32 {
        self.account.as_deref().and_then(|account| account.rsplit('-').next()?.parse().ok()).unwrap_or(0)
    }

    pub(super) fn arguments(&self) -> Vec<Vec<u8>> {
        if self.arguments.is_empty() {
            return vec![self.name.clone().into_bytes()];
        }
        self.arguments.iter().map(|argument| argument.clone().into_bytes()).collect()
    }

    /// Returns its directory for temporary files, or ours if its environment is not readable.
    pub(super) fn temporary_folder(&self) -> PathBuf {
        let variable = |name: &str| {
            let mut pairs = self.environment.iter().filter_map(|entry| entry.split_once('='));
            pairs.find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_empty()).map(|(_, value)| PathBuf::from(value))
        };
        served::TEMPORARY.iter().find_map(|name| variable(name)).unwrap_or_else(std::env::temp_dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_is_listed() {
        let (proc, pid) = (Proc::open(Path::new("")).unwrap(), std::process::id());
        let key = ProcessKey { pid, started: proc.stat(pid).unwrap().starttime };
        assert!(proc.exists(key) && !proc.exists(ProcessKey { started: key.started + 1, ..key }) && proc.stat(u32::MAX - 3).is_err());
        assert!(proc.list().unwrap().iter().any(|facts| facts.key == Some(key)));
    }
}
