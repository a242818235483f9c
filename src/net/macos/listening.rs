//! A socket that no other user can connect to.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

/// The longest path that fits a Unix socket address: 104 bytes with the NUL (unix(4)).
pub(super) const LONGEST_PATH: usize = 103;

/// Listens on a socket with mode 0600. macOS gives the file the mode that the umask leaves. Files that other threads create at that moment are for our user only, too.
pub(super) fn listen_alone(path: &Path) -> io::Result<OwnedFd> {
    let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let listener = UnixListener::bind(path);
    umask(before);
    let listener = listener?;
    listener.set_nonblocking(true)?;
    Ok(listener.into())
}
