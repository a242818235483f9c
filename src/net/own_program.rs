//! The executable file of this program.

use std::path::PathBuf;

/// Returns the path of the running program, even if its file has been replaced since.
pub(super) fn own_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}
