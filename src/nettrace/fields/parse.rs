//! Parsing of field descriptions, in the three encodings of the format.

use crate::wire::{Reader, WireError};

use super::super::labels::text;
use super::{Field, FieldType};

/// Maximum nesting depth.
const MAX_DEPTH: u32 = 16;

/// Reason why parsing of field descriptions stopped.
pub(in super::super) enum FieldError {
    Wire,
    Depth,
}

impl From<WireError> for FieldError {
    fn from(_: WireError) -> Self {
        Self::Wire
    }
}

/// Parses the fields of V4 metadata. A nested layout precedes the name of its field.
pub(in super::super) fn parse_v1(reader: &mut Reader<'_>, fields: &mut Vec<Field>) -> Result<(), FieldError> {
    v1(reader, fields, MAX_DEPTH)
}

fn v1(reader: &mut Reader<'_>, fields: &mut Vec<Field>, depth: u32) -> Result<(), FieldError> {
    for _ in 0..reader.u32()? {
        let code = reader.u32()?;
        let kind = match code {
            1 => {
                let mut nested = Vec::new();
                v1(reader, &mut nested, deeper(depth)?)?;
                FieldType::Object(nested)
            }
            _ => plain(code),
        };
        fields.push(Field { name: reader.utf16z()?.to_string(), kind });
    }
    Ok(())
}

/// Parses the fields of a V2 tag, added by V5 to describe arrays.
pub(in super::super) fn parse_v2(reader: &mut Reader<'_>, fields: &mut Vec<Field>) -> Result<(), FieldError> {
    v2(reader, fields, MAX_DEPTH)
}

fn v2(reader: &mut Reader<'_>, fields: &mut Vec<Field>, depth: u32) -> Result<(), FieldError> {
    for _ in 0..reader.u32()? {
        // The size includes the size field itself.
        let size = (reader.u32()? as usize).saturating_sub(4);
        let mut field = Reader::new(reader.take(size)?);
        let name = field.utf16z()?.to_string();
        let kind = v2_type(&mut field, depth)?;
        fields.push(Field { name, kind });
    }
    Ok(())
}

fn v2_type(reader: &mut Reader<'_>, depth: u32) -> Result<FieldType, FieldError> {
    Ok(match reader.u32()? {
        1 => {
            let mut nested = Vec::new();
            v2(reader, &mut nested, deeper(depth)?)?;
            FieldType::Object(nested)
        }
        19 => FieldType::Array(v2_type(reader, deeper(depth)?)?.into()),
        code => plain(code),
    })
}

/// Parses the fields of V6 metadata.
pub(in super::super) fn parse_v6(reader: &mut Reader<'_>, fields: &mut Vec<Field>) -> Result<(), FieldError> {
    v6(reader, fields, MAX_DEPTH)
}

fn v6(reader: &mut Reader<'_>, fields: &mut Vec<Field>, depth: u32) -> Result<(), FieldError> {
    for _ in 0..reader.u16()? {
        let size = reader.u16()?.into();
        let mut field = Reader::new(reader.take(size)?);
        let name = String::from_utf8_lossy(text(&mut field)?).into_owned();
        let kind = v6_type(&mut field, depth)?;
        fields.push(Field { name, kind });
    }
    Ok(())
}

fn v6_type(reader: &mut Reader<'_>, depth: u32) -> Result<FieldType, FieldError> {
    let element = |reader: &mut Reader<'_>| v6_type(reader, deeper(depth)?).map(Box::new);
    Ok(match reader.u8()? {
        1 => {
            let mut nested = Vec::new();
            v6(reader, &mut nested, deeper(depth)?)?;
            FieldType::Object(nested)
        }
        19 => FieldType::Array(element(reader)?),
        22 => {
            let element = element(reader)?;
            FieldType::FixedLengthArray(reader.u16()?, element)
        }
        24 => FieldType::RelLoc(element(reader)?),
        25 => FieldType::DataLoc(element(reader)?),
        code => plain(code.into()),
    })
}

fn deeper(depth: u32) -> Result<u32, FieldError> {
    depth.checked_sub(1).ok_or(FieldError::Depth)
}

/// The types without further description, with their codes.
static PLAIN: [(u32, FieldType); 20] = [
    (3, FieldType::Boolean),
    (4, FieldType::Char),
    (5, FieldType::SByte),
    (6, FieldType::Byte),
    (7, FieldType::Int16),
    (8, FieldType::UInt16),
    (9, FieldType::Int32),
    (10, FieldType::UInt32),
    (11, FieldType::Int64),
    (12, FieldType::UInt64),
    (13, FieldType::Single),
    (14, FieldType::Double),
    (15, FieldType::Decimal),
    (16, FieldType::DateTime),
    (17, FieldType::Guid),
    (18, FieldType::String),
    (20, FieldType::VarInt),
    (21, FieldType::VarUInt),
    (23, FieldType::Utf8CodeUnit),
    (26, FieldType::Boolean8),
];

/// Returns the type for a code without further description.
fn plain(code: u32) -> FieldType {
    PLAIN.iter().find(|(known, _)| *known == code).map_or(FieldType::Unknown(code), |(_, kind)| kind.clone())
}

impl FieldType {
    /// Returns the type code.
    pub(in crate::nettrace) fn code(&self) -> u32 {
        match self {
            Self::Object(_) => 1,
            Self::Array(_) => 19,
            Self::FixedLengthArray(..) => 22,
            Self::RelLoc(_) => 24,
            Self::DataLoc(_) => 25,
            Self::Unknown(code) => *code,
            plain => PLAIN.iter().find(|(_, known)| known == plain).map_or(0, |(code, _)| *code),
        }
    }
}
