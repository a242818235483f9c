//! Advertise messages: sent by a runtime when it connects to a diagnostic port (specification, "Advertise Protocol").

use thiserror::Error;

use super::Cookie;
use crate::wire::{Put, Reader};

/// Size of an advertise message in bytes.
pub const ADVERTISE_BYTES: usize = 34;

const MAGIC: &[u8; 8] = b"ADVR_V1\0";

/// An advertise message: the runtime offers its connection for one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertise {
    /// Identifies the runtime instance; the same for all its connections.
    pub cookie: Cookie,
    /// Process ID in the target's own PID namespace.
    pub pid: u64,
}

/// The bytes do not start an advertise message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the peer is not a .NET runtime (its first bytes are not ADVR_V1)")]
pub struct NotAdvertise;

impl Advertise {
    /// Decodes the message of [`ADVERTISE_BYTES`] at the start of `bytes`; `None` if incomplete.
    ///
    /// # Errors
    /// [`NotAdvertise`] as soon as `bytes` cannot be the start of a message.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, NotAdvertise> {
        let seen = bytes.len().min(MAGIC.len());
        if bytes[..seen] != MAGIC[..seen] {
            return Err(NotAdvertise);
        }
        let Some(message) = bytes.get(..ADVERTISE_BYTES) else { return Ok(None) };
        let mut reader = Reader::new(&message[MAGIC.len()..]);
        let (Ok(cookie), Ok(pid)) = (reader.array(), reader.u64()) else { return Ok(None) };
        Ok(Some(Self { cookie: Cookie(cookie), pid }))
    }

    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ADVERTISE_BYTES);
        out.put(MAGIC);
        out.put(&self.cookie.0);
        out.put_u64(self.pid);
        out.put_u16(0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The specification's example: cookie 123e4567-e89b-12d3-a456-426614174000, process 12345.
    const EXAMPLE: &[u8; 34] = b"ADVR_V1\0\x67\x45\x3e\x12\x9b\xe8\xd3\x12\xa4\x56\x42\x66\x14\x17\x40\x00\x39\x30\0\0\0\0\0\0\0\0";

    #[test]
    fn specification_example_round_trips() {
        let advertise = Advertise::decode(EXAMPLE).unwrap().unwrap();
        assert_eq!((advertise.cookie.to_string().as_str(), advertise.pid), ("123e4567-e89b-12d3-a456-426614174000", 12345));
        assert_eq!(advertise.encode(), EXAMPLE);
        for end in 0..EXAMPLE.len() {
            assert_eq!(Advertise::decode(&EXAMPLE[..end]), Ok(None));
        }
    }

    #[test]
    fn invalid_advertise_messages_are_rejected() {
        for bytes in [&b"ADVR_V2"[..], b"D", b"ADVR_V1X"] {
            assert_eq!(Advertise::decode(bytes), Err(NotAdvertise));
        }
    }

    proptest! {
        #[test]
        fn advertise_round_trips(cookie: [u8; 16], pid: u64, more: Vec<u8>) {
            let advertise = Advertise { cookie: Cookie(cookie), pid };
            let bytes = [advertise.encode(), more].concat();
            prop_assert_eq!(Advertise::decode(&bytes), Ok(Some(advertise)));
        }
    }
}
