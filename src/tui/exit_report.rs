//! Messages on the terminal after the dashboard has closed.

use std::fmt::Display;
use std::time::Duration;

use super::tty;
use crate::model::{Bytes, Counted, Outcome, Phase, Recording, Stopwatch, sanitize};

/// Timeout for a message on a blocked terminal.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Writes to standard error, unless it is blocked for the given time. A closed terminal must not interrupt the finishing of recordings, as
/// `eprintln!` would, and a blocked one must not delay it.
pub fn write_stderr(text: &str, timeout: Duration) {
    tty::write_stderr(text.as_bytes(), timeout);
}

/// Writes a message, which may contain untrusted paths and names, to standard error.
pub fn message(words: impl Display) {
    let lines: Vec<_> = words.to_string().lines().map(sanitize).collect();
    write_stderr(&format!("dn-top: {}\n", lines.join("\n")), TIMEOUT);
}

/// Prints the result of a recording.
pub(super) fn print(recording: &Recording) {
    let Phase::Done(Outcome { file, trouble, .. }) = &recording.phase else { return };
    let trouble = trouble.as_ref().map(|trouble| format!("; {trouble}")).unwrap_or_default();
    if let Some(kernel) = &recording.kernel {
        let (name, elapsed) = (&recording.name, Stopwatch(recording.elapsed));
        return message(format_args!("{name} ({}) wrote to {} for {elapsed}{trouble}", recording.key.pid, kernel));
    }
    let Some(file) = file else { return };
    let samples = recording.cpu_file.as_ref().map(|file| format!("; CPU samples in {}", file.display())).unwrap_or_default();
    message(format_args!("{}: {}, {}{samples}{trouble}", file.display(), Bytes(recording.bytes), Counted(recording.events, "event")));
}

/// `1 recording`, `2 recordings`.
pub(super) fn recordings(count: usize) -> String {
    Counted(count as u64, "recording").to_string()
}
