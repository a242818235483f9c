//! Discovery: all visible .NET processes, whether or not they can be attached to.
//!
//! A scan lists /proc and the directories where runtimes create their sockets, matches the two by pid, start time and owner, and explains what does
//! not match: a socket without a process is stale; a runtime without a socket has its diagnostics switched off or is not accessible to us, or
//! another user has put something in the socket's place. A scan opens no connection.

mod attach_error;
mod process_cache;
mod processes;
mod sockets;
mod users;

use std::cmp::Reverse;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashSet};
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};

use self::process_cache::ProcessCache;
use self::processes::{ProcessScan, ScannedProcess, SocketDir};
use self::sockets::{Candidate, Sockets};
use crate::model::{Process, ProcessKey};
use crate::net::endpoint::SocketName;
use crate::net::proc::{Proc, ticks};
use crate::sorting::CompactSort;

/// A runtime creates its socket within milliseconds of its start; a younger process without one is not assessed yet.
const STARTUP_GRACE: Duration = Duration::from_secs(2);
/// Time budget per scan for reading memory maps, the one expensive read. The remaining processes are left to the next scan.
const MAPS_TIME_BUDGET: Duration = Duration::from_millis(10);
/// Number of files that are open at the same time during a scan.
const SCAN_FILES: usize = 4;
/// Maximum number of stale sockets listed; the others are counted. Those of our own user are listed first, then the newest.
const MAX_STALE: usize = 64;

/// Where to look for processes. [`Sources::machine`] is the real machine; tests and the demo supply directory trees that look like one.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The proc file system.
    pub proc: PathBuf,
    /// Where a runtime without a `TMPDIR` creates its socket.
    pub tmp: PathBuf,
    /// Our own `TMPDIR`.
    pub tmpdir: Option<PathBuf>,
    /// The file with user names.
    pub passwd: PathBuf,
}

impl Sources {
    /// Returns the sources of this machine.
    pub fn machine() -> Self {
        Self {
            proc: "/proc".into(),
            tmp: "/tmp".into(),
            tmpdir: std::env::var_os("TMPDIR").filter(|value| !value.is_empty()).map(PathBuf::from),
            passwd: "/etc/passwd".into(),
        }
    }

    /// Returns the sources of a tree that looks like a machine: `proc`, `tmp` and `passwd` below `dir`, as simulated runtimes have it.
    pub fn below(dir: &Path) -> Self {
        Self { proc: dir.join("proc"), tmp: dir.join("tmp"), tmpdir: None, passwd: dir.join("passwd") }
    }

    /// Returns the path of the socket that the runtime of a process started with our environment would create. `None` if there is no such process.
    pub fn usual_socket(&self, pid: u32) -> Option<PathBuf> {
        let started = Proc::open(&self.proc).ok()?.stat(pid).ok()?.starttime;
        Some(self.usual_directories().next()?.join(SocketName { pid, key: started }.to_string()))
    }

    /// Returns whether a process that may connect to our ports was started with this one in its environment: that process, or its children, may
    /// connect at any time. Processes of other users may not, whatever is in their environment.
    pub fn any_started_with_port(&self, port: &Path) -> bool {
        let Ok(proc) = Proc::open(&self.proc) else { return false };
        let may_connect = |pid| proc.identity(pid).is_ok_and(|identity| [0, geteuid().as_raw()].contains(&identity.uid));
        let mut any = false;
        // If processes cannot be listed, none is waited for.
        let _ = proc.pids(|pid, _| any = any || may_connect(pid) && proc.environ(pid).is_ok_and(|environ| environ.has_port(port)));
        any
    }

    /// Returns the directories that are always searched.
    pub fn usual_directories(&self) -> impl Iterator<Item = &Path> {
        self.tmpdir.as_deref().into_iter().chain([self.tmp.as_path()])
    }
}

/// A file with the name of a diagnostic socket.
#[derive(Debug)]
struct Socket {
    path: PathBuf,
    candidate: Candidate,
    /// Whether it is a socket owned by the user of the process with its name. Connecting shows whether that process listens on it.
    is_own: bool,
}

/// Finds .NET processes, repeatedly; caches data between scans.
#[derive(Debug)]
pub struct Scanner {
    sources: Sources,
    proc: Arc<Proc>,
    process_scan: ProcessScan,
    process_cache: ProcessCache,
    /// The sockets found by the last scan: a directory that no process refers to any more may still contain stale ones.
    sockets: Sockets,
    more_stale: usize,
}

