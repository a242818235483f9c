//! A row of the process table.

use std::borrow::Cow;
use std::time::Duration;

use super::{Column, Trend};
use crate::analysis::{Field, Filter};
use crate::app::files::is_file;
use crate::app::tabs::{Role, Sign};
use crate::app::{HealthIssue, WatchStatus};
use crate::model::{Contact, Process, RunState, Stopper};

#[derive(Debug, Clone)]
pub struct Row {
    /// The process as of the last scan.
    pub process: Process,
    pub recording: bool,
    /// The status, if the process is watched.
    pub watch: Option<WatchStatus>,
    /// When the highlight as a new row ends.
    pub new_until: Option<Duration>,
    /// When the process was found to have exited.
    pub exited_at: Option<Duration>,
    /// CPU usage over the last scans.
    pub trend: Trend,
    /// Number of ancestors above it in the tree.
    pub depth: usize,
}

impl Row {
    /// Whether the runtime answers: the process has neither exited nor been stopped.
    fn is_reachable(&self) -> bool {
        self.exited_at.is_none() && !self.is_stopped() && self.process.contact == Contact::Ok
    }

    /// Returns the health issue, if the process is watched and has no more serious condition.
    pub fn issue(&self) -> Option<HealthIssue> {
        self.watch.filter(|_| self.is_reachable() && !self.is_suspended())?.issue
    }

    /// Returns what has stopped the process.
    pub fn stopper(&self) -> Option<Stopper> {
        self.process.usage.stopper.filter(|_| self.exited_at.is_none())
    }

    /// Returns why the process cannot be attached to. A stopped one does not answer, which alone would be misleading.
    pub fn trouble(&self) -> Option<Cow<'_, str>> {
        match self.stopper() {
            Some(stopper) => Some(format!("no thread runs: {} has stopped it", stopper.describe()).into()),
            None => self.process.contact.reason().map(Cow::Borrowed),
        }
    }

    /// Returns sentences about what has stopped the process, and what continues it.
    pub(in crate::app) fn stop_reason(&self) -> Option<String> {
        let stopper = self.stopper()?;
        let until = match stopper {
            Stopper::Signal => format!(". kill -CONT {} continues it.", self.process.key.pid),
            Stopper::Debugger(_) => " until the debugger detaches.".to_owned(),
        };
        Some(format!("Stopped by {}: no thread runs, and its runtime does not answer{until}", stopper.describe()))
    }

    /// Whether the process is stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopper().is_some()
    }

    /// Whether the process waits at startup to be resumed.
    pub fn is_suspended(&self) -> bool {
        self.is_reachable() && self.process.run_state == RunState::Suspended
    }

    pub(super) fn passes(&self, filter: &Filter) -> bool {
        if filter.is_empty() {
            return true;
        }
        let texts = Column::FILTERED.map(|column| (column, column.text(self)));
        // A recording matches even if the state column shows something else.
        let recording = (Column::State, if self.recording { "recording".into() } else { "".into() });
        let is_file = is_file(self.process.key);
        let title = |column: Column| if is_file { column.title_for_files() } else { column.title() };
        let fields: Vec<_> = texts.iter().chain([&recording]).map(|(column, text)| Field::text(title(*column), text)).collect();
        filter.passes(&fields)
    }

    /// Returns the state in one word.
    pub fn word(&self) -> &'static str {
        self.condition().2
    }

    /// Returns the sign of the state, its role, and one word. A health issue takes precedence over recording, and so does
    /// suspension, which only the user ends.
    pub(super) fn condition(&self) -> (Sign, Role, &'static str) {
        if let Some(issue) = self.issue() {
            return (Sign::Trouble, Role::Bad, issue.label());
        }
        if self.exited_at.is_some() || self.is_stopped() || self.is_suspended() {
            self.process_state()
        } else if self.recording {
            (Sign::Recording, Role::Recording, "recording")
        } else if self.is_reachable() && self.watch.is_some_and(|watch| !watch.automatic) {
            (Sign::Watched, Role::Good, "watched")
        } else {
            self.process_state()
        }
    }

    /// Returns the same for the process itself, whatever dn-top does with it and finds.
    pub(in crate::app) fn process_state(&self) -> (Sign, Role, &'static str) {
        match (&self.process.contact, self.process.run_state) {
            _ if self.exited_at.is_some() => (Sign::Gone, Role::Dim, "ended"),
            _ if self.is_stopped() => (Sign::Trouble, Role::Warning, "stopped"),
            (Contact::Trouble { kind, .. }, _) => (Sign::Trouble, Role::Warning, kind.word()),
            (_, RunState::Suspended) => (Sign::Stopping, Role::Accent, "suspended"),
            (Contact::Unknown, _) => (Sign::Waiting, Role::Dim, "connecting"),
            (Contact::Ok, RunState::Unknown) => (Sign::Stopping, Role::Dim, "suspended?"),
            (Contact::Ok, RunState::Running) => (Sign::Running, Role::Good, "running"),
        }
    }
}
