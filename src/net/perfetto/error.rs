//! Errors of the tracing service.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::address::Address;
use crate::model::SafeText;
use crate::net::PeerError;
use crate::perfetto::call::{BindError, CallError};
use crate::perfetto::ipc::FrameError;
use crate::perfetto::read::Malformed;
use crate::perfetto::recording::PacketError;

/// An error, with the address of the service.
#[derive(Debug, Error)]
#[error("Perfetto's tracing service at {address}: {cause}")]
pub struct PerfettoError {
    /// Address of the socket.
    pub address: Address,
    /// Cause of the error.
    pub cause: Cause,
}

impl PerfettoError {
    /// Whether permission was denied, or the service is not trusted.
    pub fn is_denied(&self) -> bool {
        matches!(self.cause, Cause::Denied | Cause::Untrusted { .. } | Cause::OtherUser { .. })
    }
}

/// Cause of an error.
#[derive(Debug, Error)]
pub enum Cause {
    /// The environment variable does not name a socket of this machine.
    #[error("{variable} is '{value}', which is not a local socket: give a path, or an abstract name with a leading '@'")]
    Name {
        /// Name of the variable.
        variable: &'static str,
        /// Value of the variable.
        value: SafeText,
    },
    /// No service listens on the socket.
    #[error(
        "no service listens there; install and start it (Debian, Ubuntu: `apt install perfetto`), or name its socket in PERFETTO_PRODUCER_SOCK_NAME and \
         PERFETTO_CONSUMER_SOCK_NAME"
    )]
    NoService,
    /// This user has no permission to use the socket.
    #[error("permission denied; root and the members of the socket's group (Debian: `perfetto`) may use it")]
    Denied,
    /// The file is not a socket, or is reached through a link.
    #[error("{0}")]
    Peer(#[from] PeerError),
    /// Any user could have created the socket.
    #[error(
        "the socket belongs to user {owner} and is in a directory that every user can write to: recorded data is only sent to a service of root or your own"
    )]
    Untrusted {
        /// Owner of the file.
        owner: u32,
    },
    /// The listener's user is not the owner of the socket.
    #[error("the socket belongs to user {owner}, and a process of user {listens} listens on it")]
    OtherUser {
        /// Owner of the file.
        owner: u32,
        /// User of the listening process.
        listens: u32,
    },
    /// The service is gone, or has disconnected us.
    #[error("the connection was closed")]
    Closed,
    /// The service does not read.
    #[error("it is not reading its socket")]
    NotReading,
    /// The service does not reply.
    #[error("no answer to {what} within {} s", limit.as_secs())]
    Timeout {
        /// The request.
        what: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// The reply was not complete in time.
    #[error("the answer to {what} was not complete within {} s", limit.as_secs())]
    Incomplete {
        /// The request.
        what: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// The service sent too many other replies instead of the expected one.
    #[error("more than {limit} other answers arrived before that to {what}")]
    OtherReplies {
        /// The request.
        what: &'static str,
        /// Maximum number of other replies.
        limit: usize,
    },
    /// The service refused the request.
    #[error("{0} was refused")]
    Refused(&'static str),
    /// The service refused the request and returned a reason.
    #[error("{what} was refused: {why}")]
    RefusedBecause {
        /// The request.
        what: &'static str,
        /// The reason, as returned.
        why: SafeText,
    },
    /// The service does not have the port.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The service does not have the method, or the arguments are too long.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The service sent an invalid frame.
    #[error("cannot decode its message: {0}")]
    Frame(#[from] FrameError),
    /// The service sent invalid packets.
    #[error(transparent)]
    Packets(#[from] PacketError),
    /// The service sent a malformed message.
    #[error("cannot decode its message: {0}")]
    Malformed(#[from] Malformed),
    /// Error of the operating system.
    #[error("{0}")]
    Io(io::Error),
}

impl Cause {
    /// The service refused a request, possibly with an error message.
    pub fn refused(what: &'static str, message: Option<&str>) -> Self {
        match message.filter(|message| !message.trim().is_empty()) {
            Some(message) => Self::RefusedBecause { what, why: SafeText::new(message) },
            None => Self::Refused(what),
        }
    }
}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Self::NoService,
            io::ErrorKind::PermissionDenied => Self::Denied,
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::Closed,
            // Its queue of connections is full.
            io::ErrorKind::WouldBlock => Self::NotReading,
            _ => Self::Io(error),
        }
    }
}
