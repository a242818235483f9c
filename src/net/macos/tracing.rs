//! Reasons why a process may not be dumped.

/// Always `None`: no restriction is known.
pub fn untraceable(_: u32) -> Option<&'static str> {
    None
}
