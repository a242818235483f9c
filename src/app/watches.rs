//! The processes that are watched: each has a small session of its runtime's own counters.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Ticket;
use super::action::{Status, attach};
use super::lints::{Ailment, Lint, ailments, busy, lints};
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
    /// Whether no key began it.
    pub automatic: bool,
    /// Since when its process has not been selected any more, where no key began it.
    pub(super) left: Option<Duration>,
    /// What it publishes; `None` before the first values.
    pub counters: Option<Arc<CountersSnapshot>>,
    /// Since when which figures have been too high; the worst first.
    ailments: Vec<(Ailment, Duration)>,
    /// The session that is listened to.
    ticket: Ticket,
    /// What came while the display was frozen.
    pending: Option<Arc<CountersSnapshot>>,
}

/// What asks for a look, for the overview.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What it is.
    pub lint: Lint,
    /// For how long it has been so, where that is known.
    pub age: Option<Duration>,
}

/// What a watched process has in its line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pulse {
    /// Its figures; all unknown before the first came.
    pub vitals: Vitals,
    /// What is wrong with it.
    pub ailment: Option<Ailment>,
    /// Whether no key began the watch: its row is as that of any other process that runs.
    pub automatic: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Watches {
    all: Vec<Watch>,
    /// Processes whose watch a key has ended, or that could not be watched: they are not watched again without a key.
    off: BTreeSet<ProcessKey>,
}

impl Watch {
    /// What belongs into its line.
    pub fn pulse(&self) -> Pulse {
        let read = |counters: &Arc<CountersSnapshot>| Pulse {
            vitals: counters.vitals,
            ailment: self.ailments.first().map(|(ailment, _)| *ailment),
            automatic: self.automatic,
        };
        self.counters.as_ref().map_or(Pulse { automatic: self.automatic, ..Pulse::default() }, read)
    }

    /// What asks for a look, the worst first.
    pub(super) fn lints(&self) -> Vec<Lint> {
        let Some(counters) = &self.counters else { return Vec::new() };
        self.ailments.iter().map(|(ailment, _)| ailment.lint(counters)).collect()
    }

    fn show(&mut self, counters: Arc<CountersSnapshot>, now: Duration) {
        let before = std::mem::take(&mut self.ailments);
        let since = |ailment| before.iter().find(|(other, _)| *other == ailment).map_or(now, |(_, since)| *since);
        self.ailments = ailments(&counters).into_iter().map(|ailment| (ailment, since(ailment))).collect();
        self.counters = Some(counters);
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

    /// All, to be changed.
    pub(super) fn all_mut(&mut self) -> &mut [Watch] {
        &mut self.all
    }

    /// Begins to watch, or goes on in another session.
    pub(super) fn begin(&mut self, key: ProcessKey, meters: bool, automatic: bool, ticket: Ticket) {
        self.off.remove(&key);
        match self.all.iter_mut().find(|watch| watch.key == key) {
            Some(watch) => (watch.ticket, watch.meters, watch.automatic) = (ticket, meters, automatic),
            None => {
                self.all.push(Watch { key, meters, automatic, left: None, counters: None, ailments: Vec::new(), ticket, pending: None })
            }
        }
    }

    /// From now on a process is watched only where a key asks for it.
    pub(super) fn turn_off(&mut self, key: ProcessKey) {
        self.off.insert(key);
    }

    /// Whether a process may be watched without a key.
    pub(super) fn may_begin(&self, key: ProcessKey) -> bool {
        self.of(key).is_none() && !self.off.contains(&key)
    }

    /// Forgets the processes that are not listed.
    pub(super) fn forget(&mut self, is_listed: impl Fn(ProcessKey) -> bool) {
        self.off.retain(|key| is_listed(*key));
    }

    /// Takes in what a session told. Says whether the picture changed.
    pub(super) fn hear(&mut self, ticket: Ticket, counters: Arc<CountersSnapshot>, frozen: bool, now: Duration) -> bool {
        let Some(watch) = self.all.iter_mut().find(|watch| watch.ticket == ticket) else { return false };
        if frozen {
            watch.pending = Some(counters);
        } else {
            watch.show(counters, now);
        }
        !frozen
    }

    /// Shows what came while the display was frozen.
    pub(super) fn thaw(&mut self, now: Duration) {
        for watch in &mut self.all {
            if let Some(counters) = watch.pending.take() {
                watch.show(counters, now);
            }
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
    /// What asks for a look at the selected process, the worst first: what its recording shows, and of the rest what its counters show.
    pub fn findings_of_selected(&self) -> Vec<Finding> {
        let now = self.now.elapsed;
        let recording = self.shown_recording().filter(|tracked| tracked.is_active());
        let recorded = recording.and_then(|tracked| tracked.value.findings.as_ref());
        let mut found: Vec<Finding> = recorded.map_or_else(Vec::new, |findings| {
            lints(&findings.snapshot, false).into_iter().map(|lint| Finding { lint, age: None }).collect()
        });
        if let Some((watch, counters)) =
            self.list.selected().and_then(|key| self.watches.of(key)).and_then(|w| Some((w, w.counters.as_ref()?)))
        {
            for (ailment, since) in &watch.ailments {
                let (lint, age) = (ailment.lint(counters), Some(now.saturating_sub(*since)));
                match found.iter_mut().find(|other| other.lint.tab == lint.tab) {
                    Some(other) => other.age = other.age.max(age),
                    None => found.push(Finding { lint, age }),
                }
            }
        }
        let usage = self.list.selected().map(|key| self.usage.cpu(key)).unwrap_or_default();
        found.extend(busy(&usage).map(|lint| Finding { lint, age: None }));
        found.sort_by(|a, b| b.lint.severity.total_cmp(&a.lint.severity));
        found
    }

    /// The processes that the filter lets through, could be watched, and are not.
    pub(in crate::app) fn unwatched(&self) -> impl Iterator<Item = ProcessKey> {
        let rows = self.list.shown().filter(|row| !matches!(attach(self, row), Some(Status::Refused(_))));
        rows.map(|row| row.process.key).filter(|key| self.watches.of(*key).is_none())
    }
}
