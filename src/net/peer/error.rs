//! Why a connection is refused on Unix systems.

use thiserror::Error;

use crate::model::sanitize;

/// Why a socket or a connection is not accepted as that of its process.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PeerError {
    /// The path leads through a link that an untrusted user could have written.
    #[error(
        "{} is a link that is not followed: it belongs to user {owner}, or is in a directory that users other than root can write to",
        sanitize(link)
    )]
    Link {
        /// Path of the link, as the process sees it.
        link: String,
        /// Owner of the link.
        owner: u32,
    },
    /// The path leads over a file system on which another user may be able to block us; with the reason.
    #[error("the path to its socket is not followed: {0}")]
    Blockable(String),
    /// The file is not a socket.
    #[error("the file is not a socket")]
    NotASocket,
    /// The file belongs to one user, and the process to another.
    #[error("the socket is not owned by its process: the file belongs to user {file}, the process to user {process}")]
    File {
        /// Owner of the file.
        file: u32,
        /// Effective user of the process.
        process: u32,
    },
    /// Another process listens, or has connected.
    #[error("the socket is not owned by its process: process {pid} of user {uid} is at the other end")]
    Process {
        /// Pid of that process, as we see it.
        pid: u32,
        /// Effective user of that process when it began to listen, or connected.
        uid: u32,
    },
    /// The process at the other end is in a pid namespace that is not visible from here.
    #[error(
        "the socket is not owned by its process: a process of user {uid} is at the other end, in a pid namespace that is not visible from here; \
         run dn-top on the host, or share the pid namespace (`docker run --pid container:..`, Kubernetes `shareProcessNamespace: true`)"
    )]
    Unseen {
        /// Effective user of that process when it began to listen, or connected.
        uid: u32,
    },
    /// The runtime reports a different pid.
    #[error(
        "the socket is not owned by its process: the runtime reports process id {reported}, and its process is {actual} in its pid namespace"
    )]
    Pid {
        /// Pid that the runtime reports.
        reported: u64,
        /// Pid that the kernel reports, in the pid namespace of the process.
        actual: u64,
    },
}

impl PeerError {
    /// Whether there is something other than a socket at the path.
    pub(in crate::net) fn is_not_a_socket(&self) -> bool {
        matches!(self, Self::NotASocket)
    }
}
