//! What a runtime answers.

use thiserror::Error;

use super::field::read_string;
use super::{CommandCode, Hresult, Message, ProcessInfo, SessionId, TooLong};
use crate::wire::{Put, Reader, WireError};

/// The set of all replies.
const SERVER: u8 = 0xff;
const OK: u8 = 0x00;
const ERROR: u8 = 0xff;

/// A reply that a command succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Done as asked.
    Done,
    /// The session that was started, or stopped. Behind the reply to a start the stream follows on the same connection.
    Session(SessionId),
    /// Who the process is.
    Info(Box<ProcessInfo>),
    /// The environment block follows on the same connection.
    Environment {
        /// Its length in bytes: what an [`EnvironmentBlock`](super::EnvironmentBlock) takes.
        bytes: u32,
    },
}

/// A reply that a command failed. Displayed without the target's own words, which may hold anything: the code that shows them sanitises them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the runtime answered {hresult}: {}", .hresult.explain())]
pub struct Failure {
    /// Why, as a code.
    pub hresult: Hresult,
    /// Why, in the target's own words: several lines. Only `GenerateCoreDump3` gives any.
    pub message: Option<String>,
}

/// Why a message is not a reply that a command succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// The runtime refuses.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The message is neither "OK" nor "error".
    #[error("the runtime's answer is not one that the protocol has (0x{set:02x}{id:02x})")]
    NotAReply {
        /// Its command set.
        set: u8,
        /// Its id.
        id: u8,
    },
    /// The payload does not read as the answer to this command.
    #[error("the runtime's answer to {command} cannot be read: {source}", command = .command.name())]
    Malformed {
        /// What was asked.
        command: CommandCode,
        /// Where it ends.
        source: WireError,
    },
}

impl Reply {
    /// Reads the reply to a command. Bytes behind the last field are ignored: newer runtimes append.
    ///
    /// # Errors
    /// [`ReplyError::Failure`] where the runtime refuses, the others where the answer is malformed.
    pub fn decode(to: CommandCode, message: &Message<'_>) -> Result<Self, ReplyError> {
        let malformed = |source| ReplyError::Malformed { command: to, source };
        let mut reader = Reader::new(message.payload);
        match (message.set, message.id) {
            (SERVER, OK) => Self::read(to, &mut reader).map_err(malformed)?.map_err(ReplyError::from),
            (SERVER, ERROR) => Err(Failure::read(&mut reader).map_err(malformed)?.into()),
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

    /// The bytes of the reply to a command.
    ///
    /// # Errors
    /// [`TooLong`] where process information does not fit; real runtimes answer [`Hresult::FAIL`] then.
    pub fn encode(&self, to: CommandCode) -> Result<Vec<u8>, TooLong> {
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
    /// The bytes of the error reply.
    ///
    /// # Errors
    /// [`TooLong`] where the message does not fit.
    pub fn encode(&self) -> Result<Vec<u8>, TooLong> {
        let mut payload = Vec::new();
        payload.put_i32(self.hresult.as_i32());
        if let Some(message) = &self.message {
            super::field::put_string(&mut payload, message);
        }
        Message { set: SERVER, id: ERROR, payload: &payload }.encode()
    }

    /// The code is needed, the words are not: they may be empty or cut off.
    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let hresult = Hresult::from_i32(reader.i32()?);
        let message = read_string(reader).ok().flatten().or_else(|| cut_off_string(*reader));
        Ok(Self { hresult, message: message.filter(|text| !text.is_empty()) })
    }
}

impl From<Hresult> for Failure {
    fn from(hresult: Hresult) -> Self {
        Self { hresult, message: None }
    }
}

/// What there is of a string that ends too soon.
fn cut_off_string(mut reader: Reader<'_>) -> Option<String> {
    reader.u32().ok()?;
    let text = crate::wire::Utf16::new(reader.rest());
    Some(text.chars().take_while(|c| *c != '\0').collect())
}

#[cfg(test)]
mod tests;
