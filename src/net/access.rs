//! Permission to send requests that change their target.

use super::error::Cause;
use crate::ipc::CommandCode;

/// Limits on what may be done to processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    #[default]
    /// No restriction.
    Full,
    /// No requests that change the target ([`CommandCode::changes_target`]).
    ReadOnly,
    /// Like [`Access::ReadOnly`], but event sessions may be opened: for a dashboard started to watch processes, which refuses everything else
    /// itself.
    Watch,
}

impl Access {
    /// Returns whether a request may be sent.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sessions_are_allowed_while_watching() {
        use CommandCode::{CollectTracing, GenerateCoreDump, ProcessInfo};
        let allowed = |access: Access| [ProcessInfo, CollectTracing, GenerateCoreDump].map(|code| access.allows(code));
        assert_eq!(allowed(Access::Full), [true; 3]);
        assert_eq!(allowed(Access::Watch), [true, true, false]);
        assert_eq!(allowed(Access::ReadOnly), [true, false, false]);
    }
}
