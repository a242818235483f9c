//! Encoding of payload fields (specification, "Payload": integers are little-endian, strings and arrays have a `u32` count).

use super::Hresult;
use crate::wire::{Put, Reader, Utf16, WireError};

/// A payload field that can be encoded and decoded.
pub(super) trait Field: Sized {
    /// Appends the encoded field.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads the field; on failure, returns the error with which a runtime replies.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult>;
}

/// Implements [`Field`] for structures whose fields are in wire order.
macro_rules! structure {
    ($($name:ident { $($field:tt),+ })+) => {
        $(impl Field for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)+
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
                Ok(Self { $($field: Field::read(reader)?),+ })
            }
        })+
    };
}
pub(super) use structure;

/// Implements [`Field`] for an enumeration, as a `u32`. To an unknown number, a runtime replies with `$error`.
macro_rules! enumeration {
    ($name:ident, $error:ident) => {
        impl Field for $name {
            fn write(&self, out: &mut Vec<u8>) {
                out.put_u32(*self as u32);
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
                let number = reader.u32()?;
                Self::ALL.into_iter().find(|value| *value as u32 == number).ok_or(Hresult::$error)
            }
        }
    };
}
pub(super) use enumeration;

/// Runtimes treat truncated payloads and strings without NUL as a bad encoding.
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

/// One byte; any nonzero value is true.
impl Field for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u8(u8::from(*self));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(reader.u8()? != 0)
    }
}

/// A count of UTF-16 code units including the NUL, followed by the units. Count 0 is the null string; the empty string has count 1.
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

/// A count and the elements. Memory is not reserved based on the count: an array with too large a count fails at the first missing element.
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

/// Appends a non-null string.
pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.put_u32(text.encode_utf16().count() as u32 + 1);
    out.put_utf16z(text);
}

/// Reads a string, or `None` for the null string. Exactly one trailing NUL is removed; unpaired surrogates become U+FFFD.
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
    fn string_length_counts_the_terminator() {
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
    fn failed_string_read_does_not_advance_the_reader() {
        for bytes in [&[2, 0, 0, 0, b'o', 0, b'k', 0][..], &[3, 0, 0, 0, 0, 0], &[0, 0, 0, 0x80], &[0xff; 4], &[1, 0]] {
            let mut reader = Reader::new(bytes);
            if bytes == [0, 0, 0, 0x80] {
                // In a runtime's 32-bit arithmetic this is the null string; here it is a string of 4 GiB that is missing.
                assert!(matches!(read_string(&mut reader), Err(WireError::Short { needed: 0x1_0000_0000, .. })));
            }
            assert!(read_string(&mut reader).is_err(), "{bytes:?}");
            assert_eq!(reader.at(), 0);
        }
    }

    #[test]
    fn array_count_does_not_preallocate_memory() {
        assert_eq!(Vec::<u32>::read(&mut Reader::new(&[0xff; 12])), Err(Hresult::BAD_ENCODING));
    }

    proptest! {
        #[test]
        fn strings_round_trip(text: Option<String>) {
            let mut out = Vec::new();
            text.write(&mut out);
            prop_assert_eq!(read_string(&mut Reader::new(&out)), Ok(text));
        }
    }
}
