//! Connects to a socket of the tracing service, with checks, and receives frames and files.

use std::ffi::OsStr;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
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

/// An open file passed by the service.
pub use std::os::fd::OwnedFd as Handle;
pub(super) use tokio::net::unix::OwnedWriteHalf as Writer;

const CHUNK: usize = 64 * 1024;
/// Maximum number of files kept of a frame. A service sends one; a second one shows that it is not the expected one.
const MAX_FILES: usize = 2;
const WRITABLE_BY_ALL: u32 = 0o002;

/// Connects, and checks the owner of the socket and the listener.
pub(super) async fn connect(address: &Address) -> Result<UnixStream, Cause> {
    let (stream, owner) = match address {
        Address::Path(path) => {
            let socket = open(path)?;
            let owner = socket.stat.st_uid;
            if !is_trusted(owner) && is_in_world_writable_directory(path)? {
                return Err(Cause::Untrusted { owner });
            }
            (UnixStream::connect(format!("/proc/self/fd/{}", socket.handle.as_raw_fd())).await?, owner)
        }
        Address::Abstract(name) => {
            // A leading NUL denotes the abstract namespace.
            let stream = UnixStream::connect(OsStr::from_bytes(&[b"\0".as_slice(), name].concat())).await?;
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
    let found = resolve::locate(path, None).map_err(open_error)?;
    if found.is_socket() { Ok(found) } else { Err(PeerError::NotASocket.into()) }
}

/// Whether every user can create files in the directory of the socket. A system service with its own user has its own directory.
fn is_in_world_writable_directory(path: &Path) -> Result<bool, Cause> {
    let path = std::path::absolute(path)?;
    let folder = resolve::locate(path.parent().unwrap_or(&path), None).map_err(open_error)?;
    Ok(folder.stat.st_mode & WRITABLE_BY_ALL != 0)
}

fn open_error(error: OpenError) -> Cause {
    match error {
        OpenError::Link { link, owner } => PeerError::Link { link: link.to_string_lossy().into_owned(), owner }.into(),
        OpenError::Blockable(why) => PeerError::Blockable(why.to_string()).into(),
        OpenError::Io(error) if error.kind() == io::ErrorKind::NotADirectory => Cause::NoService,
        OpenError::Io(error) => error.into(),
    }
}

/// The receiving half of a socket.
pub(super) struct FrameReceiver {
    stream: OwnedReadHalf,
    frames: FrameReader,
    /// Number of bytes received.
    received: u64,
    /// Received files. They belong to the first frame that ends at or after this number of received bytes.
    files: (Vec<Handle>, u64),
    buffer: Vec<u8>,
}

impl FrameReceiver {
    pub(super) fn new(stream: OwnedReadHalf) -> Self {
        Self { stream, frames: FrameReader::default(), received: 0, files: (Vec::new(), 0), buffer: vec![0; CHUNK] }
    }

    /// Returns the next frame, and the files passed with it.
    pub(super) async fn next(&mut self) -> Result<(Frame, Vec<Handle>), Cause> {
        loop {
            if let Some(frame) = self.frames.frame()? {
                // One read may return frames sent before the files, but none sent after them: the files belong to the last bytes of the read.
                let is_theirs = self.received - self.frames.left() as u64 >= self.files.1;
                return Ok((frame, if is_theirs { std::mem::take(&mut self.files.0) } else { Vec::new() }));
            }
            self.stream.readable().await?;
            let stream: &UnixStream = self.stream.as_ref();
            let (buffer, files) = (&mut self.buffer, &mut self.files.0);
            let before = files.len();
            match stream.try_io(Interest::READABLE, || receive(stream, buffer, files)) {
                Ok(0) => return Err(Cause::Closed),
                Ok(count) => {
                    self.received += count as u64;
                    if self.files.0.len() > before {
                        self.files.1 = self.received;
                    }
                    self.frames.push(&self.buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn receive(stream: &UnixStream, buffer: &mut [u8], files: &mut Vec<Handle>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(stream, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(arrived) = message {
            files.extend(arrived);
        }
    }
    // Files not kept are closed.
    files.truncate(MAX_FILES);
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{PermissionsExt, chown};

    use rustix::net::{
        self as net, AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind,
        listen, sendmsg, socket_with,
    };

    use super::*;
    use crate::perfetto::ipc::Body;

    /// Sends bytes, with a file attached to the first of them.
    fn send(stream: &UnixStream, bytes: &[u8], file: Option<&Handle>) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&files));
        }
        assert_eq!(sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap(), bytes.len());
    }

    /// Any user may take an abstract name, and never accept a connection.
    #[tokio::test]
    async fn full_queue_of_connections_is_an_error() {
        let name = format!("dn-top-test-{}-full", std::process::id()).into_bytes();
        let at = SocketAddrUnix::new_abstract_name(&name).unwrap();
        let socket = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None).unwrap();
        let listener = socket();
        bind(&listener, &at).unwrap();
        listen(&listener, 0).unwrap();
        let waiting: Vec<_> = std::iter::repeat_with(socket).take_while(|socket| net::connect(socket, &at).is_ok()).collect();
        let cause = connect(&Address::Abstract(name)).await.unwrap_err();
        assert!(!waiting.is_empty() && matches!(cause, Cause::NotReading), "{cause}");
    }

    /// Anyone could have created a socket in a folder that everyone can write to.
    #[tokio::test]
    async fn sockets_of_other_users_are_refused_in_shared_folders() {
        // Only root can give a file to another user.
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("producer");
        let _listener = tokio::net::UnixListener::bind(&path).unwrap();
        for (mode, owner, is_refused) in [(0o1777, 0, false), (0o1777, 65_533, true), (0o775, 65_533, false)] {
            chown(&path, Some(owner), None).unwrap();
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
            let found = connect(&Address::Path(path.clone())).await;
            let refused = matches!(found, Err(Cause::Untrusted { owner: 65_533 }));
            assert_eq!((found.is_err(), refused), (is_refused, is_refused), "{mode:o} {owner}");
        }
    }

    /// Who can replace the file of a socket receives what is sent to it.
    #[tokio::test]
    async fn socket_must_be_served_by_its_owner_or_root() {
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let path = folder.path().join("producer");
        let of_user = |user: u32| {
            let listen = move |path: std::path::PathBuf| {
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(user)).unwrap();
                std::os::unix::net::UnixListener::bind(path).unwrap()
            };
            let path = path.clone();
            // The user of a thread is its own.
            std::thread::spawn(move || listen(path)).join().unwrap()
        };
        for (server, owner, is_refused) in [(65_533, 65_533, false), (0, 65_533, false), (65_533, 0, true), (65_533, 65_532, true)] {
            let _listener = of_user(server);
            chown(&path, Some(owner), None).unwrap();
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
            let found = connect(&Address::Path(path.clone())).await;
            let refused = matches!(found, Err(Cause::OtherUser { owner: of, listens }) if (of, listens) == (owner, server));
            assert_eq!((found.is_err(), refused), (is_refused, is_refused), "{server} {owner}");
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
            std::fs::remove_file(&path).unwrap();
        }
    }

    /// P12, M1: a file is received with the frame that it was sent with, however many frames one read returns, and wherever a read ends.
    #[tokio::test]
    async fn p12_file_is_received_with_its_frame() {
        for cut in [0, 1, 7] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (read, _write) = ours.into_split();
            let mut receiver = FrameReceiver::new(read);
            let frame = |request| {
                Frame { request, body: Body::InvokeReply { success: true, has_more: false, reply: vec![1; 9] } }.encode().unwrap()
            };
            let file = Handle::from(std::fs::File::open("/dev/null").unwrap());
            send(&theirs, &frame(1), None);
            send(&theirs, &frame(2), None);
            let with_file = frame(3);
            send(&theirs, &with_file[..with_file.len() - cut], Some(&file));
            let mut arrived = Vec::new();
            for _ in 0..2 {
                let (frame, files) = receiver.next().await.unwrap();
                arrived.push((frame.request, files.len()));
            }
            if cut > 0 {
                // The rest, together with the next frame.
                let rest = [&with_file[with_file.len() - cut..], &frame(4)].concat();
                send(&theirs, &rest, None);
            } else {
                send(&theirs, &frame(4), None);
            }
            for _ in 0..2 {
                let (frame, files) = receiver.next().await.unwrap();
                arrived.push((frame.request, files.len()));
            }
            assert_eq!(arrived, [(1, 0), (2, 0), (3, 1), (4, 0)], "{cut} bytes later");
        }
    }
}
