//! Replies of a runtime.

use thiserror::Error;

use super::field::{put_string, read_string};
use super::{CommandCode, Hresult, Message, MessageTooLong, ProcessInfo, SessionId};
use crate::wire::{Put, Reader, Utf16, WireError};

/// Command set of all replies.
const SERVER: u8 = 0xff;
const OK: u8 = 0x00;
const ERROR: u8 = 0xff;

/// A reply to a successful command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Success without data.
    Done,
    /// ID of the started or stopped session. The reply to a start is followed by the stream on the same connection.
    Session(SessionId),
    /// Process information.
    Info(Box<ProcessInfo>),
    /// The environment block follows on the same connection.
    Environment {
        /// Length of the block in bytes, for [`environment_bytes`](super::environment_bytes).
        bytes: u32,
    },
}

/// A reply to a failed command. `Display` omits the target's message, which is unsanitized.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the runtime answered {hresult}: {}", .hresult.explain())]
pub struct Failure {
    /// Error code.
    pub hresult: Hresult,
    /// Error message of the target, with several lines. Only sent by `GenerateCoreDump3`.
    pub message: Option<String>,
}

/// Reason why a message is not a successful reply.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// The runtime replied with an error.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The message is neither a success nor an error reply.
    #[error("the runtime's answer is not part of the protocol (0x{set:02x}{id:02x})")]
    NotAReply {
        /// Command set of the message.
        set: u8,
        /// ID of the message.
        id: u8,
    },
    /// The payload is not valid for this command.
    #[error("the runtime's answer to {command} cannot be read: {source}", command = .command.name())]
    Malformed {
        /// The command that was sent.
        command: CommandCode,
        /// The decoding error.
        source: WireError,
    },
}

impl Reply {
    /// Decodes the reply to a command. Bytes after the last field are ignored: newer runtimes append fields.
    ///
    /// # Errors
    /// [`ReplyError::Failure`] if the runtime reports an error, the others if the reply is malformed.
    pub fn decode(to: CommandCode, message: &Message<'_>) -> Result<Self, ReplyError> {
        let malformed = |source| ReplyError::Malformed { command: to, source };
        let mut reader = Reader::new(message.payload);
        match (message.set, message.id) {
            (SERVER, OK) => Self::read(to, &mut reader).map_err(malformed)?.map_err(ReplyError::from),
            (SERVER, ERROR) => Err(match Failure::read(&mut reader).map_err(malformed)? {
                // .NET Core 3 takes every profiler command for `AttachProfiler` and cannot read this one (seen on 3.1).
                failure if to == CommandCode::StartupProfiler && failure.hresult == Hresult::BAD_ENCODING => {
                    Failure::from(Hresult::UNKNOWN_COMMAND)
                }
                failure => failure,
            }
            .into()),
            (set, id) => Err(ReplyError::NotAReply { set, id }),
        }
    }

    fn read(to: CommandCode, reader: &mut Reader<'_>) -> Result<Result<Self, Failure>, WireError> {
        use CommandCode as Code;
        Ok(Ok(match to {
            Code::ProcessInfo | Code::ProcessInfo2 | Code::ProcessInfo3 => Self::Info(Box::new(ProcessInfo::read(to, reader.rest())?)),
            Code::ProcessEnvironment => Self::Environment { bytes: reader.u32()? },
            Code::StopTracing => Self::Session(SessionId(reader.u64()?)),
            _ if to.starts_session() => Self::Session(SessionId(reader.u64()?)),
            // The generic OK message has no payload.
            _ if reader.is_empty() => Self::Done,
            _ => match Hresult::from_i32(reader.i32()?) {
                Hresult::OK => Self::Done,
                hresult => return Ok(Err(Failure { hresult, message: None })),
            },
        }))
    }

    /// Encodes the reply to a command.
    ///
    /// # Errors
    /// [`MessageTooLong`] if process information does not fit; real runtimes reply with [`Hresult::FAIL`] then.
    pub fn encode(&self, to: CommandCode) -> Result<Vec<u8>, MessageTooLong> {
        let mut payload = Vec::new();
        match self {
            Self::Done => payload.put_i32(Hresult::OK.as_i32()),
            Self::Session(id) => payload.put_u64(id.0),
            Self::Info(info) => info.write(to, &mut payload),
            Self::Environment { bytes } => {
                payload.put_u32(*bytes);
                payload.put_u16(0);
            }
        }
        Message { set: SERVER, id: OK, payload: &payload }.encode()
    }
}

impl Failure {
    /// Encodes the error reply.
    ///
    /// # Errors
    /// [`MessageTooLong`] if the message does not fit.
    pub fn encode(&self) -> Result<Vec<u8>, MessageTooLong> {
        let mut payload = Vec::new();
        payload.put_i32(self.hresult.as_i32());
        if let Some(message) = &self.message {
            put_string(&mut payload, message);
        }
        Message { set: SERVER, id: ERROR, payload: &payload }.encode()
    }

    /// The code is required; the message can be missing or truncated.
    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let hresult = Hresult::from_i32(reader.i32()?);
        let message = read_string(reader).ok().flatten().or_else(|| truncated_string(*reader));
        Ok(Self { hresult, message: message.filter(|text| !text.is_empty()) })
    }
}

impl From<Hresult> for Failure {
    fn from(hresult: Hresult) -> Self {
        Self { hresult, message: None }
    }
}

/// Reads a truncated string as far as present.
fn truncated_string(mut reader: Reader<'_>) -> Option<String> {
    reader.u32().ok()?;
    Some(Utf16::new(reader.rest()).chars().take_while(|c| *c != '\0').collect())
}

#[cfg(test)]
mod tests;
