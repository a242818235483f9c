//! Why a process may not be dumped.

/// Nothing is known that would forbid it.
pub fn untraceable(_: u32) -> Option<&'static str> {
    None
}
