//! Writing of metadata records in V6.

use crate::wire::Put;

use super::super::super::{Field, FieldType, Metadata};
use super::super::metadata::code;

/// Options of a record.
const OPCODE: u8 = 1;
const KEYWORDS: u8 = 3;
const LEVEL: u8 = 8;
const VERSION: u8 = 9;
/// Longest text, bytes: a row states its size in two.
const LONGEST: usize = 4096;

/// Writes the row of a record. Fields that a row has no room for are left out.
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

/// `None` where they are too long.
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
    out.put_u8(u8::try_from(code(kind)).ok()?);
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

/// A row with its size before it.
pub(super) fn put_sized(out: &mut Vec<u8>, row: &[u8]) {
    out.put_u16(row.len() as u16);
    out.put(row);
}

/// A text with its size before it, or so much of it as there is room for.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let end = (0..=text.len().min(LONGEST)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let text = &text[..end];
    out.put_varint(text.len() as u64);
    out.put(text.as_bytes());
}
