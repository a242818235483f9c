//! Perfetto's trace format and tracing protocol: the bytes of its protocol buffers, the numbers of the fields that are written, the frames of the
//! socket protocol, the calls of both ports, and the layout of the shared memory. No sockets, no memory: bytes in, bytes out.
//!
//! Source: the specification "Tracing API and ABI", and the messages of `protos/perfetto` in google/perfetto, version 59. Only what dn-top uses stands here.

pub mod call;
pub mod chunk;
pub mod consumer;
pub mod field;
pub mod ipc;
pub mod page;
pub mod producer;
mod proto;
pub mod read;
pub mod recording;
#[cfg(test)]
mod tests;

pub use proto::Message;
