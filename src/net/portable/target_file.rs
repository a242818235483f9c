//! Files of a process, by the path at which we see them.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use crate::model::{FreeSpace, Limited};

/// Inspects a file, following links.
///
/// # Errors
/// Those of the system.
pub fn inspect(path: &Path) -> io::Result<Metadata> {
    path.metadata()
}

/// Returns whether a file exists, or a link that leads nowhere.
pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Returns the free space on the file system of a folder. Memory limits exist only on Linux.
///
/// # Errors
/// Those of the system.
pub fn free_space(folder: &Path, _: Option<Limited>) -> io::Result<FreeSpace> {
    Ok(FreeSpace { bytes: super::files::free_space(folder)?, is_memory: false, memory_left: None })
}
