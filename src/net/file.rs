//! Files of a target, as it sees them. The owner of the target controls them, so that they are opened without waiting for anything.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstatfs, open, openat2};
use rustix::io::Errno;

/// File systems that any user can serve, and so hold a reader for ever (`FUSE_SUPER_MAGIC`, statfs(2)).
const FUSE: u64 = 0x6573_5546;

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens for reading what the path means below the root, links included. It does not wait for the writer of a pipe.
pub(super) fn open_in(root: &Path, path: &str) -> io::Result<File> {
    Ok(resolve_in(root, Path::new(path), READ)?.into())
}

/// Opens a file of a process for reading without a request of a person: a regular one, of which no other user decides how long a read takes.
pub(super) fn open_unasked(root: &Path, path: &Path) -> io::Result<File> {
    unasked(resolve_in(root, path, OFlags::PATH | OFlags::CLOEXEC)?)
}

/// The same with what a link of /proc leads to, such as `/proc/PID/exe`.
pub(super) fn open_link(link: &Path) -> io::Result<File> {
    unasked(open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

fn unasked(found: OwnedFd) -> io::Result<File> {
    let found = File::from(found);
    if !found.metadata()?.is_file() || u64::try_from(fstatfs(&found)?.f_type) == Ok(FUSE) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(open(format!("/proc/self/fd/{}", found.as_raw_fd()), READ, Mode::empty())?.into())
}

fn resolve_in(root: &Path, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let below = path.strip_prefix("/").unwrap_or(path);
    let directory = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(match openat2(&directory, below, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
        // Linux before 5.6, or a filter of system calls that were new then.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(CWD, root.join(below), flags, Mode::empty()),
        opened => opened,
    }?)
}
