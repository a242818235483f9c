//! Files of ours: for their owner only, never over another, never through a link.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with, statvfs};
use rustix::io::Errno;

/// Makes a file that is not there, for reading and writing, with mode 0600. No link is followed in the last place.
///
/// # Errors
/// Those of the system; `AlreadyExists` for anything of that name.
pub fn create(path: &Path) -> io::Result<File> {
    // create_new is O_CREAT|O_EXCL: it neither overwrites nor follows a link in the last place.
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Looks whether anything has a name.
///
/// # Errors
/// Those of the system; `NotFound` where nothing has it.
pub fn look(path: &Path) -> io::Result<()> {
    path.symlink_metadata().map(drop)
}

/// Opens a file for reading, through no link in the last place, and without waiting for the writer of a pipe.
///
/// # Errors
/// Those of the system.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Opens a file for reading that a person named: also through a link, and without waiting for the writer of a pipe.
///
/// # Errors
/// Those of the system.
pub fn open_named(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// The one path of a file: absolute, without links and `..`.
///
/// # Errors
/// Those of the system: it is not there, or has no path, as a pipe.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Opens a file of settings for reading: one that only our own user and root can have written.
///
/// # Errors
/// Those of the system, or why the file is refused.
pub fn open_trusted(path: &Path) -> io::Result<File> {
    // Whatever is there is opened without waiting for anyone to write to it.
    let file = open_named(path)?;
    let facts = file.metadata()?;
    let us = rustix::process::geteuid().as_raw();
    let refused = match facts.uid() {
        _ if !facts.is_file() => Some("it is not a regular file"),
        owner if owner != us && owner != 0 => Some("it belongs to another user"),
        _ if facts.mode() & 0o022 != 0 => Some("others can write to it: `chmod go-w` it"),
        _ => None,
    };
    refused.map_or(Ok(file), |why| Err(io::Error::other(why)))
}

/// Renames a file to a name that nothing has.
///
/// # Errors
/// Those of the system; `AlreadyExists` where something has the name.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).or_else(|errno| match errno {
        // Some file systems cannot rename without replacing; a hard link cannot replace either.
        Errno::INVAL | Errno::NOSYS => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        _ => Err(io::Error::from(errno)),
    })
}

/// Reads at a place of a file without moving its position.
///
/// # Errors
/// Those of the system; `UnexpectedEof` at its end.
pub fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(bytes, at)
}

/// Writes at a place of a file without moving its position.
///
/// # Errors
/// Those of the system.
pub fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

/// How many bytes the file system of a path has left for us.
///
/// # Errors
/// Those of the system.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let system = statvfs(path)?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

/// The path that bytes are.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// Which file it is, whatever it is called: device, inode, and where the file system has it, when it was made, since a number is given again once its
/// file is gone.
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

    /// Whether this is the file of that name, and no other that took its place, nor a link.
    pub fn is_at(self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|facts| Self::new(&facts) == self)
    }
}
