//! Events as comma-separated values: one line per event, in file order.
//!
//! Source: RFC 4180, but with line feeds only. Unlike with the crate `csv`, which buffers whole records, fields are written as they are decoded.

use std::io::{self, Write};

use crate::analysis::Described;
use crate::clr::events;
use crate::model::{csv_field, is_formula};
use crate::nettrace::{ByMetadata, Event, Metadata, Sink, TraceHeader};

use super::output::{Part, Written};
use super::plain::is_plain;
use super::{Finished, Pass};

/// Writes every event.
pub(super) struct Csv<W> {
    out: W,
    part: Part,
    header: TraceHeader,
    /// The fields for provider and event, with the commas around them.
    names: ByMetadata<String>,
    lines: String,
    described: Described,
    written: Written,
    error: Option<io::Error>,
}

impl<W: Write> Csv<W> {
    pub(super) fn new(out: W, part: Part) -> Self {
        let lines = "seconds,process,thread,provider,event,stack_depth,payload\n".to_owned();
        let (header, names) = (TraceHeader::default(), ByMetadata::default());
        Self { out, part, header, names, lines, described: Described::default(), written: Written::default(), error: None }
    }
}

impl<W: Write> Pass for Csv<W> {
    fn finish(mut self: Box<Self>) -> io::Result<Finished> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.out.write_all(self.lines.as_bytes())?;
        self.out.flush()?;
        Ok(Finished::Part(self.written))
    }
}

impl<W: Write> Sink for Csv<W> {
    fn trace(&mut self, header: &TraceHeader) {
        self.header = *header;
    }

    fn metadata(&mut self, metadata: &Metadata) {
        let mut names = ",".to_owned();
        quote(&mut names, &metadata.provider);
        names.push(',');
        match events::name(&metadata.provider, metadata.event_id) {
            Some(name) => quote(&mut names, name),
            None if metadata.name.is_empty() => names.push_str(&metadata.event_id.to_string()),
            None => quote(&mut names, &metadata.name),
        }
        names.push(',');
        self.names.push(names);
    }

    fn event(&mut self, event: &Event<'_>) {
        let at = self.header.nanoseconds_between(self.header.sync_ticks, event.timestamp());
        self.written.newest = self.written.newest.max(at);
        if self.error.is_some() || !self.part.window.contains(&at) || !self.part.has_thread(event.thread()) {
            return;
        }
        let thread = event.thread();
        self.written.others += 1;
        self.written.note_thread(thread, &self.part);
        let names = self.names.get(event.metadata).map_or(",,,", String::as_str);
        let depth = event.stack().map_or(0, |stack| stack.len());
        self.described.read(event, self.header.pointer_size);
        let (line, mut digits) = (&mut self.lines, itoa::Buffer::new());
        push_seconds(line, at);
        line.push(',');
        line.push_str(digits.format(thread.process_or(self.header.process_id)));
        line.push(',');
        line.push_str(digits.format(thread.thread));
        line.push_str(names);
        line.push_str(digits.format(depth));
        line.push(',');
        let start = line.len();
        line.push_str(self.described.text());
        if self.described.is_cut {
            line.push_str(if line.len() == start { "…" } else { " …" });
        }
        quote_from(line, start);
        line.push('\n');
        if self.lines.len() >= 1 << 16 {
            self.error = self.out.write_all(self.lines.as_bytes()).err();
            self.lines.clear();
        }
    }
}

/// Appends nanoseconds as seconds with nine decimals.
fn push_seconds(line: &mut String, ns: i64) {
    const SECOND: u64 = 1_000_000_000;
    if ns < 0 {
        line.push('-');
    }
    let (ns, mut digits) = (ns.unsigned_abs(), itoa::Buffer::new());
    line.push_str(digits.format(ns / SECOND));
    line.push('.');
    // The leading zeros follow a 1, which is left out.
    line.push_str(&digits.format(SECOND + ns % SECOND)[1..]);
}

/// Appends a field, sanitized as it may be printed to a terminal.
fn quote(line: &mut String, field: &str) {
    let start = line.len();
    line.push_str(field);
    quote_from(line, start);
}

/// Converts the field that begins at `start`, unless it is plain text.
fn quote_from(line: &mut String, start: usize) {
    let field = &line[start..];
    if !is_plain(field, *b",\"") || is_formula(field) {
        let field = csv_field(field);
        line.truncate(start);
        line.push_str(&field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_only_if_necessary() {
        for (field, quoted) in [
            ("a b", "a b"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("a\u{1b}[m\nb\u{202e}", "a\u{fffd}[m b\u{fffd}"),
            ("\u{9b}31m\u{7f}", "\u{fffd}31m\u{fffd}"),
            ("£ §", "£ §"),
            ("=1+1", "'=1+1"),
        ] {
            let mut line = "\",".to_owned();
            quote(&mut line, field);
            assert_eq!(line, format!("\",{quoted}"));
        }
    }

    #[test]
    fn times_have_nine_decimals() {
        for (ns, text) in [
            (0, "0.000000000"),
            (1, "0.000000001"),
            (-1, "-0.000000001"),
            (12_345_678_901, "12.345678901"),
            (-2_000_000_000, "-2.000000000"),
            (i64::MIN, "-9223372036.854775808"),
        ] {
            let mut line = String::new();
            push_seconds(&mut line, ns);
            assert_eq!(line, text);
        }
    }
}
