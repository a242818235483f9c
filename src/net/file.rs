//! Files of a target, as the target sees them. Its owner controls them, so opening them must never block.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, fstatvfs, open, openat, openat2};
use rustix::io::Errno;

use super::proc::Proc;
use super::resolve::{self, Links, OpenError, Root};
use crate::model::{FreeSpace, Limited};

/// Magic number of FUSE (`FUSE_SUPER_MAGIC`, statfs(2)): any user can serve such a file system, and block a reader forever.
const FUSE: u64 = 0x6573_5546;
/// Magic number of tmpfs, memory with ordinary pages (`TMPFS_MAGIC`, statfs(2)).
pub(super) const TMPFS: u64 = 0x0102_1994;

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens for reading what the path refers to below the root of a process, following links. Does not wait for the writer of a pipe.
pub(super) fn open_in(proc: &Proc, pid: u32, path: &str) -> io::Result<File> {
    reopen(&resolve_in(proc, pid, Path::new(path))?)
}

/// Opens a file of a process for reading without a request by the user: only a regular file, on a file system whose reads no other user can block.
pub(super) fn open_regular_in(proc: &Proc, pid: u32, path: &Path) -> io::Result<File> {
    reopen_regular(&resolve_in(proc, pid, path)?)
}

/// Like [`open_regular_in`], for the executable file of a process. Its file system is checked in every namespace, since an executable may
/// come from another one.
pub(super) fn open_program(proc: &Proc, pid: u32) -> io::Result<File> {
    reopen_regular(&program(proc, pid)?)
}

/// Returns the device and inode of the executable file of a process.
pub(super) fn program_id(proc: &Proc, pid: u32) -> io::Result<(u64, u64)> {
    let stat = fstat(program(proc, pid)?)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn program(proc: &Proc, pid: u32) -> io::Result<OwnedFd> {
    let folder = proc.folder(pid)?;
    let found = openat(&folder, "exe", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    // That of our own user may be on a mount that is in no list, such as the one of files in memory.
    if proc.is_real() && !proc.is_ours(pid) {
        proc.mounts(pid, folder).check(&found, None)?;
    }
    Ok(found)
}

/// Inspects what the path refers to below the root of a process, following links.
pub(super) fn inspect_in(proc: &Proc, pid: u32, path: &Path) -> io::Result<Metadata> {
    File::from(resolve_in(proc, pid, path)?).metadata()
}

/// Returns the space that a process with this memory limit has in what the path refers to below its root.
pub(super) fn free_space_in(proc: &Proc, pid: u32, path: &Path, memory: Option<Limited>) -> io::Result<FreeSpace> {
    free_space(&resolve_in(proc, pid, path)?, memory)
}

/// Returns the space that a process with this memory limit has in a folder: what it writes to a tmpfs counts as its memory.
pub(super) fn free_space(folder: &OwnedFd, memory: Option<Limited>) -> io::Result<FreeSpace> {
    let system = fstatvfs(folder)?;
    let bytes = system.f_bavail.saturating_mul(system.f_frsize);
    let is_tmpfs = is_on(folder, TMPFS)?;
    let memory_left = memory.map(Limited::left);
    let left = memory_left.filter(|left| is_tmpfs && *left < bytes);
    Ok(FreeSpace { bytes: left.unwrap_or(bytes), is_memory: left.is_some(), memory_left })
}

/// Returns whether a file is on a file system with this magic number.
pub(super) fn is_on(file: &OwnedFd, system: u64) -> io::Result<bool> {
    Ok(u64::try_from(fstatfs(file)?.f_type) == Ok(system))
}

fn reopen_regular(found: &OwnedFd) -> io::Result<File> {
    if FileType::from_raw_mode(fstat(found)?.st_mode) != FileType::RegularFile || is_on(found, FUSE)? {
        return Err(io::ErrorKind::Unsupported.into());
    }
    reopen(found)
}

/// Opens a found file for reading, without waiting for the writer of a pipe.
pub(super) fn reopen(found: &OwnedFd) -> io::Result<File> {
    Ok(open(format!("/proc/self/fd/{}", found.as_raw_fd()), READ, Mode::empty())?.into())
}

fn resolve_in(proc: &Proc, pid: u32, path: &Path) -> io::Result<OwnedFd> {
    let root = Root::of(proc, pid)?;
    if let Some(directory) = root.trusted() {
        let below = path.strip_prefix("/").unwrap_or(path);
        // An empty path names nothing.
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        match openat2(directory, below, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::IN_ROOT) {
            // Linux before 5.6, or a seccomp filter that rejects newer system calls.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    match resolve::find(root, path, Links::All) {
        Ok(found) => Ok(found.handle),
        Err(OpenError::Io(error)) => Err(error),
        Err(OpenError::Blockable(why)) => Err(why.into()),
        Err(OpenError::Link { .. }) => Err(Errno::LOOP.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opening a device can have effects, and reading it or a pipe can block.
    #[test]
    fn only_regular_files_are_opened_without_a_request() {
        let folder = tempfile::tempdir().unwrap();
        let [file, pipe] = ["file", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&file, "a").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RWXU).unwrap();
        let reopened = |path: &Path| {
            let found = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
            reopen_regular(&found).map(drop).map_err(|error| error.kind())
        };
        assert_eq!(reopened(&file), Ok(()));
        for other in [pipe.as_path(), folder.path(), Path::new("/dev/null")] {
            assert_eq!(reopened(other), Err(io::ErrorKind::Unsupported), "{}", other.display());
        }
    }
}
