//! Protocol buffers without a schema: enough to inspect exports.

/// Value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(bytes) => panic!("{bytes:?} is no number"),
        }
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(number) => panic!("{number} is no message"),
        }
    }
}

/// Returns the fields of a message, in order.
pub(crate) fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => Value::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut bytes);
                Value::Bytes(take(&mut bytes, length as usize))
            }
            kind => panic!("a field of wire type {kind}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

/// Returns the first field with that number.
pub(crate) fn field(message: &[u8], number: u64) -> Option<Value<'_>> {
    fields(message).into_iter().find(|(key, _)| *key == number).map(|(_, value)| value)
}

/// Returns all fields with that number.
pub(crate) fn all(message: &[u8], number: u64) -> impl Iterator<Item = Value<'_>> {
    fields(message).into_iter().filter(move |(key, _)| *key == number).map(|(_, value)| value)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

pub(crate) fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = take(bytes, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}
