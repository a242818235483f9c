//! Builds the rows: facts of .NET processes, cached across scans.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use foldhash::{HashMap, HashSet};
use procfs::process::Stat;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::attach_error::Observer;
use super::processes::ScannedProcess;
use super::users::Users;
use super::{ScanTime, Socket, attach_error, since_boot};
use crate::ipc::RuntimeVersion;
use crate::model::{Contact, Process, ProcessKey, RunState, SafeText, Usage, shown_command_line};
use crate::net::cpu_usage::CpuUsage;
use crate::net::endpoint::SocketName;
use crate::net::proc::{self, Proc, entry_name, version_of};
use crate::net::resolve;

/// A process that is still waiting in its diagnostic server after this time is suspended, whatever its environment contains.
const MAX_STARTUP_TIME: Duration = Duration::from_secs(5);

/// Cache of all processes listed by the last scan.
#[derive(Debug)]
pub(super) struct ProcessCache {
    known: HashMap<ProcessKey, CachedProcess>,
    users: Users,
    observer: Observer,
    /// Boot time of the machine, since the Unix epoch.
    boot: Duration,
}

#[derive(Debug)]
struct CachedProcess {
    name: SafeText,
    command_line: SafeText,
    /// From the path or content of the runtime library, if the runtime does not report it: one older than 6.0, or one without a socket.
    runtime: Option<RuntimeVersion>,
    /// From the exports of its program file.
    native_aot: bool,
    container: Option<SafeText>,
    cpu: CpuUsage,
}

impl ProcessCache {
    pub(super) fn new(passwd: &Path, uptime: Duration) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { known: HashMap::default(), users: Users::read(passwd), observer: Observer::new(), boot: now.saturating_sub(uptime) }
    }

    /// Builds the row of a process that hosts a runtime, with its socket if it has one.
    pub(super) fn row(&mut self, proc: &Proc, known: &ScannedProcess, socket: Option<Socket>, stat: &Stat, at: ScanTime) -> Process {
        let user = self.users.name(known.uid);
        let has_socket = socket.as_ref().is_some_and(|socket| socket.is_own);
        let cached = self.known.entry(known.key).or_insert_with(|| CachedProcess::read(proc, known, has_socket, stat, at.now));
        let (socket, contact) = match socket {
            Some(Socket { path, is_own: true, .. }) => {
                let contact = if may_connect(&path, proc) { Contact::Unknown } else { self.observer.denied(known.uid, user) };
                (Some(path), contact)
            }
            Some(Socket { path, candidate, .. }) => (None, attach_error::foreign(&path, candidate, known.uid)),
            None => (None, attach_error::without_socket(proc, known, self.observer, user)),
        };
        // NativeAOT of .NET 8 does not name its threads. Suspended, it only has the main thread and that of its diagnostic server.
        let is_bare = cached.native_aot && known.is_configured_to_suspend && stat.num_threads == 2;
        let waits = is_bare || known.threads.is_suspended() && (known.is_configured_to_suspend || at.age(known.key) > MAX_STARTUP_TIME);
        Process {
            parent: u32::try_from(stat.ppid).ok().filter(|parent| *parent > 0),
            ns_pid: known.ns_pid,
            name: cached.name.clone(),
            runtime: cached.runtime.clone(),
            native_aot: cached.native_aot,
            command_line: cached.command_line.clone(),
            uid: known.uid,
            user: user.cloned(),
            container: cached.container.clone(),
            socket,
            started_unix_ms: millis(self.boot + since_boot(known.key)),
            usage: Usage {
                cpu_percent: cached.cpu.percent(cpu_time(stat), at.now),
                rss_bytes: stat.rss * procfs::page_size(),
                data_bytes: proc.data_bytes(known.key.pid).unwrap_or(0),
                threads: u32::try_from(stat.num_threads).unwrap_or(0),
                stopper: proc.stopper(known.key.pid, stat),
            },
            run_state: if waits { RunState::Suspended } else { RunState::Running },
            contact,
            ..Process::new(known.key)
        }
    }

    /// Builds the row of a socket without a process.
    pub(super) fn stale_row(&self, name: SocketName, Socket { path, candidate, .. }: Socket, is_pid_reused: bool) -> Process {
        Process {
            name: "(gone)".into(),
            uid: candidate.uid,
            user: self.users.name(candidate.uid).cloned(),
            socket: Some(path),
            // The key may be from an earlier boot; the file was created when its process started.
            started_unix_ms: millis(candidate.made),
            contact: attach_error::stale(name, is_pid_reused),
            ..Process::new(ProcessKey { pid: name.pid, started: name.key })
        }
    }

    /// Forgets processes that are no longer listed.
    pub(super) fn keep(&mut self, rows: &[Process]) {
        let listed: HashSet<_> = rows.iter().map(|row| row.key).collect();
        self.known.retain(|key, _| listed.contains(key));
    }
}

impl CachedProcess {
    fn read(proc: &Proc, known: &ScannedProcess, has_socket: bool, stat: &Stat, now: Instant) -> Self {
        let arguments = proc.arguments(known.key.pid).unwrap_or_default();
        let reports_version = has_socket && known.threads.runtime;
        let library = if reports_version { None } else { proc.runtime_library(known.key.pid).ok().flatten() };
        Self {
            name: SafeText::from_bytes(entry_name(&arguments).unwrap_or(stat.comm.as_bytes())),
            runtime: library.and_then(|library| version_of(&library).or_else(|| proc.version_in(known.key.pid, &library))),
            native_aot: proc.is_native_aot(known.key.pid).unwrap_or_default(),
            command_line: shown_command_line(&String::from_utf8_lossy(&arguments.join(&b' '))),
            container: proc.container(known.key.pid).map(SafeText::from),
            cpu: CpuUsage::new(cpu_time(stat), now),
        }
    }
}

fn cpu_time(stat: &Stat) -> Duration {
    proc::ticks(stat.utime + stat.stime)
}

/// Returns whether a socket may be connected to, which requires write permission. A vanished socket is not a permission problem.
fn may_connect(path: &Path, proc: &Proc) -> bool {
    if proc.split_root(path).is_none() {
        return may_write(path);
    }
    // The kernel would follow the path over any file system that the process has mounted since.
    resolve::locate(path, Some(proc)).map_or(true, |found| may_write(Path::new(&format!("/proc/self/fd/{}", found.handle.as_raw_fd()))))
}

fn may_write(path: &Path) -> bool {
    !matches!(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS), Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
