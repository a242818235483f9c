//! Writing: results to stdout, words for a person to stderr.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::model::{escape_json, sanitise};
use crate::tui::write_stderr;

/// The version of the JSON documents: it grows when a field goes or changes its meaning.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: u32,
    #[serde(flatten)]
    document: &'a T,
}

/// Prints one JSON object with its schema.
pub(super) fn json(document: &impl Serialize) -> anyhow::Result<()> {
    json_list(&Versioned { schema: SCHEMA, document })
}

/// Prints one JSON document and a line end.
pub(super) fn json_list(document: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(document).context("the result cannot be written as JSON")?;
    self::text(|out| writeln!(out, "{}", escape_json(&text)))
}

/// Writes a JSON document on a line of its own.
pub(super) fn json_line(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", escape_json(&serde_json::to_string(document)?))
}

/// Prints text. A reader that has seen enough (`| head`) is no error.
pub(super) fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    more(write).map(drop)
}

/// Prints text of which more may come; whether anybody still reads.
pub(super) fn more(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<bool> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.context("cannot write to stdout").map(|()| true),
    }
}

/// Says something to the person on stderr, whatever paths and names from outside the words hold.
pub(super) fn say(words: impl Display) {
    let lines: Vec<_> = words.to_string().lines().map(sanitise).collect();
    write_stderr(&format!("dn-top: {}\n", lines.join("\n")), Duration::from_secs(1));
}

/// Replaces the line that the cursor is on. Where stderr accepts nothing at the moment, the line is left out: a later one replaces it anyway.
pub(super) fn rewrite_line(words: impl Display) {
    write_stderr(&format!("\r\x1b[K{words}"), Duration::ZERO);
}
