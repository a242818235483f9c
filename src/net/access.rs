//! Whether requests may be sent that change their target.

use super::error::Cause;
use crate::ipc::CommandCode;

/// What may be done to processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Whatever they survive.
    #[default]
    Full,
    /// Nothing that changes them ([`CommandCode::changes_target`]).
    ReadOnly,
}

impl Access {
    /// Whether a request may be sent.
    pub fn allows(self, code: CommandCode) -> bool {
        match self {
            Self::Full => true,
            Self::ReadOnly => !code.changes_target(),
        }
    }

    pub(super) fn check(self, code: CommandCode) -> Result<(), Cause> {
        if self.allows(code) { Ok(()) } else { Err(Cause::ReadOnly) }
    }
}
