//! Messages: a 20-byte header and a payload.

use thiserror::Error;

use super::Hresult;
use crate::wire::{Put, Reader};

/// Size of a message header in bytes.
pub const HEADER_BYTES: usize = 20;
/// Maximum size of a message in bytes, including the header: the size field is a `u16` and there is no fragmentation.
pub const MAX_MESSAGE: usize = u16::MAX as usize;

/// Includes the NUL, which runtimes send and compare.
const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";

/// A message, borrowed from the buffer that it was decoded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Command set, or 0xff for a reply.
    pub set: u8,
    /// Command ID within the set; in a reply 0x00 for success and 0xff for an error.
    pub id: u8,
    /// Bytes after the header.
    pub payload: &'a [u8],
}

/// Reason why bytes are not the start of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The magic is wrong.
    #[error("the peer is not a .NET diagnostic server (its first bytes are not DOTNET_IPC_V1)")]
    Magic,
    /// The size in the header is smaller than the header.
    #[error("a message has an invalid size of {0} bytes; the header alone takes 20")]
    Size(u16),
}

impl FrameError {
    /// Returns the error with which a runtime replies to such bytes.
    pub fn hresult(self) -> Hresult {
        match self {
            Self::Magic => Hresult::UNKNOWN_MAGIC,
            Self::Size(_) => Hresult::BAD_ENCODING,
        }
    }
}

/// A request or reply does not fit into one message; the protocol has no fragmentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the message would be {bytes} bytes long; the protocol allows {MAX_MESSAGE}: use fewer providers or shorter text")]
pub struct MessageTooLong {
    /// Size of the message in bytes.
    pub bytes: usize,
}

impl<'a> Message<'a> {
    /// Decodes the first message in `bytes` and returns it with its size; `None` if incomplete.
    ///
    /// The reserved field is ignored, as in the runtimes.
    ///
    /// # Errors
    /// [`FrameError`] as soon as `bytes` cannot be the start of a message.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let seen = bytes.len().min(MAGIC.len());
        if bytes[..seen] != MAGIC[..seen] {
            return Err(FrameError::Magic);
        }
        let mut header = Reader::new(&bytes[seen..]);
        let Ok(size) = header.u16() else { return Ok(None) };
        if usize::from(size) < HEADER_BYTES {
            return Err(FrameError::Size(size));
        }
        let Some(message) = bytes.get(..usize::from(size)) else { return Ok(None) };
        Ok(Some((Self { set: message[16], id: message[17], payload: &message[HEADER_BYTES..] }, message.len())))
    }

    /// Encodes the message, to be sent in one write: .NET Core 3.1 rejects a header or payload that arrives in pieces.
    ///
    /// # Errors
    /// [`MessageTooLong`] if it exceeds [`MAX_MESSAGE`] bytes.
    pub fn encode(&self) -> Result<Vec<u8>, MessageTooLong> {
        let bytes = HEADER_BYTES + self.payload.len();
        let size = u16::try_from(bytes).map_err(|_| MessageTooLong { bytes })?;
        let mut out = Vec::with_capacity(bytes);
        out.put(MAGIC);
        out.put_u16(size);
        out.put_u8(self.set);
        out.put_u8(self.id);
        out.put_u16(0);
        out.put(self.payload);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The specification's example: the generic OK message.
    const OK: &[u8; 20] = b"DOTNET_IPC_V1\0\x14\0\xff\0\0\0";

    #[test]
    fn specification_ok_message_round_trips() {
        let ok = Message { set: 0xff, id: 0x00, payload: &[] };
        assert_eq!(ok.encode().unwrap(), OK);
        assert_eq!(Message::decode(OK), Ok(Some((ok, 20))));
    }

    #[test]
    fn invalid_frames_are_rejected() {
        let cases: [(&[u8], FrameError, Hresult); 5] = [
            (b"HTTP/1.1 400 Bad Request", FrameError::Magic, Hresult::UNKNOWN_MAGIC),
            (b"X", FrameError::Magic, Hresult::UNKNOWN_MAGIC),
            (b"dotnet_ipc_v1\0\x14\0", FrameError::Magic, Hresult::UNKNOWN_MAGIC),
            (b"DOTNET_IPC_V1X", FrameError::Magic, Hresult::UNKNOWN_MAGIC),
            (b"DOTNET_IPC_V1\0\x13\0", FrameError::Size(19), Hresult::BAD_ENCODING),
        ];
        for (bytes, error, answer) in cases {
            assert_eq!(Message::decode(bytes), Err(error), "{bytes:?}");
            assert_eq!(error.hresult(), answer);
        }
    }

    #[test]
    fn longest_message_round_trips() {
        let payload = vec![7; MAX_MESSAGE - HEADER_BYTES + 1];
        let message = Message { set: 1, id: 2, payload: &payload[1..] };
        let bytes = message.encode().unwrap();
        assert_eq!(bytes.len(), MAX_MESSAGE);
        assert_eq!(Message::decode(&bytes), Ok(Some((message, MAX_MESSAGE))));
        assert_eq!(Message { payload: &payload, ..message }.encode(), Err(MessageTooLong { bytes: MAX_MESSAGE + 1 }));
    }

    proptest! {
        #[test]
        fn truncated_message_needs_more_bytes(set: u8, id: u8, payload in proptest::collection::vec(any::<u8>(), 0..60), more: Vec<u8>) {
            let message = Message { set, id, payload: &payload };
            let mut bytes = message.encode().unwrap();
            for end in 0..bytes.len() {
                prop_assert_eq!(Message::decode(&bytes[..end]), Ok(None));
            }
            let used = bytes.len();
            bytes.extend(more);
            prop_assert_eq!(Message::decode(&bytes), Ok(Some((message, used))));
        }

        #[test]
        fn any_bytes_are_safe(mut bytes: Vec<u8>, keep_magic: bool) {
            if keep_magic {
                bytes.splice(..0, *MAGIC);
            }
            if let Ok(Some((message, used))) = Message::decode(&bytes) {
                prop_assert_eq!(message.payload.len() + HEADER_BYTES, used);
                prop_assert!(used <= bytes.len());
            }
        }
    }
}
