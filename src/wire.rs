//! Bounds-checked little-endian reading and writing, UTF-16 strings and varints.
//!
//! Both formats that dn-top speaks (the Diagnostic IPC Protocol and nettrace) are built from these few
//! primitives. Nothing here allocates except where a `String` is asked for, and no input makes it panic.

use std::fmt;

use thiserror::Error;

/// Why bytes could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WireError {
    /// The bytes end before the value does.
    #[error("at byte {at}: {needed} bytes needed, {left} left")]
    Short {
        /// Offset of the value from the start of the slice.
        at: usize,
        /// Bytes that the value takes.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A variable-length integer does not end where its type must.
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

/// A cursor over bytes. Every read either moves past a whole value or leaves the cursor where it was.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

#[allow(clippy::missing_errors_doc, reason = "each error is that the bytes end too soon, or are no such value, at an offset that it names")]
impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Offset of the next byte from the start.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The bytes not yet read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// How many bytes are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether everything was read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The next `count` bytes.
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

    /// The next `N` bytes by value.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes, unsigned.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, unsigned.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, unsigned.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Four bytes, signed.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, WireError> {
        self.array().map(i32::from_le_bytes)
    }

    /// Eight bytes, signed.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, WireError> {
        self.array().map(i64::from_le_bytes)
    }

    /// Four bytes, floating point.
    #[inline]
    pub fn f32(&mut self) -> Result<f32, WireError> {
        self.array().map(f32::from_le_bytes)
    }

    /// Eight bytes, floating point.
    #[inline]
    pub fn f64(&mut self) -> Result<f64, WireError> {
        self.array().map(f64::from_le_bytes)
    }

    /// A variable-length integer of at most 5 bytes, 7 bits each, least significant first.
    #[inline]
    pub fn varu32(&mut self) -> Result<u32, WireError> {
        self.varint(5).map(|value| value as u32)
    }

    /// A variable-length integer of at most 10 bytes, 7 bits each, least significant first.
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

    /// Byte by byte: what is long, stands at the end, or is no integer.
    #[cold]
    fn long_varint(&mut self, longest: usize) -> Result<u64, WireError> {
        let rest = self.rest();
        let mut value = 0_u64;
        for (i, byte) in rest.iter().take(longest).enumerate() {
            // The tenth byte of a 64-bit value has one bit that counts; the rest is shifted out.
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

    /// A UTF-16 string that ends with a NUL unit; the NUL is consumed and not part of the result.
    #[inline]
    pub fn utf16z(&mut self) -> Result<Utf16<'a>, WireError> {
        let rest = self.rest();
        // Four units at a time, as long as none of them is the NUL.
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

/// The variable-length integer that eight bytes begin with, and how many of them it takes. `None` where it does not end in them.
///
/// Most integers of an event header take two to five bytes, and how many changes from event to event: a loop would be guessed wrong.
#[inline(always)]
fn short_varint(bytes: u64) -> Option<(u64, usize)> {
    let last = !bytes & 0x8080_8080_8080_8080;
    if last == 0 {
        return None;
    }
    let bits = last.trailing_zeros() + 1;
    let sevens = bytes & (u64::MAX >> (64 - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
    // Neighbours move together: pairs of seven bits, then of fourteen, then of twenty-eight.
    let pairs = (sevens & 0x007f_007f_007f_007f) | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let value = (fours & 0x0000_0000_0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4;
    Some((value, bits as usize / 8))
}

/// Borrowed UTF-16 text, little endian, of an even number of bytes. Not necessarily valid: [`fmt::Display`] replaces what is not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Utf16<'a>(&'a [u8]);

impl<'a> Utf16<'a> {
    /// Takes the bytes as UTF-16 units; an odd last byte is left out.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(&bytes[..bytes.len() & !1])
    }

    /// The bytes as they stand on the wire, without a terminating NUL.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether there is no text.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The characters, with U+FFFD for every unpaired surrogate.
    pub fn chars(self) -> impl Iterator<Item = char> + 'a {
        let units = self.0.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// The first characters.
    pub fn start(self, most: usize) -> String {
        self.chars().take(most).collect()
    }

    /// Replaces a text by the first characters, in the same memory.
    pub fn copy_start(self, into: &mut String, most: usize) {
        into.clear();
        into.extend(self.chars().take(most));
    }

    /// Appends the text, with U+FFFD for every unpaired surrogate: the same as [`chars`](Self::chars), some times as fast where it is ASCII.
    pub fn push_to(self, out: &mut String) {
        let mut rest = self.0;
        let mut narrow = [0; 128];
        loop {
            let mut count = 0;
            for (bytes, units) in narrow.chunks_exact_mut(4).zip(rest.chunks_exact(8)) {
                let units = units.try_into().map_or(u64::MAX, u64::from_le_bytes);
                if units & 0xff80_ff80_ff80_ff80 != 0 {
                    break;
                }
                // Each unit is a byte and a zero: neighbours move together.
                let pairs = (units | units >> 8) & 0x0000_ffff_0000_ffff;
                bytes.copy_from_slice(&((pairs | pairs >> 16) as u32).to_le_bytes());
                count += 4;
            }
            if count == 0 {
                return out.extend(Self(rest).chars());
            }
            out.push_str(std::str::from_utf8(&narrow[..count]).unwrap_or_default());
            rest = &rest[2 * count..];
        }
    }
}

impl PartialEq<str> for Utf16<'_> {
    fn eq(&self, other: &str) -> bool {
        self.chars().eq(other.chars())
    }
}

impl fmt::Display for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.chars().try_for_each(|c| f.write_char(c))
    }
}

impl fmt::Debug for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// Little-endian writing onto the end of a buffer.
pub trait Put {
    /// The bytes as they are.
    fn put(&mut self, bytes: &[u8]);

    /// One byte.
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// Two bytes.
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    /// Four bytes.
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    /// Eight bytes.
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Four bytes, signed.
    fn put_i32(&mut self, value: i32) {
        self.put(&value.to_le_bytes());
    }

    /// Eight bytes, signed.
    fn put_i64(&mut self, value: i64) {
        self.put(&value.to_le_bytes());
    }

    /// Eight bytes, floating point.
    fn put_f64(&mut self, value: f64) {
        self.put(&value.to_le_bytes());
    }

    /// A variable-length integer, 7 bits a byte, least significant first.
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.put_u8(value as u8);
    }

    /// UTF-16 units and a NUL unit.
    fn put_utf16z(&mut self, text: &str) {
        for unit in text.encode_utf16() {
            self.put_u16(unit);
        }
        self.put_u16(0);
    }
}

