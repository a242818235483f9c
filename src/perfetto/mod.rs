//! Perfetto's trace format: the bytes of its protocol buffers, and the numbers of the fields that are written.
//!
//! Source: the messages of `protos/perfetto` in google/perfetto, version 59. Only what dn-top uses stands here.

pub mod field;
mod proto;

pub use proto::Message;
