//! Files of a target, as the target sees them. Its owner controls them, so opening them must never block.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstatfs, open, openat2};
use rustix::io::Errno;

/// Magic number of FUSE (`FUSE_SUPER_MAGIC`, statfs(2)): any user can serve such a file system, and block a reader forever.
const FUSE: u64 = 0x6573_5546;

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens for reading what the path refers to below the root, following links. Does not wait for the writer of a pipe.
pub(super) fn open_in(root: &Path, path: &str) -> io::Result<File> {
    Ok(resolve_in(root, Path::new(path), READ)?.into())
}

/// Opens a file of a process for reading without a request by the user: only a regular file, on a file system whose reads no other user can block.
pub(super) fn open_regular_in(root: &Path, path: &Path) -> io::Result<File> {
    reopen_regular(resolve_in(root, path, OFlags::PATH | OFlags::CLOEXEC)?)
}

/// Like [`open_regular_in`], for the target of a link in /proc such as `/proc/PID/exe`.
pub(super) fn open_link(link: &Path) -> io::Result<File> {
    reopen_regular(open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

fn reopen_regular(found: OwnedFd) -> io::Result<File> {
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
        // Linux before 5.6, or a seccomp filter that rejects newer system calls.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(CWD, root.join(below), flags, Mode::empty()),
        opened => opened,
    }?)
}
