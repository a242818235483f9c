//! Messages on the terminal after the dashboard has closed.

use std::fmt::Display;
use std::time::Duration;

use super::tty::write_stderr;
use crate::app::Subject;
use crate::model::{Bytes, Counted, Outcome, Phase, Recording, Stopwatch, sanitize};

/// Timeout for a message on a blocked terminal.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Writes a message, which may contain untrusted paths and names, to standard error.
pub fn message(words: impl Display) {
    let lines: Vec<_> = words.to_string().lines().map(sanitize).collect();
    write_stderr(&format!("dn-top: {}\n", lines.join("\n")), TIMEOUT);
}

/// Prints the result of a recording.
pub(super) fn print(recording: &Recording) {
    result(recording).into_iter().for_each(message);
}

/// Describes the result of a recording; `None` if there is nothing to report.
fn result(recording: &Recording) -> Option<String> {
    let Phase::Done(Outcome { file, trouble, .. }) = &recording.phase else { return None };
    let process = Subject::of_recording(recording);
    let problem = trouble.as_ref().map(|trouble| format!("; {trouble}")).unwrap_or_default();
    if let Some(kernel) = &recording.kernel {
        return Some(format!("{process} wrote to {kernel} for {}{problem}", Stopwatch(recording.elapsed)));
    }
    let Some(file) = file else { return trouble.as_ref().map(|trouble| format!("{process}: no recording was kept: {trouble}")) };
    let samples = recording.cpu_file.as_ref().map(|file| format!("; CPU samples in {}", file.display())).unwrap_or_default();
    Some(format!("{}: {}, {}{samples}{problem}", file.display(), Bytes(recording.bytes), Counted(recording.events, "event")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ProcessKey, RecordingId, StoppedBy};

    #[test]
    fn recording_without_a_file_is_reported() {
        let start = Recording::starting(RecordingId(1), ProcessKey { pid: 42, started: 1 }, "Web".into(), Vec::new(), "a.nettrace".into());
        for (file, trouble, expected) in [
            (Some("a.nettrace".into()), None, Some("a.nettrace: 0 B, 0 events")),
            (Some("a.nettrace".into()), Some("disk full"), Some("a.nettrace: 0 B, 0 events; disk full")),
            (None, Some("no data received"), Some("Web (42): no recording was kept: no data received")),
            (None, None, None),
        ] {
            let outcome = Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file, trouble: trouble.map(Into::into) };
            assert_eq!(result(&Recording { phase: Phase::Done(outcome), ..start.clone() }).as_deref(), expected);
        }
        assert_eq!(result(&start), None);
    }
}
