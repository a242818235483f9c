//! Named values, written as a JSON object or as a table row.

use std::io::Write;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use unicode_width::UnicodeWidthStr;

use crate::model::{Bytes, Count, Nanoseconds, SafeText};

/// A value and its name in JSON.
pub(in crate::cli) type Field = (&'static str, Value);

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(in crate::cli) enum Value {
    Count(u64),
    Bytes(u64),
    Nanoseconds(u64),
    Flag(bool),
    Text(SafeText),
    /// Texts by name.
    #[serde(serialize_with = "texts")]
    Texts(Vec<(SafeText, SafeText)>),
    Counts(Counts),
    /// The frames of a stack.
    Frames(Vec<SafeText>),
    /// Nested rows, such as the call sites of an allocated type.
    Rows(Vec<Fields>),
    Missing,
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(SafeText::new(text))
    }

    pub(super) fn shown(&self) -> String {
        match self {
            Self::Count(count) => Count(*count).to_string(),
            Self::Bytes(bytes) => Bytes(*bytes).to_string(),
            Self::Nanoseconds(ns) => Nanoseconds(*ns).to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Text(text) => text.to_string(),
            Self::Texts(texts) => texts.iter().map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join(" "),
            Self::Counts(Counts(counts)) => {
                counts.iter().map(|(name, count)| format!("{name} ×{}", Count(*count))).collect::<Vec<_>>().join(", ")
            }
            Self::Frames(frames) => frames.iter().map(ToString::to_string).collect::<Vec<_>>().join(" < "),
            // Method and bytes of the two largest call sites.
            Self::Rows(rows) => {
                let row = |row: &Fields| row.0.iter().take(2).map(|(_, value)| value.shown()).collect::<Vec<_>>().join(" ");
                rows.iter().take(2).map(row).collect::<Vec<_>>().join(", ")
            }
            Self::Missing => "-".to_owned(),
        }
    }
}

fn texts<S: Serializer>(texts: &[(SafeText, SafeText)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(texts.iter().map(|(name, text)| (name, text)))
}

/// Counts by name.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct Counts(pub(super) Vec<(String, u64)>);

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, count)| (name, count)))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct Fields(pub(super) Vec<Field>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

/// Maximum number of characters of a table cell: every row is as long as the longest. The texts of events are shorter, but not the names of
/// their providers, which a process chooses.
const MAX_CELL: usize = 4000;

/// Writes rows that have the same fields as a table, with an empty line and a header line before it. Writes nothing if there are no rows.
pub(in crate::cli) fn write_table(out: &mut dyn Write, rows: &[Fields]) -> std::io::Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut table = vec![first.0.iter().map(|(name, _)| title(name).to_uppercase()).collect::<Vec<_>>()];
    table.extend(rows.iter().map(|row| row.0.iter().map(cell).collect()));
    let is_text = |value: &Value| matches!(value, Value::Text(_) | Value::Counts(_) | Value::Rows(_));
    let columns: Vec<(bool, usize)> = first
        .0
        .iter()
        .enumerate()
        .map(|(at, (_, value))| (is_text(value), table.iter().map(|row| row[at].width()).max().unwrap_or(0)))
        .collect();
    writeln!(out)?;
    for row in &table {
        let cells = row.iter().zip(&columns).map(|(cell, (is_text, width))| {
            // The padding of the formatter counts characters, some of which take two columns.
            let padding = " ".repeat(width - cell.width());
            if *is_text { format!("{cell}{padding}") } else { format!("{padding}{cell}") }
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// Returns the text of a field: what was recorded without a stack has no method.
fn cell((name, value): &Field) -> String {
    let mut shown = match value {
        Value::Text(text) if *name == "method" && text.is_empty() => "(no stack)".to_owned(),
        value => value.shown(),
    };
    if let Some((end, _)) = shown.char_indices().nth(MAX_CELL) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

/// Returns the title of a field: its name without the unit, unless nothing else distinguishes it from a count.
pub(super) fn title(name: &str) -> String {
    let is_distinct = |short: &&str| *short != "event";
    let name = name.strip_suffix("_ns").or_else(|| name.strip_suffix("_bytes").filter(is_distinct)).unwrap_or(name);
    let word = |word: &str| if ["gc", "il", "loh", "poh"].contains(&word) { word.to_uppercase() } else { word.to_owned() };
    name.split('_').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_field_names_without_unit() {
        for (name, expected) in [
            ("loh_bytes", "LOH"),
            ("gc_handles", "GC handles"),
            ("awaiting_finalization", "awaiting finalization"),
            ("event_bytes", "event bytes"),
        ] {
            assert_eq!(title(name), expected);
        }
    }

    /// Names of types can be in any script.
    #[test]
    fn tables_with_wide_characters_are_aligned() {
        let row =
            |kind: &str, message: &str| Fields(vec![("type", Value::Text(kind.into())), ("last_message", Value::Text(message.into()))]);
        let mut out = Vec::new();
        write_table(&mut out, &[row("注文エラー", "a"), row("TimeoutError", "b"), row("e\u{301}", "c")]).unwrap();
        let expected = "\nTYPE          LAST MESSAGE\n注文エラー    a\nTimeoutError  b\ne\u{301}             c\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// Every row is as long as the longest.
    #[test]
    fn width_of_tables_is_limited() {
        let row = |provider: &str| Fields(vec![("provider", Value::text(provider)), ("event", Value::text("E"))]);
        let mut out = Vec::new();
        write_table(&mut out, &[row(&"é".repeat(60_000)), row(&"x".repeat(120_000)), row("A")]).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.lines().skip(2).all(|line| line.ends_with('E') && line.chars().count() < 5000), "{out:.100}");
    }
}
