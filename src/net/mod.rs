//! Endpoints, client, discovery and diagnostic ports on tokio: everything that touches a socket or /proc.
//!
//! [`discovery`] finds processes, with the reason where one cannot be attached to; [`port`] lets runtimes connect to us. Results are plain values of
//! [`crate::model`] with sanitised text; nothing here knows screens or command lines. It reads, and sends only commands of [`crate::ipc`], over
//! connections that `peer` has checked. It never holds a connection to a runtime without a message to send, because a silent connection blocks a
//! runtime's only server thread.

mod access;
mod answer;
pub mod client;
mod clients;
mod directory;
pub mod discovery;
mod dump_writer;
mod elf;
pub mod endpoint;
mod error;
#[cfg(test)]
mod fake_proc;
mod file;
mod gate;
mod hook;
mod inquiry;
mod legacy;
mod machine;
mod meters;
mod peer;
pub mod perf;
pub mod perfetto;
pub mod port;
mod proc;
mod process_exit;
mod recorded;
mod resolve;
mod reverse_connection;
mod stale_sockets;
mod target;
mod tracing;
pub mod user_events;

pub use access::Access;
pub use clients::Clients;
pub use directory::Directory;
pub use error::{Cause, ExchangeError};
pub use gate::Busy;
pub use machine::machine_checks;
pub use peer::PeerError;
pub use recorded::{RecordedError, RecordedProcess};
pub use stale_sockets::{RemovedSockets, remove_stale_sockets};
pub use target::TargetError;
pub use tracing::untraceable;
