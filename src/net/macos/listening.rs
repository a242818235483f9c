//! Sockets that no other user can connect to.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

/// Maximum length of a path in a Unix socket address: 104 bytes with the NUL (unix(4)).
pub(super) const MAX_PATH_LENGTH: usize = 103;

/// Listens on a socket with mode 0600. On macOS, the umask determines the mode. Files created by other threads at the same time are accessible to our
/// user only, too.
pub(super) fn listen_owner_only(path: &Path) -> io::Result<OwnedFd> {
    let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let listener = UnixListener::bind(path);
    umask(before);
    let listener = listener?;
    listener.set_nonblocking(true)?;
    Ok(listener.into())
}
