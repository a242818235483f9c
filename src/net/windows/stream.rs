//! Connections to and from runtimes: named pipes in byte mode.
//!
//! A client opens a pipe so that the server can identify but not impersonate us (`SECURITY_IDENTIFICATION`). Our servers admit only our own user
//! and no other machine, and create the first instance of the pipe, so that no other process has instances of it.

use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::OwnedHandle;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use interprocess::os::windows::named_pipe::tokio::{DuplexPipeStream, PipeListener};
use interprocess::os::windows::named_pipe::{PipeListenerOptions, pipe_mode::Bytes};
use interprocess::os::windows::security_descriptor::SecurityDescriptor;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::sleep;
use widestring::U16CString;

use super::system::account;

/// Directory of the named pipes of this machine.
pub(super) const PIPES: &str = r"\\.\pipe\";
/// Maximum length of a pipe's path, in characters (`CreateNamedPipe`).
pub(super) const MAX_PATH_LENGTH: usize = 256;
/// Unit of [`MAX_PATH_LENGTH`].
pub(super) const PATH_UNIT: &str = "characters";

/// `FILE_FLAG_OVERLAPPED` (`CreateFile`).
const OVERLAPPED: u32 = 0x4000_0000;
/// `SECURITY_IDENTIFICATION` (`CreateFile`).
const IDENTIFICATION: u32 = 0x0001_0000;
/// All instances of a pipe are in use (`ERROR_PIPE_BUSY`).
pub(super) const PIPE_BUSY: i32 = 231;
/// Pause before connecting again to a server whose only instance is in use.
pub(super) const BUSY_RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// Buffer size of our pipes, in bytes.
const BUFFER: u32 = 64 << 10;

/// Returns the address with this name that belongs to a directory. Pipes have no directories, so it becomes part of the name.
pub fn address_in(folder: &Path, name: &str) -> PathBuf {
    let folder: String = folder.to_string_lossy().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    PathBuf::from(format!("{PIPES}{}-{name}", folder.trim_matches('-')))
}

/// Returns a folder in which a folder for a temporary port can be created. Any will do: [`address_in`] makes a valid name of its path.
pub fn port_parent() -> PathBuf {
    std::env::temp_dir()
}

/// Returns the form of an address used in `DOTNET_DiagnosticPorts`, to which the runtime prepends the directory of pipes.
pub fn port_name(address: &Path) -> &Path {
    pipe_name(address).map_or(address, Path::new)
}

/// Returns the name of a pipe of this machine; `None` if the path is not that of a pipe.
pub(super) fn pipe_name(path: &Path) -> Option<&str> {
    let path = path.to_str()?;
    let (folder, name) = path.split_at_checked(PIPES.len())?;
    (folder.eq_ignore_ascii_case(PIPES) && !name.is_empty()).then_some(name)
}

/// One end of a pipe.
#[derive(Debug)]
pub struct Stream {
    pipe: DuplexPipeStream<Bytes>,
    /// A byte received but not read yet.
    peeked: Option<u8>,
    closed: Arc<Closed>,
}

/// Whether our side has closed the stream.
#[derive(Debug, Default)]
struct Closed(Mutex<CloseState>);

#[derive(Debug, Default)]
struct CloseState {
    /// Bytes that may still be read after closing, as a limit for a peer that never stops writing.
    rest: Option<usize>,
    /// Waker of a pending read.
    waker: Option<Waker>,
}

impl Closed {
    fn lock(&self) -> MutexGuard<'_, CloseState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    fn new(pipe: DuplexPipeStream<Bytes>) -> Self {
        Self { pipe, peeked: None, closed: Arc::default() }
    }

    /// Connects to a pipe of this machine; waits while the server has no free instance.
    ///
    /// # Errors
    /// System errors; `InvalidInput` if the path is not that of a pipe of this machine.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        if pipe_name(path).is_none() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("it is not a named pipe of this machine, such as {PIPES}NAME"),
            ));
        }
        loop {
            match open(path) {
                Err(error) if error.raw_os_error() == Some(PIPE_BUSY) => sleep(BUSY_RETRY_INTERVAL).await,
                opened => return DuplexPipeStream::try_from(opened?).map(Self::new).map_err(io::Error::from),
            }
        }
    }

    /// Returns the process at the other end.
    pub(super) fn peer_pid(&self) -> io::Result<u32> {
        self.pipe.peer_process_id()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Written bytes stay in the pipe for the reader; dropping does not wait until they are read.
        self.pipe.assume_flushed();
    }
}

fn open(path: &Path) -> io::Result<OwnedHandle> {
    let opened = OpenOptions::new().read(true).write(true).custom_flags(OVERLAPPED).security_qos_flags(IDENTIFICATION).open(path);
    opened.map(OwnedHandle::from)
}

