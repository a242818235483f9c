//! A socket that no other user can connect to.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

/// The longest path that fits a Unix socket address: 108 bytes with the NUL.
pub(super) const MAX_PATH_LENGTH: usize = 107;

/// Maximum number of pending connections. A runtime that is turned away waits 100 ms and tries again.
const BACKLOG: i32 = 1024;

/// Listens on a socket with mode 0600: Linux gives the file the mode of the socket.
pub(super) fn listen_owner_only(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}
