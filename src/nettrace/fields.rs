//! Self-described payloads: the fields of EventSource events.

mod parse;

use crate::wire::{Reader, Utf16, WireError};

use super::labels::zigzag;

pub(super) use parse::{parse_v1, parse_v2, parse_v6};

/// A field of a payload.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Field name; not sanitized, and empty for the outermost object of some self-describing events.
    pub name: String,
    /// Field type.
    pub kind: FieldType,
}

/// Type of a field, named as in the format, with its type code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// 1: fields in sequence.
    Object(Vec<Field>),
    /// 3: four bytes.
    Boolean,
    /// 4: a UTF-16 code unit.
    Char,
    /// 5.
    SByte,
    /// 6.
    Byte,
    /// 7.
    Int16,
    /// 8.
    UInt16,
    /// 9.
    Int32,
    /// 10.
    UInt32,
    /// 11.
    Int64,
    /// 12.
    UInt64,
    /// 13.
    Single,
    /// 14.
    Double,
    /// 15: sixteen bytes.
    Decimal,
    /// 16: a FILETIME in V4, a SYSTEMTIME in V6.
    DateTime,
    /// 17: sixteen bytes.
    Guid,
    /// 18: UTF-16 code units with a NUL terminator.
    String,
    /// 19: a two-byte count, followed by the elements.
    Array(Box<FieldType>),
    /// 20: a signed variable-length integer (V6).
    VarInt,
    /// 21: an unsigned variable-length integer (V6).
    VarUInt,
    /// 22: a fixed number of elements (V6).
    FixedLengthArray(u16, Box<FieldType>),
    /// 23: one byte of UTF-8 (V6).
    Utf8CodeUnit,
    /// 24: elements elsewhere in the payload, located relative to the end of this field (V6).
    RelLoc(Box<FieldType>),
    /// 25: elements elsewhere in the payload, located relative to its start (V6).
    DataLoc(Box<FieldType>),
    /// 26: one byte (V6).
    Boolean8,
    /// An unknown type code: neither this field nor any field after it can be read.
    Unknown(u32),
}

impl FieldType {
    /// Returns whether all values have the same size, as the format requires for elements located elsewhere.
    fn has_fixed_size(&self) -> bool {
        match self {
            Self::Object(fields) => fields.iter().all(|field| field.kind.has_fixed_size()),
            Self::FixedLengthArray(_, element) => element.has_fixed_size(),
            Self::Array(_) | Self::String | Self::VarInt | Self::VarUInt => false,
            _ => true,
        }
    }

    fn has_variable_elements(&self) -> bool {
        match self {
            Self::RelLoc(element) | Self::DataLoc(element) => !element.has_fixed_size() || element.has_variable_elements(),
            Self::Array(element) | Self::FixedLengthArray(_, element) => element.has_variable_elements(),
            Self::Object(fields) => have_variable_elements(fields),
            _ => false,
        }
    }
}

/// Returns whether any field has elements located elsewhere with variable size.
pub(super) fn have_variable_elements(fields: &[Field]) -> bool {
    fields.iter().any(|field| field.kind.has_variable_elements())
}

/// Value of a field.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating-point number.
    Float(f64),
    /// A UTF-16 code unit.
    Char(u16),
    /// UTF-16 text, including arrays of UTF-16 code units.
    Text(Utf16<'a>),
    /// An array of UTF-8 bytes, not necessarily valid.
    Utf8(&'a [u8]),
    /// A timestamp in 100 ns units since 1601 (FILETIME).
    FileTime(u64),
    /// A timestamp as the eight words of a SYSTEMTIME (V6).
    SystemTime([u16; 8]),
    /// A GUID in wire byte order.
    Guid([u8; 16]),
    /// A decimal in wire byte order.
    Decimal([u8; 16]),
    /// A nested object.
    Object(Values<'a>),
    /// An array with elements of one type.
    Array(Elements<'a>),
}

/// Iterator over the fields of a payload or nested object, with their values.
#[derive(Debug, Clone)]
pub struct Values<'a> {
    fields: std::slice::Iter<'a, Field>,
    payload: Payload<'a>,
    budget: WorkBudget,
    truncated: bool,
}

/// Iterator over the elements of an array.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    kind: &'a FieldType,
    left: usize,
    payload: Payload<'a>,
    budget: WorkBudget,
}

/// A cursor into a payload.
#[derive(Debug, Clone)]
struct Payload<'a> {
    reader: Reader<'a>,
    /// The whole payload, for elements located elsewhere in it.
    whole: &'a [u8],
    /// Offset of the reader's bytes in the payload.
    base: usize,
    v6: bool,
}

