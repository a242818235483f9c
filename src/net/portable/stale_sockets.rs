//! The sockets that killed processes left behind. On Windows there are none: a named pipe ends with its process. On macOS they are not looked for.

use std::io;
use std::path::Path;

/// What became of the stale sockets of some directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovedSockets {
    /// Sockets that were removed.
    pub removed: usize,
    /// Sockets that stay.
    pub kept: usize,
}

/// There is nothing to remove.
///
/// # Errors
/// None.
pub fn remove_stale_sockets(_: &Path) -> io::Result<RemovedSockets> {
    Ok(RemovedSockets::default())
}