impl Scanner {
    /// Opens the proc file system.
    ///
    /// # Errors
    /// If it is missing or cannot be read; the error names it.
    pub fn new(sources: Sources) -> io::Result<Self> {
        let name =
            |error: io::Error| io::Error::new(error.kind(), format!("cannot read {}: {}", sources.proc.display(), with_limit(&error)));
        let proc = Arc::new(Proc::open(&sources.proc).map_err(name)?);
        let process_cache = ProcessCache::new(&sources.passwd, proc.uptime().map_err(name)?);
        Ok(Self { sources, proc, process_scan: ProcessScan::default(), process_cache, sockets: Sockets::default(), more_stale: 0 })
    }

    pub(super) fn proc(&self) -> Arc<Proc> {
        Arc::clone(&self.proc)
    }

    /// Returns the number of stale sockets at the last scan that have no row.
    pub(super) fn more_stale_sockets(&self) -> usize {
        self.more_stale
    }

    /// Scans for processes. `now` is only used to measure CPU time between two scans. Blocks on the file system.
    ///
    /// # Errors
    /// If the proc file system cannot be listed, or we may not open enough files. A single process that cannot be read is not an error.
    pub fn scan(&mut self, now: Instant) -> io::Result<Vec<Process>> {
        self.check_open_files()?;
        let at = ScanTime { now, uptime: self.proc.uptime()? };
        self.process_scan.update(&self.proc, now)?;
        let (mut sockets, mut unmatched) = self.match_sockets(at);
        self.find_runtime_libraries(&sockets, at);

        let mut rows = Vec::with_capacity(sockets.len());
        for known in self.process_scan.iter() {
            let socket = sockets.remove(&known.key);
            if !(has_socket(socket.as_ref()) || known.has_runtime() && at.age(known.key) > STARTUP_GRACE) {
                continue;
            }
            match (known.stat(&self.proc), socket) {
                (Some(stat), socket) => rows.push(self.process_cache.row(&self.proc, known, socket, &stat, at)),
                (None, Some(socket)) if socket.is_own => unmatched.push((known.socket_name(), socket)),
                (None, _) => {}
            }
        }
        rows.extend(self.stale_rows(unmatched, at));
        rows.compact_sort_by_key(|row| row.key);
        self.process_cache.keep(&rows);
        Ok(rows)
    }

    /// Checks that the files of a scan can be opened. Otherwise, processes would only be missing, as if they were inaccessible.
    fn check_open_files(&self) -> io::Result<()> {
        self.proc.check_open_files(SCAN_FILES).map_err(|error| {
            io::Error::new(error.kind(), format!("the processes of this machine cannot be listed: {}", with_limit(&error)))
        })
    }

    /// Builds the rows of sockets without a process. Their number is bounded, since any user with write access to a directory can create many.
    fn stale_rows(&mut self, mut unmatched: Vec<(SocketName, Socket)>, at: ScanTime) -> Vec<Process> {
        let our_uid = geteuid().as_raw();
        // Another user's socket may belong to a process that we cannot see.
        unmatched.retain(|(name, Socket { candidate, .. })| {
            candidate.is_socket && (candidate.uid == our_uid || our_uid == 0) && is_settled(*name, at.uptime)
        });
        if unmatched.len() > MAX_STALE {
            unmatched.compact_sort_by_key(|(name, Socket { candidate, .. })| (candidate.uid != our_uid, Reverse(candidate.made), name.pid));
        }
        self.more_stale = unmatched.len().saturating_sub(MAX_STALE);
        unmatched.truncate(MAX_STALE);
        let is_pid_reused = |name: SocketName| self.process_scan.get(name.pid).is_some_and(|known| known.key.started != name.key);
        unmatched.into_iter().map(|(name, socket)| self.process_cache.stale_row(name, socket, is_pid_reused(name))).collect()
    }

