//! Events as comma-separated values: one line per event, in file order.
//!
//! Source: RFC 4180, but with line feeds only. Unlike with the crate `csv`, which buffers whole records, fields are written as they are decoded.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::analysis::Described;
use crate::clr::events;
use crate::model::{csv_field, is_formula};
use crate::nettrace::{Event, Metadata, Sink, TraceHeader};

use super::output::Part;

/// Writes every event.
pub(super) struct Csv<W> {
    out: W,
    part: Part,
    header: TraceHeader,
    /// By metadata index: the fields for provider and event.
    names: Vec<String>,
    lines: String,
    described: Described,
    /// The text of the payload; kept to reuse its memory.
    payload: String,
    error: Option<io::Error>,
}

impl<W: Write> Csv<W> {
    pub(super) fn new(out: W, part: Part) -> Self {
        let names = vec![",".to_owned()];
        let lines = "seconds,process,thread,provider,event,stack_depth,payload\n".to_owned();
        let (described, payload) = (Described::default(), String::new());
        Self { out, part, header: TraceHeader::default(), names, lines, described, payload, error: None }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.out.write_all(self.lines.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Sink for Csv<W> {
    fn trace(&mut self, header: &TraceHeader) {
        self.header = *header;
    }

    fn metadata(&mut self, metadata: &Metadata) {
        let mut names = String::new();
        quote(&mut names, &metadata.provider);
        names.push(',');
        match events::name(&metadata.provider, metadata.event_id) {
            Some(name) => quote(&mut names, name),
            None if metadata.name.is_empty() => names.push_str(&metadata.event_id.to_string()),
            None => quote(&mut names, &metadata.name),
        }
        self.names.push(names);
    }

    fn event(&mut self, event: &Event<'_>) {
        let at = self.header.nanoseconds_between(self.header.sync_ticks, event.timestamp());
        if self.error.is_some() || !self.part.window.contains(&at) || !self.part.has_thread(event.thread()) {
            return;
        }
        let thread = event.thread();
        let process = if thread.process == 0 { self.header.process_id } else { thread.process };
        let (sign, ns) = (if at < 0 { "-" } else { "" }, at.unsigned_abs());
        let names = self.names.get(event.metadata.index as usize).map_or(",", String::as_str);
        let depth = event.stack().map_or(0, |stack| stack.len());
        self.described.read(event, self.header.pointer_size);
        self.payload.clear();
        for (index, (name, value)) in self.described.fields().enumerate() {
            self.payload.extend([if index == 0 { "" } else { " " }, name, "=", value]);
        }
        if self.described.is_cut {
            self.payload.push_str(if self.payload.is_empty() { "…" } else { " …" });
        }
        let (seconds, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
        // A string accepts all text.
        let _ = write!(self.lines, "{sign}{seconds}.{ns:09},{process},{},{names},{depth},", thread.thread);
        quote(&mut self.lines, &self.payload);
        self.lines.push('\n');
        if self.lines.len() >= 1 << 16 {
            self.error = self.out.write_all(self.lines.as_bytes()).err();
            self.lines.clear();
        }
    }
}

/// Appends a field, sanitized as it may be printed to a terminal.
fn quote(line: &mut String, field: &str) {
    let is_plain = |byte| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'"';
    if field.bytes().all(is_plain) && !is_formula(field) {
        line.push_str(field);
    } else {
        line.push_str(&csv_field(field));
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
            ("=1+1", "'=1+1"),
        ] {
            let mut line = String::new();
            quote(&mut line, field);
            assert_eq!(line, quoted);
        }
    }
}
