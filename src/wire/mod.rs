//! Bounds-checked little-endian reading and writing, UTF-16 strings and varints.
//!
//! Both formats that dn-top uses (the Diagnostic IPC Protocol and nettrace) are built from these few
//! primitives. Nothing here allocates except where a `String` is requested, and no input makes it panic.

mod put;
mod reader;
#[cfg(test)]
mod tests;
mod utf16;

pub use put::Put;
pub use reader::{Reader, WireError};
pub use utf16::Utf16;
