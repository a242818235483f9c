//! Requests that real runtimes make do with, though they make no sense.
//!
//! The codec refuses them, as a careful server would. What real ones of 3.1, 9 and 10 were seen to do is here.

use super::runtime::Answer;
use crate::ipc::{Command, CommandCode, Failure, HEADER_BYTES, Hresult, Message, SessionId};

/// What a runtime does with a request of a command that it has.
pub(super) enum Reading {
    Command(Command),
    /// Nothing, and it answers that all is done.
    Ignored(CommandCode),
    Refused(Failure),
}

/// Reads a request as a runtime does.
pub(super) fn read(message: &Message<'_>) -> Reading {
    use CommandCode as Code;
    let refused = match Command::decode(message) {
        Ok(command) => return Reading::Command(command),
        Err(hresult) => hresult,
    };
    match CommandCode::of(message.set, message.id) {
        // It reads on behind the end.
        Some(Code::StopTracing) if !message.payload.is_empty() => {
            let mut id = [0; 8];
            id[..message.payload.len()].copy_from_slice(message.payload);
            Reading::Command(Command::StopTracing { session: SessionId(u64::from_le_bytes(id)) })
        }
        // It sets a variable without a name, or with one that cannot be read back.
        Some(code @ Code::SetEnvironmentVariable) if refused == Hresult::INVALID_ARGUMENT && message.payload[..4] != [0; 4] => {
            Reading::Ignored(code)
        }
        // The reply has room for a message here, and it is empty.
        Some(Code::GenerateCoreDump3) if refused == Hresult::FAIL => {
            Reading::Refused(Failure { hresult: refused, message: Some(String::new()) })
        }
        _ => Reading::Refused(refused.into()),
    }
}

/// The bytes of an answer. Where a request had a payload that the command does not have, they are that payload and what lies behind it.
pub(super) fn answered(message: &Message<'_>, answer: &Answer) -> Vec<u8> {
    use CommandCode as Code;
    match answer {
        Answer::Yes(Code::ProcessInfo | Code::ProcessInfo2 | Code::ProcessInfo3 | Code::ProcessEnvironment, _, more)
            if !message.payload.is_empty() =>
        {
            [message.payload, &[0; HEADER_BYTES], more].concat()
        }
        answer => answer.bytes(),
    }
}
