//! What the system has of one process.
//!
//! Every look names a pid and may fail for reasons that are no error: the process ended, or belongs to another user. Callers treat a failure as "not
//! known", never as the end of a list. Text here is raw; it is sanitised where it becomes a value of [`crate::model`].

#[allow(dead_code, reason = "no path of a library is known here")]
#[path = "../proc/entry.rs"]
mod entry;
mod simulated;
#[allow(dead_code, reason = "no names of threads are known here")]
#[path = "../proc/threads.rs"]
mod threads;

use std::collections::BTreeSet;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use super::{served, system};
use crate::model::{CpuLimit, ProcessKey, RunState, ThreadUse};

pub(crate) use entry::entry_name;
pub(crate) use threads::Threads;

/// The processes of the machine, or simulated ones.
#[derive(Debug)]
pub(crate) enum Proc {
    /// Those of the machine.
    Machine(Mutex<System>),
    /// Those that a folder has facts of.
    Simulated(PathBuf),
}

/// Who a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The last number of what identifies its user.
    pub(crate) uid: u32,
    /// Its process id: the machine has but one namespace of them.
    pub(crate) ns_pid: u32,
}

/// When a process was started, and whether it runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    /// Seconds since the Unix epoch.
    pub(crate) starttime: u64,
    /// A letter as on Linux: one that is listed runs.
    pub(crate) state: char,
}

/// Code that is mapped into a process. None is known here.
#[derive(Debug)]
pub(crate) struct CodeMapping {
    pub(crate) range: Range<u64>,
    pub(crate) file_offset: u64,
    pub(crate) path: Vec<u8>,
}

/// What is known of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) key: Option<ProcessKey>,
    /// The pid that a simulated process has in its container.
    pub(super) ns_pid: Option<u32>,
    pub(super) name: String,
    /// The file of its program, where that is ours to look at.
    pub(super) program: Option<PathBuf>,
    pub(super) parent: Option<u32>,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<String>,
    /// What identifies its user: a number, on Windows a security identifier; `None` where the process is not ours to look at.
    pub(super) account: Option<String>,
    pub(super) cpu: Duration,
    /// Resident, bytes.
    pub(super) memory: u64,
    /// Writable memory of its own, bytes.
    pub(super) private: u64,
    pub(super) threads: u32,
    pub(super) is_running: Option<bool>,
    pub(super) container: Option<String>,
    pub(super) socket: Option<PathBuf>,
    pub(super) user: Option<String>,
}

