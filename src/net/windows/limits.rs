//! Limits that the system sets for this process: there are none that matter.

use std::io;

/// Does nothing.
///
/// # Errors
/// None.
#[expect(clippy::unnecessary_wraps, reason = "the same as on other systems")]
pub fn adjust() -> io::Result<()> {
    Ok(())
}
