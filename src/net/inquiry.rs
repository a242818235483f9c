//! What one process said of itself, and when to ask it again.
//!
//! A runtime's only server thread is not to be kept busy by a dashboard: who has answered is not asked again, and nobody more than once in five seconds.

use std::time::Duration;

use tokio::time::Instant;

use super::error::ExchangeError;
use super::gate::Busy;
use crate::ipc::{ProcessInfo, RuntimeVersion};
use crate::model::{Contact, Process, RunState, Trouble, sanitise};

/// The least time between two questions.
const PAUSE: Duration = Duration::from_secs(5);
/// The most that the time between two questions to a silent process grows to.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// After this long without an answer a process is called slow.
const SLOW: Duration = Duration::from_secs(1);

/// What is known from asking one process who it is.
#[derive(Debug)]
pub(super) struct Inquiry {
    asked: Instant,
    /// Whether the question is open.
    open: bool,
    /// How many times in a row there was no answer.
    failures: u32,
    last: Last,
}

#[derive(Debug)]
enum Last {
    Nothing,
    /// `None` from a runtime that answers and cannot say: 3.x, or one whose answer does not fit a message.
    Answer(Option<Box<ProcessInfo>>),
    Failure(Trouble, String),
}

impl Inquiry {
    /// Before the first question.
    pub(super) fn new(now: Instant) -> Self {
        Self { asked: now, open: false, failures: 0, last: Last::Nothing }
    }

    /// Whether to ask now.
    pub(super) fn is_due(&self, row: &Process, busy: bool, now: Instant) -> bool {
        let stale = is_stale(row);
        if self.open || busy || !(stale || row.contact.is_attachable()) {
            return false;
        }
        let pause = match &self.last {
            Last::Nothing => return true,
            // It learns its arguments when it is resumed.
            Last::Answer(Some(info)) if is_early(info, row) && row.run_state == RunState::Running => PAUSE,
            // A stale socket that nobody answers on is what it seems.
            Last::Failure(..) if !stale => (PAUSE * 2_u32.saturating_pow(self.failures - 1)).min(LONGEST_PAUSE),
            Last::Answer(_) | Last::Failure(..) => return false,
        };
        now.duration_since(self.asked) >= pause
    }

    /// Whether an answer is waited for.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Notes that the question was sent.
    pub(super) fn ask(&mut self, now: Instant) {
        (self.asked, self.open) = (now, true);
    }

    /// Takes the answer.
    pub(super) fn hear(&mut self, answer: Result<Option<ProcessInfo>, ExchangeError>) {
        self.open = false;
        let failure = |error: ExchangeError| error.trouble().map(|trouble| Last::Failure(trouble, error.reason()));
        // A runtime that says no is a runtime that answers.
        self.last = answer.map_or_else(|error| failure(error).unwrap_or(Last::Answer(None)), |info| Last::Answer(info.map(Box::new)));
        self.failures = if matches!(self.last, Last::Failure(..)) { self.failures + 1 } else { 0 };
    }

    /// Adds to the row what is known, and how the process can be talked to.
    pub(super) fn tell(&self, row: &mut Process, busy: Option<Busy>, now: Instant) {
        let stale = is_stale(row);
        if !(stale || row.contact.is_attachable()) {
            return;
        }
        if let Last::Answer(Some(info)) = &self.last {
            adopt(row, info);
        }
        let silent_for = now.duration_since(self.asked);
        let slow = |reason: String| Contact::Trouble { kind: Trouble::Slow, reason };
        row.contact = match (&self.last, busy.map(|busy| (busy.command, now.duration_since(busy.since)))) {
            // Our own question is no news to anybody; its silence is.
            (_, Some((command, span))) if span >= SLOW && !self.open => {
                slow(format!("{} has been under way for {} s", command.name(), span.as_secs()))
            }
            (Last::Answer(_), _) => Contact::Ok,
            _ if stale => return,
            (Last::Failure(kind, reason), _) => Contact::Trouble { kind: *kind, reason: reason.clone() },
            (Last::Nothing, _) if self.open && silent_for >= SLOW => slow(format!(
                "it has not answered for {} s: its diagnostic server serves one client at a time and may be busy",
                silent_for.as_secs()
            )),
            (Last::Nothing, _) => Contact::Unknown,
        };
    }
}

fn is_stale(row: &Process) -> bool {
    matches!(row.contact, Contact::Trouble { kind: Trouble::Stale, .. })
}

/// Whether the answer is from before the runtime knew its arguments: it is the program's path alone, while /proc shows more.
fn is_early(info: &ProcessInfo, row: &Process) -> bool {
    let Some((program, _)) = row.command_line.split_once(' ') else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    sanitise(&info.command_line).strip_suffix(program).is_some_and(|path| path.is_empty() || path.ends_with('/'))
}

fn adopt(row: &mut Process, info: &ProcessInfo) {
    let text = |text: &str| Some(sanitise(text)).filter(|text| !text.is_empty());
    if !is_early(info, row) {
        row.command_line = sanitise(&info.command_line);
    }
    if let Some(name) = info.entry_assembly.as_deref().and_then(text) {
        row.name = name;
    }
    if row.ns_pid == 0 {
        // Nothing in its socket's name said so.
        row.ns_pid = info.pid.try_into().unwrap_or(0);
    }
    row.runtime = text(info.runtime_version().as_str()).map(|version| RuntimeVersion::new(&version));
    row.os = text(&info.os);
    row.arch = text(&info.arch);
    row.rid = info.rid.as_deref().and_then(text);
    row.cookie = Some(info.cookie);
}

#[cfg(test)]
mod tests;
