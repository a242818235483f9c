//! Parsing of metadata records.

use crate::wire::{Reader, WireError};

use super::super::fields::{FieldType, parse_v1, parse_v2, parse_v6 as parse_v6_fields};
use super::super::labels::text;
use super::Metadata;

/// Parses the payload of a blob in a V4 metadata block.
///
/// Tags are read in every stream: runtimes since 5.0 also write them to streams of version 4. If the fields are malformed, those before the
/// error are kept: the event itself remains usable.
pub(in super::super) fn parse_v4(payload: &[u8]) -> Result<Metadata, WireError> {
    let mut reader = Reader::new(payload);
    let mut record = Metadata {
        id: reader.u32()?,
        provider: reader.utf16z()?.to_string(),
        event_id: reader.u32()?,
        name: reader.utf16z()?.to_string(),
        keywords: reader.u64()?,
        version: reader.u32()?,
        level: reader.u32()?,
        ..Metadata::default()
    };
    if parse_v1(&mut reader, &mut record.fields).is_ok() {
        while let Ok(size) = reader.u32() {
            let (Ok(kind), Ok(tag)) = (reader.u8(), reader.take(size as usize)) else { break };
            match (kind, tag) {
                (1, [opcode, ..]) => record.opcode = Some(*opcode),
                (2, _) => {
                    record.fields.clear();
                    // Fields end at the first malformed one.
                    let _ = parse_v2(&mut Reader::new(tag), &mut record.fields);
                }
                _ => {}
            }
        }
    }
    Ok(record)
}

/// Parses the next row of a V6 metadata block; returns it with its size.
pub(in super::super) fn parse_v6(reader: &mut Reader<'_>) -> Result<(Metadata, usize), WireError> {
    let size = reader.u16()?.into();
    let mut row = Reader::new(reader.take(size)?);
    let mut record = Metadata {
        id: row.varu32()?,
        provider: String::from_utf8_lossy(text(&mut row)?).into_owned(),
        event_id: row.varu32()?,
        name: String::from_utf8_lossy(text(&mut row)?).into_owned(),
        ..Metadata::default()
    };
    if parse_v6_fields(&mut row, &mut record.fields).is_ok() {
        // Options end at the first malformed one, or at a kind added by a later version.
        let _ = options(&mut row, &mut record);
    }
    if record.provider.starts_with("Universal.") {
        record.fields.iter_mut().for_each(|field| describe_text(&mut field.kind));
    }
    Ok((record, size))
}

/// Collectors outside the runtime (`record-trace`, 2026) write strings as arrays of UTF-8 code units, but declare them as a single unit.
fn describe_text(kind: &mut FieldType) {
    if *kind == FieldType::Utf8CodeUnit {
        *kind = FieldType::Array(FieldType::Utf8CodeUnit.into());
    }
}

fn options(row: &mut Reader<'_>, record: &mut Metadata) -> Result<(), WireError> {
    let size = row.u16()?.into();
    let mut options = Reader::new(row.take(size)?);
    while !options.is_empty() {
        match options.u8()? {
            1 => record.opcode = Some(options.u8()?),
            3 => record.keywords = options.u64()?,
            // Message template, description.
            4 | 5 => {
                text(&mut options)?;
            }
            6 => {
                text(&mut options)?;
                text(&mut options)?;
            }
            // The provider's GUID.
            7 => {
                options.take(16)?;
            }
            8 => record.level = options.u8()?.into(),
            9 => record.version = options.u8()?.into(),
            _ => break,
        }
    }
    Ok(())
}
