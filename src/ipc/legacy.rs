//! The protocol before this one, which two previews of .NET Core 3.0 (4 and 5) spoke: a message type and a pid, then the fields, and no errors.
//!
//! Nothing in it identifies it, and a newer runtime waits for bytes that never come. So it is used only for processes for which the user requests it.

use super::field::Field;
use super::{Provider, Providers, SessionId};
use crate::wire::{Put, Reader};

/// Bytes of the answer to both messages: the session, or 0.
pub const LEGACY_REPLY_BYTES: usize = 8;

/// `DiagnosticMessageType` in the runtime's sources. The first of them, 1024, has a file written and is left out: previews took it in different ways.
const STOP: u32 = 1025;
const COLLECT: u32 = 1026;

/// What can be requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LegacyRequest {
    /// Ends a session.
    Stop(SessionId),
    /// Starts one, whose stream follows the answer.
    Collect {
        /// The limit of what waits to be sent, in MB; never 0.
        buffer_mb: u32,
        /// What is turned on.
        providers: Providers,
    },
}

impl LegacyRequest {
    /// The bytes to send in one write, to a process with this pid in its own namespace.
    pub fn encode(&self, pid: u32) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Stop(session) => {
                out.put_u32(STOP);
                out.put_u32(pid);
                session.write(&mut out);
            }
            Self::Collect { buffer_mb, providers } => {
                out.put_u32(COLLECT);
                out.put_u32(pid);
                buffer_mb.write(&mut out);
                // The path of a file that is not written.
                None::<String>.write(&mut out);
                providers.write(&mut out);
            }
        }
        out
    }

    /// What a client sent in one write; `None` for anything that a runtime closes the connection at.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let reader = &mut Reader::new(bytes);
        let (kind, _pid) = (reader.u32().ok()?, reader.u32().ok()?);
        match kind {
            STOP => Some(Self::Stop(Field::read(reader).ok()?)),
            COLLECT => {
                let (buffer_mb, _path) = (u32::read(reader).ok()?, Option::<String>::read(reader).ok()?);
                Some(Self::Collect { buffer_mb, providers: Providers::<Provider>::read(reader).ok()? })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::Level;

    #[test]
    fn messages_byte_for_byte() {
        let stop = LegacyRequest::Stop(SessionId(0x0102));
        assert_eq!(stop.encode(7), [1, 4, 0, 0, 7, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        let providers = Providers::from(Provider::new("P", 3, Level::Warning).unwrap());
        let collect = LegacyRequest::Collect { buffer_mb: 16, providers };
        let bytes = [
            [2, 4, 0, 0, 7, 0, 0, 0].as_slice(),
            &[16, 0, 0, 0, 0, 0, 0, 0],
            &[1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0],
            &[2, 0, 0, 0, b'P', 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(collect.encode(7), bytes);
        for request in [stop, collect] {
            let bytes = request.encode(7);
            assert_eq!(LegacyRequest::decode(&bytes), Some(request));
            for length in 0..bytes.len() {
                assert_eq!(LegacyRequest::decode(&bytes[..length]), None, "{length}");
            }
        }
        assert_eq!(LegacyRequest::decode(b"DOTNET_IPC_V1\0\x14\0\x04\0\0\0"), None);
    }
}
