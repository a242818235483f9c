//! The end of a process, awaited.

use std::io;

/// No safe interface waits for the end of another process: it is looked for, from time to time, by the caller's other way.
///
/// # Errors
/// Always.
pub(super) async fn wait(_: u32, _: impl FnOnce() -> bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
