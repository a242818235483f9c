//! Commands that a runtime supports, learned from its replies.

use super::{CommandCode, Hresult, Reply, ReplyError};

/// Support for a command according to the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The runtime executed the command.
    Yes,
    /// The runtime does not have the command: [`Hresult::UNKNOWN_COMMAND`].
    UnknownCommand,
    /// The runtime has the command, but this kind of runtime cannot execute it: [`Hresult::NOT_SUPPORTED`].
    Unsupported,
}

impl Support {
    /// Returns the error with which the runtime always replies to the command.
    pub fn error(self) -> Option<Hresult> {
        match self {
            Self::Yes => None,
            Self::UnknownCommand => Some(Hresult::UNKNOWN_COMMAND),
            Self::Unsupported => Some(Hresult::NOT_SUPPORTED),
        }
    }
}

/// Known command support of a runtime instance. Does not change while the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandSupport([Option<Support>; CommandCode::ALL.len()]);

impl CommandSupport {
    /// Returns the support for a command; `None` until a reply has shown it.
    pub fn get(&self, code: CommandCode) -> Option<Support> {
        self.0[index(code)]
    }

    /// Records the reply to a command. A reply with any other error is inconclusive.
    pub fn record_reply(&mut self, code: CommandCode, answer: &Result<Reply, ReplyError>) {
        let shown = match answer {
            Ok(_) => Support::Yes,
            Err(ReplyError::Failure(failure)) if failure.hresult == Hresult::UNKNOWN_COMMAND => Support::UnknownCommand,
            Err(ReplyError::Failure(failure)) if failure.hresult == Hresult::NOT_SUPPORTED => Support::Unsupported,
            Err(_) => return,
        };
        self.0[index(code)] = Some(shown);
    }
}

fn index(code: CommandCode) -> usize {
    CommandCode::ALL.iter().position(|other| *other == code).expect("every command is in the list of all")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::Failure;

    #[test]
    fn only_conclusive_replies_are_kept() {
        let mut support = CommandSupport::default();
        let code = CommandCode::CollectTracing3;
        let no = |hresult| Err(ReplyError::Failure(Failure::from(hresult)));
        for (answer, shown) in [
            (no(Hresult::FAIL), None),
            (no(Hresult::BAD_ENCODING), None),
            (Err(ReplyError::NotAReply { set: 1, id: 1 }), None),
            (no(Hresult::UNKNOWN_COMMAND), Some(Support::UnknownCommand)),
            (no(Hresult::FAIL), Some(Support::UnknownCommand)),
            (no(Hresult::NOT_SUPPORTED), Some(Support::Unsupported)),
            (Ok(Reply::Done), Some(Support::Yes)),
        ] {
            support.record_reply(code, &answer);
            assert_eq!(support.get(code), shown, "{answer:?}");
        }
        assert!(CommandCode::ALL.iter().all(|other| *other == code || support.get(*other).is_none()));
    }
}
