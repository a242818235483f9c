//! Builds the rows: facts of .NET processes cached across scans, and CPU time between two scans.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use foldhash::{HashMap, HashSet};
use procfs::process::Stat;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::processes::ScannedProcess;
use super::users::Users;
use super::{ScanTime, Socket, UnmatchedSocket, attach_error, since_boot};
use crate::ipc::RuntimeVersion;
use crate::model::{Contact, Process, ProcessKey, RunState, SafeText, Usage, shown_command_line};
use crate::net::proc::{self, Proc, entry_name, version_of};

/// CPU time is counted in ticks of 10 ms: over a shorter interval than this a percentage would be noise.
const MIN_CPU_INTERVAL: Duration = Duration::from_millis(400);
/// The first percentage may be rough: a list that is printed once does not wait longer.
const FIRST_CPU_INTERVAL: Duration = Duration::from_millis(90);
/// A process that is still waiting in its diagnostic server after this time is suspended, whatever its environment contains.
const MAX_STARTUP_TIME: Duration = Duration::from_secs(5);

/// Cache of all processes listed by the last scan.
#[derive(Debug)]
pub(super) struct ProcessCache {
    known: HashMap<ProcessKey, CachedProcess>,
    users: Users,
    our_uid: u32,
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
    cpu: Cpu,
    cached_contact: Option<CachedContact>,
}

/// Cached result of whether a process can be attached to.
#[derive(Debug)]
struct CachedContact {
    /// Cache key: path of the process's socket, and path of a foreign file in its place.
    of: (Option<PathBuf>, Option<PathBuf>),
    contact: Contact,
}

#[derive(Debug)]
struct Cpu {
    ticks: u64,
    at: Instant,
    percent: Option<f32>,
}

impl ProcessCache {
    pub(super) fn new(passwd: &Path, uptime: Duration) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            known: HashMap::default(),
            users: Users::read(passwd),
            our_uid: rustix::process::geteuid().as_raw(),
            boot: now.saturating_sub(uptime),
        }
    }

    /// Builds the row of a process that hosts a runtime, with its socket if it has one.
    pub(super) fn row(&mut self, proc: &Proc, known: &ScannedProcess, socket: Option<Socket>, stat: &Stat, at: ScanTime) -> Process {
        let user = self.users.name(known.uid);
        let has_socket = matches!(socket, Some(Socket::Own { .. }));
        let cached = self.known.entry(known.key).or_insert_with(|| CachedProcess::read(proc, known, has_socket, stat, at.now));
        let (path, foreign) = match socket {
            Some(Socket::Own { path, .. }) => (Some(path), None),
            Some(Socket::Foreign { path, candidate }) => (None, Some((path, candidate))),
            None => (None, None),
        };
        let of = (path, foreign.as_ref().map(|(path, _)| path.clone()));
        let cached_contact = cached.cached_contact.take().filter(|cached_contact| cached_contact.of == of);
        let CachedContact { of: (socket, _), contact } = cached.cached_contact.insert(cached_contact.unwrap_or_else(|| {
            let contact = match (&of.0, foreign) {
                (Some(path), _) if may_connect(path) => Contact::Unknown,
                (Some(_), _) => attach_error::denied(known.uid, user),
                (None, Some((path, candidate))) => attach_error::foreign(&path, candidate, known.uid),
                (None, None) => attach_error::without_socket(proc, known, self.our_uid, user),
            };
            CachedContact { of, contact }
        }));
        let waits = known.threads.is_suspended() && (known.is_configured_to_suspend || at.age(known.key) > MAX_STARTUP_TIME);
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
            socket: socket.clone(),
            started_unix_ms: millis(self.boot + since_boot(known.key)),
            usage: Usage { data_bytes: proc.data_bytes(known.key.pid).unwrap_or(0), ..cached.cpu.usage(stat, at.now) },
            run_state: if waits { RunState::Suspended } else { RunState::Running },
            contact: contact.clone(),
            ..Process::new(known.key)
        }
    }

    /// Builds the row of a socket without a process.
    pub(super) fn stale_row(&self, UnmatchedSocket { name, path, candidate }: &UnmatchedSocket, is_pid_reused: bool) -> Process {
        Process {
            name: "(gone)".into(),
            uid: candidate.uid,
            user: self.users.name(candidate.uid).cloned(),
            socket: Some(path.clone()),
            // The key may be from an earlier boot; the file was created when its process started.
            started_unix_ms: millis(candidate.made),
            contact: attach_error::stale(*name, is_pid_reused),
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
            native_aot: proc.is_native_aot(known.key.pid),
            command_line: shown_command_line(&String::from_utf8_lossy(&arguments.join(&b' '))),
            container: proc.container(known.key.pid).map(SafeText::from),
            cpu: Cpu { ticks: stat.utime + stat.stime, at: now, percent: None },
            cached_contact: None,
        }
    }
}

impl Cpu {
    fn usage(&mut self, stat: &Stat, now: Instant) -> Usage {
        let ticks = stat.utime + stat.stime;
        let span = now.saturating_duration_since(self.at);
        if span >= if self.percent.is_some() { MIN_CPU_INTERVAL } else { FIRST_CPU_INTERVAL } {
            let used = proc::ticks(ticks.saturating_sub(self.ticks)).as_secs_f64();
            *self = Self { ticks, at: now, percent: Some((100.0 * used / span.as_secs_f64()) as f32) };
        }
        let threads = u32::try_from(stat.num_threads).unwrap_or(0);
        Usage { cpu_percent: self.percent, rss_bytes: stat.rss * procfs::page_size(), threads, ..Usage::default() }
    }
}

/// Returns whether a socket may be connected to, which requires write permission. A vanished socket is not a permission problem.
fn may_connect(path: &Path) -> bool {
    !matches!(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS), Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
