//! Connections to and from runtimes: Unix domain sockets.

use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use tokio::io::Interest;
use tokio::net::UnixListener;

/// A stream for a blocking thread.
pub use std::os::unix::net::UnixStream as BlockingStream;
pub use tokio::net::UnixStream as Stream;

pub(super) use super::listening::MAX_PATH_LENGTH;
use super::listening::listen_owner_only;

/// Unit of [`MAX_PATH_LENGTH`].
pub(super) const PATH_UNIT: &str = "bytes";

/// Returns the address with this name in a folder.
pub fn address_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}

/// Longer folders may leave no room for a socket name.
const MAX_PORT_PARENT_BYTES: usize = 60;

/// Returns a folder in which a folder for a temporary port can be created: the usual one for temporary files, or `/tmp` if that makes an address
/// too long, contains a separator of `DOTNET_DiagnosticPorts`, or lets another user replace the folder: whoever serves the port controls the
/// program that connects to it.
pub fn port_parent() -> PathBuf {
    suitable_parent(std::env::temp_dir())
}

fn suitable_parent(usual: PathBuf) -> PathBuf {
    let bytes = usual.as_os_str().as_encoded_bytes();
    let has_address = bytes.len() <= MAX_PORT_PARENT_BYTES && !bytes.iter().any(|byte| b",;".contains(byte));
    if has_address && !is_controlled_by_others(&usual) { usual } else { "/tmp".into() }
}

/// Returns whether a user other than root and ours can rename the entries of a folder. The error of a missing one is reported later.
fn is_controlled_by_others(folder: &Path) -> bool {
    let sticky = 0o1000;
    folder.metadata().is_ok_and(|facts| {
        ![0, rustix::process::geteuid().as_raw()].contains(&facts.uid()) || facts.mode() & 0o022 != 0 && facts.mode() & sticky == 0
    })
}

/// Returns the form of an address in `DOTNET_DiagnosticPorts`.
pub fn port_name(address: &Path) -> &Path {
    address
}

/// Waits for the end of a stream on which no data is expected: any data violates the protocol and counts as the end.
pub(super) async fn ended(stream: &Stream) {
    while stream.readable().await.is_ok() {
        if !matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            return;
        }
    }
}

/// Maximum of [`await_bytes`].
pub const MAX_AWAITED: usize = 128;

/// Waits until this many bytes can be read, without consuming them.
///
/// # Errors
/// Those of the system; `UnexpectedEof` if the stream ends before.
pub async fn await_bytes(stream: &mut Stream, count: usize) -> io::Result<()> {
    let count = count.min(MAX_AWAITED);
    loop {
        let ready = stream.ready(Interest::READABLE).await?;
        let look = || match recv(&*stream, &mut [0_u8; MAX_AWAITED][..count], RecvFlags::PEEK)? {
            (seen, _) if seen >= count => Ok(()),
            _ if ready.is_read_closed() => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        };
        match stream.try_io(Interest::READABLE, look) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            looked => return looked,
        }
    }
}

/// Converts a stream for use by a blocking thread.
///
/// # Errors
/// Those of the system.
pub fn into_blocking(stream: Stream) -> io::Result<BlockingStream> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A second handle to a stream, to close it while it is being read.
#[derive(Debug)]
pub struct Closer(OwnedFd);

impl Closer {
    /// # Errors
    /// If there are too many open files.
    pub fn of(stream: &Stream) -> io::Result<Self> {
        stream.as_fd().try_clone_to_owned().map(Self)
    }

    /// Closes the stream from our side; bytes already received can still be read.
    pub fn close(&self) {
        // Fails only if the stream has already ended.
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

/// A socket that runtimes, or clients of a simulated runtime, connect to.
#[derive(Debug)]
pub struct Listener(UnixListener);

impl Listener {
    /// Binds a socket that has mode 0600 from the start, regardless of the umask.
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        UnixListener::from_std(listen_owner_only(path)?.into()).map(Self)
    }

    /// Creates the socket of a simulated runtime the way a runtime does.
    ///
    /// # Errors
    /// Those of the system.
    pub fn simulated(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(Self(listener))
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn accept(&self) -> io::Result<Stream> {
        self.0.accept().await.map(|(stream, _)| stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn bytes_are_awaited_until_the_end() {
        let (mut stream, mut other) = Stream::pair().unwrap();
        let send = async {
            for _ in 0..2 {
                other.write_all(&[0; 60]).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let (awaited, ()) = tokio::join!(await_bytes(&mut stream, 100), send);
        awaited.unwrap();
        let early = tokio::time::timeout(std::time::Duration::from_millis(20), await_bytes(&mut stream, 121)).await;
        assert!(early.is_err(), "only 120 bytes were sent");
        drop(other);
        assert_eq!(await_bytes(&mut stream, 121).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        await_bytes(&mut stream, 120).await.unwrap();
    }

    #[test]
    fn folder_of_a_port_suits_an_address() {
        for (usual, parent) in [("/var/tmp", "/var/tmp"), ("/a;b", "/tmp"), ("/a,b", "/tmp")] {
            assert_eq!(suitable_parent(usual.into()), Path::new(parent));
        }
        assert_eq!(suitable_parent(format!("/{}", "d".repeat(MAX_PORT_PARENT_BYTES)).into()), Path::new("/tmp"));
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let suits = |mode| {
            std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            suitable_parent(folder.path().to_owned()) == folder.path()
        };
        assert_eq!([0o700, 0o755, 0o1777, 0o777, 0o770].map(suits), [true, true, true, false, false]);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(65_533), None).unwrap();
            assert!(!suits(0o755) && !suits(0o1777));
        }
    }
}
