//! Connections to Perfetto's tracing service: its sockets, and the memory that it shares with a producer.
//!
//! The listener is checked before a byte is sent, as with runtimes: recorded data must not go to another user. Each socket is read by its own
//! task, since a service disconnects a producer that does not read for 10 ms, and written by another, so that a service that does not read
//! blocks only what is sent to it.

mod address;
mod connection;
mod error;
#[cfg_attr(not(target_os = "linux"), path = "../portable/perfetto_memory.rs")]
mod memory;
#[cfg_attr(not(target_os = "linux"), path = "../portable/perfetto_socket.rs")]
mod socket;

pub use address::{Address, Port, Sockets};
pub use connection::{Connection, IncomingReply, REPLY_TIMEOUT};
pub use error::{Cause, PerfettoError};
pub use memory::{ChunkSlot, MemoryError, SharedMemory};
pub use socket::Handle;
