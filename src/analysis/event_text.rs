//! Formats the payload of an event as text, by its metadata or by the runtime's manifest.

use std::fmt::{self, Write};

use crate::clr::manifest;
use crate::nettrace::{Event, UtcTime, Value, Values};

/// Maximum number of fields of an event, of elements of an array, and of fields of an element, and maximum nesting depth of objects.
const FIELDS: usize = 64;
const ELEMENTS: usize = 16;
const PARTS: usize = 4;
const DEPTH: usize = 4;
/// Maximum length of a text, in characters.
const TEXT: usize = 1000;
/// Size in bytes of an array, and of all names and values together, from which nothing is added: hundreds of events are kept.
const MAX_ARRAY_BYTES: usize = 4000;
const MAX_BYTES: usize = 16_000;
/// Number of bytes shown for an unknown layout.
const MAX_RAW_BYTES: usize = 32;

/// Formatted fields of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Described {
    /// Names and values, alternating, with an equals sign after each name and a space after each value but the last.
    text: String,
    /// End of each field's name and value in `text`.
    ends: Vec<[usize; 2]>,
    /// Whether fields are omitted or the payload is malformed.
    pub is_cut: bool,
}

impl Described {
    /// Returns names and values; fields of nested objects have dotted names. Not sanitized.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.spans().map(|[start, name, value]| (&self.text[start..name], &self.text[name + 1..value]))
    }

    /// Returns the [fields](Self::fields) as `name=value`, separated by spaces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the start of each field, and the ends of its name and value.
    fn spans(&self) -> impl ExactSizeIterator<Item = [usize; 3]> {
        let start = |index: usize| index.checked_sub(1).map_or(0, |before| self.ends[before][1] + 1);
        self.ends.iter().enumerate().map(move |(index, [name, value])| [start(index), *name, *value])
    }

    /// Replaces the contents by the fields of an event, by its metadata or by the runtime's manifest. Reuses the memory.
    pub fn read(&mut self, event: &Event<'_>, pointer_size: u8) {
        self.text.clear();
        self.ends.clear();
        self.is_cut = false;
        let metadata = event.metadata;
        if !metadata.fields.is_empty() {
            return self.add_all("", event.values(), DEPTH);
        }
        let is_described = manifest::read(&metadata.provider, metadata.event_id, event.payload, pointer_size, |field| {
            self.add("", field.name, |text| {
                match field.value {
                    Value::UInt(number) if field.is_hex => write!(text, "{number:#x}")?,
                    value => write_value(text, &value)?,
                }
                field.symbol.map_or(Ok(()), |word| write!(text, " ({word})"))
            });
        });
        if !is_described && !event.payload.is_empty() {
            self.is_cut = event.payload.len() > MAX_RAW_BYTES;
            self.add("", "bytes", |text| {
                let bytes = event.payload.iter().take(MAX_RAW_BYTES).enumerate();
                bytes.into_iter().try_for_each(|(index, byte)| write!(text, "{}{byte:02x}", if index == 0 { "" } else { " " }))
            });
        }
    }

    fn add_all(&mut self, path: &str, mut values: Values<'_>, depth: usize) {
        for (field, value) in values.by_ref() {
            if self.ends.len() >= FIELDS || self.text.len() >= MAX_BYTES {
                self.is_cut = true;
                return;
            }
            match value {
                Value::Object(inner) if depth > 0 => {
                    let mut name = String::new();
                    push_name(&mut name, path, &field.name);
                    self.add_all(&name, inner, depth - 1);
                }
                value => self.add(path, &field.name, |text| write_value(text, &value)),
            }
        }
        self.is_cut |= values.is_truncated();
    }

    fn add(&mut self, path: &str, name: &str, write: impl FnOnce(&mut String) -> fmt::Result) {
        if !self.ends.is_empty() {
            self.text.push(' ');
        }
        push_name(&mut self.text, path, name);
        let end_of_name = self.text.len();
        self.text.push('=');
        // A string accepts all text.
        let _ = write(&mut self.text);
        self.ends.push([end_of_name, self.text.len()]);
    }
}

/// Formats the fields of an event, by its metadata or by the runtime's manifest.
pub fn describe(event: &Event<'_>, pointer_size: u8) -> Described {
    let mut described = Described::default();
    described.read(event, pointer_size);
    described
}

/// Appends the dotted name of a field.
fn push_name(text: &mut String, path: &str, name: &str) {
    if !path.is_empty() {
        text.push_str(path);
        text.push_str(if name.is_empty() { "" } else { "." });
    }
    match name.len() {
        ..=TEXT => text.push_str(name),
        _ => text.extend(name.chars().take(TEXT)),
    }
}