/// Whether a pipe with this name is served. Makes a connection, which is closed at once.
pub(super) fn is_served(path: &Path) -> bool {
    match open(path) {
        Ok(_) => true,
        Err(error) => error.raw_os_error() == Some(PIPE_BUSY) || error.kind() == io::ErrorKind::PermissionDenied,
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(byte) = self.peeked.take_if(|_| buffer.remaining() > 0) {
            buffer.put_slice(&[byte]);
            return Poll::Ready(Ok(()));
        }
        let this = &mut *self;
        if this.closed.lock().rest == Some(0) {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = match Pin::new(&mut this.pipe).poll_read(context, buffer) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Poll::Ready(Ok(())),
            read => read,
        };
        let mut closed = this.closed.lock();
        if let Some(rest) = &mut closed.rest {
            if read.is_pending() {
                return Poll::Ready(Ok(()));
            }
            *rest = rest.saturating_sub(buffer.filled().len() - before);
        } else if read.is_pending() {
            closed.waker = Some(context.waker().clone());
        }
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // The bytes taken are all copied, and the next write waits until they have been read.
        Pin::new(&mut self.pipe).poll_write(context, &bytes[..bytes.len().min(BUFFER as usize)])
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Waits for the end of a stream on which no data is expected: any data violates the protocol.
pub(in crate::net) async fn ended(stream: &Stream) {
    // A canceled read leaves its byte in the pipe, or for the next read.
    let _ = (&stream.pipe).read(&mut [0]).await;
}

/// Waits until bytes can be read, without consuming them. Of a pipe, only one can be looked at: the others are assumed to follow at once.
///
/// # Errors
/// System errors; `UnexpectedEof` at the end of the stream.
pub async fn await_bytes(stream: &mut Stream, _: usize) -> io::Result<()> {
    if stream.peeked.is_none() {
        stream.peeked = Some(stream.read_u8().await?);
    }
    Ok(())
}

/// A stream for a blocking thread.
#[derive(Debug)]
pub struct BlockingStream {
    stream: Stream,
    runtime: Handle,
}

impl io::Read for BlockingStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.runtime.block_on(self.stream.read(buffer))
    }
}

/// Converts a stream for a blocking thread. Must be called within a tokio runtime.
///
/// # Errors
/// Never on this system.
pub fn into_blocking(stream: Stream) -> io::Result<BlockingStream> {
    Ok(BlockingStream { stream, runtime: Handle::current() })
}

/// Closes a stream while it is read.
#[derive(Debug)]
pub struct Closer(Arc<Closed>);

impl Closer {
    /// Creates a closer of a stream.
    ///
    /// # Errors
    /// Never on this system.
    pub fn of(stream: &Stream) -> io::Result<Self> {
        Ok(Self(Arc::clone(&stream.closed)))
    }

    /// Closes the stream from our side; bytes already received can still be read.
    pub fn close(&self) {
        let mut closed = self.0.lock();
        closed.rest.get_or_insert(BUFFER as usize);
        if let Some(waker) = closed.waker.take() {
            waker.wake();
        }
    }
}

/// A pipe to which runtimes, or clients of a simulated one, connect.
#[derive(Debug)]
pub struct Listener(PipeListener<Bytes, Bytes>);

impl Listener {
    /// Creates a pipe accessible only to our own user.
    pub(in crate::net) fn bind(path: &Path) -> io::Result<Self> {
        let rights = format!("D:P(A;;GA;;;{})", account()?);
        let rights = U16CString::from_str(rights).map_err(io::Error::other)?;
        let options = PipeListenerOptions::new()
            .path(path)
            .input_buffer_size_hint(BUFFER)
            .output_buffer_size_hint(BUFFER)
            .security_descriptor(Some(SecurityDescriptor::deserialize(&rights)?));
        options.create_tokio_duplex().map(Self)
    }

    /// Creates the pipe of a simulated runtime.
    ///
    /// # Errors
    /// System errors.
    pub fn simulated(path: &Path) -> io::Result<Self> {
        Self::bind(path)
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// System errors.
    pub async fn accept(&self) -> io::Result<Stream> {
        self.0.accept().await.map(Stream::new)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::net::test_stream::pair;

    /// Without a limit on the bytes read after closing, stopping a session might never finish.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn closed_stream_ends_despite_further_writes() {
        let (stream, mut peer) = pair().await;
        let closer = Closer::of(&stream).unwrap();
        let mut stream = into_blocking(stream).unwrap();
        std::thread::spawn(move || while peer.write_all(&[7; 4096]).is_ok() {});
        let reader = std::thread::spawn(move || {
            stream.read_exact(&mut [0; 100_000]).unwrap();
            closer.close();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
            rest.len()
        });
        let rest = tokio::task::spawn_blocking(|| reader.join().unwrap()).await.unwrap();
        assert!(rest < 4 * BUFFER as usize, "{rest}");
    }

    #[tokio::test]
    async fn closing_wakes_a_waiting_reader() {
        let (mut stream, _peer) = pair().await;
        let closer = Closer::of(&stream).unwrap();
        let reader = tokio::spawn(async move { stream.read(&mut [0]).await.unwrap() });
        sleep(BUSY_RETRY_INTERVAL).await;
        closer.close();
        assert_eq!(reader.await.unwrap(), 0);
    }
}
