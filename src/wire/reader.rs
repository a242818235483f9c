//! Bounds-checked little-endian reading.

use thiserror::Error;

use super::utf16::Utf16;

/// Reason why a value could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WireError {
    /// The bytes end before the value does.
    #[error("at byte {at}: {needed} bytes needed, {left} left")]
    Short {
        /// Offset of the value from the start of the slice.
        at: usize,
        /// Size of the value in bytes.
        needed: usize,
        /// Number of remaining bytes.
        left: usize,
    },
    /// A variable-length integer is longer than its type allows.
    #[error("at byte {at}: variable-length integer too long")]
    Varint {
        /// Offset of its first byte.
        at: usize,
    },
    /// A NUL-terminated string has no NUL.
    #[error("at byte {at}: string without its terminating NUL")]
    Unterminated {
        /// Offset of its first byte.
        at: usize,
    },
}

/// A cursor over bytes. Every read either consumes a whole value or leaves the cursor unchanged.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Defines methods that read a number.
macro_rules! numbers {
    ($($type:ident)+) => {
        $(
            #[doc = concat!("Reads a little-endian `", stringify!($type), "`.")]
            #[inline]
            pub fn $type(&mut self) -> Result<$type, WireError> {
                self.array().map($type::from_le_bytes)
            }
        )+
    };
}

#[allow(clippy::missing_errors_doc, reason = "each error is that the bytes end too soon, or are no such value, at an offset that it names")]
impl<'a> Reader<'a> {
    /// Creates a reader at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the offset of the next byte from the start.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the remaining bytes.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Returns the number of remaining bytes.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns whether everything was read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Reads `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            return Err(WireError::Short { at: self.at, needed: count, left: self.remaining() });
        };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// Reads `N` bytes by value.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    numbers! { u8 u16 u32 u64 i32 i64 f32 f64 }

    /// Reads a variable-length integer of at most 5 bytes, 7 bits each, least significant first.
    #[inline]
    pub fn varu32(&mut self) -> Result<u32, WireError> {
        self.varint(5).map(|value| value as u32)
    }

    /// Reads a variable-length integer of at most 10 bytes, 7 bits each, least significant first.
    #[inline]
    pub fn varu64(&mut self) -> Result<u64, WireError> {
        self.varint(10)
    }

    #[inline(always)]
    fn varint(&mut self, longest: usize) -> Result<u64, WireError> {
        let rest = self.rest();
        match (rest.first(), rest.first_chunk()) {
            (Some(byte @ 0..0x80), _) => {
                self.at += 1;
                Ok(u64::from(*byte))
            }
            (_, Some(eight)) => match short_varint(u64::from_le_bytes(*eight)) {
                Some((value, size)) if size <= longest => {
                    self.at += size;
                    Ok(value)
                }
                _ => self.long_varint(longest),
            },
            _ => self.long_varint(longest),
        }
    }

    /// Byte by byte, for integers that are long, near the end of the bytes, or invalid.
    #[cold]
    fn long_varint(&mut self, longest: usize) -> Result<u64, WireError> {
        let rest = self.rest();
        let mut value = 0_u64;
        for (i, byte) in rest.iter().take(longest).enumerate() {
            // Only one bit of the tenth byte of a 64-bit value is significant; the others are shifted out.
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.at += i + 1;
                return Ok(value);
            }
        }
        if rest.len() >= longest {
            Err(WireError::Varint { at: self.at })
        } else {
            Err(WireError::Short { at: self.at, needed: rest.len() + 1, left: rest.len() })
        }
    }

    /// Reads a NUL-terminated UTF-16 string; the NUL is consumed and not part of the result.
    #[inline]
    pub fn utf16z(&mut self) -> Result<Utf16<'a>, WireError> {
        let rest = self.rest();
        // Checks four code units at a time for a NUL.
        const LOW: u64 = 0x0001_0001_0001_0001;
        let has_nul = |units: u64| units.wrapping_sub(LOW) & !units & LOW << 15 != 0;
        let fours = rest.chunks_exact(8).take_while(|units| (**units).try_into().is_ok_and(|units| !has_nul(u64::from_le_bytes(units))));
        let start = fours.count() * 4;
        let more = rest[start * 2..].chunks_exact(2).position(|unit| unit == [0, 0]);
        let units = start + more.ok_or(WireError::Unterminated { at: self.at })?;
        self.at += units * 2 + 2;
        Ok(Utf16(&rest[..units * 2]))
    }
}

/// Decodes the variable-length integer at the start of eight bytes; returns it with its size in bytes. `None` if it is longer.
///
/// Most integers of an event header take two to five bytes, and their number varies from event to event: a loop would cause branch mispredictions.
#[inline(always)]
fn short_varint(bytes: u64) -> Option<(u64, usize)> {
    let last = !bytes & 0x8080_8080_8080_8080;
    if last == 0 {
        return None;
    }
    let bits = last.trailing_zeros() + 1;
    let sevens = bytes & (u64::MAX >> (64 - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
    // Merges adjacent groups: of seven bits, then of fourteen, then of twenty-eight.
    let pairs = (sevens & 0x007f_007f_007f_007f) | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let value = (fours & 0x0000_0000_0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4;
    Some((value, bits as usize / 8))
}
