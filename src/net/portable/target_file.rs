//! Files of a process, by the path at which we see them.

use std::fs::Metadata;
use std::io;
use std::path::Path;

/// Inspects a file, following links.
///
/// # Errors
/// Those of the system.
pub fn inspect(path: &Path) -> io::Result<Metadata> {
    path.metadata()
}

/// Returns the free space on the file system of a folder, in bytes, as available to our user.
///
/// # Errors
/// Those of the system.
pub fn free_space(folder: &Path) -> io::Result<u64> {
    super::files::free_space(folder)
}
