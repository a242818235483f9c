//! Limits that the system sets for this process: there are none that matter.

/// Does nothing.
pub fn adjust() {}
