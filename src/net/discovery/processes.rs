//! Lists processes, and the directory where each would create its diagnostic socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foldhash::HashMap;
use procfs::process::Stat;

use super::ScanTime;
use crate::model::ProcessKey;
use crate::net::endpoint::SocketName;
use crate::net::mounts::Blockable;
use crate::net::proc::{Environ, Proc, Threads};
use crate::net::resolve::{self, Links, OpenError, Root};
use crate::net::stream::MAX_PATH_LENGTH;

/// A younger process may still exec another program, so it is inspected at every scan.
const YOUNG_AGE: Duration = Duration::from_secs(5);
/// Every process is inspected again after this long: it may exec another program at any age.
const INSPECTION_INTERVAL: Duration = Duration::from_secs(20);
/// The flag of kernel threads in `/proc/PID/stat` (`PF_KTHREAD`).
const KERNEL_THREAD: u32 = 0x0020_0000;

/// Identity of a directory independent of its path: device and inode.
pub(super) type DirectoryId = (u64, u64);

/// Ids of directories at paths in our own root, cached for one pass.
type OurDirectories = HashMap<PathBuf, Option<DirectoryId>>;

/// The directory for temporary files of a process, and so for its socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SocketDir {
    /// An existing directory, with a path that is valid for us.
    Directory { id: DirectoryId, path: PathBuf, process_path: PathBuf },
    /// A directory that does not exist.
    Missing { process_path: PathBuf },
    /// The path contains a link that an untrusted user could have written.
    Linked { process_path: PathBuf, link: PathBuf },
    /// It is on a file system on which another user may be able to block us.
    Blockable { process_path: PathBuf, why: Blockable },
    /// We may not read it.
    Hidden,
}

/// A process of the machine, .NET or not.
#[derive(Debug)]
pub(super) struct ScannedProcess {
    pub(super) key: ProcessKey,
    pub(super) ns_pid: u32,
    pub(super) uid: u32,
    pub(super) socket_dir: SocketDir,
    pub(super) threads: Threads,
    /// Path of the runtime library in its memory maps; `None` if not checked yet.
    pub(super) library: Option<Option<PathBuf>>,
    /// Whether it has more than one thread, as every runtime does.
    pub(super) has_threads: bool,
    /// Whether its environment requests suspension at startup.
    pub(super) is_configured_to_suspend: bool,
    inode: u64,
    last_scan: u64,
    kernel: bool,
    /// The data read when the process was discovered, if that was during this scan.
    first_stat: Option<Stat>,
    next_inspection: Instant,
}

/// All visible processes.
#[derive(Debug, Default)]
pub(super) struct ProcessScan {
    known: HashMap<u32, ScannedProcess>,
    count: u64,
}

impl ProcessScan {
    /// Updates the list for started and ended processes.
    pub(super) fn update(&mut self, proc: &Proc, now: Instant) -> io::Result<()> {
        self.count += 1;
        let count = self.count;
        proc.pids(|pid, inode| match self.known.get_mut(&pid) {
            Some(known) if known.inode == inode => (known.last_scan, known.first_stat) = (count, None),
            _ => {
                if let Some(known) = ScannedProcess::read(proc, pid, inode, count, now) {
                    self.known.insert(pid, known);
                }
            }
        })?;
        self.known.retain(|_, known| known.last_scan == count);
        Ok(())
    }

    /// Inspects new and young processes, and all others in turn.
    pub(super) fn inspect(&mut self, proc: &Proc, tmp: &Path, at: ScanTime) {
        let mut ours = OurDirectories::default();
        self.known.retain(|_, known| known.kernel || known.next_inspection > at.now || known.inspect(proc, tmp, at, &mut ours));
    }

    pub(super) fn get(&self, pid: u32) -> Option<&ScannedProcess> {
        self.known.get(&pid)
    }

    /// Returns all processes except kernel threads, by their socket name. Processes in different pid namespaces may share a name.
    pub(super) fn by_socket_name(&self) -> HashMap<SocketName, Vec<&ScannedProcess>> {
        let mut names: HashMap<_, Vec<_>> = HashMap::default();
        for known in self.iter() {
            names.entry(known.socket_name()).or_default().push(known);
        }
        names
    }

    /// Returns all processes except kernel threads.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ScannedProcess> {
        self.known.values().filter(|known| !known.kernel)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ScannedProcess> {
        self.known.values_mut().filter(|known| !known.kernel)
    }
}

