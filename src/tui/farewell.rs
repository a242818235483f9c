//! What is said on the terminal once the dashboard has gone from it.

use std::fmt::Display;
use std::io::{Write, stderr};

use crate::model::{Bytes, Count, Outcome, Phase, Recording, Stopwatch, sanitise};

/// Says something. Nobody need be there any more: a terminal that was closed must not end what is being finished, as `eprintln!` would.
pub(super) fn say(words: impl Display) {
    let _ = writeln!(stderr(), "dn-top: {words}");
}

/// Says what became of a recording.
pub(super) fn tell(recording: &Recording) {
    let Phase::Done(Outcome { file, trouble, .. }) = &recording.phase else { return };
    let trouble = trouble.as_ref().map(|trouble| format!("; {}", sanitise(trouble))).unwrap_or_default();
    if let Some(kernel) = &recording.kernel {
        let (name, elapsed) = (sanitise(&recording.name), Stopwatch(recording.elapsed));
        return say(format_args!("{name} ({}) wrote to {} for {elapsed}{trouble}", recording.key.pid, sanitise(&kernel.to_string())));
    }
    let Some(file) = file else { return };
    let file = sanitise(&file.to_string_lossy());
    say(format_args!("{file}: {}, {} events{trouble}", Bytes(recording.bytes), Count(recording.events)));
}

/// `1 recording`, `2 recordings`.
pub(super) fn recordings(count: usize) -> String {
    format!("{count} recording{}", if count == 1 { "" } else { "s" })
}

/// `1 recording goes on`, `2 recordings go on`.
pub(super) fn go_on(count: usize) -> String {
    format!("{} {} on", recordings(count), if count == 1 { "goes" } else { "go" })
}
