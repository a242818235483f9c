//! Settings files: opened only if no other user can have written them.

use std::fs::File;
use std::io;
use std::path::Path;

use super::files::{check_trusted, open_named};

/// Opens a settings file for reading: only one that no user except our own and root can have written.
///
/// # Errors
/// Those of the system, or the reason why the file is refused.
pub fn open_trusted(path: &Path) -> io::Result<File> {
    // Opening a device can have effects.
    check_trusted(&path.metadata()?)?;
    let file = open_named(path)?;
    check_trusted(&file.metadata()?)?;
    Ok(file)
}
