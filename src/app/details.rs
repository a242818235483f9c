//! Requests to the selected process, and their answers.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{ProcessKey, SafeText, Variable};

use super::Ticket;
use super::live_threads::LiveThreads;
use super::refresh::Refresh;
use super::tabs::Stacks;
use super::tabs::Tab;

/// How long a process must stay selected before requests are sent to it: moving through the table sends none.
pub(super) const SETTLED: Duration = Duration::from_millis(250);

/// How long a process must stay selected before it is watched without a key.
pub(super) const WATCHED: Duration = Duration::from_secs(1);

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Answer<T> {
    #[default]
    NotRequested,
    Requested(Ticket),
    Received(T),
    /// Why there is none.
    Failed(SafeText),
}

impl<T> Answer<T> {
    /// The answer, where it was received.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Received(value) => Some(value),
            _ => None,
        }
    }

    /// Takes in a reply, unless it answers another request.
    pub(super) fn take(&mut self, ticket: Ticket, result: Result<T, SafeText>) -> bool {
        let expected = matches!(self, Self::Requested(expected) if *expected == ticket);
        if expected {
            *self = result.map_or_else(Self::Failed, Self::Received);
        }
        expected
    }
}

/// The assemblies of the selected process that are mapped from files.
#[derive(Debug, Default)]
pub(super) struct LiveAssemblies {
    pub(super) refresh: Refresh,
    /// Paths as the process sees them; `None` before the first answer.
    pub(super) paths: Option<Vec<SafeText>>,
}

/// What is known of the selected process beyond its row.
#[derive(Debug, Default)]
pub struct Details {
    pub key: Option<ProcessKey>,
    /// Since when it is selected.
    pub(super) since: Duration,
    /// When it counts as chosen, and may be asked.
    pub(super) settles: Option<Duration>,
    pub environment: Answer<Vec<Variable>>,
    /// Which secret values are shown, by index.
    pub(super) revealed: Vec<bool>,
    /// How far the facts are scrolled.
    pub scroll: usize,
    /// The kind of the selected finding; the worst where there is none of that kind.
    pub(super) finding: Option<(Tab, &'static str)>,
    /// The stacks of its threads, when that was last asked.
    pub(super) stacks: Answer<Arc<Stacks>>,
    /// When they came.
    pub(super) stacks_at: Duration,
    pub(super) threads: LiveThreads,
    pub(super) assemblies: LiveAssemblies,
}

impl Details {
    /// Starts over with another process.
    pub(super) fn turn_to(&mut self, key: Option<ProcessKey>, now: Duration) {
        *self = Self { key, since: now, settles: key.map(|_| now + SETTLED), ..Self::default() };
    }

    /// Asks again what could not be answered: the process is not what it was.
    pub(super) fn retry(&mut self) {
        if matches!(self.environment, Answer::Failed(_)) {
            self.environment = Answer::NotRequested;
        }
    }

    /// Whether this variable's value may be shown.
    pub fn is_readable(&self, index: usize) -> bool {
        let secret = self.environment.get().and_then(|all| all.get(index)).is_some_and(Variable::is_secret);
        !secret || self.revealed.get(index).copied().unwrap_or(false)
    }

    /// Shows or hides a value.
    pub(super) fn toggle_reveal(&mut self, index: usize) {
        let len = self.environment.get().map_or(0, Vec::len);
        self.revealed.resize(len, false);
        if let Some(shown) = self.revealed.get_mut(index) {
            *shown = !*shown;
        }
    }
}
