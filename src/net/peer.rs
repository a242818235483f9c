//! Verifies the process at the other end of a diagnostic socket before a byte is sent.
//!
//! The name of a socket is only a claim: every user with write access to a directory can put a socket, or a link to another user's socket, under
//! any name. Only the kernel's data is trusted: the owner of the file, and the process that called `listen` (or `connect`, where a runtime connects
//! to us), from `SO_PEERCRED`, which the kernel translates into our pid and user namespaces. Both must match the process that /proc shows.

mod error;
mod verified;

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use rustix::process::geteuid;
use tokio::net::UnixStream;
use tokio::time::sleep;

use super::endpoint::{Endpoint, SocketName};
use super::error::Cause;
use super::proc::Proc;
use super::resolve::{self, Found, OpenError};
use crate::ipc::Advertise;
use crate::model::ProcessKey;

pub use self::error::PeerError;
pub(super) use self::verified::VerifiedStream;

/// The kernel's substitute for a user id that does not exist in our user namespace (`/proc/sys/kernel/overflowuid`).
const OVERFLOW_UID: u32 = 65_534;

/// Pause before connecting again to a server whose queue of 255 clients is full.
const QUEUE_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The other end of a connection, from `SO_PEERCRED`.
#[derive(Debug, Clone, Copy)]
struct Credentials {
    /// `None` if the process is not in our pid namespace.
    pid: Option<u32>,
    uid: u32,
}

impl Credentials {
    fn of(stream: &UnixStream) -> Result<Self, Cause> {
        let peer = stream.peer_cred().map_err(Cause::Io)?;
        Ok(Self { pid: peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0), uid: peer.uid() })
    }

    fn unexpected_process(self) -> PeerError {
        match self.pid {
            Some(pid) => PeerError::Process { pid, uid: self.uid },
            None => PeerError::Unseen { uid: self.uid },
        }
    }

    /// Checks a simulated runtime: its pid does not exist in the kernel, and it is served by our own user.
    fn check_simulated(self) -> Result<(), PeerError> {
        if self.uid == geteuid().as_raw() { Ok(()) } else { Err(self.unexpected_process()) }
    }
}

/// Identity of a socket file, to recognize it under another path.
#[derive(Debug, Clone, Copy)]
pub(super) struct SocketIdentity {
    id: Option<(u64, u64)>,
    /// Owner of the file.
    pub(super) uid: u32,
}

impl SocketIdentity {
    /// Identifies the file at a path.
    pub(super) fn at(path: &Path, proc: &Proc) -> io::Result<Self> {
        match resolve::locate(path, Some(proc)) {
            Ok(found) => Ok(Self { id: found.is_socket().then(|| found.id()), uid: found.stat.st_uid }),
            Err(OpenError::Io(error)) => Err(error),
            Err(OpenError::Link { owner, .. }) => Ok(Self { id: None, uid: owner }),
            Err(OpenError::Blockable(why)) => Err(why.into()),
        }
    }

    pub(super) fn is_at(self, path: &Path, proc: &Proc) -> bool {
        self.id.is_some_and(|id| resolve::locate(path, Some(proc)).is_ok_and(|found| found.id() == id))
    }
}

/// Returns the process that the name of a socket claims to belong to.
pub(super) fn claimed_process(socket: &Path, _: &Proc) -> Option<ProcessKey> {
    let name = SocketName::parse(socket.file_name()?.as_encoded_bytes())?;
    Some(ProcessKey { pid: name.pid, started: name.key })
}

fn key_of(pid: u32, proc: &Proc) -> Option<ProcessKey> {
    proc.stat(pid).ok().map(|stat| ProcessKey { pid, started: stat.starttime })
}

/// Opens a socket file without following untrusted links, and without connecting.
pub(super) fn open(path: &Path, proc: Option<&Proc>) -> Result<Found, Cause> {
    let found = resolve::locate(path, proc).map_err(Cause::of_open)?;
    if found.is_socket() { Ok(found) } else { Err(PeerError::NotASocket.into()) }
}

/// Connects to the very file that was opened, even if its path leads elsewhere by now. Also makes every path fit the 108 bytes of an address.
async fn connect_to(socket: &Found) -> Result<UnixStream, Cause> {
    let address = format!("/proc/self/fd/{}", socket.handle.as_raw_fd());
    loop {
        match UnixStream::connect(&address).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(QUEUE_RETRY_INTERVAL).await,
            connected => return connected.map_err(Cause::of_connect),
        }
    }
}

