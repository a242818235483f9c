//! The watched processes, each with a light session of its runtime's own counters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::action::{Status, attach};
use super::health::busy_core_finding;
use super::{AutoWatch, Finding, HealthIssue, ResourceHistory, Row, State, Ticket, findings, health_issues};
use crate::analysis::{CountersSnapshot, RuntimeStats};
use crate::diagnosis::Thresholds;
use crate::model::{CpuUse, ProcessKey, ProcessUse};
use crate::sorting::CompactSort;

/// The first and the longest delay before a failed automatic watch is retried.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(10);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);

/// Maximum number of consecutive reports without an issue that do not end it: when a session restarts, its first reports lack some figures.
const MAX_MISSED: u32 = 5;

/// A report from a session.
type Published = (Arc<CountersSnapshot>, ProcessUse);

#[derive(Debug, Default)]
pub struct Watch {
    pub key: ProcessKey,
    /// Whether its meters are included.
    pub meters: bool,
    /// Whether the watch was started automatically.
    pub automatic: bool,
    /// When the process was deselected, for an automatic watch.
    pub(super) deselected_at: Option<Duration>,
    /// The published counters; `None` before the first values.
    pub counters: Option<Arc<CountersSnapshot>>,
    /// CPU use over the last seconds, if known.
    pub cpu: Option<CpuUse>,
    /// Memory, threads and open files.
    pub resources: ResourceHistory,
    /// Current issues with their findings and when each was first seen, the worst first.
    health_issues: Vec<(HealthIssue, Finding, Duration)>,
    /// When each issue that is not over was first seen, and the number of reports since it was last seen.
    seen: Vec<(HealthIssue, Duration, u32)>,
    ticket: Ticket,
    /// The latest report while the display is frozen.
    pending: Option<Published>,
}

/// A finding for the overview.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentFinding {
    pub finding: Finding,
    /// How long the finding has been present, if known and not part of its text.
    pub age: Option<Duration>,
}

/// Status of a watched process for its table row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WatchStatus {
    /// Runtime figures; all unknown before the first report.
    pub stats: RuntimeStats,
    pub issue: Option<HealthIssue>,
    /// Whether the watch was started automatically; its row then looks like that of an unwatched process.
    pub automatic: bool,
}

#[derive(Debug, Default)]
pub struct Watches {
    all: Vec<Watch>,
    /// Processes unwatched by the user, or that could not be watched; they are not watched automatically again.
    excluded: BTreeSet<ProcessKey>,
    /// Time of the next automatic retry after a failure, and the current delay.
    retries: BTreeMap<ProcessKey, (Duration, Duration)>,
}

impl Watch {
    /// Returns the status for the table row.
    pub fn status(&self) -> WatchStatus {
        WatchStatus {
            stats: self.counters.as_ref().map(|counters| counters.stats).unwrap_or_default(),
            issue: self.health_issues.first().map(|(issue, ..)| *issue),
            automatic: self.automatic,
        }
    }

