//! Which processes there are, and where each would put a diagnostic socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foldhash::HashMap;
use procfs::process::Stat;

use super::Moment;
use crate::model::ProcessKey;
use crate::net::endpoint::SocketName;
use crate::net::proc::{Environ, Proc, Threads};
use crate::net::resolve::{self, OpenError};

/// A process younger than this may still become another program, so it is looked at every time.
const YOUNG: Duration = Duration::from_secs(5);
/// Every process is looked at again after this long: a program may start another one in its place at any age.
const ROUND: Duration = Duration::from_secs(20);
/// The bit of a kernel thread among the flags of `/proc/PID/stat` (`PF_KTHREAD`).
const KERNEL_THREAD: u32 = 0x0020_0000;

/// A directory, whatever path leads to it: device and inode.
pub(super) type DirectoryId = (u64, u64);

/// Ids of directories under paths of our own, for one round of looks.
type OurDirectories = HashMap<PathBuf, Option<DirectoryId>>;

/// Where a process keeps its temporary files, and so its socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SocketDir {
    /// This directory, under a path that works from here.
    Directory { id: DirectoryId, path: PathBuf, as_it_sees: PathBuf },
    /// A directory that is not there.
    Missing { as_it_sees: PathBuf },
    /// The way there is a link that an untrusted user could have written.
    Linked { as_it_sees: PathBuf, link: PathBuf },
    /// We may not know.
    Hidden,
}

/// One process of the machine, .NET or not.
#[derive(Debug)]
pub(super) struct ScannedProcess {
    pub(super) key: ProcessKey,
    pub(super) ns_pid: u32,
    pub(super) uid: u32,
    pub(super) socket_dir: SocketDir,
    pub(super) threads: Threads,
    /// The runtime's library among its maps; `None` before the first look.
    pub(super) library: Option<Option<PathBuf>>,
    /// Whether it has more than one thread. A runtime always has.
    pub(super) has_threads: bool,
    /// Whether it was started with the request to wait for a resume.
    pub(super) asks_to_suspend: bool,
    inode: u64,
    counted: u64,
    kernel: bool,
    /// What was read when it was first seen, if that was just now.
    first_stat: Option<Stat>,
    look_next: Instant,
}

/// All processes that can be seen.
#[derive(Debug, Default)]
pub(super) struct ProcessScan {
    known: HashMap<u32, ScannedProcess>,
    count: u64,
}

impl ProcessScan {
    /// Counts births and deaths.
    pub(super) fn count(&mut self, proc: &Proc, now: Instant) -> io::Result<()> {
        self.count += 1;
        let count = self.count;
        proc.pids(|pid, inode| match self.known.get_mut(&pid) {
            Some(known) if known.inode == inode => (known.counted, known.first_stat) = (count, None),
            _ => {
                if let Some(known) = ScannedProcess::read(proc, pid, inode, count, now) {
                    self.known.insert(pid, known);
                }
            }
        })?;
        self.known.retain(|_, known| known.counted == count);
        Ok(())
    }

    /// Looks closer at the new, the young, and in turn all the others.
    pub(super) fn look(&mut self, proc: &Proc, tmp: &Path, at: Moment) {
        let mut ours = OurDirectories::default();
        self.known.retain(|_, known| known.kernel || known.look_next > at.now || known.look(proc, tmp, at, &mut ours));
    }

    pub(super) fn get(&self, pid: u32) -> Option<&ScannedProcess> {
        self.known.get(&pid)
    }

    /// Every process but the kernel's, by the name that its socket would have. Processes of several pid namespaces may share one.
    pub(super) fn by_socket_name(&self) -> HashMap<SocketName, Vec<&ScannedProcess>> {
        let mut names: HashMap<_, Vec<_>> = HashMap::default();
        for known in self.iter() {
            names.entry(known.socket_name()).or_default().push(known);
        }
        names
    }

    /// Every process but the kernel's.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ScannedProcess> {
        self.known.values().filter(|known| !known.kernel)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ScannedProcess> {
        self.known.values_mut().filter(|known| !known.kernel)
    }
}

impl ScannedProcess {
    /// The facts that stay for a process's life. `None` if it has ended or cannot be read.
    fn read(proc: &Proc, pid: u32, inode: u64, counted: u64, now: Instant) -> Option<Self> {
        let stat = proc.stat(pid).ok()?;
        let kernel = stat.flags & KERNEL_THREAD != 0;
        let identity = proc.identity(pid).ok()?;
        Some(Self {
            key: ProcessKey { pid, started: stat.starttime },
            ns_pid: identity.ns_pid,
            uid: identity.uid,
            socket_dir: SocketDir::Hidden,
            threads: Threads::default(),
            library: None,
            has_threads: stat.num_threads > 1,
            asks_to_suspend: false,
            inode,
            counted,
            kernel,
            first_stat: Some(stat),
            look_next: now,
        })
    }

