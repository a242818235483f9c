//! Where a runtime listens: names of diagnostic sockets, and how to connect to one.

use std::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use tokio::net::UnixStream;

use crate::model::{Process, ProcessKey};

/// The longest path that fits a Unix socket address: 108 bytes with the NUL.
pub(super) const LONGEST_PATH: usize = 107;

/// The file name of a runtime's default diagnostic port: `dotnet-diagnostic-{pid}-{key}-socket`.
///
/// Source: `documentation/design-docs/ipc-protocol.md`, "Transport", and the runtime's own naming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SocketName {
    /// Process id inside the runtime's own pid namespace.
    pub pid: u32,
    /// Start time in clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub key: u64,
}

impl SocketName {
    /// Reads a file name; `None` for anything that a runtime would not have written.
    pub fn parse(file_name: &[u8]) -> Option<Self> {
        let middle = file_name.strip_prefix(b"dotnet-diagnostic-")?.strip_suffix(b"-socket")?;
        let (pid, key) = std::str::from_utf8(middle).ok()?.split_once('-')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        (digits(pid) && digits(key)).then_some(Self { pid: pid.parse().ok()?, key: key.parse().ok()? })
    }
}

impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dotnet-diagnostic-{}-{}-socket", self.pid, self.key)
    }
}

/// A runtime's diagnostic socket, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Which process.
    pub key: ProcessKey,
    /// Path under which we reach its socket.
    pub socket: PathBuf,
}

impl Endpoint {
    /// A process's endpoint; `None` where it has no socket.
    pub fn of(process: &Process) -> Option<Self> {
        Some(Self { key: process.key, socket: process.socket.clone()? })
    }
}

/// Connects to the socket at `path`.
///
/// A path that does not fit a socket address goes through a handle on its directory, `/proc/self/fd/N/name`: sockets of other mount namespaces
/// lie behind `/proc/PID/root`, which makes a path that was short enough for the runtime too long for us. Only a file name that is itself
/// too long fails, with [`io::ErrorKind::InvalidInput`].
pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    if path.as_os_str().len() <= LONGEST_PATH {
        return UnixStream::connect(path).await;
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let directory = openat(CWD, directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name);
    UnixStream::connect(short).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn names_come_back_and_strangers_do_not() {
        let name = SocketName { pid: 4242, key: 256_818 };
        assert_eq!(name.to_string(), "dotnet-diagnostic-4242-256818-socket");
        assert_eq!(SocketName::parse(name.to_string().as_bytes()), Some(name));
        for stranger in [
            "",
            "dotnet-diagnostic-",
            "dotnet-diagnostic-4242-socket",
            "dotnet-diagnostic-4242--socket",
            "dotnet-diagnostic--1-2-socket",
            "dotnet-diagnostic-+1-2-socket",
            "dotnet-diagnostic-1-2-3-socket",
            "dotnet-diagnostic-dsrouter-1-2-socket",
            "dotnet-diagnostic-99999999999-2-socket",
            "dotnet-diagnostic-1-2-socket.bak",
            "clr-debug-pipe-1-2-in",
        ] {
            assert_eq!(SocketName::parse(stranger.as_bytes()), None, "{stranger}");
        }
        assert_eq!(SocketName::parse(b"dotnet-diagnostic-1\xff-2-socket"), None);
    }

    #[tokio::test]
    async fn a_path_too_long_for_an_address_is_reached_through_its_directory() {
        let base = tempfile::tempdir().unwrap();
        let name = SocketName { pid: 1, key: 2 }.to_string();
        let deep = base.path().join("d".repeat(100)).join("e".repeat(100));
        std::fs::create_dir_all(&deep).unwrap();
        // The listener itself gets a short path; renaming a socket keeps it alive.
        let short = base.path().join("s");
        let listener = UnixListener::bind(&short).unwrap();
        std::fs::rename(&short, deep.join(&name)).unwrap();
        connect(&deep.join(&name)).await.unwrap();
        listener.accept().unwrap();
        assert_eq!(connect(&deep.join("absent")).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(connect(&deep.join("n".repeat(120))).await.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
