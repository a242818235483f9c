//! The socket of a port that we serve: accessible only to us from the start, never taken from another server, and removed at the end.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::PortError;
use crate::net::stream::{Listener, MAX_PATH_LENGTH};

/// A socket file that is removed on drop, if it is still the one that was created.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    id: Option<(u64, u64)>,
}

impl SocketFile {
    /// Creates the socket at `path` and listens.
    pub(super) fn listen(path: &Path) -> Result<(Self, Listener), PortError> {
        let io = |reason: io::Error| PortError::Io { path: path.to_owned(), reason };
        let path_is = std::path::absolute(path).map_err(io)?;
        let path = path_is.as_path();
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.len() > MAX_PATH_LENGTH {
            return Err(PortError::TooLong(path.to_owned()));
        }
        if bytes.iter().any(|byte| b",;".contains(byte)) {
            return Err(PortError::Separator(path.to_owned()));
        }
        clear(path)?;
        let listener = Listener::bind(path).map_err(|reason| match reason.kind() {
            io::ErrorKind::AddrInUse => PortError::InUse(path.to_owned()),
            _ => io(reason),
        })?;
        Ok((Self { path: path.to_owned(), id: id(path).ok() }, listener))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.id.is_some() && id(&self.path).ok() == self.id {
            // A remaining file is recognized as stale by the next server.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn id(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Removes the socket of a killed server of this user.
fn clear(path: &Path) -> Result<(), PortError> {
    let io = |reason: io::Error| PortError::Io { path: path.to_owned(), reason };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
    };
    if !metadata.file_type().is_socket() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(PortError::FileExists(path.to_owned()));
    }
    match probe(path) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(io),
        Ok(()) | Err(_) => Err(PortError::InUse(path.to_owned())),
    }
}

/// Connects, since there is no other way to find out whether a process listens, and closes the connection at once. A listener that accepts no
/// connections, and whose queue is full, must not block this.
fn probe(path: &Path) -> Result<(), Errno> {
    let probe = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    ioctl_fionbio(&probe, true)?;
    connect(&probe, &SocketAddrUnix::new(path)?)
}

/// Raises the limit of open file descriptors, usually 1024, to allow for more runtimes. Child processes inherit it. If the limit cannot be raised,
/// further runtimes wait when the port is full.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
