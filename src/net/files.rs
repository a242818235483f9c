//! Our own files: accessible only to their owner, never replacing another file, never opened through a link.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with, statvfs};
use rustix::io::Errno;

use super::new_file;
pub use super::settings_file::open_trusted;

/// Creates a new file for reading and writing, with mode 0600. A link as the last path component is not followed, nor is one to a folder that another
/// user made where anyone can make one, such as in `/tmp`.
///
/// # Errors
/// Those of the system; `AlreadyExists` if anything has that name.
pub fn create(path: &Path) -> io::Result<File> {
    new_file::create(path)
}

/// Checks that something with this name exists.
///
/// # Errors
/// Those of the system; `NotFound` if nothing does.
pub fn check_exists(path: &Path) -> io::Result<()> {
    path.symlink_metadata().map(drop)
}

/// Opens a file for reading, without following a link as the last path component or waiting for the writer of a pipe.
///
/// # Errors
/// Those of the system.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Opens a file named by the user for reading: follows links, and does not wait for the writer of a pipe.
///
/// # Errors
/// Those of the system.
pub fn open_named(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// Returns whether a path leads to a pipe, such as one of the shell's `<(COMMAND)`.
pub fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.file_type().is_fifo())
}

/// Canonicalizes a path: absolute, without links and `..`.
///
/// # Errors
/// Those of the system: the file does not exist, or has no path, like a pipe.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Checks that no user except our own and root can have written a file.
pub(super) fn check_trusted(facts: &Metadata) -> io::Result<()> {
    let us = rustix::process::geteuid().as_raw();
    let refused = match facts.uid() {
        _ if !facts.is_file() => Some("it is not a regular file"),
        owner if owner != us && owner != 0 => Some("it belongs to another user"),
        _ if facts.mode() & 0o022 != 0 => Some("others can write to it: `chmod go-w` it"),
        _ => None,
    };
    refused.map_or(Ok(()), |why| Err(io::Error::other(why)))
}

/// Renames a file without replacing another.
///
/// # Errors
/// Those of the system; `AlreadyExists` if the new name is taken.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).or_else(|errno| match errno {
        // Some file systems do not support RENAME_NOREPLACE; a hard link does not replace either.
        Errno::INVAL | Errno::NOSYS => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        _ => Err(io::Error::from(errno)),
    })
}

/// Reads at an offset of a file without moving its position.
///
/// # Errors
/// Those of the system; `UnexpectedEof` at the end of the file.
pub fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(bytes, at)
}

/// Writes at an offset of a file without moving its position.
///
/// # Errors
/// Those of the system.
pub fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

/// Returns the free space on the file system of a path, in bytes, as available to our user.
///
/// # Errors
/// Those of the system.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let system = statvfs(path)?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// Identity of a file independent of its name: device, inode and, if the file system stores it, creation time, since inode numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId(u64, u64, Option<SystemTime>);

impl FileId {
    /// # Errors
    /// Those of the system.
    pub fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|facts| Self::new(&facts))
    }

    fn new(facts: &Metadata) -> Self {
        Self(facts.dev(), facts.ino(), facts.created().ok())
    }

    /// Returns whether the path leads to this very file, and not to a replacement or a link.
    pub fn is_at(self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|facts| Self::new(&facts) == self)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_neither_opened_nor_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, other] = ["file", "link", "other"].map(|name| folder.path().join(name));
        create(&file).unwrap();
        symlink(&file, &link).unwrap();
        assert!(open(&file).is_ok());
        assert_eq!(open(&link).unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        let id = FileId::of(&open(&file).unwrap()).unwrap();
        assert!(id.is_at(&file) && !id.is_at(&link) && !id.is_at(&other));
        create(&other).unwrap();
        fs::rename(&other, &file).unwrap();
        assert!(!id.is_at(&file), "it was replaced");
    }

    #[test]
    fn free_space_is_in_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = statvfs(folder.path()).unwrap().f_bavail;
        // Others may be writing.
        assert!(free_space(folder.path()).unwrap() / 256 > blocks);
    }
}