fn write_value(out: &mut String, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(number) => out.write_str(itoa::Buffer::new().format(*number)),
        Value::UInt(number) => out.write_str(itoa::Buffer::new().format(*number)),
        Value::Float(number) => write!(out, "{number}"),
        Value::Char(unit) => out.write_char(char::from_u32((*unit).into()).unwrap_or(char::REPLACEMENT_CHARACTER)),
        // A text has at most one character per UTF-16 unit.
        Value::Text(text) if text.as_bytes().len() <= 2 * TEXT => {
            text.push_to(out);
            Ok(())
        }
        Value::Text(text) => write_short(out, text.chars()),
        // With one more byte than the longest text can have, it is known to be cut.
        Value::Utf8(bytes) => write_short(out, String::from_utf8_lossy(&bytes[..bytes.len().min(4 * TEXT + 1)]).chars()),
        Value::FileTime(ticks) => out.write_str(&file_time(*ticks)),
        Value::SystemTime([year, month, _, day, hour, minute, second, ms]) => {
            write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}")
        }
        Value::Guid(bytes) => write_guid(out, bytes),
        Value::Decimal(bytes) => write_hex(out, bytes),
        Value::Object(_) => out.write_str("{…}"),
        Value::Array(elements) => {
            let start = out.len();
            out.push('[');
            for (index, element) in elements.clone().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                if index >= ELEMENTS || out.len() - start >= MAX_ARRAY_BYTES {
                    out.push('…');
                    break;
                }
                write_element(out, &element)?;
            }
            out.write_char(']')
        }
    }
}

/// Formats an array element: pairs, in which event sources write dictionaries, as `key=value`.
fn write_element(out: &mut String, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Object(inner) => inner.clone().take(PARTS).enumerate().try_for_each(|(index, (_, value))| {
            out.push_str(if index == 0 { "" } else { "=" });
            if let Value::Object(_) | Value::Array(_) = value { out.write_char('…') } else { write_value(out, &value) }
        }),
        Value::Array(_) => out.write_str("[…]"),
        value => write_value(out, value),
    }
}

fn write_short(out: &mut String, mut chars: impl Iterator<Item = char>) -> fmt::Result {
    out.extend(chars.by_ref().take(TEXT));
    chars.next().map_or(Ok(()), |_| out.write_char('…'))
}

fn write_hex(out: &mut String, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// Formats a GUID, whose first three parts are little-endian in the stream.
fn write_guid(out: &mut String, bytes: &[u8; 16]) -> fmt::Result {
    let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
    let (first, second, third) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h]));
    write!(out, "{first:08x}-{second:04x}-{third:04x}-")?;
    write_hex(out, &rest[..2])?;
    out.push('-');
    write_hex(out, &rest[2..])
}

/// Formats a FILETIME (100 ns units since 1601) in UTC.
fn file_time(ticks: u64) -> String {
    const UNIX_EPOCH_MS: i64 = 11_644_473_600_000;
    let time = UtcTime::from_unix_ms((ticks / 10_000) as i64 - UNIX_EPOCH_MS).to_string();
    time.trim_end_matches('Z').replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_times_guids_and_long_texts_are_formatted() {
        for (ticks, text) in [
            (0, "1601-01-01 00:00:00.000"),
            (116_444_736_000_000_000, "1970-01-01 00:00:00.000"),
            (133_536_816_123_456_789, "2024-02-29 12:00:12.345"),
        ] {
            assert_eq!(file_time(ticks), text);
        }
        file_time(u64::MAX);
        let bytes = [0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
        let long = "x".repeat(2000);
        // Four bytes each: the cut is within a character.
        let wide = "🦀".repeat(TEXT + 1);
        for (value, text) in [
            (Value::Guid(bytes), "00112233-4455-6677-8899-aabbccddeeff".to_owned()),
            (Value::Utf8(b"ab"), "ab".to_owned()),
            (Value::Utf8(long.as_bytes()), "x".repeat(TEXT) + "…"),
            (Value::Utf8(wide.as_bytes()), "🦀".repeat(TEXT) + "…"),
            (Value::Utf8(&wide.as_bytes()[4..]), "🦀".repeat(TEXT)),
        ] {
            let mut out = String::new();
            write_value(&mut out, &value).unwrap();
            assert_eq!(out, text);
        }
    }
}
