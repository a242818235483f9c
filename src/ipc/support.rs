//! Which commands a runtime supports, learned from its answers.

use super::{CommandCode, Hresult, Reply, ReplyError};

/// What the answer to a command showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The runtime executed it.
    Yes,
    /// The runtime does not know it: [`Hresult::UNKNOWN_COMMAND`].
    Unknown,
    /// The runtime has it and is of a kind that cannot execute it: [`Hresult::NOT_SUPPORTED`].
    Unsupported,
}

impl Support {
    /// What the runtime answers to it, where it is always the same.
    pub fn refusal(self) -> Option<Hresult> {
        match self {
            Self::Yes => None,
            Self::Unknown => Some(Hresult::UNKNOWN_COMMAND),
            Self::Unsupported => Some(Hresult::NOT_SUPPORTED),
        }
    }
}

/// What one runtime instance supports, as far as its answers have shown. It does not change while the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandSupport([Option<Support>; CommandCode::ALL.len()]);

impl CommandSupport {
    /// What is known of a command; `None` before an answer showed anything.
    pub fn get(&self, code: CommandCode) -> Option<Support> {
        self.0[index(code)]
    }

    /// Learns from the answer to a command. An answer that failed for another reason shows nothing.
    pub fn learn(&mut self, code: CommandCode, answer: &Result<Reply, ReplyError>) {
        let shown = match answer {
            Ok(_) => Support::Yes,
            Err(ReplyError::Failure(failure)) if failure.hresult == Hresult::UNKNOWN_COMMAND => Support::Unknown,
            Err(ReplyError::Failure(failure)) if failure.hresult == Hresult::NOT_SUPPORTED => Support::Unsupported,
            Err(_) => return,
        };
        self.0[index(code)] = Some(shown);
    }
}

impl Default for CommandSupport {
    fn default() -> Self {
        Self([None; CommandCode::ALL.len()])
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
    fn only_answers_that_show_something_are_kept() {
        let mut support = CommandSupport::default();
        let code = CommandCode::CollectTracing3;
        let no = |hresult| Err(ReplyError::Failure(Failure::from(hresult)));
        for (answer, shown) in [
            (no(Hresult::FAIL), None),
            (no(Hresult::BAD_ENCODING), None),
            (Err(ReplyError::NotAReply { set: 1, id: 1 }), None),
            (no(Hresult::UNKNOWN_COMMAND), Some(Support::Unknown)),
            (no(Hresult::FAIL), Some(Support::Unknown)),
            (no(Hresult::NOT_SUPPORTED), Some(Support::Unsupported)),
            (Ok(Reply::Done), Some(Support::Yes)),
        ] {
            support.learn(code, &answer);
            assert_eq!(support.get(code), shown, "{answer:?}");
        }
        assert!(CommandCode::ALL.iter().all(|other| *other == code || support.get(*other).is_none()));
    }
}
