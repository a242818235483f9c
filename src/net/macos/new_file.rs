//! Creation of files.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Creates a new file for reading and writing, with mode 0600.
///
/// # Errors
/// Those of the system.
pub(in crate::net) fn create(path: &Path) -> io::Result<File> {
    // create_new is O_CREAT|O_EXCL: it neither overwrites nor follows a link as the last component.
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}
