//! ProcessInfo replies of one process, and when to query it again.
//!
//! A dashboard should not keep a runtime's only server thread busy: a process that has replied is not queried again, unless a reply is the only
//! sign that it runs, and none is queried more than once in five seconds.

use std::time::Duration;

use tokio::time::Instant;

use super::command_lock::Busy;
use super::error::ExchangeError;
use crate::ipc::{CommandCode, ProcessInfo, RuntimeVersion};
use crate::model::{Contact, Process, RunState, SafeText, Trouble, shown_command_line};

const MIN_QUERY_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum time between two queries of an unresponsive process.
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// Time between two queries of a process in a pid namespace that we cannot see.
const UNSEEN_QUERY_INTERVAL: Duration = Duration::from_secs(10);
/// A process is reported as slow after this long without a reply.
const SLOW_THRESHOLD: Duration = Duration::from_secs(1);

/// Result of querying one process for its ProcessInfo.
#[derive(Debug)]
pub(super) struct Inquiry {
    /// Whether the target is a socket without a visible process: stale, or in another pid namespace.
    without_process: bool,
    queried_at: Instant,
    open: bool,
    /// Number of consecutive failures.
    failures: u32,
    answer: Option<Answer>,
    /// The error of the last query, if it failed.
    failure: Option<(Trouble, SafeText)>,
}

/// `None` from a runtime that replies but has no ProcessInfo: 3.x, or one whose reply does not fit a message.
type Answer = Option<Box<ProcessInfo>>;

impl Inquiry {
    pub(super) fn new(without_process: bool, now: Instant) -> Self {
        Self { without_process, queried_at: now, open: false, failures: 0, answer: None, failure: None }
    }

    pub(super) fn is_due(&self, row: &Process, busy: bool, now: Instant) -> bool {
        if self.open || busy || !(self.without_process || row.contact.is_attachable()) {
            return false;
        }
        let pause = match (&self.failure, &self.answer) {
            (None, None) => return true,
            // A stale socket that does not reply is really stale.
            (Some(_), None) if self.without_process => return false,
            (Some(_), _) => (MIN_QUERY_INTERVAL * 2_u32.saturating_pow(self.failures - 1)).min(MAX_RETRY_INTERVAL),
            // A suspended runtime receives its arguments when it is resumed.
            (None, Some(Some(info))) if is_early(info, row) && row.run_state != RunState::Suspended => MIN_QUERY_INTERVAL,
            // Nothing else shows whether it still runs.
            (None, Some(_)) if self.without_process => UNSEEN_QUERY_INTERVAL,
            (None, Some(_)) => return false,
        };
        now.duration_since(self.queried_at) >= pause
    }

    /// Returns whether a reply is outstanding.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn query_sent(&mut self, now: Instant) {
        (self.queried_at, self.open) = (now, true);
    }

    pub(super) fn apply(&mut self, answer: Result<Option<ProcessInfo>, ExchangeError>) {
        self.open = false;
        let failed = answer.as_ref().err().and_then(|error| Some((error.trouble()?, error.reason().into())));
        self.failures = if failed.is_some() { self.failures + 1 } else { 0 };
        match &failed {
            // A runtime that refuses is responsive.
            None => self.answer = Some(answer.unwrap_or_default().map(Box::new)),
            // It was in another pid namespace, and has exited.
            Some((Trouble::Stale, _)) if self.without_process => self.answer = None,
            Some(_) => {}
        }
        self.failure = failed;
    }

    /// Adds the known facts to the row, and the state of the connection.
    pub(super) fn publish(&self, row: &mut Process, busy: Option<Busy>, now: Instant) {
        let is_known = if self.without_process { self.answer.is_some() } else { row.contact.is_attachable() };
        if !is_known {
            return;
        }
        match &self.answer {
            Some(Some(info)) => fill_from_reply(row, info),
            // It runs, but its reply has no name, and /proc does not show it.
            Some(None) if self.without_process => row.name = "(unknown)".into(),
            Some(None) | None => {}
        }
        let waited = now.duration_since(self.queried_at);
        let slow = |reason: String| Contact::Trouble { kind: Trouble::Slow, reason: reason.into() };
        row.contact = match (&self.failure, busy.map(|busy| (busy.command, now.duration_since(busy.since)))) {
            // Our own request is not worth reporting, but a long wait for its reply is.
            (_, Some((command, span))) if span >= SLOW_THRESHOLD && !self.open => slow(match command {
                CommandCode::GenerateCoreDump | CommandCode::GenerateCoreDump2 | CommandCode::GenerateCoreDump3 => {
                    format!("stopped while it writes a dump, for {} s", span.as_secs())
                }
                _ => format!("{} has been in progress for {} s", command.name(), span.as_secs()),
            }),
            (Some((kind, reason)), _) => Contact::Trouble { kind: *kind, reason: reason.clone() },
            (None, _) if self.answer.is_some() => Contact::Ok,
            (None, _) if self.open && waited >= SLOW_THRESHOLD => slow(format!(
                "it has not answered for {} s: its diagnostic server serves one client at a time and may be busy",
                waited.as_secs()
            )),
            (None, _) => Contact::Unknown,
        };
    }
}

/// Returns whether the reply predates the runtime's knowledge of its arguments: it is only the program's path, while /proc shows more.
fn is_early(info: &ProcessInfo, row: &Process) -> bool {
    let Some((program, _)) = row.command_line.split_once(' ') else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    SafeText::new(&info.command_line).strip_suffix(program).is_some_and(|path| path.is_empty() || path.ends_with('/'))
}

fn fill_from_reply(row: &mut Process, info: &ProcessInfo) {
    let text = |text: &str| Some(SafeText::new(text)).filter(|text| !text.is_empty());
    if !is_early(info, row) {
        row.command_line = shown_command_line(&info.command_line);
    }
    if let Some(name) = info.entry_assembly.as_deref().and_then(text) {
        row.name = name;
    }
    if row.ns_pid == 0 {
        // The socket's name did not contain it.
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
