//! What was asked about the selected process, and answered.

use std::time::Duration;

use crate::analysis::{Field, Filter};
use crate::model::{ProcessKey, Variable};

use super::Ticket;
use super::cursor::Cursor;

/// How long a process must stay selected before it is asked about: running through the table asks nobody.
pub(super) const SETTLED: Duration = Duration::from_millis(250);

/// An answer, on its way or here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Answer<T> {
    /// Nobody asked.
    #[default]
    Unasked,
    /// The question is under way.
    Asked(Ticket),
    /// The answer.
    Here(T),
    /// Why there is none.
    Failed(String),
}

impl<T> Answer<T> {
    /// The answer, where it is here.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Here(value) => Some(value),
            _ => None,
        }
    }

    /// Takes in a reply, unless it answers another question.
    pub(super) fn take(&mut self, ticket: Ticket, result: Result<T, String>) -> bool {
        let expected = matches!(self, Self::Asked(asked) if *asked == ticket);
        if expected {
            *self = result.map_or_else(Self::Failed, Self::Here);
        }
        expected
    }
}

/// What is known of the selected process beyond its row.
#[derive(Debug, Default)]
pub struct Details {
    /// The process that this is about.
    pub key: Option<ProcessKey>,
    /// When it counts as chosen, and may be asked.
    pub(super) settles: Option<Duration>,
    /// Its environment.
    pub environment: Answer<Vec<Variable>>,
    /// How the environment is looked at.
    pub variables: Variables,
    /// How far the facts are scrolled.
    pub scroll: usize,
}

/// How an environment is looked at.
#[derive(Debug, Default)]
pub struct Variables {
    /// What is searched for.
    pub search: Filter,
    /// The selected line.
    pub cursor: Cursor,
    /// Indexes of the variables that match the search.
    pub matches: Vec<usize>,
    /// Which secret values are shown, by index.
    pub(super) revealed: Vec<bool>,
}

impl Variables {
    /// The columns of the list.
    pub const COLUMNS: [&str; 2] = ["NAME", "VALUE"];
}

impl Details {
    /// Begins anew with another process.
    pub(super) fn turn_to(&mut self, key: Option<ProcessKey>, now: Duration) {
        // What was searched for stays: the same question is often put to several processes.
        let search = std::mem::take(&mut self.variables.search);
        *self =
            Self { key, settles: key.map(|_| now + SETTLED), variables: Variables { search, ..Variables::default() }, ..Self::default() };
    }

    /// Asks again what could not be answered: the process is not what it was.
    pub(super) fn retry(&mut self) {
        if matches!(self.environment, Answer::Failed(_)) {
            self.environment = Answer::Unasked;
        }
    }

    /// Whether this variable's value may be shown.
    pub fn is_readable(&self, index: usize) -> bool {
        let secret = self.environment.get().and_then(|all| all.get(index)).is_some_and(Variable::is_secret);
        !secret || self.variables.revealed.get(index).copied().unwrap_or(false)
    }

    /// The selected variable and its index.
    pub fn variable(&self) -> Option<(usize, &Variable)> {
        let index = *self.variables.matches.get(self.variables.cursor.at)?;
        Some((index, self.environment.get()?.get(index)?))
    }

    /// Shows or hides the selected value.
    pub(super) fn toggle_reveal(&mut self) {
        let Some((index, _)) = self.variable() else { return };
        let len = self.environment.get().map_or(0, Vec::len);
        self.variables.revealed.resize(len, false);
        if let Some(shown) = self.variables.revealed.get_mut(index) {
            *shown = !*shown;
        }
    }

    /// Finds the variables that match the search: in names, and in values that may be seen. A masked value is not given away by a match.
    pub(super) fn search(&mut self) {
        let all = self.environment.get().map(Vec::as_slice).unwrap_or_default();
        let matches = all.iter().enumerate().filter(|(index, variable)| {
            let [name, value] = Variables::COLUMNS;
            let readable = if self.is_readable(*index) { variable.value.as_str() } else { "" };
            self.variables.search.passes(&[Field::text(name, &variable.name), Field::text(value, readable)])
        });
        let matches = matches.map(|(index, _)| index).collect();
        self.variables.matches = matches;
        self.variables.cursor.fit(self.variables.matches.len(), usize::MAX);
    }
}
