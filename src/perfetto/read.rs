//! Reads protocol buffers without a schema, field by field. Readers skip unknown fields.

use thiserror::Error;

use crate::wire::Reader;

/// The bytes are not a protocol buffer, or a field has a type that differs from the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a message cannot be decoded")]
pub struct Malformed;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A varint, or a fixed value of 32 or 64 bits.
    Number(u64),
    /// A string, bytes, a message, or a packed field.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Returns an integer, boolean or enumeration.
    ///
    /// # Errors
    /// [`Malformed`] for a length-delimited field.
    pub fn number(self) -> Result<u64, Malformed> {
        match self {
            Self::Number(value) => Ok(value),
            Self::Bytes(_) => Err(Malformed),
        }
    }

    /// Returns an integer of 32 bits, or an index. Larger values are malformed.
    ///
    /// # Errors
    /// [`Malformed`]
    pub fn small(self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed)
    }

    /// Returns an `int32`: negative values are encoded with 64 bits.
    ///
    /// # Errors
    /// [`Malformed`] for a length-delimited field.
    pub fn int(self) -> Result<u32, Malformed> {
        Ok(self.number()? as u32)
    }

    /// Returns a boolean.
    ///
    /// # Errors
    /// [`Malformed`]
    pub fn flag(self) -> Result<bool, Malformed> {
        Ok(self.number()? != 0)
    }

    /// Returns bytes or a message.
    ///
    /// # Errors
    /// [`Malformed`] for a number.
    pub fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err(Malformed),
        }
    }

    /// Returns a string; not sanitized. Invalid UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// [`Malformed`] for a number.
    pub fn text(self) -> Result<String, Malformed> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }
}

/// Iterator over the fields of a message, in order: number and value.
#[derive(Debug, Clone)]
pub struct Fields<'a>(Reader<'a>);

/// Returns the fields of a message.
pub fn fields(bytes: &[u8]) -> Fields<'_> {
    Fields(Reader::new(bytes))
}

/// The values of fields that are not repeated: the last one counts, and that of a missing field is 0 or empty. They fail like [`Value`].
#[allow(missing_docs, clippy::missing_errors_doc, reason = "each is the value of that type")]
impl<'a> Fields<'a> {
    pub fn number(&self, field: u32) -> Result<u64, Malformed> {
        self.last_of(field)?.map_or(Ok(0), Value::number)
    }

    pub fn small(&self, field: u32) -> Result<u32, Malformed> {
        self.last_of(field)?.map_or(Ok(0), Value::small)
    }

    pub fn int(&self, field: u32) -> Result<u32, Malformed> {
        self.last_of(field)?.map_or(Ok(0), Value::int)
    }

    pub fn flag(&self, field: u32) -> Result<bool, Malformed> {
        self.last_of(field)?.map_or(Ok(false), Value::flag)
    }

    pub fn bytes(&self, field: u32) -> Result<&'a [u8], Malformed> {
        self.last_of(field)?.map_or(Ok(&[]), Value::bytes)
    }

    pub fn text(&self, field: u32) -> Result<String, Malformed> {
        self.last_of(field)?.map_or(Ok(String::new()), Value::text)
    }

    /// Returns the last value of a field, if the message has it.
    pub fn last_of(&self, number: u32) -> Result<Option<Value<'a>>, Malformed> {
        let mut last = None;
        for field in self.clone() {
            let (found, value) = field?;
            if found == number {
                last = Some(value);
            }
        }
        Ok(last)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u32, Value<'a>), Malformed> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| (1..1 << 29).contains(number)).ok_or(Malformed)?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Number(self.0.u64().map_err(|_| Malformed)?),
            2 => {
                let size = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Value::Bytes(self.0.take(size).map_err(|_| Malformed)?)
            }
            5 => Value::Number(self.0.u32().map_err(|_| Malformed)?.into()),
            // Groups: not used by any message of Perfetto.
            _ => return Err(Malformed),
        };
        Ok((number, value))
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        self.0.varu64().map_err(|_| Malformed)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = Reader::new(&[]);
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::perfetto::Message;

    #[test]
    fn fields_round_trip() {
        let mut bytes = Vec::new();
        let mut message = Message::new(&mut bytes);
        message.uint(1, 150);
        message.text(2, "testing");
        message.fixed(3, u64::MAX);
        let read: Vec<_> = fields(&bytes).map(Result::unwrap).collect();
        assert_eq!(read, [(1, Value::Number(150)), (2, Value::Bytes(b"testing")), (3, Value::Number(u64::MAX))]);
    }

    #[test]
    fn wrong_types_groups_and_field_zero_are_malformed() {
        assert_eq!(Value::Bytes(b"").number(), Err(Malformed));
        assert_eq!(Value::Number(1).bytes(), Err(Malformed));
        assert_eq!(Value::Number(1 << 32).small(), Err(Malformed));
        for bytes in [&[0x00, 1][..], &[0x0b], &[0x0c], &[0x0a, 5, 1], &[0x08], &[0xff; 11]] {
            let read: Vec<_> = fields(bytes).collect();
            assert_eq!(read, [Err(Malformed)], "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn reading_random_bytes_terminates(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(fields(&bytes).count() <= bytes.len());
        }
    }
}
