//! The answers of one process, and when to query it again.
//!
//! A runtime's only server thread is not to be kept busy by a dashboard: one that has answered is not asked again, unless nothing but an answer shows that
//! it runs, and none more than once in five seconds.

use std::time::Duration;

use tokio::time::Instant;

use super::error::ExchangeError;
use super::gate::Busy;
use crate::ipc::{ProcessInfo, RuntimeVersion};
use crate::model::{Contact, Process, RunState, SafeText, Trouble, shown_command_line};

/// The least time between two questions.
const PAUSE: Duration = Duration::from_secs(5);
/// The most that the time between two questions to a silent process grows to.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The time between two questions to a process of a pid namespace that we cannot see.
const UNSEEN_PAUSE: Duration = Duration::from_secs(10);
/// After this long without an answer a process is called slow.
const SLOW: Duration = Duration::from_secs(1);

/// What is known from asking one process for its ProcessInfo.
#[derive(Debug)]
pub(super) struct Inquiry {
    /// Whether what is asked is a socket without a process that we see: one that was left behind, or one of another pid namespace.
    leftover: bool,
    asked: Instant,
    open: bool,
    /// How many times in a row there was no answer.
    failures: u32,
    /// The last answer.
    answer: Option<Answer>,
    /// What came of the last question, if it was no answer.
    failure: Option<(Trouble, SafeText)>,
}

/// `None` from a runtime that answers and has no ProcessInfo: 3.x, or one whose answer does not fit a message.
type Answer = Option<Box<ProcessInfo>>;

impl Inquiry {
    /// Before the first question.
    pub(super) fn new(leftover: bool, now: Instant) -> Self {
        Self { leftover, asked: now, open: false, failures: 0, answer: None, failure: None }
    }

    /// Whether to ask now.
    pub(super) fn is_due(&self, row: &Process, busy: bool, now: Instant) -> bool {
        if self.open || busy || !(self.leftover || row.contact.is_attachable()) {
            return false;
        }
        let pause = match (&self.failure, &self.answer) {
            (None, None) => return true,
            // A stale socket without an answer is what it seems.
            (Some(_), None) if self.leftover => return false,
            (Some(_), _) => (PAUSE * 2_u32.saturating_pow(self.failures - 1)).min(LONGEST_PAUSE),
            // It learns its arguments when it is resumed.
            (None, Some(Some(info))) if is_early(info, row) && row.run_state != RunState::Suspended => PAUSE,
            // Nothing else shows whether it still runs.
            (None, Some(_)) if self.leftover => UNSEEN_PAUSE,
            (None, Some(_)) => return false,
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
    pub(super) fn apply(&mut self, answer: Result<Option<ProcessInfo>, ExchangeError>) {
        self.open = false;
        let failed = answer.as_ref().err().and_then(|error| Some((error.trouble()?, error.reason().into())));
        self.failures = if failed.is_some() { self.failures + 1 } else { 0 };
        match &failed {
            // A runtime that refuses is a runtime that answers.
            None => self.answer = Some(answer.unwrap_or_default().map(Box::new)),
            // It was in another pid namespace, and has ended.
            Some((Trouble::Stale, _)) if self.leftover => self.answer = None,
            Some(_) => {}
        }
        self.failure = failed;
    }

    /// Adds to the row what is known, and how the process can be talked to.
    pub(super) fn publish(&self, row: &mut Process, busy: Option<Busy>, now: Instant) {
        let is_known = if self.leftover { self.answer.is_some() } else { row.contact.is_attachable() };
        if !is_known {
            return;
        }
        if let Some(Some(info)) = &self.answer {
            adopt(row, info);
        }
        let silent_for = now.duration_since(self.asked);
        let slow = |reason: String| Contact::Trouble { kind: Trouble::Slow, reason: reason.into() };
        row.contact = match (&self.failure, busy.map(|busy| (busy.command, now.duration_since(busy.since)))) {
            // Our own request is nothing to report; its silence is.
            (_, Some((command, span))) if span >= SLOW && !self.open => {
                slow(format!("{} has been under way for {} s", command.name(), span.as_secs()))
            }
            (Some((kind, reason)), _) => Contact::Trouble { kind: *kind, reason: reason.clone() },
            (None, _) if self.answer.is_some() => Contact::Ok,
            (None, _) if self.open && silent_for >= SLOW => slow(format!(
                "it has not answered for {} s: its diagnostic server serves one client at a time and may be busy",
                silent_for.as_secs()
            )),
            (None, _) => Contact::Unknown,
        };
    }
}

/// Whether the answer is from before the runtime knew its arguments: it is the program's path alone, while /proc shows more.
fn is_early(info: &ProcessInfo, row: &Process) -> bool {
    let Some((program, _)) = row.command_line.split_once(' ') else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    SafeText::new(&info.command_line).strip_suffix(program).is_some_and(|path| path.is_empty() || path.ends_with('/'))
}

fn adopt(row: &mut Process, info: &ProcessInfo) {
    let text = |text: &str| Some(SafeText::new(text)).filter(|text| !text.is_empty());
    if !is_early(info, row) {
        row.command_line = shown_command_line(&info.command_line);
    }
    if let Some(name) = info.entry_assembly.as_deref().and_then(text) {
        row.name = name;
    }
    if row.ns_pid == 0 {
        // Nothing in its socket's name showed that.
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
