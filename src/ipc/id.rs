//! Opaque IDs: runtime instances, profiler classes, trace sessions.

use std::fmt;
use std::str::FromStr;

use super::field::{Field, structure};
use super::{Hresult, InvalidRequest};
use crate::wire::{Put, Reader};

/// A GUID in wire format: `u32`, `u16`, `u16` in little-endian order, then 8 bytes. Displayed and parsed as 8-4-4-4-12 hexadecimal digits. The
/// crate `uuid` would need as much code to produce an error message that quotes the text, and accepts forms that runtimes do not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guid(pub [u8; 16]);

/// The runtime instance cookie: a random ID for the lifetime of a runtime, the same in `ProcessInfo` and in advertise messages.
///
/// Displayed as GUID text (8-4-4-4-12), from the Windows byte order used on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cookie(pub [u8; 16]);

/// A trace session ID: the address of the session object in the target. Unique only while the session exists: later sessions can have the same
/// ID, so a session must not be stopped after its stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub u64);

/// Wire byte index for each byte of the GUID text.
const TEXT_ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in TEXT_ORDER.into_iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{:02x}", self.0[byte])?;
        }
        Ok(())
    }
}

impl FromStr for Guid {
    type Err = InvalidRequest;

    /// Parses 8-4-4-4-12 hexadecimal digits, with or without braces.
    fn from_str(text: &str) -> Result<Self, InvalidRequest> {
        let invalid = || InvalidRequest::Guid(text.to_owned());
        let bare = text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(text);
        let groups = bare.split('-').map(str::len);
        if !groups.eq([8, 4, 4, 4, 12]) {
            return Err(invalid());
        }
        let digits: Option<Vec<u8>> = bare.chars().filter(|c| *c != '-').map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.ok_or_else(invalid)?;
        let mut bytes = [0; 16];
        for (pair, byte) in digits.chunks_exact(2).zip(TEXT_ORDER) {
            bytes[byte] = pair[0] << 4 | pair[1];
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Guid(self.0), f)
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Field for Guid {
    fn write(&self, out: &mut Vec<u8>) {
        out.put(&self.0);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(Self(reader.array()?))
    }
}

structure! {
    SessionId { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "123e4567-e89b-12d3-a456-426614174000";

    #[test]
    fn guids_in_windows_byte_order() {
        let guid = Guid([0x67, 0x45, 0x3e, 0x12, 0x9b, 0xe8, 0xd3, 0x12, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00]);
        assert_eq!(guid.to_string(), TEXT);
        assert_eq!(Cookie(guid.0).to_string(), TEXT);
        for text in [TEXT.to_owned(), TEXT.to_uppercase(), format!("{{{TEXT}}}")] {
            assert_eq!(text.parse(), Ok(guid));
        }
    }

    #[test]
    fn invalid_guids_are_rejected() {
        for text in [
            "",
            "1234",
            "{123e4567-e89b-12d3-a456-426614174000",
            "123e4567e89b12d3a456426614174000",
            &TEXT.replace('e', "g"),
            "é23e456-e89b-12d3-a456-426614174000",
        ] {
            assert_eq!(text.parse::<Guid>(), Err(InvalidRequest::Guid(text.to_owned())));
        }
    }
}
