//! Waits for the exit of a process.

use std::io;

/// No safe interface waits for the exit of another process: the caller polls instead.
///
/// # Errors
/// Always.
pub(super) async fn wait(_: u32, _: impl FnOnce() -> bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
