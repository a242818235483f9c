//! What is printed on the terminal once the dashboard has gone from it.

use std::fmt::Display;
use std::time::Duration;

use super::tty;
use crate::model::{Bytes, Counted, Outcome, Phase, Recording, Stopwatch, sanitise};

/// How long a message waits for a terminal that reads nothing.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Writes to standard error, unless it takes nothing for that long. A terminal that was closed must not end what is being finished, as `eprintln!` would,
/// and one that reads nothing must not hold it back.
pub fn write_stderr(text: &str, timeout: Duration) {
    tty::write_stderr(text.as_bytes(), timeout);
}

/// Writes words to a person on standard error, whatever paths and names from outside they hold.
pub fn say(words: impl Display) {
    let lines: Vec<_> = words.to_string().lines().map(sanitise).collect();
    write_stderr(&format!("dn-top: {}\n", lines.join("\n")), TIMEOUT);
}

/// Reports the end of a recording.
pub(super) fn print(recording: &Recording) {
    let Phase::Done(Outcome { file, trouble, .. }) = &recording.phase else { return };
    let trouble = trouble.as_ref().map(|trouble| format!("; {trouble}")).unwrap_or_default();
    if let Some(kernel) = &recording.kernel {
        let (name, elapsed) = (&recording.name, Stopwatch(recording.elapsed));
        return say(format_args!("{name} ({}) wrote to {} for {elapsed}{trouble}", recording.key.pid, kernel));
    }
    let Some(file) = file else { return };
    let samples = recording.cpu_file.as_ref().map(|file| format!("; CPU samples in {}", file.display())).unwrap_or_default();
    say(format_args!("{}: {}, {}{samples}{trouble}", file.display(), Bytes(recording.bytes), Counted(recording.events, "event")));
}

/// `1 recording`, `2 recordings`.
pub(super) fn recordings(count: usize) -> String {
    Counted(count as u64, "recording").to_string()
}

/// `1 recording continues`, `2 recordings continue`.
pub(super) fn go_on(count: usize) -> String {
    format!("{} {}", recordings(count), if count == 1 { "continues" } else { "continue" })
}