impl Proc {
    /// The processes of the machine, or with a path those that the folder has facts of.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return Ok(Self::Machine(Mutex::new(System::new())));
        }
        if path.is_dir() { Ok(Self::Simulated(path.to_owned())) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Whether they are those of the machine.
    pub(crate) fn is_of_kernel(&self) -> bool {
        matches!(self, Self::Machine(_))
    }

    /// Every process.
    pub(super) fn list(&self) -> io::Result<Vec<Facts>> {
        match self {
            Self::Machine(system) => {
                let mut system = system.lock().unwrap_or_else(PoisonError::into_inner);
                system.refresh_processes_specifics(ProcessesToUpdate::All, true, wanted());
                let threads = system::thread_counts();
                let threads = |process: &sysinfo::Process| threads.get(&process.pid().as_u32()).copied().unwrap_or_default();
                Ok(system.processes().values().map(|process| Facts { threads: threads(process), ..Facts::of(process) }).collect())
            }
            Self::Simulated(folder) => simulated::list(folder),
        }
    }

    /// One process, as it is now.
    pub(super) fn facts(&self, pid: u32) -> io::Result<Facts> {
        match self {
            Self::Machine(system) => {
                let mut system = system.lock().unwrap_or_else(PoisonError::into_inner);
                let pid = Pid::from_u32(pid);
                system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, wanted());
                system.process(pid).map(Facts::of).ok_or_else(|| io::ErrorKind::NotFound.into())
            }
            Self::Simulated(folder) => simulated::read(folder, pid),
        }
    }

    /// Whether a process is there.
    pub(crate) fn shows(&self, key: ProcessKey) -> bool {
        self.stat(key.pid).is_ok_and(|stat| stat.starttime == key.started)
    }

    /// When it was started.
    pub(crate) fn stat(&self, pid: u32) -> io::Result<Stat> {
        let starttime = self.facts(pid)?.key.map_or(0, |key| key.started);
        Ok(Stat { starttime, state: 'R' })
    }

    pub(crate) fn identity(&self, pid: u32) -> io::Result<Identity> {
        let facts = self.facts(pid)?;
        Ok(Identity { uid: facts.uid(), ns_pid: facts.ns_pid.unwrap_or(pid) })
    }

    /// The known start-up state of its runtime.
    pub(crate) fn threads(&self, pid: u32) -> io::Result<Threads> {
        Ok(self.facts(pid)?.threads())
    }

    /// Whether its runtime waits at startup, as far as that is known.
    pub(crate) fn run_state(&self, pid: u32) -> RunState {
        self.facts(pid).map(|facts| facts.run_state()).unwrap_or_default()
    }

    /// Time since boot.
    pub(crate) fn uptime(&self) -> io::Result<Duration> {
        Ok(Duration::from_secs(System::uptime()))
    }

    /// The arguments, the program's name first.
    pub(crate) fn arguments(&self, pid: u32) -> io::Result<Vec<Vec<u8>>> {
        Ok(self.facts(pid)?.arguments())
    }

    /// Names of threads: no safe interface gives them.
    pub(crate) fn thread_names(&self, _: u32) -> io::Result<Vec<(u64, Vec<u8>)>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Time of all processors together that was not idle since boot.
    pub(crate) fn machine_busy(&self) -> io::Result<Duration> {
        if self.is_of_kernel() { system::machine_busy() } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    /// CPU limits of control groups, which are not here.
    pub(crate) fn cpu_limits(&self, _: u32) -> Vec<CpuLimit> {
        Vec::new()
    }

    /// The assemblies that are mapped: no safe interface gives them.
    pub(crate) fn assemblies(&self, _: u32) -> io::Result<BTreeSet<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Times of threads: no safe interface gives them.
    pub(crate) fn thread_times(&self, _: u32, _: usize) -> io::Result<Vec<ThreadUse>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Time of a process on processors so far, also that of its threads that have ended.
    pub(crate) fn cpu_time(&self, pid: u32) -> io::Result<Duration> {
        self.facts(pid).map(|facts| facts.cpu)
    }

    /// Times of threads: no safe interface gives them.
    pub(crate) fn scheduled_threads(&self, _: u32, _: usize) -> io::Result<Vec<(u32, [Duration; 2])>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The most memory that a process ever had resident, bytes.
    pub(crate) fn peak_memory(&self, pid: u32) -> io::Result<u64> {
        if self.is_of_kernel() { system::peak_memory(pid) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    /// Whether a library of this name is loaded, be it one of .NET that holds native code.
    pub(crate) fn maps_file(&self, pid: u32, name: &str) -> bool {
        self.is_of_kernel() && system::has_module(pid, name)
    }

    /// Whether a process has ended.
    pub(crate) fn is_dead(&self, pid: u32) -> io::Result<bool> {
        Ok(self.facts(pid).is_err())
    }

    /// Addresses of its code: no safe interface gives them.
    pub(crate) fn code(&self, _: u32) -> io::Result<Vec<Range<u64>>> {
        Err(io::Error::other("where a process has its code is known on Linux only"))
    }

    /// Whether its program was compiled to native code: not known here, its answers show it.
    pub(crate) fn is_native_aot(&self, _: u32) -> bool {
        false
    }
}

fn wanted() -> ProcessRefreshKind {
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
            private: process.virtual_memory(),
            ..Self::default()
        }
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

    /// A runtime that nothing asked to wait at startup runs; of others it is not known.
    pub(super) fn threads(&self) -> Threads {
        match self.is_running {
            Some(started) => Threads { runtime: true, server: true, started },
            None => Threads { runtime: true, server: false, started: !self.environment.is_empty() && !self.asks_to_suspend() },
        }
    }

    /// Whether its runtime waits at startup: of one that was asked to, it is not known whether it was resumed.
    pub(super) fn run_state(&self) -> RunState {
        match self.is_running {
            Some(true) => RunState::Running,
            Some(false) => RunState::Suspended,
            None if self.asks_to_suspend() => RunState::Unknown,
            None => RunState::Running,
        }
    }

    /// Where it puts temporary files; ours where its environment is not shown.
    pub(super) fn temporary_folder(&self) -> PathBuf {
        let variable = |name: &str| {
            let is_it =
                |entry: &&String| entry.split_once('=').is_some_and(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_empty());
            self.environment.iter().find(is_it)?.split_once('=').map(|(_, value)| PathBuf::from(value))
        };
        served::TEMPORARY.iter().find_map(|name| variable(name)).unwrap_or_else(std::env::temp_dir)
    }

    /// An assignment that the runtime reads, by the variable's name behind `DOTNET_` or `COMPlus_`, with its value. Upper and lower case are the same.
    fn assignment(&self, name: &str) -> Option<(&str, &str)> {
        ["DOTNET_", "COMPlus_"].iter().find_map(|prefix| {
            let wanted = format!("{prefix}{name}");
            let assignments = self.environment.iter().filter_map(|entry| Some((entry.as_str(), entry.split_once('=')?)));
            assignments.filter(|(_, (key, _))| key.eq_ignore_ascii_case(&wanted)).map(|(entry, (_, value))| (entry, value)).next()
        })
    }

    fn switch(&self, name: &str) -> Option<&str> {
        self.assignment(name).map(|(_, value)| value)
    }

    /// The assignment that switches diagnostics off, where the program is evidently one of .NET: what it starts, which need not be, has the same environment.
    pub(super) fn diagnostics_off(&self) -> Option<&str> {
        let is_zero = |value: &str| {
            let digits = value.trim_start_matches("0x");
            !digits.is_empty() && digits.bytes().all(|digit| digit == b'0')
        };
        let mut switches = ["EnableDiagnostics", "EnableDiagnostics_IPC"].into_iter().filter_map(|name| self.assignment(name));
        let (off, _) = switches.find(|(_, value)| is_zero(value))?;
        self.is_dotnet().then_some(off)
    }

    /// Whether its program is `dotnet`, or has the configuration of a runtime beside it; a single file has none. A runtime beside it may be that of another
    /// program in the same folder.
    fn is_dotnet(&self) -> bool {
        let Some(program) = &self.program else { return false };
        let Some(name) = program.file_name().and_then(|name| name.to_str()) else { return false };
        let name = name.strip_suffix(EXE_SUFFIX).unwrap_or(name);
        name.eq_ignore_ascii_case("dotnet") || program.with_file_name(format!("{name}.runtimeconfig.json")).is_file()
    }

    fn asks_to_suspend(&self) -> bool {
        let is_set = |value: &str| !value.trim_start_matches("0x").trim_matches('0').is_empty();
        self.switch("DiagnosticPorts").is_some_and(|ports| !ports.is_empty())
            || self.switch("DefaultDiagnosticPortSuspend").is_some_and(is_set)
    }

    /// Whether it was started with this diagnostic port, among others.
    pub(super) fn has_port(&self, port: &str) -> bool {
        let ports = self.switch("DiagnosticPorts").unwrap_or_default();
        ports.split(';').filter_map(|entry| entry.split(',').next()).any(|name| name.eq_ignore_ascii_case(port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_environment_says_of_the_start() {
        let facts = |entries: &[&str]| Facts { environment: entries.iter().map(|entry| (*entry).to_owned()).collect(), ..Facts::default() };
        for (entries, asks) in [
            (&["PATH=x"][..], false),
            (&["DOTNET_DefaultDiagnosticPortSuspend=0"], false),
            (&["dotnet_defaultdiagnosticportsuspend=1"], true),
            (&["COMPlus_DefaultDiagnosticPortSuspend=0x1"], true),
            (&["DOTNET_DiagnosticPorts="], false),
            (&["DOTNET_DiagnosticPorts=mine,nosuspend"], true),
        ] {
            let state = if asks { RunState::Unknown } else { RunState::Running };
            assert_eq!((facts(entries).asks_to_suspend(), facts(entries).run_state()), (asks, state), "{entries:?}");
            assert_eq!(facts(entries).threads().started, !asks, "{entries:?}");
        }
        assert!(facts(&["A=1", "DOTNET_DiagnosticPorts=other;Mine,suspend,connect"]).has_port("mine"));
        assert!(!facts(&["DOTNET_DiagnosticPorts=mine2"]).has_port("mine"));
        assert!(!facts(&[]).threads().started, "nothing is known of one whose environment is not ours to read");
    }

    #[test]
    fn a_program_of_net_that_is_not_to_be_looked_at_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let facts = |program: &str, entry: &str| {
            let program = Some(folder.path().join(format!("{program}{EXE_SUFFIX}")));
            Facts { program, environment: vec![entry.to_owned()], ..Facts::default() }
        };
        let off = |program: &str, entry: &str| facts(program, entry).diagnostics_off().map(str::to_owned);
        for entry in ["DOTNET_EnableDiagnostics=0", "complus_enablediagnostics=0x0", "DOTNET_EnableDiagnostics_IPC=00"] {
            assert_eq!(off("dotnet", entry).as_deref(), Some(entry));
            assert_eq!(off("shop", entry), None, "it need not be a program of .NET");
        }
        for entry in ["DOTNET_EnableDiagnostics=1", "DOTNET_EnableDiagnostics=", "DOTNET_EnableDiagnostics=0x", "EnableDiagnostics=0"] {
            assert_eq!(off("dotnet", entry), None, "{entry}");
        }
        std::fs::write(folder.path().join("coreclr.dll"), "").unwrap();
        assert_eq!(off("shop", "DOTNET_EnableDiagnostics=0"), None, "the runtime may be that of another program");
        std::fs::write(folder.path().join("shop.runtimeconfig.json"), "{}").unwrap();
        assert!(off("shop", "DOTNET_EnableDiagnostics=0").is_some());
    }

    #[test]
    fn our_own_process_is_shown() {
        let proc = Proc::open(Path::new("")).unwrap();
        let pid = std::process::id();
        let started = proc.stat(pid).unwrap().starttime;
        assert!(proc.shows(ProcessKey { pid, started }) && !proc.shows(ProcessKey { pid, started: started + 1 }));
        assert!(proc.list().unwrap().iter().any(|facts| facts.key == Some(ProcessKey { pid, started })));
        assert!(proc.stat(u32::MAX - 3).is_err());
    }
}
