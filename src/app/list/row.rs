//! A process in the table, and its facts.

use std::fmt::Write;
use std::time::Duration;

use super::{Column, Trend};
use crate::analysis::{Field, Filter};
use crate::app::health::HealthIssue;
use crate::app::watches::WatchStatus;
use crate::model::{Contact, Process, RunState};

/// A process in the table.
#[derive(Debug, Clone)]
pub struct Row {
    /// The process as it was last seen.
    pub process: Process,
    pub recording: bool,
    /// How it is, where it is watched.
    pub watch: Option<WatchStatus>,
    /// Until when it counts as new.
    pub new_until: Option<Duration>,
    /// When it was found to have ended.
    pub gone_at: Option<Duration>,
    /// Its processor time over the last scans.
    pub trend: Trend,
    /// How many of the processes above it in the tree are its ancestors.
    pub depth: usize,
}

impl Row {
    /// What is wrong with it, where it is watched and nothing else is worse.
    pub fn issue(&self) -> Option<HealthIssue> {
        let is_well_met = self.gone_at.is_none() && self.process.contact == Contact::Ok && self.process.run_state != RunState::Suspended;
        self.watch.filter(|_| is_well_met)?.issue
    }

    pub(super) fn passes(&self, filter: &Filter, scratch: &mut String) -> bool {
        if filter.is_empty() {
            return true;
        }
        scratch.clear();
        let _: std::fmt::Result = write!(scratch, "{}", self.process.key.pid);
        let text = |column: Column| Field::text(column.title(), column.text(self).unwrap_or_default());
        // A recording is found whatever the state shows instead.
        let recording = Field::text(Column::State.title(), if self.recording { "recording" } else { "" });
        let [pid, others @ ..] = Column::FILTERED;
        let [a, b, c, d, e, f] = others.map(text);
        filter.passes(&[Field::text(pid.title(), scratch), a, b, c, d, e, f, recording])
    }

    /// State of the process, in a word. A health issue is shown while recording, too.
    pub fn word(&self) -> &'static str {
        if let Some(issue) = self.issue() {
            return issue.word();
        }
        match (&self.process.contact, self.process.run_state) {
            _ if self.gone_at.is_some() => "ended",
            _ if self.recording => "recording",
            (Contact::Trouble { kind, .. }, _) => kind.word(),
            (_, RunState::Suspended) => "suspended",
            (Contact::Unknown, _) => "connecting",
            (Contact::Ok, _) if self.watch.is_some_and(|watch| !watch.automatic) => "watched",
            (Contact::Ok, RunState::Unknown) => "suspended?",
            (Contact::Ok, RunState::Running) => "running",
        }
    }
}
