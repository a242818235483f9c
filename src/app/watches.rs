//! The processes that are watched: each has a small session of its runtime's own counters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Ticket;
use super::action::{Status, attach};
use super::findings::{Finding, findings};
use super::health::{HealthIssue, busy, health_issues};
use super::state::State;
use super::thresholds::Thresholds;
use crate::analysis::{CountersSnapshot, RuntimeStats};
use crate::model::ProcessKey;

/// After how long a watch that failed begins again by itself: first, and at most.
const FIRST_RETRY: Duration = Duration::from_secs(10);
const LAST_RETRY: Duration = Duration::from_secs(300);

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
    health_issues: Vec<(HealthIssue, Duration)>,
    /// The session that is listened to.
    ticket: Ticket,
    /// What came while the display was frozen.
    pending: Option<Arc<CountersSnapshot>>,
}

/// What asks for a look, for the overview.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentFinding {
    /// What it is.
    pub finding: Finding,
    /// For how long it has been so, where that is known.
    pub age: Option<Duration>,
}

/// What a watched process has in its line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WatchStatus {
    /// Its figures; all unknown before the first came.
    pub stats: RuntimeStats,
    /// What is wrong with it.
    pub issue: Option<HealthIssue>,
    /// Whether no key began the watch: its row is as that of any other process that runs.
    pub automatic: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Watches {
    all: Vec<Watch>,
    /// Processes whose watch a key has ended, or that could not be watched: they are not watched again without a key.
    off: BTreeSet<ProcessKey>,
    /// When watches that failed begin again by themselves, and after how long.
    retries: BTreeMap<ProcessKey, (Duration, Duration)>,
}

impl Watch {
    /// What belongs into its line.
    pub fn watch(&self) -> WatchStatus {
        let read = |counters: &Arc<CountersSnapshot>| WatchStatus {
            stats: counters.stats,
            issue: self.health_issues.first().map(|(issue, _)| *issue),
            automatic: self.automatic,
        };
        self.counters.as_ref().map_or(WatchStatus { automatic: self.automatic, ..WatchStatus::default() }, read)
    }

    /// What asks for a look, the worst first.
    pub(super) fn findings(&self, thresholds: &Thresholds) -> Vec<Finding> {
        let Some(counters) = &self.counters else { return Vec::new() };
        self.health_issues.iter().map(|(issue, _)| issue.finding(counters, thresholds)).collect()
    }

    fn show(&mut self, counters: Arc<CountersSnapshot>, thresholds: &Thresholds, now: Duration) {
        let before = std::mem::take(&mut self.health_issues);
        let since = |issue| before.iter().find(|(other, _)| *other == issue).map_or(now, |(_, since)| *since);
        self.health_issues = health_issues(&counters, thresholds).into_iter().map(|issue| (issue, since(issue))).collect();
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
            None => self.all.push(Watch {
                key,
                meters,
                automatic,
                left: None,
                counters: None,
                health_issues: Vec::new(),
                ticket,
                pending: None,
            }),
        }
    }

    /// From now on a process is watched only where a key asks for it.
    pub(super) fn turn_off(&mut self, key: ProcessKey) {
        self.off.insert(key);
        self.retries.remove(&key);
    }

    /// A watch that no key began has failed: it begins again after a while, which doubles each time. Whether it is the first time.
    pub(super) fn failed(&mut self, key: ProcessKey, now: Duration) -> bool {
        let before = self.retries.get(&key).map(|(_, delay)| *delay);
        let delay = before.map_or(FIRST_RETRY, |delay| (delay * 2).min(LAST_RETRY));
        self.retries.insert(key, (now + delay, delay));
        before.is_none()
    }

    /// When a process may be watched without a key.
    pub(super) fn retry_at(&self, key: ProcessKey) -> Duration {
        self.retries.get(&key).map_or(Duration::ZERO, |(at, _)| *at)
    }

    /// Whether a process may be watched without a key.
    pub(super) fn may_begin(&self, key: ProcessKey) -> bool {
        self.of(key).is_none() && !self.off.contains(&key)
    }

    /// Forgets the processes that are not listed.
    pub(super) fn forget(&mut self, is_listed: impl Fn(ProcessKey) -> bool) {
        self.off.retain(|key| is_listed(*key));
        self.retries.retain(|key, _| is_listed(*key));
    }

    /// Takes in what a session reported. Returns whether the picture changed.
    pub(super) fn apply(
        &mut self,
        ticket: Ticket,
        counters: Arc<CountersSnapshot>,
        thresholds: &Thresholds,
        frozen: bool,
        now: Duration,
    ) -> bool {
        let Some(watch) = self.all.iter_mut().find(|watch| watch.ticket == ticket) else { return false };
        self.retries.remove(&watch.key);
        if frozen {
            watch.pending = Some(counters);
        } else {
            watch.show(counters, thresholds, now);
        }
        !frozen
    }

    /// Shows what came while the display was frozen.
    pub(super) fn thaw(&mut self, thresholds: &Thresholds, now: Duration) {
        for watch in &mut self.all {
            if let Some(counters) = watch.pending.take() {
                watch.show(counters, thresholds, now);
            }
        }
    }

    /// Ends the watch of a process.
    pub(super) fn end(&mut self, key: ProcessKey) {
        self.all.retain(|watch| watch.key != key);
    }

    /// Ends the watch that has this session: which process it was of, and whether no key began it.
    pub(super) fn ended(&mut self, ticket: Ticket) -> Option<(ProcessKey, bool)> {
        let (key, automatic) = self.all.iter().find(|watch| watch.ticket == ticket).map(|watch| (watch.key, watch.automatic))?;
        self.end(key);
        Some((key, automatic))
    }
}

impl State {
    /// What asks for a look at the selected process, the worst first: what its recording shows, and of the rest what its counters show.
    pub fn findings_of_selected(&self) -> Vec<CurrentFinding> {
        let now = self.now.elapsed;
        let recording = self.shown_recording().filter(|tracked| tracked.is_active());
        let recorded = recording.and_then(|tracked| tracked.value.analysis.as_ref());
        let mut found: Vec<CurrentFinding> = recorded.map_or_else(Vec::new, |analysis| {
            findings(&analysis.snapshot, false, &self.options.thresholds)
                .into_iter()
                .map(|finding| CurrentFinding { finding, age: None })
                .collect()
        });
        if let Some((watch, counters)) =
            self.list.selected().and_then(|key| self.watches.of(key)).and_then(|w| Some((w, w.counters.as_ref()?)))
        {
            for (issue, since) in &watch.health_issues {
                let (finding, age) = (issue.finding(counters, &self.options.thresholds), Some(now.saturating_sub(*since)));
                match found.iter_mut().find(|other| other.finding.tab == finding.tab) {
                    Some(other) => other.age = other.age.max(age),
                    None => found.push(CurrentFinding { finding, age }),
                }
            }
        }
        let usage = self.list.selected().map(|key| self.usage.cpu(key)).unwrap_or_default();
        found.extend(busy(&usage, &self.options.thresholds).map(|finding| CurrentFinding { finding, age: None }));
        found.sort_by(|a, b| b.finding.severity.total_cmp(&a.finding.severity));
        found
    }

    /// The processes that the filter lets through, could be watched, and are not.
    pub(in crate::app) fn unwatched(&self) -> impl Iterator<Item = ProcessKey> {
        let rows = self.list.shown().filter(|row| !matches!(attach(self, row), Some(Status::Refused(_))));
        rows.map(|row| row.process.key).filter(|key| self.watches.of(*key).is_none())
    }
}
