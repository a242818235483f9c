//! The output of an analysis: its result and the fields common to all recordings.

use std::io::Write;
use std::time::Duration;

use serde::Serialize;

use super::fields::{Fields, title, write_table};
use super::stacks::ThrownStack;
use super::{Routes, follow};
use crate::analysis::{LogMessage, Occurrence, Snapshot};
use crate::cli::args;
use crate::cli::print::{self, Value, json};
use crate::model::{Counted, Nanoseconds};

#[derive(Serialize)]
pub(super) struct Found {
    #[serde(flatten)]
    pub(super) totals: Fields,
    pub(super) rows: Vec<Fields>,
    #[serde(flatten)]
    pub(super) routes: Option<Routes>,
    /// Exceptions by stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stacks: Option<Vec<ThrownStack>>,
    /// Log messages, which are too long for rows of a table. JSON has the rows.
    #[serde(skip)]
    pub(super) messages: Vec<LogMessage>,
}

impl Found {
    pub(super) fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        for (name, value) in &self.totals.0 {
            writeln!(out, "{:<23}{}", title(name), value.shown())?;
        }
        self.routes.iter().try_for_each(|routes| routes.write_text(out))?;
        if self.messages.is_empty() {
            write_table(out, &self.rows)?;
        } else {
            writeln!(out)?;
        }
        for message in &self.messages {
            let at = Nanoseconds(message.at.max(0).unsigned_abs()).to_string();
            write!(out, "{}", follow::lines(&format!("{at:>8}"), &Occurrence::Message(message.clone())))?;
        }
        self.stacks.iter().flatten().try_for_each(|stack| stack.write_text(out))
    }
}

/// Prints the result of an analysis as text or as the JSON document that the command line contract describes, and a warning if events were dropped.
/// Field names that end in `_bytes` are sizes in bytes, those that end in `_ns` times in nanoseconds; `complete` is whether the whole recording could
/// be read.
pub(in crate::cli) fn print_analysis(
    output: &args::Output,
    snapshot: &Snapshot,
    complete: bool,
    found: impl FnOnce() -> Value,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let (duration_ms, dropped) = (snapshot.recorded_ns / 1_000_000, snapshot.totals.dropped);
    let common = json!({ "duration_ms": duration_ms, "dropped_events": dropped, "complete": complete });
    let text = |out: &mut dyn Write| {
        writeln!(out, "recorded {}", print::seconds(Duration::from_millis(duration_ms)))?;
        write(out)
    };
    print::result(output.json, || print::joined([common, found()]), text)?;
    if dropped > 0 {
        print::message(format_args!("the runtime dropped {}: figures are too low", Counted(dropped, "event")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::fields::Value;
    use super::*;

    /// The structured fields of a message repeat its text, and an exception has a stack: a row would be far wider than a terminal.
    #[test]
    fn log_messages_are_lines() {
        let message = LogMessage {
            at: 1_500_000_000,
            level: 4,
            logger: "Shop".to_owned(),
            text: "Order 7 failed".to_owned(),
            arguments: r#"{"Number":"7"}"#.to_owned(),
            exception: r#"{"VerboseMessage":"A.B: m\n   at C.D()"}"#.to_owned(),
            ..LogMessage::default()
        };
        let totals = Fields(vec![("error", Value::Count(1))]);
        let rows = vec![Fields(vec![("message", Value::text("Order 7 failed"))])];
        let mut out = Vec::new();
        Found { totals, rows, routes: None, stacks: None, messages: vec![message] }.write_text(&mut out).unwrap();
        let expected = "error                  1\n\n   1.5 s  error     Shop: Order 7 failed\n    A.B: m\n       at C.D()\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn tables_are_aligned() {
        let row = |count, name: &str| {
            Fields(vec![("count", Value::Count(count)), ("wait_ns", Value::Missing), ("method", Value::Text(name.into()))])
        };
        let totals = Fields(vec![("max_wait_ns", Value::Nanoseconds(1_500_000))]);
        let found = Found { totals, rows: vec![row(7, "A.B"), row(123, "")], routes: None, stacks: None, messages: Vec::new() };
        let mut out = Vec::new();
        found.write_text(&mut out).unwrap();
        let expected = "max wait               1.5 ms\n\nCOUNT  WAIT  METHOD\n    7     -  A.B\n  123     -  (no stack)\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
