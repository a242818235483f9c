//! Requests about the selected process, and their answers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Environment, ProcessKey, SafeText, Variable};

use super::Ticket;
use super::live_threads::LiveThreads;
use super::tabs::{Stacks, Tab};

/// How long a process must stay selected before requests are sent to it, so that scrolling through the table sends none.
pub(super) const SELECTION_DELAY: Duration = Duration::from_millis(250);

/// How long a process must stay selected before it is watched automatically.
pub(super) const AUTO_WATCH_DELAY: Duration = Duration::from_secs(1);

/// The state of a request and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Answer<T> {
    #[default]
    NotRequested,
    Requested(Ticket),
    Received(T),
    /// The reason for the failure.
    Failed(SafeText),
}

impl<T> Answer<T> {
    /// Returns the answer, if received.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Received(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the reply to this request is awaited.
    pub(super) fn awaits(&self, ticket: Ticket) -> bool {
        matches!(self, Self::Requested(expected) if *expected == ticket)
    }

    /// Stores a reply to the pending request. Returns false, and ignores the reply, if the ticket is another request's.
    pub(super) fn take(&mut self, ticket: Ticket, result: Result<T, SafeText>) -> bool {
        let expected = self.awaits(ticket);
        if expected {
            *self = result.map_or_else(Self::Failed, Self::Received);
        }
        expected
    }
}

/// A request about the selected process that is repeated with each process scan.
#[derive(Debug, Default)]
pub(super) struct Refresh {
    request: Option<Ticket>,
    /// Whether the latest request is as recent as the process table.
    is_current: bool,
}

impl Refresh {
    /// Whether the request has to be sent.
    pub(super) fn is_due(&self) -> bool {
        self.request.is_none() && !self.is_current
    }

    pub(super) fn requested(&mut self, ticket: Ticket) {
        (self.request, self.is_current) = (Some(ticket), true);
    }

    /// Accepts an answer. Returns false if it is not for the pending request.
    pub(super) fn take(&mut self, ticket: Ticket) -> bool {
        let is_expected = self.request == Some(ticket);
        if is_expected {
            self.request = None;
        }
        is_expected
    }

    /// Marks the answer as outdated, because processes were scanned again.
    pub(super) fn mark_outdated(&mut self) {
        self.is_current = false;
    }
}

/// The memory-mapped assemblies of the selected process.
#[derive(Debug, Default)]
pub(super) struct LiveAssemblies {
    pub(super) refresh: Refresh,
    /// Paths as seen by the process; `None` before the first answer.
    pub(super) paths: Option<Vec<SafeText>>,
}

/// Details of the selected process beyond its row.
#[derive(Debug, Default)]
pub struct Details {
    pub key: Option<ProcessKey>,
    /// When the process was selected.
    pub(super) since: Duration,
    /// When the selection has settled and requests may be sent.
    pub(super) settles_at: Option<Duration>,
    pub environment: Answer<Environment>,
    /// Indices of the secret variables whose values are shown.
    pub(super) revealed: BTreeSet<usize>,
    /// Scroll offset of the facts.
    pub scroll: usize,
    /// Kind of the selected finding; falls back to the worst finding if there is none of that kind.
    pub(super) finding: Option<(Tab, &'static str)>,
    /// The stacks of all threads, as last requested.
    pub(super) stacks: Answer<Arc<Stacks>>,
    /// When the stacks were received.
    pub(super) stacks_at: Duration,
    pub(super) threads: LiveThreads,
    pub(super) assemblies: LiveAssemblies,
}

impl Details {
    /// Resets the details for another process.
    pub(super) fn reset(&mut self, key: Option<ProcessKey>, now: Duration) {
        *self = Self { key, since: now, settles_at: key.map(|_| now + SELECTION_DELAY), ..Self::default() };
    }

    /// Allows failed requests to be sent again, because the process has changed.
    pub(super) fn retry(&mut self) {
        if matches!(self.environment, Answer::Failed(_)) {
            self.environment = Answer::NotRequested;
        }
    }

    /// Whether this variable's value may be shown.
    pub fn is_readable(&self, index: usize) -> bool {
        let secret = self.environment.get().and_then(|all| all.variables.get(index)).is_some_and(Variable::is_secret);
        !secret || self.revealed.contains(&index)
    }

    /// Shows or hides a variable's value.
    pub(super) fn toggle_reveal(&mut self, index: usize) {
        if !self.revealed.remove(&index) {
            self.revealed.insert(index);
        }
    }
}
