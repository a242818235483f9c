//! What user_events need and is not available.

use thiserror::Error;

/// A requirement that is not met, as a sentence with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Missing {
    /// The system, a mount or the runtime does not support it.
    #[error("{0}")]
    Support(String),
    /// The user is not allowed to use it.
    #[error("{0}")]
    Permission(String),
}