/// Connects to the socket of a process, and verifies that the process is at the other end. Without a `proc`, or with one that is not the kernel's,
/// the process is a simulated one.
pub(super) async fn connect(to: &Endpoint, proc: Option<&Proc>) -> Result<VerifiedStream, Cause> {
    let socket = open(&to.socket, proc)?;
    let stream = connect_to(&socket).await?;
    let credentials = Credentials::of(&stream)?;
    match proc.filter(|proc| proc.is_real()) {
        Some(proc) => check(to.key, socket.stat.st_uid, credentials, proc)?,
        None => credentials.check_simulated()?,
    }
    Ok(VerifiedStream(stream))
}

/// Checks that the process owns the file, and is at the other end.
fn check(key: ProcessKey, file: u32, credentials: Credentials, proc: &Proc) -> Result<(), PeerError> {
    match (user_of(key, proc), credentials.pid) {
        (Some(uid), _) if uid != file => Err(PeerError::File { file, process: uid }),
        (Some(uid), Some(pid)) if pid == key.pid && uid == credentials.uid => Ok(()),
        // If the process is not visible, only its user can be checked.
        (None, None) => check_unseen(file, credentials),
        _ => Err(credentials.unexpected_process()),
    }
}

/// Containers may share a directory but no pid namespace. The other end is accepted if its user owns the file.
fn check_unseen(file: u32, credentials: Credentials) -> Result<(), PeerError> {
    let known = credentials.uid != OVERFLOW_UID || geteuid().as_raw() == OVERFLOW_UID;
    if known && credentials.uid == file { Ok(()) } else { Err(credentials.unexpected_process()) }
}

/// Returns the effective user of a process that /proc shows.
fn user_of(key: ProcessKey, proc: &Proc) -> Option<u32> {
    let identity = proc.identity(key.pid).ok()?;
    proc.exists(key).then_some(identity.uid)
}

/// Finds the process that listens on the socket at a path and verifies that its user owns the file. If the process is not visible from here, the
/// pid is that in the name of the socket, or 0.
pub(super) async fn identify(path: &Path, claimed: Option<ProcessKey>, proc: &Proc) -> Result<ProcessKey, Cause> {
    let socket = open(path, Some(proc))?;
    let claimed = claimed.unwrap_or(ProcessKey { pid: 0, started: 0 });
    if !proc.is_real() {
        return Ok(claimed);
    }
    let stream = connect_to(&socket).await?;
    let credentials = Credentials::of(&stream)?;
    let key = credentials.pid.and_then(|pid| key_of(pid, proc)).unwrap_or(claimed);
    check(key, socket.stat.st_uid, credentials, proc)?;
    Ok(key)
}

/// Verifies that the process that connected to our port is the one it claims to be. Returns its key in our pid namespace, and its user.
pub(super) fn accept(stream: UnixStream, advertise: &Advertise, proc: &Proc) -> Result<(ProcessKey, u32, VerifiedStream), Cause> {
    let credentials = Credentials::of(&stream)?;
    let claimed = u32::try_from(advertise.pid).map_err(|_| PeerError::Pid { reported: advertise.pid, actual: 0 })?;
    let unseen = ProcessKey { pid: claimed, started: 0 };
    let key = match credentials.pid {
        _ if !proc.is_real() => {
            credentials.check_simulated()?;
            key_of(claimed, proc).unwrap_or(unseen)
        }
        Some(pid) => {
            let identity = proc.identity(pid).map_err(|_| Cause::Gone)?;
            if identity.uid != credentials.uid {
                return Err(credentials.unexpected_process().into());
            }
            if identity.ns_pid != claimed {
                return Err(PeerError::Pid { reported: advertise.pid, actual: identity.ns_pid.into() }.into());
            }
            key_of(pid, proc).ok_or(Cause::Gone)?
        }
        // The permissions of the port's file admit only its owner and root.
        None if [0, geteuid().as_raw()].contains(&credentials.uid) => unseen,
        None => return Err(credentials.unexpected_process().into()),
    };
    Ok((key, credentials.uid, VerifiedStream(stream)))
}

impl Cause {
    fn of_open(error: OpenError) -> Self {
        match error {
            OpenError::Link { link, owner } => PeerError::Link { link: link.to_string_lossy().into_owned(), owner }.into(),
            OpenError::Blockable(why) => PeerError::Blockable(why.to_string()).into(),
            OpenError::Io(error) if error.kind() == io::ErrorKind::NotADirectory => Self::Gone,
            OpenError::Io(error) => Self::of_connect(error),
        }
    }
}

#[cfg(test)]
mod tests;