impl ScannedProcess {
    /// Reads the facts that never change. `None` if the process has ended or cannot be read.
    fn read(proc: &Proc, pid: u32, inode: u64, last_scan: u64, now: Instant) -> Option<Self> {
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
            is_configured_to_suspend: false,
            inode,
            last_scan,
            kernel,
            first_stat: Some(stat),
            next_inspection: now,
        })
    }

    /// Returns whether there is a sign of a runtime other than a socket.
    pub(super) fn has_runtime(&self) -> bool {
        self.threads.runtime || matches!(self.library, Some(Some(_)))
    }

    /// Returns the socket name that its runtime would use.
    pub(super) fn socket_name(&self) -> SocketName {
        SocketName { pid: self.ns_pid, key: self.key.started }
    }

    /// Reads its state, if it still exists and is alive.
    pub(super) fn stat(&self, proc: &Proc) -> Option<Stat> {
        let stat = self.first_stat.clone().or_else(|| proc.stat(self.key.pid).ok())?;
        (stat.starttime == self.key.started && !matches!(stat.state, 'Z' | 'X')).then_some(stat)
    }

    /// Returns the path of its socket in that directory through its own root. A directory shared by several processes was listed through one of
    /// them, which may end before this one, and whose root is no evidence of this one's files.
    pub(super) fn path_in(&self, directory: DirectoryId) -> Option<PathBuf> {
        match &self.socket_dir {
            SocketDir::Directory { id, path, .. } if *id == directory => Some(path.join(self.socket_name().to_string())),
            _ => None,
        }
    }

    /// Returns whether a process without its socket is probably exiting: the pipes for a debugger, which the runtime creates with its socket, still
    /// exist. An exiting runtime removes them later than the socket: only after the last finalizer has returned (seen on .NET Core 3.1, .NET 8, 9
    /// and 10). With a configuration that switches off the socket alone, the pipes exist, but not the thread that serves the socket.
    pub(super) fn is_exiting(&self, proc: &Proc) -> bool {
        let SocketDir::Directory { path, .. } = &self.socket_dir else { return false };
        let pipe = path.join(format!("clr-debug-pipe-{}-{}-in", self.ns_pid, self.key.started));
        // The threads of .NET Core 3.1 have no names, and a new thread may not have had its name yet when the threads were listed.
        let served = || !self.threads.runtime || self.threads.server || proc.threads(self.key.pid).is_ok_and(|threads| threads.server);
        resolve::locate(&pipe, Some(proc)).is_ok() && served()
    }

    /// Updates the facts that an exec changes. Returns whether the process still exists.
    fn inspect(&mut self, proc: &Proc, tmp: &Path, at: ScanTime, ours: &mut OurDirectories) -> bool {
        let pid = self.key.pid;
        if self.first_stat.is_none() && !self.check(proc) {
            return false;
        }
        if self.has_threads && !self.threads.started {
            self.threads = proc.threads(pid).unwrap_or_default();
        }
        let environ = proc.environ(pid).ok();
        self.is_configured_to_suspend = environ.as_ref().is_some_and(Environ::is_configured_to_suspend);
        self.socket_dir = environ.map_or(SocketDir::Hidden, |environ| socket_dir(proc, pid, environ.tmpdir().unwrap_or(tmp), ours));
        // The interval varies by process, to spread the work over time.
        let unsettled = at.age(self.key) < YOUNG_AGE || self.threads.is_suspended();
        self.next_inspection = if unsettled { at.now } else { at.now + INSPECTION_INTERVAL + Duration::from_secs(u64::from(pid % 20)) };
        true
    }

    fn check(&mut self, proc: &Proc) -> bool {
        let (Ok(stat), Ok(identity)) = (proc.stat(self.key.pid), proc.identity(self.key.pid)) else { return false };
        self.uid = identity.uid;
        self.has_threads = stat.num_threads > 1;
        stat.starttime == self.key.started
    }
}

/// Resolves the `TMPDIR` of a process through its own root.
fn socket_dir(proc: &Proc, pid: u32, tmpdir: &Path, ours: &mut OurDirectories) -> SocketDir {
    if tmpdir.as_os_str().len() > MAX_PATH_LENGTH {
        // Too long for a socket. A path of 128 KiB would take long to resolve.
        return SocketDir::Missing { process_path: tmpdir.to_owned() };
    }
    // If the kernel does not show the working directory, a relative path cannot be resolved.
    let Ok(process_path) =
        (if tmpdir.is_absolute() { Ok(tmpdir.to_owned()) } else { proc.working_directory(pid).map(|at| at.join(tmpdir)) })
    else {
        return SocketDir::Hidden;
    };
    let through = Root::of(proc, pid).map_err(OpenError::Io).and_then(|root| resolve::find(root, &process_path, Links::Trusted));
    // If our own path leads to the same directory, the namespace is the same or the directory is shared: the short path is better.
    let ours = *ours.entry(process_path.clone()).or_insert_with(|| Some(resolve::locate(&process_path, None).ok()?.id()));
    match (through.map(|found| found.id()), ours) {
        (Ok(id), ours) if ours == Some(id) => SocketDir::Directory { id, path: process_path.clone(), process_path },
        (Ok(id), _) => SocketDir::Directory {
            id,
            path: proc.path_of(pid, "root").join(process_path.strip_prefix("/").unwrap_or(&process_path)),
            process_path,
        },
        (Err(OpenError::Io(error)), _) if error.kind() == io::ErrorKind::PermissionDenied => SocketDir::Hidden,
        (Err(OpenError::Link { link, .. }), _) => SocketDir::Linked { process_path, link },
        (Err(OpenError::Blockable(why)), _) => SocketDir::Blockable { process_path, why },
        // A tree that only looks like /proc has no links to roots.
        (Err(_), Some(id)) if !proc.is_real() => SocketDir::Directory { id, path: process_path.clone(), process_path },
        (Err(_), _) => SocketDir::Missing { process_path },
    }
}
