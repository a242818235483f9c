//! Perfetto's trace format and tracing protocol: encoding of protocol buffers, numbers of the fields written, frames of the socket protocol,
//! calls on both ports, and layout of the shared memory. Independent of sockets and memory mappings: bytes in, bytes out.
//!
//! Source: the specification "Tracing API and ABI", and the messages of `protos/perfetto` in google/perfetto, version 59. Covers only what
//! dn-top uses.

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
