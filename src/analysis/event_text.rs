//! Formats the payload of an event as text, by its metadata or by the runtime's manifest.

use crate::clr::manifest;
use crate::nettrace::{Event, Value, Values};

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
    /// Names and values; fields of nested objects have dotted names. Not sanitized.
    pub fields: Vec<(String, String)>,
    /// Whether fields are omitted or the payload is malformed.
    pub is_cut: bool,
}

/// Formats the fields of an event, by its metadata or by the runtime's manifest.
pub fn describe(event: &Event<'_>, pointer_size: u8) -> Described {
    let mut all = Described::default();
    let metadata = event.metadata;
    if metadata.fields.is_empty() && manifest::is_described(&metadata.provider, metadata.event_id) {
        manifest::read(&metadata.provider, metadata.event_id, event.payload, pointer_size, |field| {
            let text = match field.value {
                Value::UInt(number) if field.is_hex => format!("{number:#x}"),
                value => text(&value),
            };
            let text = if let Some(word) = field.symbol { format!("{text} ({word})") } else { text };
            all.fields.push((field.name.to_owned(), text));
        });
    } else if metadata.fields.is_empty() && !event.payload.is_empty() {
        let bytes: Vec<_> = event.payload.iter().take(MAX_RAW_BYTES).map(|byte| format!("{byte:02x}")).collect();
        all.fields.push(("bytes".to_owned(), bytes.join(" ")));
        all.is_cut = event.payload.len() > MAX_RAW_BYTES;
    } else {
        add(&mut all, "", event.values(), DEPTH);
    }
    all
}

fn add(all: &mut Described, path: &str, mut values: Values<'_>, depth: usize) {
    for (field, value) in values.by_ref() {
        let bytes: usize = all.fields.iter().map(|(name, text)| name.len() + text.len()).sum();
        if all.fields.len() >= FIELDS || bytes >= MAX_BYTES {
            all.is_cut = true;
            return;
        }
        let name: String = field.name.chars().take(TEXT).collect();
        let name = match (path.is_empty(), name.is_empty()) {
            (true, _) => name,
            (false, true) => path.to_owned(),
            (false, false) => format!("{path}.{name}"),
        };
        match value {
            Value::Object(inner) if depth > 0 => add(all, &name, inner, depth - 1),
            value => all.fields.push((name, text(&value))),
        }
    }
    all.is_cut |= values.is_truncated();
}

fn text(value: &Value<'_>) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Char(unit) => char::from_u32((*unit).into()).unwrap_or(char::REPLACEMENT_CHARACTER).to_string(),
        Value::Text(text) => short(text.chars()),
        Value::Utf8(bytes) => short(String::from_utf8_lossy(&bytes[..bytes.len().min(4 * TEXT)]).chars()),
        Value::FileTime(ticks) => file_time(*ticks),
        Value::SystemTime([year, month, _, day, hour, minute, second, ms]) => {
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}")
        }
        Value::Guid(bytes) => guid(bytes),
        Value::Decimal(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Object(_) => "{…}".to_owned(),
        Value::Array(elements) => {
            let mut all = "[".to_owned();
            for (index, element) in elements.clone().enumerate() {
                let separator = if index == 0 { "" } else { ", " };
                if index >= ELEMENTS || all.len() >= MAX_ARRAY_BYTES {
                    all.push_str(&format!("{separator}…"));
                    break;
                }
                all.push_str(&format!("{separator}{}", element_text(&element)));
            }
            all + "]"
        }
    }
}

/// Formats an array element: pairs, in which event sources write dictionaries, as `key=value`.
fn element_text(value: &Value<'_>) -> String {
    match value {
        Value::Object(inner) => {
            let parts: Vec<_> = inner
                .clone()
                .take(PARTS)
                .map(|(_, value)| if let Value::Object(_) | Value::Array(_) = value { "…".to_owned() } else { text(&value) })
                .collect();
            parts.join("=")
        }
        Value::Array(_) => "[…]".to_owned(),
        value => text(value),
    }
}

fn short(chars: impl Iterator<Item = char>) -> String {
    let mut text: String = chars.take(TEXT + 1).collect();
    if let Some((end, _)) = text.char_indices().nth(TEXT) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Formats a GUID, whose first three parts are little-endian in the stream.
fn guid(bytes: &[u8; 16]) -> String {
    let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
    let (first, second, third) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h]));
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{first:08x}-{second:04x}-{third:04x}-{}-{}", &rest[..4], &rest[4..])
}

/// Formats a FILETIME (100 ns units since 1601) in UTC, by days since 0000-03-01.
fn file_time(ticks: u64) -> String {
    let seconds = ticks / 10_000_000;
    let (days, second) = (seconds / 86_400 + 584_694, seconds % 86_400);
    let era_day = days % 146_097;
    let year_of_era = (era_day - era_day / 1460 + era_day / 36_524 - era_day / 146_096) / 365;
    let day_of_year = era_day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    let year = days / 146_097 * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:03}", second / 3600, second / 60 % 60, second % 60, ticks / 10_000 % 1000)
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
        assert_eq!(guid(&bytes), "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(short("ab".chars()), "ab");
        assert_eq!(short("x".repeat(2000).chars()).chars().count(), TEXT + 1);
    }
}
