//! Verifies the process at the other end of a diagnostic pipe before a byte is sent.
//!
//! The name of a pipe is only a claim: the first process to create a pipe with a free name serves it. Only the system is authoritative: the process
//! that serves the pipe (`GetNamedPipeServerProcessId`), or that connected to ours (`GetNamedPipeClientProcessId`).

#[path = "../peer/verified.rs"]
mod verified;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::endpoint::Endpoint;
use super::error::Cause;
use super::proc::Proc;
use super::stream::{PIPES, Stream, pipe_name};
use crate::ipc::Advertise;
use crate::model::ProcessKey;

pub(super) use self::verified::VerifiedStream;

/// Prefix of the name of a runtime's pipe, followed by its process ID.
pub(super) const PREFIX: &str = "dotnet-diagnostic-";

/// The reason why a pipe or connection is not accepted as that of its process.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PeerError {
    /// The path is not that of a named pipe.
    #[error("it is not a named pipe of this machine, such as {PIPES}NAME")]
    NotAPipe,
    /// Another process serves the pipe, or has connected.
    #[error("the pipe is not served by its process: process {pid} is at the other end")]
    Process {
        /// Process ID.
        pid: u32,
    },
    /// The runtime reports another process ID.
    #[error("the pipe is not served by its process: the runtime reports process id {reported}, and its process is {actual}")]
    Pid {
        /// Process ID reported by the runtime.
        reported: u64,
        /// Process ID reported by the system.
        actual: u64,
    },
}

impl PeerError {
    /// Whether the path is that of something other than a pipe.
    pub(in crate::net) fn is_not_a_socket(&self) -> bool {
        matches!(self, Self::NotAPipe)
    }
}

/// Identifies a pipe under different spellings of its path.
#[derive(Debug, Clone)]
pub(super) struct SocketIdentity {
    name: String,
    /// The owner of a pipe is not determined.
    pub(super) uid: u32,
}

impl SocketIdentity {
    /// Returns the pipe at a path.
    pub(super) fn at(path: &Path, _: &Proc) -> io::Result<Self> {
        let name = pipe_name(path).ok_or(io::ErrorKind::NotFound)?.to_owned();
        Ok(Self { name, uid: 0 })
    }

    pub(super) fn is_at(&self, path: &Path, _: &Proc) -> bool {
        pipe_name(path).is_some_and(|name| name.eq_ignore_ascii_case(&self.name))
    }
}

/// Returns the path of a runtime's pipe.
pub(super) fn default_pipe(pid: u32) -> PathBuf {
    PathBuf::from(format!("{PIPES}{PREFIX}{pid}"))
}

/// Returns the process claimed by the name of a pipe.
pub(super) fn claimed_process(socket: &Path, proc: &Proc) -> Option<ProcessKey> {
    let pid = pipe_name(socket)?.strip_prefix(PREFIX)?.parse().ok()?;
    Some(key_of(pid, proc).unwrap_or(ProcessKey { pid, started: 0 }))
}

fn key_of(pid: u32, proc: &Proc) -> Option<ProcessKey> {
    proc.stat(pid).ok().map(|stat| ProcessKey { pid, started: stat.starttime })
}

async fn connect_to(path: &Path) -> Result<Stream, Cause> {
    if pipe_name(path).is_none() {
        return Err(PeerError::NotAPipe.into());
    }
    Stream::connect(path).await.map_err(Cause::of_connect)
}

/// Connects to the pipe of a process and verifies that the process serves it. Without a `proc`, or with one that is not the machine's, the
/// process is simulated and its pid is not that of the server.
pub(super) async fn connect(to: &Endpoint, proc: Option<&Proc>) -> Result<VerifiedStream, Cause> {
    let stream = connect_to(&to.socket).await?;
    if let Some(proc) = proc.filter(|proc| proc.is_real()) {
        let pid = stream.peer_pid().map_err(Cause::Io)?;
        if pid != to.key.pid {
            return Err(PeerError::Process { pid }.into());
        }
        if !proc.exists(to.key) {
            return Err(Cause::Gone);
        }
    }
    Ok(VerifiedStream(stream))
}

