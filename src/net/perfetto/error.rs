//! Why the tracing service cannot be used, in words.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::address::Address;
use crate::model::SafeText;
use crate::net::PeerError;
use crate::perfetto::call::{BindError, CallError};
use crate::perfetto::ipc::FrameError;
use crate::perfetto::read::Malformed;

/// What went wrong, and with which socket.
#[derive(Debug, Error)]
#[error("Perfetto's tracing service at {address}: {cause}")]
pub struct PerfettoError {
    /// The socket.
    pub address: Address,
    /// What went wrong.
    pub cause: Cause,
}

impl PerfettoError {
    /// Whether it is a matter of rights, or of whose service it is.
    pub fn is_denied(&self) -> bool {
        matches!(self.cause, Cause::Denied | Cause::Untrusted { .. } | Cause::OtherUser { .. })
    }
}

/// What went wrong.
#[derive(Debug, Error)]
pub enum Cause {
    /// The environment names no socket of this machine.
    #[error("{variable} is '{value}', and only sockets of this machine can be used: give a path, or a name behind '@'")]
    Name {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: SafeText,
    },
    /// Nothing listens.
    #[error(
        "no service listens there; install and start it (Debian, Ubuntu: `apt install perfetto`), or name its socket in PERFETTO_PRODUCER_SOCK_NAME and \
         PERFETTO_CONSUMER_SOCK_NAME"
    )]
    NoService,
    /// The file must not be used by this user.
    #[error("permission denied; root and the members of the socket's group (Debian: `perfetto`) may use it")]
    Denied,
    /// The file is no socket, or behind a link.
    #[error("{0}")]
    Peer(#[from] PeerError),
    /// Anybody could have made the socket.
    #[error(
        "the socket belongs to user {owner} and is in a directory that every user can write to: what is recorded is sent to root's or your own service only"
    )]
    Untrusted {
        /// Owner of the file.
        owner: u32,
    },
    /// Another user listens than the one whose socket it is.
    #[error("the socket belongs to user {owner}, and a process of user {listens} listens on it")]
    OtherUser {
        /// Owner of the file.
        owner: u32,
        /// The other end of the connection.
        listens: u32,
    },
    /// It is gone, or does not want us.
    #[error("the connection was closed")]
    Closed,
    /// It does not read.
    #[error("it does not read what is sent to it")]
    Stuck,
    /// It does not answer.
    #[error("no answer to {what} within {} s", limit.as_secs())]
    Silent {
        /// What was requested.
        what: &'static str,
        /// How long was waited.
        limit: Duration,
    },
    /// Its answer has no end.
    #[error("the answer to {what} was not complete within {} s", limit.as_secs())]
    Endless {
        /// What was requested.
        what: &'static str,
        /// How long was waited.
        limit: Duration,
    },
    /// It refuses.
    #[error("{0} was refused")]
    Refused(&'static str),
    /// It refuses, with a reason.
    #[error("{what} was refused: {why}")]
    RefusedBecause {
        /// What was requested.
        what: &'static str,
        /// Its words.
        why: SafeText,
    },
    /// It has no such port.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// It has no such method, or the arguments are too long.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What it sends makes no sense.
    #[error("cannot decode what it sends: {0}")]
    Frame(#[from] FrameError),
    /// What it sends makes no sense.
    #[error("cannot decode what it sends: {0}")]
    Malformed(#[from] Malformed),
    /// The operating system's error.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Self::NoService,
            io::ErrorKind::PermissionDenied => Self::Denied,
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Io(error),
        }
    }
}
