//! Discovery: every .NET process that can be seen, whether or not it can be attached to.
//!
//! A scan lists /proc and the directories where runtimes put their sockets, pairs the two by pid and start time, and says of what does not pair why:
//! a socket without a process is stale, a runtime without a socket has its diagnostics switched off, or is not ours to see. It opens no connection.

mod census;
mod moment;
mod sockets;
mod tenants;
mod users;
mod verdict;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use self::census::{Census, Home};
use self::moment::{Moment, since_boot};
use self::sockets::Sockets;
use self::tenants::Tenants;
use crate::model::{Process, ProcessKey};
use crate::net::endpoint::SocketName;
use crate::net::proc::Proc;

/// A runtime makes its socket within milliseconds of its start; a younger process without one is not judged yet.
const SETTLED: Duration = Duration::from_secs(2);
/// How much of a scan may go to reading memory maps, the one costly read. What is left over waits for the next scan.
const MAPS_TIME: Duration = Duration::from_millis(10);

/// Where to look for processes. [`Sources::machine`] is the real thing; tests and the demo give trees that look like it.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The proc file system.
    pub proc: PathBuf,
    /// Where a runtime without a `TMPDIR` puts its socket.
    pub tmp: PathBuf,
    /// Our own `TMPDIR`.
    pub tmpdir: Option<PathBuf>,
    /// Names of users.
    pub passwd: PathBuf,
}

impl Sources {
    /// The machine that we run on.
    pub fn machine() -> Self {
        Self {
            proc: "/proc".into(),
            tmp: "/tmp".into(),
            tmpdir: std::env::var_os("TMPDIR").filter(|value| !value.is_empty()).map(PathBuf::from),
            passwd: "/etc/passwd".into(),
        }
    }

    /// A tree that looks like a machine: `proc`, `tmp` and `passwd` below `dir`, as simulated runtimes have it.
    pub fn below(dir: &Path) -> Self {
        Self { proc: dir.join("proc"), tmp: dir.join("tmp"), tmpdir: None, passwd: dir.join("passwd") }
    }

    /// The directories that are searched whoever lives there.
    pub fn usual_directories(&self) -> impl Iterator<Item = &Path> {
        self.tmpdir.as_deref().into_iter().chain([self.tmp.as_path()])
    }
}

/// Finds .NET processes again and again; what it learned it keeps from scan to scan.
#[derive(Debug)]
pub struct Scanner {
    sources: Sources,
    proc: Arc<Proc>,
    census: Census,
    tenants: Tenants,
    /// Where sockets lay at the last scan: a directory that nobody names any more may still have those of the dead.
    directories: Vec<PathBuf>,
}

impl Scanner {
    /// Opens the proc file system.
    ///
    /// # Errors
    /// When it is not there or cannot be read; the error names it.
    pub fn new(sources: Sources) -> io::Result<Self> {
        let name = |error: io::Error| io::Error::new(error.kind(), format!("cannot read {}: {error}", sources.proc.display()));
        let proc = Arc::new(Proc::open(&sources.proc).map_err(name)?);
        let tenants = Tenants::new(&sources.passwd, proc.uptime().map_err(name)?);
        Ok(Self { sources, proc, census: Census::default(), tenants, directories: Vec::new() })
    }

    /// The proc file system that it looks at.
    pub(super) fn proc(&self) -> Arc<Proc> {
        Arc::clone(&self.proc)
    }

    /// Looks now. `now` only measures the time between two scans, for processor time. Blocks on the file system.
    ///
    /// # Errors
    /// When the proc file system cannot be listed. A single process that cannot be read is no error.
    pub fn scan(&mut self, now: Instant) -> io::Result<Vec<Process>> {
        let at = Moment { now, uptime: self.proc.uptime()? };
        self.census.count(&self.proc, now)?;
        let (mut sockets, mut strays) = self.pair(at);
        self.look_for_libraries(&sockets, at);

        let mut rows = Vec::with_capacity(sockets.len() + strays.len());
        for known in self.census.iter() {
            let socket = sockets.remove(&known.key);
            if socket.is_none() && !(known.has_runtime() && at.age(known.key) > SETTLED) {
                continue;
            }
            match known.stat(&self.proc) {
                Some(stat) => rows.push(self.tenants.row(&self.proc, known, socket, &stat, at)),
                None => strays.extend(socket.map(|path| (known.socket_name(), path))),
            }
        }
        for (name, path) in strays {
            if is_settled(name, at.uptime) {
                let lives_on = self.census.get(name.pid).is_some_and(|known| known.key.started != name.key);
                rows.extend(self.tenants.stale_row(name, path, lives_on));
            }
        }
        rows.sort_unstable_by_key(|row| row.key);
        self.tenants.keep(&rows);
        Ok(rows)
    }

    /// Pairs sockets and processes by pid and start time; what is left over has no process that we see.
    fn pair(&mut self, at: Moment) -> (FxHashMap<ProcessKey, PathBuf>, Vec<(SocketName, PathBuf)>) {
        let mut sockets = Sockets::default();
        sockets.list(self.sources.usual_directories().chain(self.directories.iter().map(PathBuf::as_path)));
        let mut pairs = FxHashMap::default();
        // Outside of pid namespaces a name is one process's, and nothing else need be known of it.
        for known in self.census.iter().filter(|known| known.ns_pid == known.key.pid) {
            if let Some((directory, path)) = sockets.take_anywhere(known.socket_name()) {
                pairs.insert(known.key, known.path_in(directory).unwrap_or(path));
            }
        }
        self.census.look(&self.proc, &self.sources.tmp, at, |key| pairs.contains_key(&key));
        sockets.list_homes(&self.census);
        for known in self.census.iter() {
            if let Home::Directory { id, .. } = known.home
                && let Some(path) = sockets.take(id, known.socket_name())
            {
                pairs.insert(known.key, known.path_in(id).unwrap_or(path));
            }
        }
        self.directories = sockets.directories();
        // A socket may lie elsewhere than its process's environment says, or we may not read that.
        let mut strays = Vec::new();
        for (name, path) in sockets.into_rest() {
            match self.census.iter().find(|known| known.socket_name() == name && !pairs.contains_key(&known.key)) {
                Some(known) => drop(pairs.insert(known.key, path)),
                None => strays.push((name, path)),
            }
        }
        (pairs, strays)
    }

    /// Looks for a runtime in the memory maps of processes that show no other sign of one. Versions before 6.0 name no threads.
    fn look_for_libraries(&mut self, sockets: &FxHashMap<ProcessKey, PathBuf>, at: Moment) {
        let deadline = Instant::now() + MAPS_TIME;
        let candidates = self.census.iter_mut().filter(|known| {
            known.library.is_none()
                && known.has_threads
                && !known.threads.runtime
                && !sockets.contains_key(&known.key)
                && at.age(known.key) > SETTLED
        });
        for known in candidates {
            known.library = Some(self.proc.runtime_library(known.key.pid).ok().flatten());
            if Instant::now() > deadline {
                break;
            }
        }
    }
}

/// Whether a socket's process started so long ago, or on another boot, that it would have been seen if it were there.
fn is_settled(name: SocketName, uptime: Duration) -> bool {
    since_boot(ProcessKey { pid: name.pid, started: name.key }).abs_diff(uptime) > SETTLED
}

#[cfg(test)]
mod tests;
