//! Output: results to stdout, messages to stderr.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use serde_json::Map;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use unicode_width::UnicodeWidthChar;

use super::interrupt;
use crate::analysis::MethodTime;
use crate::model::{SafeText, Stopwatch, escape_json, safe};
use crate::tui::write_stderr;

/// For documents, which are written here.
pub(super) use serde_json::{Value, json};

pub(super) use crate::tui::message;

/// Version of the JSON documents: incremented when a field is removed or changes its meaning.
pub(super) const SCHEMA: u32 = 1;

/// Adds the schema version to a JSON object.
pub(super) fn versioned(document: Value) -> Value {
    joined([json!({ "schema": SCHEMA }), rounded("", document)])
}

/// Rounds milliseconds to nanoseconds, in which they are measured: divisions add digits.
fn rounded(field: &str, value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| rounded(field, item)).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name.clone(), rounded(&name, value))).collect(),
        Value::Number(number) if number.is_f64() && field.ends_with("_ms") => number.as_f64().map(|ms| (ms * 1e6).round() / 1e6).into(),
        other => other,
    }
}

/// Prints one JSON object with its schema version.
pub(super) fn json(document: Value) -> anyhow::Result<()> {
    let text = format!("{:#}", versioned(document));
    bytes(format!("{}\n", escape_json(&text)).as_bytes()).map(drop)
}

/// Prints a result as JSON, or as text.
pub(super) fn result(
    is_json: bool,
    document: impl FnOnce() -> Value,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    if is_json { json(document()) } else { text(write) }
}

/// Returns one JSON object with the fields of several; `null` has none.
pub(super) fn joined(objects: impl IntoIterator<Item = Value>) -> Value {
    let fields = |object| if let Value::Object(fields) = object { fields } else { Map::new() };
    objects.into_iter().flat_map(fields).collect()
}

/// Returns one of several JSON objects, which contains its schema version, as one line.
pub(super) fn json_line(document: &impl Serialize) -> anyhow::Result<String> {
    Ok(format!("{}\n", escape_json(&serde_json::to_string(document)?)))
}

/// Returns the length of a recording in whole seconds, the nearest: one of 3 s ends with an event shortly before.
pub(super) fn seconds(recorded: Duration) -> Stopwatch {
    Stopwatch(Duration::from_secs(recorded.saturating_add(Duration::from_millis(500)).as_secs()))
}

/// Returns the start of a line, at most `columns` wide.
pub(super) fn cut(line: &str, columns: usize) -> &str {
    let mut used = 0;
    let too_much = line.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > columns
    });
    &line[..too_much.map_or(line.len(), |(at, _)| at)]
}

/// Prints text, which may contain untrusted names.
pub(super) fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut text = Vec::new();
    let written = write(&mut text);
    plain(&text, written)
}

/// The part of [`text`] that does not depend on the writer.
fn plain(text: &[u8], written: io::Result<()>) -> anyhow::Result<()> {
    written?;
    bytes(safe_lines(text).as_bytes()).map(drop)
}

/// Prints unsanitized output. Returns whether the output is still open: a reader that closes the pipe early (`| head`) is not an error.
pub(super) fn bytes(bytes: &[u8]) -> anyhow::Result<bool> {
    // A pipe that is not read holds up the thread, which then does not notice a signal.
    let waiting = Handle::try_current().ok().map(|runtime| runtime.spawn(interrupt::exit_on_signal()));
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    waiting.inspect(JoinHandle::abort);
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.context("cannot write to stdout").map(|()| true),
    }
}

/// Replaces the characters that control a terminal, except for line ends.
pub(super) fn safe_lines(text: &[u8]) -> String {
    String::from_utf8_lossy(text).split('\n').map(safe).collect::<Vec<_>>().join("\n")
}

/// Returns the name of a method, with its parameters.
pub(super) fn method_name(method: &MethodTime) -> SafeText {
    SafeText::new(&format!("{}{}", method.name, method.parameters))
}

/// Returns the end of a line about a method: its name, with its module.
pub(super) fn method(method: &MethodTime) -> String {
    let name = method_name(method);
    format!("{name}{}", module_suffix(&name, &SafeText::new(&method.module)))
}

/// Returns the end of a line about a method or type: its module, unless unknown. The name of a function without symbols is its library.
pub(super) fn module_suffix(name: &str, module: &str) -> String {
    if module.is_empty() || name.starts_with('[') { String::new() } else { format!("  [{module}]") }
}

/// Replaces the current line, if stderr is a terminal. If it is blocked, the line is skipped: a later one replaces it anyway.
pub(super) fn rewrite_line(words: impl Display) {
    if io::stderr().is_terminal() {
        write_stderr(&format!("\r\x1b[K{}", safe(&words.to_string())), Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn length_of_a_recording_is_rounded() {
        let shown = [0, 499, 500, 2_999, 3_499].map(|ms| seconds(Duration::from_millis(ms)).to_string());
        assert_eq!(shown, ["0:00", "0:00", "0:01", "0:03", "0:03"]);
    }

    #[test]
    fn times_in_documents_have_only_digits_that_were_measured() {
        let found =
            versioned(json!({ "all": [{ "cpu_ms": 36.778_217_000_000_005 }], "share": 0.031_415_926, "wait_ms": null, "bytes": u64::MAX }));
        let expected = r#"{"schema":1,"all":[{"cpu_ms":36.778217}],"share":0.031415926,"wait_ms":null,"bytes":18446744073709551615}"#;
        assert_eq!(found.to_string(), expected);
    }

    #[test]
    fn lines_are_cut_at_the_terminal_width() {
        for (line, columns, expected) in
            [("abc", 3, "abc"), ("abcd", 3, "abc"), ("日本", 3, "日"), ("e\u{301}x", 1, "e\u{301}"), ("x", 0, ""), ("", 5, "")]
        {
            assert_eq!(cut(line, columns), expected);
        }
    }

    proptest! {
        #[test]
        fn output_contains_no_control_characters(lines: Vec<String>, bytes: Vec<u8>) {
            let text = safe_lines(&[lines.join("\n").as_bytes(), &bytes].concat());
            prop_assert!(text.lines().all(|line| safe(line) == line));
            prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        }
    }
}
