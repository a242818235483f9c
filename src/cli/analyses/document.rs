//! The output of an analysis: its result and the fields common to all recordings.

use std::io::Write;
use std::time::Duration;

use serde::Serialize;

use crate::analysis::Snapshot;
use crate::cli::args;
use crate::cli::print;
use crate::model::Counted;

/// The document that the command line contract describes, with the fields of the result. Field names that end in `_bytes` are sizes in bytes, those
/// that end in `_ns` times in nanoseconds.
#[derive(Serialize)]
pub(in crate::cli) struct Document<T> {
    duration_ms: u64,
    dropped_events: u64,
    /// Whether the whole recording could be read.
    complete: bool,
    #[serde(flatten)]
    found: T,
}

impl<T: Serialize> Document<T> {
    pub(in crate::cli) fn new(snapshot: &Snapshot, complete: bool, found: T) -> Self {
        Self { duration_ms: snapshot.recorded_ns / 1_000_000, dropped_events: snapshot.totals.dropped, complete, found }
    }

    /// Prints the document as JSON or as text, and a warning if events were dropped.
    pub(in crate::cli) fn print(
        &self,
        output: &args::Output,
        write: impl FnOnce(&T, &mut dyn Write) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        print::document(output.json, self, |out, Self { duration_ms, found, .. }| {
            writeln!(out, "recorded {}", print::seconds(Duration::from_millis(*duration_ms)))?;
            write(found, out)
        })?;
        if self.dropped_events > 0 {
            print::message(format_args!("the runtime dropped {}: figures are too low", Counted(self.dropped_events, "event")));
        }
        Ok(())
    }
}
