//! Reasons why a request is invalid.

use thiserror::Error;

use super::Hresult;

/// Maximum length of a tracepoint name. Tracefs' `set_event` accepts about 110 characters.
pub(super) const MAX_TRACEPOINT_NAME: usize = 100;

/// A value that a runtime would reject or crash on. Returned by the constructors of this module, so that such requests cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidRequest {
    /// A provider without a name.
    #[error("a provider needs a name")]
    BlankProvider,
    /// No provider at all, or more than runtimes accept.
    #[error("a session needs 1 to 1000 providers, not {0}")]
    ProviderCount(usize),
    /// A level that does not exist.
    #[error("unknown level {0}: expected 0 (log always) to 5 (verbose)")]
    Level(u32),
    /// A session buffer of 0 MB.
    #[error("a session needs a buffer of at least 1 MB")]
    EmptyBuffer,
    /// An empty path.
    #[error("the path is empty")]
    EmptyPath,
    /// An empty variable name, or one that contains `=`.
    #[error("the name of an environment variable must not be empty or contain '='")]
    VariableName,
    /// A NUL character: strings on the wire end at the first one.
    #[error("{0} must not contain a NUL character")]
    Nul(&'static str),
    /// A user_events provider without any tracepoint.
    #[error("a user_events provider needs a default tracepoint or at least one tracepoint with event ids")]
    NoTracepoint,
    /// A tracepoint set without a name or without event IDs.
    #[error("a tracepoint needs a name and at least one event id")]
    EmptyTracepoint,
    /// A tracepoint name that the kernel does not accept or that tools cannot address.
    #[error("{0:?} is not a tracepoint name: expected letters, digits and _, no digit first, at most {max}", max = MAX_TRACEPOINT_NAME)]
    TracepointName(String),
    /// The same event ID in two tracepoint sets of a provider.
    #[error("event id {0} is in two tracepoints of one provider")]
    TracepointOverlap(u32),
    /// Not a GUID.
    #[error("'{0}' is not a GUID: expected 8-4-4-4-12 hexadecimal digits, such as 123e4567-e89b-12d3-a456-426614174000")]
    Guid(String),
}

/// The error with which a runtime that does not crash replies to such a request.
impl From<InvalidRequest> for Hresult {
    fn from(invalid: InvalidRequest) -> Self {
        match invalid {
            InvalidRequest::VariableName => Self::INVALID_ARGUMENT,
            _ => Self::BAD_ENCODING,
        }
    }
}

/// Rejects text that contains a NUL; `what` names the text in the error.
pub(super) fn without_nul(text: String, what: &'static str) -> Result<String, InvalidRequest> {
    if text.contains('\0') { Err(InvalidRequest::Nul(what)) } else { Ok(text) }
}