    /// Whether there is a sign of a runtime, apart from a socket.
    pub(super) fn has_runtime(&self) -> bool {
        self.threads.runtime || matches!(self.library, Some(Some(_)))
    }

    /// What its runtime would call its socket.
    pub(super) fn socket_name(&self) -> SocketName {
        SocketName { pid: self.ns_pid, key: self.key.started }
    }

    /// Its state now, if it is still there and alive.
    pub(super) fn stat(&self, proc: &Proc) -> Option<Stat> {
        let stat = self.first_stat.clone().or_else(|| proc.stat(self.key.pid).ok())?;
        (stat.starttime == self.key.started && !matches!(stat.state, 'Z' | 'X')).then_some(stat)
    }

    /// The path of its socket in that directory through its own root. A directory of several processes was listed through one of them, which
    /// may end before this one, and whose root is no evidence of this one's files.
    pub(super) fn path_in(&self, directory: DirectoryId) -> Option<PathBuf> {
        match &self.socket_dir {
            SocketDir::Directory { id, path, .. } if *id == directory => Some(path.join(self.socket_name().to_string())),
            _ => None,
        }
    }

    /// Looks at what an exec changes. Whether the process is still there.
    fn look(&mut self, proc: &Proc, tmp: &Path, at: Moment, ours: &mut OurDirectories) -> bool {
        let pid = self.key.pid;
        if self.first_stat.is_none() && !self.check(proc) {
            return false;
        }
        if self.has_threads && !self.threads.started {
            self.threads = proc.threads(pid).unwrap_or_default();
        }
        let environ = proc.environ(pid).ok();
        self.asks_to_suspend = environ.as_ref().is_some_and(Environ::asks_to_suspend);
        self.socket_dir = environ.map_or(SocketDir::Hidden, |environ| socket_dir(proc, pid, environ.tmpdir().unwrap_or(tmp), ours));
        // Rounds of different lengths, so that the looks spread over time.
        let unsettled = at.age(self.key) < YOUNG || self.threads.waits();
        self.look_next = if unsettled { at.now } else { at.now + ROUND + Duration::from_secs(u64::from(pid % 20)) };
        true
    }

    fn check(&mut self, proc: &Proc) -> bool {
        let (Ok(stat), Ok(identity)) = (proc.stat(self.key.pid), proc.identity(self.key.pid)) else { return false };
        self.uid = identity.uid;
        self.has_threads = stat.num_threads > 1;
        stat.starttime == self.key.started
    }
}

/// Finds the directory that a process has in its `TMPDIR`, through its own root.
fn socket_dir(proc: &Proc, pid: u32, tmpdir: &Path, ours: &mut OurDirectories) -> SocketDir {
    // Where the kernel does not show what a relative path is relative to, the file is unknown.
    let Ok(as_it_sees) = (if tmpdir.is_absolute() { Ok(tmpdir.to_owned()) } else { proc.working_directory(pid).map(|at| at.join(tmpdir)) })
    else {
        return SocketDir::Hidden;
    };
    let root = proc.path_of(pid, "root");
    let through = resolve::root_at(&root).map_err(OpenError::Io).and_then(|root| resolve::find(root, &as_it_sees));
    // The same directory under our own path is the same namespace, or a share: the short path is the better one.
    let ours = *ours.entry(as_it_sees.clone()).or_insert_with(|| Some(resolve::locate(&as_it_sees, None).ok()?.id()));
    match (through.map(|found| found.id()), ours) {
        (Ok(id), ours) if ours == Some(id) => SocketDir::Directory { id, path: as_it_sees.clone(), as_it_sees },
        (Ok(id), _) => SocketDir::Directory { id, path: root.join(as_it_sees.strip_prefix("/").unwrap_or(&as_it_sees)), as_it_sees },
        (Err(OpenError::Io(error)), _) if error.kind() == io::ErrorKind::PermissionDenied => SocketDir::Hidden,
        (Err(OpenError::Link { link, .. }), _) => SocketDir::Linked { as_it_sees, link },
        // A tree that only looks like /proc has no links to roots.
        (Err(_), Some(id)) if !proc.is_of_kernel() => SocketDir::Directory { id, path: as_it_sees.clone(), as_it_sees },
        (Err(_), _) => SocketDir::Missing { as_it_sees },
    }
}