    /// Matches sockets and processes by pid, start time and owner; the remaining sockets have no visible process. The directory from the process's
    /// own environment is tried first: any other may contain a file of the same name created by another user.
    fn match_sockets(&mut self, at: ScanTime) -> (HashMap<ProcessKey, Socket>, Vec<(SocketName, Socket)>) {
        let before = std::mem::take(&mut self.sockets);
        self.process_scan.inspect(&self.proc, &self.sources.tmp, at);
        let mut sockets = Sockets::default();
        sockets.list(self.sources.usual_directories().chain(before.directories()), &self.proc, &before);
        sockets.list_socket_dirs(&self.process_scan, &self.proc, &before);

        let owns =
            |known: &ScannedProcess, candidate: Candidate| candidate.is_socket && candidate.uid == self.proc.owner_of_sockets(known.uid);
        let (mut pairs, mut taken) = (HashMap::default(), HashSet::default());
        for known in self.process_scan.iter() {
            let name = known.socket_name();
            if let SocketDir::Directory { id, path, .. } = &known.socket_dir
                && let Some(candidate) = sockets.get(*id, name).filter(|candidate| owns(known, *candidate))
            {
                pairs.insert(known.key, Socket { path: path.join(name.to_string()), candidate, is_own: true });
                taken.insert((*id, name));
            }
        }
        // A socket may be outside the directory in its process's environment, or the environment may be unreadable.
        let mut unmatched = Vec::new();
        let mut rest = sockets.iter().filter(|(directory, name, _)| !taken.contains(&(*directory, *name))).peekable();
        let names = rest.peek().map(|_| self.process_scan.by_socket_name()).unwrap_or_default();
        for (directory, name, candidate) in rest {
            let Some(path) = sockets.path_of(directory).map(|path| path.join(name.to_string())) else { continue };
            let Some(named) = names.get(&name) else {
                unmatched.push((name, Socket { path, candidate, is_own: false }));
                continue;
            };
            let without: Vec<_> = named.iter().filter(|known| !has_socket(pairs.get(&known.key))).collect();
            if let Some(known) = without.iter().find(|known| owns(known, candidate)) {
                let path = known.path_in(directory).unwrap_or(path);
                pairs.insert(known.key, Socket { path, candidate, is_own: true });
                continue;
            }
            for known in without {
                pairs.entry(known.key).or_insert_with(|| Socket { path: path.clone(), candidate, is_own: false });
            }
        }
        self.sockets = sockets;
        (pairs, unmatched)
    }

    /// Searches the memory maps of processes without any other sign of a runtime. Versions before 6.0 do not name their threads.
    fn find_runtime_libraries(&mut self, sockets: &HashMap<ProcessKey, Socket>, at: ScanTime) {
        let deadline = Instant::now() + MAPS_TIME_BUDGET;
        let candidates = self.process_scan.iter_mut().filter(|known| {
            known.library.is_none()
                && known.has_threads
                && !known.threads.runtime
                && !has_socket(sockets.get(&known.key))
                && at.age(known.key) > STARTUP_GRACE
        });
        for known in candidates {
            known.library = Some(self.proc.runtime_library(known.key.pid).ok().flatten());
            if Instant::now() > deadline {
                break;
            }
        }
    }
}

/// Returns the text of an error, with the limit of open files if it is exceeded.
fn with_limit(error: &io::Error) -> String {
    match getrlimit(Resource::Nofile).current.filter(|_| error.raw_os_error() == Some(Errno::MFILE.raw_os_error())) {
        Some(limit) => format!("{error}: `ulimit -n` is {limit}, and 64 are enough for a few processes"),
        None => error.to_string(),
    }
}

fn has_socket(found: Option<&Socket>) -> bool {
    found.is_some_and(|socket| socket.is_own)
}

/// Returns whether the socket's process started so long ago, or during another boot, that it would be visible if it still ran.
fn is_settled(name: SocketName, uptime: Duration) -> bool {
    since_boot(ProcessKey { pid: name.pid, started: name.key }).abs_diff(uptime) > STARTUP_GRACE
}

/// Time of a scan, on the two clocks it needs.
#[derive(Debug, Clone, Copy)]
struct ScanTime {
    now: Instant,
    uptime: Duration,
}

impl ScanTime {
    /// Returns the time since a process started.
    fn age(self, key: ProcessKey) -> Duration {
        self.uptime.saturating_sub(since_boot(key))
    }
}

/// Returns the start time of a process, as time since boot.
pub(super) fn since_boot(key: ProcessKey) -> Duration {
    ticks(key.started)
}

#[cfg(test)]
mod tests;
