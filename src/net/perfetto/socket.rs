//! A connection to a socket of the tracing service: checked, and frames and files from it.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream as StdStream};
use std::path::Path;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::geteuid;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

use super::address::Address;
use super::error::Cause;
use crate::net::PeerError;
use crate::net::resolve::{self, OpenError};
use crate::perfetto::ipc::{Frame, FrameReader};

/// One read takes at most this much.
const CHUNK: usize = 64 * 1024;
/// Most files that come with one read. A service sends one.
const FILES: usize = 4;
/// Write permission for everybody.
const WRITABLE_BY_ALL: u32 = 0o002;

/// Connects, and checks whose socket it is and who listens.
pub(super) async fn connect(address: &Address) -> Result<UnixStream, Cause> {
    let (stream, owner) = match address {
        Address::Path(path) => {
            let socket = open(path)?;
            let owner = socket.stat.st_uid;
            if !is_trusted(owner) && anybody_may_write_beside(path)? {
                return Err(Cause::Untrusted { owner });
            }
            (UnixStream::connect(format!("/proc/self/fd/{}", socket.handle.as_raw_fd())).await?, owner)
        }
        Address::Abstract(name) => {
            let stream = StdStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
            stream.set_nonblocking(true)?;
            let stream = UnixStream::from_std(stream)?;
            let owner = stream.peer_cred()?.uid();
            if !is_trusted(owner) {
                return Err(Cause::Untrusted { owner });
            }
            (stream, owner)
        }
    };
    let listens = stream.peer_cred()?.uid();
    if listens != owner && listens != 0 { Err(Cause::OtherUser { owner, listens }) } else { Ok(stream) }
}

fn is_trusted(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

fn open(path: &Path) -> Result<resolve::Found, Cause> {
    let path = std::path::absolute(path)?;
    let found = resolve::locate(&path, None).map_err(not_opened)?;
    if found.is_socket() { Ok(found) } else { Err(PeerError::NotASocket.into()) }
}

/// A service that root starts as a user of its own has a folder of its own.
fn anybody_may_write_beside(path: &Path) -> Result<bool, Cause> {
    let path = std::path::absolute(path)?;
    let folder = resolve::locate(path.parent().unwrap_or(&path), None).map_err(not_opened)?;
    Ok(folder.stat.st_mode & WRITABLE_BY_ALL != 0)
}

fn not_opened(error: OpenError) -> Cause {
    match error {
        OpenError::Link { link, owner } => PeerError::Link { link: link.to_string_lossy().into_owned(), owner }.into(),
        OpenError::Io(error) if error.kind() == io::ErrorKind::NotADirectory => Cause::NoService,
        OpenError::Io(error) => error.into(),
    }
}

/// What comes from a socket.
pub(super) struct Incomings {
    stream: OwnedReadHalf,
    frames: FrameReader,
    /// Files that came and belong to the next frame.
    files: Vec<OwnedFd>,
    buffer: Vec<u8>,
}

impl Incomings {
    pub(super) fn new(stream: OwnedReadHalf) -> Self {
        Self { stream, frames: FrameReader::default(), files: Vec::new(), buffer: vec![0; CHUNK] }
    }

    /// The next frame, and the files that came with it.
    pub(super) async fn next(&mut self) -> Result<(Frame, Vec<OwnedFd>), Cause> {
        loop {
            if let Some(frame) = self.frames.frame()? {
                return Ok((frame, std::mem::take(&mut self.files)));
            }
            self.stream.readable().await?;
            let stream: &UnixStream = self.stream.as_ref();
            let (buffer, files) = (&mut self.buffer, &mut self.files);
            match stream.try_io(Interest::READABLE, || receive(stream, buffer, files)) {
                Ok(0) => return Err(Cause::Closed),
                Ok(count) => self.frames.push(&self.buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn receive(stream: &UnixStream, buffer: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(stream, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(came) = message {
            files.extend(came);
        }
    }
    // What nothing takes is closed.
    files.truncate(FILES);
    Ok(received.bytes)
}
