//! Verifies the process at the other end of a diagnostic socket before a byte is sent.
//!
//! The name of a socket is only a claim: any user with write access to a directory can create a socket, or a link to another, under any name.
//! Only the system is authoritative: the owner of the file, and the process and the user that listen or have connected (`LOCAL_PEERPID`,
//! `getpeereid(3)`). Both must be those of the process.

#[path = "../peer/error.rs"]
mod error;
#[path = "../peer/verified.rs"]
mod verified;

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::process::geteuid;
use tokio::net::UnixStream;

use super::endpoint::{Endpoint, SocketName};
use super::error::Cause;
use super::proc::Proc;
use crate::ipc::Advertise;
use crate::model::ProcessKey;

pub use self::error::PeerError;
pub(super) use self::verified::VerifiedStream;

/// Process and user at the other end of a connection.
#[derive(Debug, Clone, Copy)]
struct Credentials {
    pid: u32,
    uid: u32,
}

impl Credentials {
    fn of(stream: &UnixStream) -> Result<Self, Cause> {
        let peer = stream.peer_cred().map_err(Cause::Io)?;
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| Cause::Io(io::Error::other("the system does not name the process at the other end")))?;
        Ok(Self { pid, uid: peer.uid() })
    }

    fn unexpected_process(self) -> PeerError {
        PeerError::Process { pid: self.pid, uid: self.uid }
    }

    /// Simulated runtimes have pids that do not exist, and are all served by our own user.
    fn check_simulated(self) -> Result<(), PeerError> {
        if self.uid == geteuid().as_raw() { Ok(()) } else { Err(self.unexpected_process()) }
    }
}

/// Identifies the file of a socket under different paths.
#[derive(Debug, Clone, Copy)]
pub(super) struct SocketIdentity {
    id: (u64, u64),
    /// Owner of the file.
    pub(super) uid: u32,
}

impl SocketIdentity {
    /// Returns the file at a path.
    pub(super) fn at(path: &Path, _: &Proc) -> io::Result<Self> {
        let facts = path.symlink_metadata()?;
        Ok(Self { id: (facts.dev(), facts.ino()), uid: facts.uid() })
    }

    pub(super) fn is_at(self, path: &Path, _: &Proc) -> bool {
        path.symlink_metadata().is_ok_and(|facts| (facts.dev(), facts.ino()) == self.id)
    }
}

/// Returns the process claimed by the name of a socket.
pub(super) fn claimed_process(socket: &Path, _: &Proc) -> Option<ProcessKey> {
    let name = SocketName::parse(socket.file_name()?.as_encoded_bytes())?;
    Some(ProcessKey { pid: name.pid, started: name.key })
}

fn key_of(pid: u32, proc: &Proc) -> Option<ProcessKey> {
    proc.stat(pid).ok().map(|stat| ProcessKey { pid, started: stat.starttime })
}

/// Connects to a socket and returns the owner of its file.
async fn connect_to(path: &Path) -> Result<(UnixStream, u32), Cause> {
    let facts = path.symlink_metadata().map_err(Cause::of_connect)?;
    if !facts.file_type().is_socket() {
        return Err(PeerError::NotASocket.into());
    }
    Ok((UnixStream::connect(path).await.map_err(Cause::of_connect)?, facts.uid()))
}

/// Connects to the socket of a process and verifies that the process is at the other end. Without a `proc`, or with one that is not the
/// machine's, the process is simulated.
pub(super) async fn connect(to: &Endpoint, proc: Option<&Proc>) -> Result<VerifiedStream, Cause> {
    let (stream, owner) = connect_to(&to.socket).await?;
    let credentials = Credentials::of(&stream)?;
    match proc.filter(|proc| proc.is_real()) {
        Some(proc) => check(to.key, owner, credentials, proc)?,
        None => credentials.check_simulated()?,
    }
    Ok(VerifiedStream(stream))
}

/// Checks that the process owns the file and is at the other end.
fn check(key: ProcessKey, file: u32, credentials: Credentials, proc: &Proc) -> Result<(), Cause> {
    let identity = proc.identity(key.pid).map_err(|_| Cause::Gone)?;
    if !proc.exists(key) {
        return Err(Cause::Gone);
    }
    if identity.uid != file {
        return Err(PeerError::File { file, process: identity.uid }.into());
    }
    if (credentials.pid, credentials.uid) == (key.pid, identity.uid) { Ok(()) } else { Err(credentials.unexpected_process().into()) }
}

/// Returns the process that listens on the socket at a path, if nothing else is known about the process.
pub(super) async fn identify(path: &Path, claimed: Option<ProcessKey>, proc: &Proc) -> Result<ProcessKey, Cause> {
    let (stream, owner) = connect_to(path).await?;
    if !proc.is_real() {
        return Ok(claimed.unwrap_or(ProcessKey { pid: 0, started: 0 }));
    }
    let credentials = Credentials::of(&stream)?;
    let key = key_of(credentials.pid, proc).ok_or(Cause::Gone)?;
    check(key, owner, credentials, proc)?;
    Ok(key)
}

/// Verifies the process that connected to our port, and its claim. Returns its key and its user.
pub(super) fn accept(stream: UnixStream, advertise: &Advertise, proc: &Proc) -> Result<(ProcessKey, u32, VerifiedStream), Cause> {
    let credentials = Credentials::of(&stream)?;
    let claimed_pid = u32::try_from(advertise.pid).map_err(|_| PeerError::Pid { reported: advertise.pid, actual: 0 })?;
    if !proc.is_real() {
        credentials.check_simulated()?;
        let key = key_of(claimed_pid, proc).unwrap_or(ProcessKey { pid: claimed_pid, started: 0 });
        return Ok((key, credentials.uid, VerifiedStream(stream)));
    }
    let identity = proc.identity(credentials.pid).map_err(|_| Cause::Gone)?;
    if identity.uid != credentials.uid {
        return Err(credentials.unexpected_process().into());
    }
    if claimed_pid != credentials.pid {
        return Err(PeerError::Pid { reported: advertise.pid, actual: credentials.pid.into() }.into());
    }
    Ok((key_of(credentials.pid, proc).ok_or(Cause::Gone)?, credentials.uid, VerifiedStream(stream)))
}
