//! Output: results to stdout, messages to stderr.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::analysis::MethodTime;
use crate::model::{SafeText, escape_json, safe};
use crate::tui::write_stderr;

pub(super) use crate::tui::message;

/// Version of the JSON documents: incremented when a field is removed or changes its meaning.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: u32,
    #[serde(flatten)]
    document: &'a T,
}

/// Prints one JSON object with its schema version.
pub(super) fn json(document: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(&Versioned { schema: SCHEMA, document }).context("the result cannot be written as JSON")?;
    more(|out| writeln!(out, "{}", escape_json(&text))).map(drop)
}

/// Prints one JSON object with its schema version and a list named `name`.
pub(super) fn json_list(name: &str, rows: impl IntoIterator<Item = impl Serialize>) -> anyhow::Result<()> {
    json(&BTreeMap::from([(name, rows.into_iter().collect::<Vec<_>>())]))
}

pub(super) fn json_line(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", escape_json(&serde_json::to_string(document)?))
}

/// Writes one of several JSON objects, with its schema version, on one line.
pub(super) fn json_entry(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    json_line(out, &Versioned { schema: SCHEMA, document })
}

/// Prints text, which may contain untrusted names. A reader that closes the pipe early (`| head`) is not an error.
pub(super) fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    more(|out| write(&mut Safe(out))).map(drop)
}

/// Prints unsanitized output, possibly in several parts. Returns whether the output is still open.
pub(super) fn more(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<bool> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.context("cannot write to stdout").map(|()| true),
    }
}

/// A writer that replaces the characters that control a terminal, except for line ends.
pub(super) struct Safe<W>(pub(super) W);

impl<W: Write> Write for Safe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in String::from_utf8_lossy(bytes).split_inclusive('\n') {
            let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
            self.0.write_all(safe(text).as_bytes())?;
            self.0.write_all(end.as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns the name of a method, with its parameters.
pub(super) fn method_name(method: &MethodTime) -> SafeText {
    SafeText::new(&format!("{}{}", method.name, method.parameters))
}

/// Returns the end of a line about a method or type: its module, unless unknown. The name of a function without symbols is its library.
pub(super) fn module_suffix(name: &str, module: &str) -> String {
    if module.is_empty() || name.starts_with('[') { String::new() } else { format!("  [{module}]") }
}

/// Replaces the current line. If stderr is blocked, the line is skipped: a later one replaces it anyway.
pub(super) fn rewrite_line(words: impl Display) {
    write_stderr(&format!("\r\x1b[K{}", safe(&words.to_string())), Duration::ZERO);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn output_contains_no_control_characters(lines: Vec<String>, bytes: Vec<u8>) {
            let mut out = Vec::new();
            for line in &lines {
                writeln!(Safe(&mut out), "{line}").unwrap();
            }
            Safe(&mut out).write_all(&bytes).unwrap();
            let text = String::from_utf8(out).unwrap();
            prop_assert!(text.lines().all(|line| safe(line) == line));
            prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        }
    }
}
