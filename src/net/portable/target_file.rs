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
