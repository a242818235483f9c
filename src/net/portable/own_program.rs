//! The file of this program.

use std::path::PathBuf;

/// The file from which it was started.
pub(super) fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("dn-top"))
}
