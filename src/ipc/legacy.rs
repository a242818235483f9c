//! The predecessor of the IPC protocol, used by previews 4 and 5 of .NET Core 3.0: a message type and a PID, then the fields, without error
//! replies.
//!
//! Its messages have no magic, and a newer runtime waits for more bytes. It is therefore only used for processes selected by the user.

use super::field::Field;
use super::{Provider, Providers, SessionId};
use crate::wire::{Put, Reader};

/// Size in bytes of the reply to both messages: the session ID, or 0.
pub const LEGACY_REPLY_BYTES: usize = 8;

/// `DiagnosticMessageType` in the runtime's sources. The first one, 1024, which writes a file, is omitted: the previews decode it differently.
const STOP: u32 = 1025;
const COLLECT: u32 = 1026;

/// A request of the legacy protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LegacyRequest {
    /// Stops a session.
    Stop(SessionId),
    /// Starts a session; the stream follows the reply.
    Collect {
        /// Maximum size of the event buffer in MB; never 0.
        buffer_mb: u32,
        /// Providers to enable.
        providers: Providers,
    },
}

impl LegacyRequest {
    /// Encodes the request, to be sent in one write to the process with this PID in its own namespace.
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
                // Null path: no file is written.
                None::<String>.write(&mut out);
                providers.write(&mut out);
            }
        }
        out
    }

    /// Decodes a request sent in one write; `None` if a runtime would close the connection.
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
