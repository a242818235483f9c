//! UTF-16 text in wire format.

use std::fmt;

/// Borrowed little-endian UTF-16 text with an even number of bytes. Not necessarily valid: [`fmt::Display`] replaces invalid code units.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Utf16<'a>(pub(super) &'a [u8]);

impl<'a> Utf16<'a> {
    /// Interprets the bytes as UTF-16 code units; an odd last byte is ignored.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(&bytes[..bytes.len() & !1])
    }

    /// Returns the encoded bytes, without a terminating NUL.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns whether the text is empty.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the characters, with U+FFFD for every unpaired surrogate.
    pub fn chars(self) -> impl Iterator<Item = char> + 'a {
        let units = self.0.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Returns the first `most` characters.
    pub fn prefix(self, most: usize) -> String {
        let mut text = String::new();
        self.copy_prefix(&mut text, most);
        text
    }

    /// Replaces the contents of `into` by the first `most` characters, reusing its memory.
    pub fn copy_prefix(self, into: &mut String, most: usize) {
        into.clear();
        // A text has at most one character per code unit.
        if self.0.len() <= 2 * most { self.push_to(into) } else { into.extend(self.chars().take(most)) }
    }

    /// Appends the text to `out`, with U+FFFD for every unpaired surrogate: equivalent to [`chars`](Self::chars), but several times as fast
    /// for ASCII.
    pub fn push_to(self, out: &mut String) {
        let mut rest = self.0;
        let mut narrow = [0; 128];
        while !rest.is_empty() {
            let count = copy_ascii(rest, &mut narrow);
            if count == 0 {
                return out.extend(Self(rest).chars());
            }
            out.push_str(std::str::from_utf8(&narrow[..count]).unwrap_or_default());
            rest = &rest[2 * count..];
        }
    }
}

/// Copies the leading ASCII characters of UTF-16 text, as many as fit, and returns their number.
fn copy_ascii(text: &[u8], to: &mut [u8]) -> usize {
    let mut count = 0;
    while let (Some(units), Some(bytes)) = (text[2 * count..].first_chunk(), to[count..].first_chunk_mut()) {
        let units = u64::from_le_bytes(*units);
        if units & 0xff80_ff80_ff80_ff80 != 0 {
            break;
        }
        // Each code unit is a byte and a zero: merges adjacent bytes.
        let pairs = (units | units >> 8) & 0x0000_ffff_0000_ffff;
        *bytes = ((pairs | pairs >> 16) as u32).to_le_bytes();
        count += 4;
    }
    while let (Some([unit @ 0..0x80, 0]), Some(byte)) = (text[2 * count..].first_chunk(), to.get_mut(count)) {
        *byte = *unit;
        count += 1;
    }
    count
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
