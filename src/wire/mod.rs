//! Bounds-checked little-endian reading and writing, UTF-16 strings and varints.
//!
//! The basis of both formats that dn-top uses, the Diagnostic IPC Protocol and nettrace. Nothing allocates unless a `String` is requested, and
//! no input causes a panic.

mod put;
mod reader;
#[cfg(test)]
mod tests;
mod utf16;

pub use put::Put;
pub use reader::{Reader, WireError};
pub use utf16::Utf16;
