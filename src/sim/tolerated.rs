//! Invalid requests that real runtimes accept.
//!
//! The codec refuses them, as a strict server would. This module reproduces the behavior seen on real runtimes 3.1, 9 and 10.

use super::runtime::Answer;
use crate::ipc::{Command, CommandCode, Failure, HEADER_BYTES, Hresult, Message, Reply, SessionId};

/// Decodes a request for a supported command as a runtime does.
///
/// # Errors
/// The answer to an invalid request, which has no effect.
pub(super) fn read(message: &Message<'_>) -> Result<Command, Answer> {
    use CommandCode as Code;
    let refused = match Command::decode(message) {
        Ok(command) => return Ok(command),
        Err(hresult) => hresult,
    };
    Err(match CommandCode::of(message.set, message.id) {
        // A runtime reads past the end of the payload.
        Some(Code::StopTracing) if !message.payload.is_empty() => {
            let mut id = [0; 8];
            id[..message.payload.len()].copy_from_slice(message.payload);
            return Ok(Command::StopTracing { session: SessionId(u64::from_le_bytes(id)) });
        }
        // A runtime sets a variable without a name, or with one that cannot be read back.
        Some(code @ Code::SetEnvironmentVariable) if refused == Hresult::INVALID_ARGUMENT && message.payload[..4] != [0; 4] => {
            Answer::Success(code, Reply::Done, Vec::new())
        }
        // This reply has a message field, which is empty.
        Some(Code::GenerateCoreDump3) if refused == Hresult::FAIL => {
            Answer::Failure(Failure { hresult: refused, message: Some(String::new()) })
        }
        _ => Answer::Failure(refused.into()),
    })
}

/// Encodes an answer. If a command without payload was sent with one, the answer consists of that payload and the memory after it.
pub(super) fn answered(message: &Message<'_>, answer: &Answer) -> Vec<u8> {
    use CommandCode as Code;
    match answer {
        Answer::Success(Code::ProcessInfo | Code::ProcessInfo2 | Code::ProcessInfo3 | Code::ProcessEnvironment, _, more)
            if !message.payload.is_empty() =>
        {
            [message.payload, &[0; HEADER_BYTES], more].concat()
        }
        answer => answer.bytes(),
    }
}
