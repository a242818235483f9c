//! Encoding of V6 metadata records.

use crate::wire::Put;

use super::super::super::{Field, FieldType, Metadata};

/// Options of a record.
const OPCODE: u8 = 1;
const KEYWORDS: u8 = 3;
const LEVEL: u8 = 8;
const VERSION: u8 = 9;
/// Maximum text size in bytes: the size of a row must fit into two bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// Encodes a record as a row. Fields are omitted if they do not fit.
pub(super) fn put(out: &mut Vec<u8>, id: u32, record: &Metadata, is_v6: bool) {
    let with = |fields: &[Field]| {
        let mut row = Vec::new();
        row.put_varint(id.into());
        put_text(&mut row, &record.provider);
        row.put_varint(record.event_id.into());
        put_text(&mut row, &record.name);
        put_fields(&mut row, fields, is_v6)?;
        let mut options = Vec::new();
        if let Some(opcode) = record.opcode {
            options.put(&[OPCODE, opcode]);
        }
        if record.keywords != 0 {
            options.put_u8(KEYWORDS);
            options.put_u64(record.keywords);
        }
        for (kind, value) in [(LEVEL, record.level), (VERSION, record.version)].into_iter().filter(|(_, value)| *value != 0) {
            options.put(&[kind, u8::try_from(value).unwrap_or(u8::MAX)]);
        }
        row.put_u16(options.len() as u16);
        row.append(&mut options);
        u16::try_from(row.len()).is_ok().then_some(row)
    };
    if let Some(row) = with(&record.fields).or_else(|| with(&[])) {
        put_sized(out, &row);
    }
}

/// Returns `None` if the fields are too long.
fn put_fields(out: &mut Vec<u8>, fields: &[Field], is_v6: bool) -> Option<()> {
    out.put_u16(u16::try_from(fields.len()).ok()?);
    for field in fields {
        let mut body = Vec::new();
        put_text(&mut body, &field.name);
        put_type(&mut body, &field.kind, is_v6)?;
        u16::try_from(body.len()).ok()?;
        put_sized(out, &body);
    }
    Some(())
}

fn put_type(out: &mut Vec<u8>, kind: &FieldType, is_v6: bool) -> Option<()> {
    let kind = if *kind == FieldType::DateTime && !is_v6 { &FieldType::UInt64 } else { kind };
    out.put_u8(u8::try_from(kind.code()).ok()?);
    match kind {
        FieldType::Object(nested) => put_fields(out, nested, is_v6)?,
        FieldType::Array(element) | FieldType::RelLoc(element) | FieldType::DataLoc(element) => put_type(out, element, is_v6)?,
        FieldType::FixedLengthArray(count, element) => {
            put_type(out, element, is_v6)?;
            out.put_u16(*count);
        }
        _ => {}
    }
    Some(())
}

/// Writes a row with its size.
pub(super) fn put_sized(out: &mut Vec<u8>, row: &[u8]) {
    out.put_u16(row.len() as u16);
    out.put(row);
}

/// Writes text with its size, truncated if too long.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let end = (0..=text.len().min(MAX_TEXT_BYTES)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let text = &text[..end];
    out.put_varint(text.len() as u64);
    out.put(text.as_bytes());
}