impl<'a> Values<'a> {
    pub(super) fn new(fields: &'a [Field], payload: &'a [u8], v6: bool) -> Self {
        Self::over(fields, Payload { reader: Reader::new(payload), whole: payload, base: 0, v6 }, WorkBudget::new(payload.len()))
    }

    fn over(fields: &'a [Field], payload: Payload<'a>, budget: WorkBudget) -> Self {
        Self { fields: fields.iter(), budget, payload, truncated: false }
    }

    /// Returns whether the payload was truncated or malformed. Known once all values were read.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = (&'a Field, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.fields.next()?;
        let value = self.budget.spend(1).and_then(|()| self.payload.read(&field.kind, &mut self.budget)).ok();
        if value.is_none() {
            self.truncated = true;
            self.fields = [].iter();
        }
        Some((field, value?))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let value = self.budget.spend(1).and_then(|()| self.payload.read(self.kind, &mut self.budget)).ok();
        if value.is_none() {
            self.left = 0;
        }
        value
    }
}

impl<'a> Payload<'a> {
    fn read(&mut self, kind: &'a FieldType, budget: &mut WorkBudget) -> Result<Value<'a>, Truncated> {
        let reader = &mut self.reader;
        Ok(match kind {
            FieldType::Object(fields) => {
                let (from, before) = (reader.at(), budget.0);
                let mut inner = self.clone();
                inner.skip_fields(fields, budget)?;
                let bytes = self.reader.take(inner.reader.at() - from)?;
                Value::Object(Values::over(fields, self.part(bytes, self.base + from), budget.spent_since(before)))
            }
            FieldType::Boolean => Value::Bool(reader.u32()? != 0),
            FieldType::Boolean8 => Value::Bool(reader.u8()? != 0),
            FieldType::Char => Value::Char(reader.u16()?),
            FieldType::SByte => Value::Int(i64::from(reader.u8()? as i8)),
            FieldType::Byte => Value::UInt(reader.u8()?.into()),
            FieldType::Utf8CodeUnit => Value::Utf8(reader.take(1)?),
            FieldType::Int16 => Value::Int(i64::from(reader.u16()? as i16)),
            FieldType::UInt16 => Value::UInt(reader.u16()?.into()),
            FieldType::Int32 => Value::Int(reader.i32()?.into()),
            FieldType::UInt32 => Value::UInt(reader.u32()?.into()),
            FieldType::Int64 => Value::Int(reader.i64()?),
            FieldType::UInt64 => Value::UInt(reader.u64()?),
            FieldType::Single => Value::Float(reader.f32()?.into()),
            FieldType::Double => Value::Float(reader.f64()?),
            FieldType::Decimal => Value::Decimal(reader.array()?),
            FieldType::DateTime if self.v6 => {
                let mut words = [0; 8];
                for word in &mut words {
                    *word = reader.u16()?;
                }
                Value::SystemTime(words)
            }
            FieldType::DateTime => Value::FileTime(reader.u64()?),
            FieldType::Guid => Value::Guid(reader.array()?),
            FieldType::String => Value::Text(reader.utf16z()?),
            FieldType::VarInt => Value::Int(zigzag(reader.varu64()?)),
            FieldType::VarUInt => Value::UInt(reader.varu64()?),
            FieldType::Array(element) => {
                let count = reader.u16()?.into();
                self.elements(element, count, budget)?
            }
            FieldType::FixedLengthArray(count, element) => self.elements(element, usize::from(*count), budget)?,
            FieldType::RelLoc(element) => {
                let place = reader.u32()?;
                let end = self.base + reader.at();
                self.elsewhere(element, place, end, budget)?
            }
            FieldType::DataLoc(element) => {
                let place = reader.u32()?;
                self.elsewhere(element, place, 0, budget)?
            }
            FieldType::Unknown(_) => return Err(Truncated),
        })
    }

    /// Reads an array located here.
    fn elements(&mut self, kind: &'a FieldType, count: usize, budget: &mut WorkBudget) -> Result<Value<'a>, Truncated> {
        let (from, before) = (self.reader.at(), budget.0);
        let mut inner = self.clone();
        inner.skip_elements(kind, count, budget)?;
        let bytes = self.reader.take(inner.reader.at() - from)?;
        Ok(array(kind, count, self.part(bytes, self.base + from), budget.spent_since(before)))
    }

    /// Reads an array located elsewhere: `place` contains its size in bytes and its offset from `origin`.
    fn elsewhere(&mut self, kind: &'a FieldType, place: u32, origin: usize, budget: &mut WorkBudget) -> Result<Value<'a>, Truncated> {
        let (size, at) = ((place >> 16) as usize, origin + (place & 0xffff) as usize);
        let bytes = self.whole.get(at..at + size).ok_or(Truncated)?;
        // Any number of fields can have the same location.
        budget.spend(size)?;
        // Elements located elsewhere must not contain further such fields: an empty payload makes those fail.
        let part = Payload { reader: Reader::new(bytes), whole: &[], base: 0, v6: self.v6 };
        let (mut rest, mut budget) = (part.clone(), WorkBudget::new(size));
        let mut count = 0;
        if size != 0 {
            rest.skip(kind, &mut budget)?;
            count = size.checked_div(rest.reader.at()).unwrap_or(0);
        }
        if !kind.has_fixed_size() {
            count = usize::from(size != 0);
            while rest.reader.at() != 0 && !rest.reader.is_empty() && rest.skip(kind, &mut budget).is_ok() {
                count += 1;
            }
        }
        Ok(array(kind, count, part, WorkBudget::new(2 * size)))
    }

    /// Returns a cursor over the part of the payload that starts at `base`.
    fn part(&self, bytes: &'a [u8], base: usize) -> Self {
        Self { reader: Reader::new(bytes), whole: self.whole, base, v6: self.v6 }
    }

    fn skip(&mut self, kind: &'a FieldType, budget: &mut WorkBudget) -> Result<(), Truncated> {
        budget.spend(1)?;
        match kind {
            FieldType::Object(fields) => self.skip_fields(fields, budget),
            FieldType::Array(element) => {
                let count = self.reader.u16()?.into();
                self.skip_elements(element, count, budget)
            }
            FieldType::FixedLengthArray(count, element) => self.skip_elements(element, usize::from(*count), budget),
            FieldType::RelLoc(_) | FieldType::DataLoc(_) => {
                let place = self.reader.u32()?;
                budget.spend((place >> 16) as usize)
            }
            _ => self.read(kind, budget).map(drop),
        }
    }

    fn skip_fields(&mut self, fields: &'a [Field], budget: &mut WorkBudget) -> Result<(), Truncated> {
        fields.iter().try_for_each(|field| self.skip(&field.kind, budget))
    }

    fn skip_elements(&mut self, kind: &'a FieldType, count: usize, budget: &mut WorkBudget) -> Result<(), Truncated> {
        for _ in 0..count {
            let from = self.reader.at();
            self.skip(kind, budget)?;
            if self.reader.at() == from {
                // The other elements take no bytes either.
                break;
            }
        }
        Ok(())
    }
}

/// Creates an array value from the bytes of `payload`.
fn array<'a>(kind: &'a FieldType, count: usize, payload: Payload<'a>, budget: WorkBudget) -> Value<'a> {
    let bytes = payload.reader.rest();
    match kind {
        FieldType::Char => Value::Text(Utf16::new(bytes)),
        FieldType::Utf8CodeUnit => Value::Utf8(bytes),
        // Zero-sized elements are omitted: there can be any number of them.
        _ => Value::Array(Elements { kind, left: count.min(bytes.len()), payload, budget }),
    }
}

/// The payload is truncated or malformed.
struct Truncated;

impl From<WireError> for Truncated {
    fn from(_: WireError) -> Self {
        Self
    }
}

/// Bounds the work per payload: metadata can describe any number of zero-sized fields, nested empty objects, and arrays that all share the
/// same bytes, which would make an event of a few bytes expensive.
///
/// A compound value costs as much as its parts, which get the same budget again: the total work is at most proportional to the nesting depth.
#[derive(Debug, Clone)]
struct WorkBudget(usize);

impl WorkBudget {
    fn new(bytes: usize) -> Self {
        // Every nonempty field takes a byte, and objects that contain fields are fewer than those.
        Self(2 * bytes + 32)
    }

    fn spend(&mut self, steps: usize) -> Result<(), Truncated> {
        self.0 = self.0.checked_sub(steps).ok_or(Truncated)?;
        Ok(())
    }

    /// Returns a budget equal to what was spent since the budget was `before`.
    fn spent_since(&self, before: usize) -> Self {
        Self(before - self.0)
    }
}

#[cfg(test)]
mod tests;