    /// Returns the findings, the worst first.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.health_issues.iter().map(|(_, finding, _)| finding)
    }

    fn show(&mut self, (counters, usage): Published, thresholds: &Thresholds, now: Duration) {
        self.seen.iter_mut().for_each(|(.., missed)| *missed += 1);
        self.health_issues.clear();
        self.resources.push(now, usage.resources, &counters);
        for (issue, finding) in health_issues(&counters, usage.cpu, &self.resources, thresholds) {
            let before = self.seen.iter().find(|(other, ..)| *other == issue).map(|(_, since, _)| *since);
            let since = before.unwrap_or(now);
            self.seen.retain(|(other, ..)| *other != issue);
            self.seen.push((issue, since, 0));
            self.health_issues.push((issue, finding, since));
        }
        self.seen.retain(|(.., missed)| *missed <= MAX_MISSED);
        (self.counters, self.cpu) = (Some(counters), usage.cpu);
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

    /// Starts a watch, or continues it with another session.
    pub(super) fn begin(&mut self, key: ProcessKey, meters: bool, automatic: bool, ticket: Ticket, processors: usize) {
        self.excluded.remove(&key);
        match self.all.iter_mut().find(|watch| watch.key == key) {
            Some(watch) => (watch.ticket, watch.meters, watch.automatic) = (ticket, meters, automatic),
            None => {
                let resources = ResourceHistory::new(processors);
                self.all.push(Watch { key, meters, automatic, ticket, resources, ..Watch::default() });
            }
        }
    }

    /// Keeps an automatic watch after its process is deselected.
    pub(super) fn keep(&mut self, key: ProcessKey) {
        for watch in self.all.iter_mut().filter(|watch| watch.key == key) {
            (watch.automatic, watch.deselected_at) = (false, None);
        }
    }

    /// Excludes a process from automatic watches.
    pub(super) fn exclude(&mut self, key: ProcessKey) {
        self.excluded.insert(key);
        self.retries.remove(&key);
    }

    /// Schedules a retry of a failed automatic watch, with a delay that doubles each time. Returns whether this is the first failure.
    pub(super) fn schedule_retry(&mut self, key: ProcessKey, now: Duration) -> bool {
        let before = self.retries.get(&key).map(|(_, delay)| *delay);
        let delay = before.map_or(MIN_RETRY_DELAY, |delay| (delay * 2).min(MAX_RETRY_DELAY));
        self.retries.insert(key, (now + delay, delay));
        before.is_none()
    }

    /// Returns the earliest time at which a process may be watched automatically.
    pub(super) fn retry_at(&self, key: ProcessKey) -> Duration {
        self.retries.get(&key).map_or(Duration::ZERO, |(at, _)| *at)
    }

    /// Whether a process may be watched automatically.
    pub(super) fn may_watch(&self, key: ProcessKey) -> bool {
        self.of(key).is_none() && !self.excluded.contains(&key)
    }

    /// Removes processes that are no longer listed.
    pub(super) fn forget(&mut self, is_listed: impl Fn(ProcessKey) -> bool) {
        self.excluded.retain(|key| is_listed(*key));
        self.retries.retain(|key, _| is_listed(*key));
    }

    /// Applies a report of a session. Returns whether a redraw is needed.
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

    /// Shows the reports received while the display was frozen.
    pub(super) fn show_pending(&mut self, thresholds: &Thresholds, now: Duration) {
        for watch in &mut self.all {
            if let Some(published) = watch.pending.take() {
                watch.show(published, thresholds, now);
            }
        }
    }

    pub(super) fn end(&mut self, key: ProcessKey) {
        self.all.retain(|watch| watch.key != key);
    }

    /// Ends the watch with this session. Returns its process, and whether it was started automatically.
    pub(super) fn ended(&mut self, ticket: Ticket) -> Option<(ProcessKey, bool)> {
        let (key, automatic) = self.all.iter().find(|watch| watch.ticket == ticket).map(|watch| (watch.key, watch.automatic))?;
        self.end(key);
        Some((key, automatic))
    }
}

impl State {
    /// Returns the watch of the selected process, if it is watched.
    pub(super) fn selected_watch(&self) -> Option<&Watch> {
        self.watches.of(self.list.selected()?)
    }

    /// Returns the findings for the selected process, the worst first: from its recording, complemented by its counters.
    pub fn findings_of_selected(&self) -> Vec<CurrentFinding> {
        let now = self.now.elapsed;
        let recording = self.shown_recording().filter(|tracked| tracked.is_active());
        let recorded = recording.and_then(|tracked| tracked.value.analysis.as_ref());
        let mut found: Vec<CurrentFinding> = recorded.map_or_else(Vec::new, |analysis| {
            let since = |finding: &Finding| recording.and_then(|tracked| tracked.first_seen(finding));
            findings(&analysis.snapshot, false, &self.options.thresholds)
                .into_iter()
                .map(|finding| CurrentFinding { age: since(&finding).map(|since| now.saturating_sub(since)), finding })
                .collect()
        });
        let of_recording = found.len();
        // What was found before a process was stopped does not last.
        let watch = self.selected_watch().filter(|_| !self.selected().is_some_and(Row::is_stopped));
        for (_, finding, since) in watch.into_iter().flat_map(|watch| &watch.health_issues) {
            let age = Some(now.saturating_sub(*since));
            match found[..of_recording].iter_mut().find(|other| other.finding.is_same_problem(finding)) {
                Some(other) => other.age = other.age.max(age),
                None => found.push(CurrentFinding { finding: finding.clone(), age }),
            }
        }
        let usage = self.list.selected().map(|key| self.usage.cpu(key)).unwrap_or_default();
        found.extend(busy_core_finding(&usage, &self.options.thresholds).map(|(finding, age)| CurrentFinding { finding, age: Some(age) }));
        found.iter_mut().filter(|found| found.finding.has_duration).for_each(|found| found.age = None);
        found.compact_sort_by(|a, b| b.finding.severity.total_cmp(&a.finding.severity));
        found
    }

    /// Returns the processes that match the filter and could be watched, but are not, or only while they are selected.
    pub(in crate::app) fn unwatched(&self) -> impl Iterator<Item = ProcessKey> {
        let rows = self.list.shown().filter(|row| !matches!(attach(self, row), Some(Status::Refused(_))));
        let follows_selection = |watch: &Watch| watch.automatic && self.options.watch == AutoWatch::Selected;
        rows.map(|row| row.process.key).filter(move |key| self.watches.of(*key).is_none_or(follows_selection))
    }
}
