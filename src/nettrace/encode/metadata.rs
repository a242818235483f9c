//! Encoding of metadata records.

use crate::wire::Put;

use super::super::{Field, FieldType, Metadata};

/// Encodes the payload of a metadata blob.
pub(super) fn put(out: &mut Vec<u8>, id: u32, record: &Metadata) {
    out.put_u32(id);
    put_text(out, &record.provider);
    out.put_u32(record.event_id);
    put_text(out, &record.name);
    out.put_u64(record.keywords);
    out.put_u32(record.version);
    out.put_u32(record.level);
    let tagged = needs_tag(&record.fields);
    put_v1(out, if tagged { &[] } else { &record.fields });
    if let Some(opcode) = record.opcode {
        put_tag(out, 1, &[opcode]);
    }
    if tagged {
        let mut fields = Vec::new();
        put_v2(&mut fields, &record.fields);
        put_tag(out, 2, &fields);
    }
}

/// Returns whether any fields are arrays, which only a V2 tag can describe.
fn needs_tag(fields: &[Field]) -> bool {
    fields.iter().any(|field| match &field.kind {
        FieldType::Object(nested) => needs_tag(nested),
        FieldType::Array(_) => true,
        _ => false,
    })
}

fn put_tag(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    out.put_u32(payload.len() as u32);
    out.put_u8(kind);
    out.put(payload);
}

fn put_v1(out: &mut Vec<u8>, fields: &[Field]) {
    out.put_u32(fields.len() as u32);
    for field in fields {
        out.put_u32(field.kind.code());
        if let FieldType::Object(nested) = &field.kind {
            put_v1(out, nested);
        }
        put_text(out, &field.name);
    }
}

fn put_v2(out: &mut Vec<u8>, fields: &[Field]) {
    out.put_u32(fields.len() as u32);
    for field in fields {
        let mut body = Vec::new();
        put_text(&mut body, &field.name);
        put_v2_type(&mut body, &field.kind);
        // The size includes the size field itself.
        out.put_u32(body.len() as u32 + 4);
        out.append(&mut body);
    }
}

fn put_v2_type(out: &mut Vec<u8>, kind: &FieldType) {
    out.put_u32(kind.code());
    match kind {
        FieldType::Object(nested) => put_v2(out, nested),
        FieldType::Array(element) => put_v2_type(out, element),
        _ => {}
    }
}

/// Writes text up to the first NUL, which would terminate it.
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.put_utf16z(text.split('\0').next().unwrap_or_default());
}
