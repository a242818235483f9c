//! The output of an analysis: its result and the fields common to all recordings.

use std::io::Write;
use std::time::Duration;

use crate::analysis::Snapshot;
use crate::cli::args;
use crate::cli::print::{self, Value, json};
use crate::model::Counted;

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
