//! Whether requests may be sent that change their target.

use super::error::Cause;
use crate::ipc::CommandCode;

/// What may be done to processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    #[default]
    /// Whatever they survive.
    Full,
    /// Nothing that changes them ([`CommandCode::changes_target`]).
    ReadOnly,
    /// The same, but event sessions may be opened: for the dashboard that was asked to watch, and refuses everything else itself.
    Watch,
}

impl Access {
    /// Whether a request may be sent.
    pub fn allows(self, code: CommandCode) -> bool {
        match self {
            Self::Full => true,
            Self::ReadOnly => !code.changes_target(),
            Self::Watch => !code.changes_target() || code.is_session(),
        }
    }

    pub(super) fn check(self, code: CommandCode) -> Result<(), Cause> {
        if self.allows(code) { Ok(()) } else { Err(Cause::ReadOnly) }
    }
}