impl Put for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_failed_read_leaves_the_cursor() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u32(), Err(WireError::Short { at: 0, needed: 4, left: 3 }));
        assert_eq!(reader.u16(), Ok(0x0201));
        assert_eq!(reader.take(usize::MAX), Err(WireError::Short { at: 2, needed: usize::MAX, left: 1 }));
        assert_eq!(reader.u8(), Ok(3));
        assert!(reader.is_empty());
    }

    #[test]
    fn varints_have_a_longest_form() {
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f]).varu32(), Ok(u32::MAX));
        assert_eq!(Reader::new(&[0x80; 5]).varu32(), Err(WireError::Varint { at: 0 }));
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3]).varu32(), Ok(u32::MAX));
        assert_eq!(Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 0]).varu32(), Err(WireError::Varint { at: 0 }));
        assert_eq!(Reader::new(&[0x80; 4]).varu32(), Err(WireError::Short { at: 0, needed: 5, left: 4 }));
        assert_eq!(Reader::new(&[0x80; 10]).varu64(), Err(WireError::Varint { at: 0 }));
    }

    #[test]
    fn strings_need_their_nul() {
        let mut bytes = Vec::new();
        bytes.put_utf16z("Café 🦀");
        let mut reader = Reader::new(&bytes);
        let text = reader.utf16z().unwrap();
        assert_eq!(text.to_string(), "Café 🦀");
        assert!(text == *"Café 🦀" && reader.is_empty());
        for end in 0..bytes.len() {
            assert_eq!(Reader::new(&bytes[..end]).utf16z(), Err(WireError::Unterminated { at: 0 }));
        }
        assert_eq!(Utf16::new(&[0x00, 0xd8, 0x41, 0x00, 0x42]).to_string(), "\u{fffd}A");
    }

    proptest! {
        #[test]
        fn varints_come_back(value: u64, shift in 0..64_u32) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            bytes.put_varint(value);
            prop_assert_eq!(Reader::new(&bytes).varu64(), Ok(value));
            // At the end of the bytes and before more of them, and of every length.
            bytes.extend([0xff; 8]);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.varu64(), Ok(value));
            prop_assert_eq!(reader.remaining(), 8);
        }

        #[test]
        fn texts_come_back_however_they_are_read(text in "[a-z]{0,150}(.{0,20}[ -~]{0,20}){0,3}") {
            prop_assume!(!text.contains('\0'));
            let mut bytes = Vec::new();
            bytes.put_utf16z(&text);
            bytes.put_utf16z("more");
            let mut reader = Reader::new(&bytes);
            let read = reader.utf16z().unwrap();
            let mut out = "before".to_owned();
            read.push_to(&mut out);
            prop_assert_eq!(out, format!("before{text}"));
            prop_assert!(read == *text && reader.utf16z().unwrap() == *"more");
        }

        #[test]
        fn any_text_is_pushed_as_its_characters(bytes: Vec<u8>) {
            let mut out = String::new();
            Utf16::new(&bytes).push_to(&mut out);
            prop_assert_eq!(out, Utf16::new(&bytes).to_string());
        }

        #[test]
        fn any_bytes_are_safe(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while reader.varu64().is_ok() || reader.utf16z().is_ok() {}
            let mut reader = Reader::new(&bytes);
            while reader.varu32().is_ok() || reader.u64().is_ok() || reader.u8().is_ok() {}
            prop_assert!(reader.is_empty());
        }
    }
}
