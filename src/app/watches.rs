//! The processes that are watched: each has a small session of its runtime's own counters.

use std::sync::Arc;

use super::Ticket;
use super::action::{Status, attach};
use super::lints::{Ailment, ailment};
use super::state::State;
use crate::analysis::{CountersSnapshot, Vitals};
use crate::model::ProcessKey;

/// A watched process.
#[derive(Debug)]
pub struct Watch {
    /// Which.
    pub key: ProcessKey,
    /// Whether its meters are asked for, too.
    pub meters: bool,
    /// What it publishes; `None` before the first values.
    pub counters: Option<Arc<CountersSnapshot>>,
    /// The session that is listened to.
    ticket: Ticket,
    /// What came while the display was frozen.
    pending: Option<Arc<CountersSnapshot>>,
}

/// What a watched process has in its line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pulse {
    /// Its figures; all unknown before the first came.
    pub vitals: Vitals,
    /// What is wrong with it.
    pub ailment: Option<Ailment>,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Watches {
    all: Vec<Watch>,
}

impl Watch {
    /// What belongs into its line.
    pub fn pulse(&self) -> Pulse {
        let read = |counters: &Arc<CountersSnapshot>| Pulse { vitals: counters.vitals, ailment: ailment(counters) };
        self.counters.as_ref().map(read).unwrap_or_default()
    }
}

impl Watches {
    /// The watch of a process.
    pub fn of(&self, key: ProcessKey) -> Option<&Watch> {
        self.all.iter().find(|watch| watch.key == key)
    }

    /// All.
    pub fn all(&self) -> &[Watch] {
        &self.all
    }

    /// Begins to watch, or goes on in another session.
    pub(super) fn begin(&mut self, key: ProcessKey, meters: bool, ticket: Ticket) {
        match self.all.iter_mut().find(|watch| watch.key == key) {
            Some(watch) => (watch.ticket, watch.meters) = (ticket, meters),
            None => self.all.push(Watch { key, meters, counters: None, ticket, pending: None }),
        }
    }

    /// Takes in what a session told. Says whether the picture changed.
    pub(super) fn hear(&mut self, ticket: Ticket, counters: Arc<CountersSnapshot>, frozen: bool) -> bool {
        let Some(watch) = self.all.iter_mut().find(|watch| watch.ticket == ticket) else { return false };
        *(if frozen { &mut watch.pending } else { &mut watch.counters }) = Some(counters);
        !frozen
    }

    /// Shows what came while the display was frozen.
    pub(super) fn thaw(&mut self) {
        for watch in &mut self.all {
            watch.counters = watch.pending.take().or(watch.counters.take());
        }
    }

    /// Ends the watch of a process.
    pub(super) fn end(&mut self, key: ProcessKey) {
        self.all.retain(|watch| watch.key != key);
    }

    /// Ends the watch that has this session: which process it was of.
    pub(super) fn ended(&mut self, ticket: Ticket) -> Option<ProcessKey> {
        let key = self.all.iter().find(|watch| watch.ticket == ticket)?.key;
        self.end(key);
        Some(key)
    }
}

impl State {
    /// The processes that the filter lets through, could be watched, and are not.
    pub(in crate::app) fn unwatched(&self) -> impl Iterator<Item = ProcessKey> {
        let rows = self.list.shown().filter(|row| !matches!(attach(self, row), Some(Status::Refused(_))));
        rows.map(|row| row.process.key).filter(|key| self.watches.of(*key).is_none())
    }
}
