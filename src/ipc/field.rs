//! How the parts of a payload stand on the wire (specification, "Payload": integers little endian, strings and arrays with a `u32` count).

use super::Hresult;
use crate::wire::{Put, Reader, Utf16, WireError};

/// A part of a payload, both directions.
pub(super) trait Field: Sized {
    /// Puts it behind what is there.
    fn write(&self, out: &mut Vec<u8>);

    /// Takes it from the front; on failure, what a runtime answers.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult>;
}

/// Bytes that end too soon and strings without their NUL are a bad encoding to a runtime.
impl From<WireError> for Hresult {
    fn from(_: WireError) -> Self {
        Self::BAD_ENCODING
    }
}

impl Field for u32 {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(reader.u32()?)
    }
}

impl Field for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u64(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(reader.u64()?)
    }
}

/// One byte; any value but 0 is true.
impl Field for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u8(u8::from(*self));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(reader.u8()? != 0)
    }
}

/// A count of UTF-16 units that includes the NUL, and the units. Count 0 is the null string; the empty string has count 1.
impl Field for Option<String> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            None => out.put_u32(0),
            Some(text) => put_string(out, text),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(read_string(reader)?)
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok((A::read(reader)?, B::read(reader)?))
    }
}

/// A count and the elements. Nothing is reserved by the count: an array that claims more than there is fails at the missing element.
impl<T: Field> Field for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.len() as u32);
        self.iter().for_each(|element| element.write(out));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        let count = reader.u32()?;
        (0..count).map(|_| T::read(reader)).collect()
    }
}

/// A string that is there.
pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.put_u32(text.encode_utf16().count() as u32 + 1);
    out.put_utf16z(text);
}

/// A string, or `None` for the null string. Exactly one NUL is taken off its end; unpaired surrogates become U+FFFD.
pub(super) fn read_string(reader: &mut Reader<'_>) -> Result<Option<String>, WireError> {
    let at = reader.at();
    let mut ahead = *reader;
    let units = ahead.u32()?;
    let bytes = ahead.take(usize::try_from(u64::from(units) * 2).unwrap_or(usize::MAX))?;
    let text = match bytes.split_last_chunk::<2>() {
        None => None,
        Some((text, [0, 0])) => Some(Utf16::new(text).to_string()),
        Some(_) => return Err(WireError::Unterminated { at }),
    };
    *reader = ahead;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strings_as_the_specification_counts_them() {
        let cases: [(&[u8], Option<&str>); 3] =
            [(&[0, 0, 0, 0], None), (&[1, 0, 0, 0, 0, 0], Some("")), (&[3, 0, 0, 0, b'o', 0, b'k', 0, 0, 0], Some("ok"))];
        for (bytes, text) in cases {
            let text = text.map(str::to_owned);
            let mut out = Vec::new();
            text.write(&mut out);
            assert_eq!(out, bytes);
            assert_eq!(read_string(&mut Reader::new(bytes)), Ok(text));
        }
    }

    #[test]
    fn bad_strings_leave_the_reader() {
        for bytes in [&[2, 0, 0, 0, b'o', 0, b'k', 0][..], &[3, 0, 0, 0, 0, 0], &[0, 0, 0, 0x80], &[0xff; 4], &[1, 0]] {
            let mut reader = Reader::new(bytes);
            if bytes == [0, 0, 0, 0x80] {
                // To a runtime's 32-bit arithmetic this is the null string; to us it is 4 GiB that are not there.
                assert!(matches!(read_string(&mut reader), Err(WireError::Short { needed: 0x1_0000_0000, .. })));
            }
            assert!(read_string(&mut reader).is_err(), "{bytes:?}");
            assert_eq!(reader.at(), 0);
        }
    }

    #[test]
    fn an_array_reserves_nothing_by_its_count() {
        assert_eq!(Vec::<u32>::read(&mut Reader::new(&[0xff; 12])), Err(Hresult::BAD_ENCODING));
    }

    proptest! {
        #[test]
        fn strings_come_back(text: Option<String>) {
            let mut out = Vec::new();
            text.write(&mut out);
            prop_assert_eq!(read_string(&mut Reader::new(&out)), Ok(text));
        }
    }
}