/// Returns the process that serves a pipe, if nothing else is known about the process.
pub(super) async fn identify(path: &Path, claimed: Option<ProcessKey>, proc: &Proc) -> Result<ProcessKey, Cause> {
    let claimed = claimed.unwrap_or(ProcessKey { pid: 0, started: 0 });
    if !proc.is_real() {
        return Ok(claimed);
    }
    let pid = connect_to(path).await?.peer_pid().map_err(Cause::Io)?;
    let key = key_of(pid, proc).ok_or(Cause::Gone)?;
    if claimed.pid != 0 && claimed.pid != pid { Err(PeerError::Process { pid }.into()) } else { Ok(key) }
}

/// Verifies the process that connected to our port, and its claim. The pipe's access rights admit only our own user. Returns its key, and 0 as its
/// user: no user has a number.
pub(super) fn accept(stream: Stream, advertise: &Advertise, proc: &Proc) -> Result<(ProcessKey, u32, VerifiedStream), Cause> {
    let claimed_pid = u32::try_from(advertise.pid).map_err(|_| PeerError::Pid { reported: advertise.pid, actual: 0 })?;
    let pid = if proc.is_real() { stream.peer_pid().map_err(Cause::Io)? } else { claimed_pid };
    if pid != claimed_pid {
        return Err(PeerError::Pid { reported: advertise.pid, actual: pid.into() }.into());
    }
    let key = match key_of(pid, proc) {
        Some(key) => key,
        None if proc.is_real() => return Err(Cause::Gone),
        None => ProcessKey { pid, started: 0 },
    };
    Ok((key, 0, VerifiedStream(stream)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::net::client::Client;
    use crate::net::discovery::Sources;
    use crate::net::stream::Listener;

    fn machine() -> Arc<Proc> {
        Arc::new(Proc::open(&Sources::machine().proc).unwrap())
    }

    /// We serve a pipe under the expected name; the process expected there is another one, or was started before us.
    #[tokio::test]
    async fn nothing_is_sent_to_an_impostor_pipe() {
        let (own_pid, proc) = (std::process::id(), machine());
        let key = key_of(own_pid, &proc).unwrap();
        let claimed = ProcessKey { pid: u32::MAX - 3, started: 1 };
        for (key, words) in [
            (claimed, format!("process {own_pid} is at the other end")),
            (ProcessKey { started: key.started - 1, ..key }, "the process has ended".to_owned()),
        ] {
            let socket = default_pipe(key.pid);
            let listener = Listener::simulated(&socket).unwrap();
            let received = tokio::spawn(async move {
                let mut bytes = Vec::new();
                let mut stream = listener.accept().await.unwrap();
                tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut bytes).await.unwrap();
                bytes
            });
            let client = Client::for_process(Endpoint { key, socket: socket.clone() }, Arc::clone(&proc));
            let error = timeout(Duration::from_secs(20), client.process_info()).await.unwrap().unwrap_err();
            assert!(error.to_string().contains(&words), "{words}: {error}");
            assert!(timeout(Duration::from_secs(20), received).await.unwrap().unwrap().is_empty(), "{words}");
        }
        // Our process is not accepted as the one in the name.
        let socket = default_pipe(claimed.pid);
        let _listener = Listener::simulated(&socket).unwrap();
        let identified = identify(&socket, claimed_process(&socket, &proc), &proc).await;
        assert!(matches!(identified, Err(Cause::Peer(PeerError::Process { pid })) if pid == own_pid), "{identified:?}");
    }

    /// Wine grants all users access to every pipe.
    #[test]
    fn access_denied_to_a_pipe_names_the_remedy() {
        let denied = Cause::of_connect(io::ErrorKind::PermissionDenied.into());
        let words = "only the owner of its socket and administrators may attach: run dn-top as that user, or in a terminal that was started as administrator";
        assert_eq!(denied.to_string(), words);
    }

    #[tokio::test]
    async fn only_local_pipes_are_connected_to() {
        let long = format!("{PIPES}{}", "n".repeat(300));
        for (path, words) in [
            (r"\\server\pipe\dotnet-diagnostic-1", "it is not a named pipe of this machine"),
            (r"C:\dotnet-diagnostic-1", "it is not a named pipe of this machine"),
            ("NUL", "it is not a named pipe of this machine"),
            (PIPES, "it is not a named pipe of this machine"),
            (long.as_str(), ""),
        ] {
            let endpoint = Endpoint { key: ProcessKey { pid: 1, started: 1 }, socket: path.into() };
            let error = Client::new(endpoint).process_info().await.unwrap_err().to_string();
            assert!(error.contains(words), "{path}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
