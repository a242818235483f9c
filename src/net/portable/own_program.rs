//! Path of this program.

use std::path::PathBuf;

/// Returns the file that this program was started from.
pub(super) fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("dn-top"))
}
