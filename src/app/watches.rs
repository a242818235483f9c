//! The processes that are watched: each has a small session of its runtime's own counters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Ticket;
use super::action::{Status, attach};
use super::findings::{Finding, findings};
use super::health::{HealthIssue, busy, health_issues};
use super::state::State;
use crate::analysis::{CountersSnapshot, RuntimeStats};
use crate::diagnosis::Thresholds;
use crate::model::{CpuUse, ProcessKey};
use crate::sorting::CompactSort;

/// After how long a watch that failed begins again by itself: first, and at most.
const FIRST_RETRY: Duration = Duration::from_secs(10);
const LAST_RETRY: Duration = Duration::from_secs(300);

/// What a session reports at a time.
type Published = (Arc<CountersSnapshot>, Option<CpuUse>);

#[derive(Debug)]
pub struct Watch {
    pub key: ProcessKey,
    /// Whether its meters are watched, too.
    pub meters: bool,
    /// Whether no key began it.
    pub automatic: bool,
    /// Since when its process has not been selected any more, where no key began it.
    pub(super) left: Option<Duration>,
    /// What it publishes; `None` before the first values.
    pub counters: Option<Arc<CountersSnapshot>>,
    /// What it took of the processors over the latest seconds, where that is known.
    pub cpu: Option<CpuUse>,
    /// Since when which figures have been too high; the worst first.
    health_issues: Vec<(HealthIssue, Duration)>,
    ticket: Ticket,
    /// What came while the display was frozen.
    pending: Option<Published>,
}

/// Findings, for the overview.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentFinding {
    pub finding: Finding,
    /// For how long it has been so, where that is known.
    pub age: Option<Duration>,
}

/// What a watched process has in its line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WatchStatus {
    /// Its figures; all unknown before the first came.
    pub stats: RuntimeStats,
    pub issue: Option<HealthIssue>,
    /// Whether no key began the watch: its row is as that of any other process that runs.
    pub automatic: bool,
}

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

    /// Findings, the worst first.
    pub(super) fn findings(&self, thresholds: &Thresholds) -> Vec<Finding> {
        let Some(counters) = &self.counters else { return Vec::new() };
        self.health_issues.iter().map(|(issue, _)| issue.finding(counters, self.cpu, thresholds)).collect()
    }

    fn show(&mut self, (counters, cpu): Published, thresholds: &Thresholds, now: Duration) {
        let before = std::mem::take(&mut self.health_issues);
        let since = |issue| before.iter().find(|(other, _)| *other == issue).map_or(now, |(_, since)| *since);
        self.health_issues = health_issues(&counters, cpu, thresholds).into_iter().map(|issue| (issue, since(issue))).collect();
        (self.counters, self.cpu) = (Some(counters), cpu);
    }
}

impl Watches {
    pub fn of(&self, key: ProcessKey) -> Option<&Watch> {
        self.all.iter().find(|watch| watch.key == key)
    }

    pub fn all(&self) -> &[Watch] {
        &self.all
    }

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
                cpu: None,
                health_issues: Vec::new(),
                ticket,
                pending: None,
            }),
        }
    }

    /// From now on a process is watched only at the press of a key.
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
    pub(super) fn apply(&mut self, ticket: Ticket, published: Published, thresholds: &Thresholds, frozen: bool, now: Duration) -> bool {
        let Some(watch) = self.all.iter_mut().find(|watch| watch.ticket == ticket) else { return false };
        self.retries.remove(&watch.key);
        if frozen {
            watch.pending = Some(published);
        } else {
            watch.show(published, thresholds, now);
        }
        !frozen
    }

    /// Shows what came while the display was frozen.
    pub(super) fn thaw(&mut self, thresholds: &Thresholds, now: Duration) {
        for watch in &mut self.all {
            if let Some(published) = watch.pending.take() {
                watch.show(published, thresholds, now);
            }
        }
    }

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
    /// Findings of the selected process, the worst first: what its recording shows, and of the rest what its counters show.
    pub fn findings_of_selected(&self) -> Vec<CurrentFinding> {
        let now = self.now.elapsed;
        let recording = self.shown_recording().filter(|tracked| tracked.is_active());
        let recorded = recording.and_then(|tracked| tracked.value.analysis.as_ref());
        let mut found: Vec<CurrentFinding> = recorded.map_or_else(Vec::new, |analysis| {
            let since = |finding: &Finding| recording.and_then(|tracked| tracked.found_since(finding));
            findings(&analysis.snapshot, false, &self.options.thresholds)
                .into_iter()
                .map(|finding| CurrentFinding { age: since(&finding).map(|since| now.saturating_sub(since)), finding })
                .collect()
        });
        if let Some((watch, counters)) =
            self.list.selected().and_then(|key| self.watches.of(key)).and_then(|w| Some((w, w.counters.as_ref()?)))
        {
            let of_recording = found.len();
            for (issue, since) in &watch.health_issues {
                let (finding, age) = (issue.finding(counters, watch.cpu, &self.options.thresholds), Some(now.saturating_sub(*since)));
                match found[..of_recording].iter_mut().find(|other| other.finding.tab == finding.tab) {
                    Some(other) => other.age = other.age.max(age),
                    None => found.push(CurrentFinding { finding, age }),
                }
            }
        }
        let usage = self.list.selected().map(|key| self.usage.cpu(key)).unwrap_or_default();
        found.extend(busy(&usage, &self.options.thresholds).map(|(finding, age)| CurrentFinding { finding, age: Some(age) }));
        found.compact_sort_by(|a, b| b.finding.severity.total_cmp(&a.finding.severity));
        found
    }

    /// The processes that the filter lets through, could be watched, and are not.
    pub(in crate::app) fn unwatched(&self) -> impl Iterator<Item = ProcessKey> {
        let rows = self.list.shown().filter(|row| !matches!(attach(self, row), Some(Status::Refused(_))));
        rows.map(|row| row.process.key).filter(|key| self.watches.of(*key).is_none())
    }
}
