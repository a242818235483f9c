//! Activities reported by the event sources of libraries: requests, connections, DNS lookups, database commands.
//!
//! Start and stop events are paired by activity ID, which is present only if the session enables TplEventSource with keyword 0x80.

use std::cmp::Reverse;

use crate::nettrace::ThreadId;
use crate::sorting::CompactSort;

use super::activity_pairs::Operation;
use super::event_context::EventContext;
use super::http;
use super::latest::Latest;
use super::ranking::{Ranking, Row};
use super::rates::RecentRate;
use super::{ActivityPairs, ActivityStep, Distribution, Layer, Occurrence, Outcome, Timeline};

/// Maximum number of subjects per operation in a snapshot.
const TOP: usize = 100;
/// Maximum number of running activities in a snapshot.
const RUNNING: usize = 30;
/// Maximum number of finished activities kept.
const FINISHED: usize = 500;
/// Maximum number of distinct outcomes per subject.
const OUTCOMES: usize = 12;

/// Activities by operation.
#[derive(Debug, Default)]
pub(super) struct Activities {
    pairs: ActivityPairs,
    /// Indexed by operation number.
    counts: Vec<Counts>,
    /// Incoming requests, outgoing requests and all other operations: separate, so that many subjects of one group do not evict those of
    /// another.
    subjects: [Ranking<Subject>; 3],
    /// Operation number and text; a reused buffer.
    key: Vec<u8>,
    /// Without the parts of requests.
    finished: Latest<FinishedActivity, FINISHED>,
}

/// An activity that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FinishedActivity {
    /// End time, in nanoseconds since the start of the session.
    pub end: i64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Role in the processing of an HTTP request.
    pub layer: Layer,
    /// Operation name; not sanitized.
    pub operation: String,
    /// Method and path or URL of a request, or the texts of the start event; not sanitized.
    pub subject: String,
    /// Method and route of an incoming request; empty if unknown. Not sanitized.
    pub route: String,
    /// Outcome.
    pub outcome: Outcome,
}

#[derive(Debug, Default)]
struct Counts {
    started: u64,
    failed: u64,
    times: Distribution,
    starts_over_time: Timeline,
}

#[derive(Debug, Default)]
struct Subject {
    times: Distribution,
    failed: u64,
    outcomes: Vec<(Outcome, u64)>,
    recent_rate: RecentRate,
}

impl Subject {
    fn add(&mut self, at: i64, time_ns: u64, outcome: Outcome, has_failed: bool) {
        self.times.add(time_ns);
        self.recent_rate.add(at);
        self.failed += u64::from(has_failed);
        match self.outcomes.iter().position(|(known, _)| *known == outcome) {
            Some(at) => self.outcomes[at].1 += 1,
            None if self.outcomes.len() < OUTCOMES => self.outcomes.push((outcome, 1)),
            None => {}
        }
    }

    fn snapshot(&self, text: &[u8], now: i64) -> ActivitySubject {
        let mut outcomes = self.outcomes.clone();
        outcomes.compact_sort_by_key(|(outcome, count)| (Reverse(*count), *outcome));
        ActivitySubject {
            text: String::from_utf8_lossy(text).into_owned(),
            count: self.times.count(),
            failed: self.failed,
            outcomes,
            rate: self.recent_rate.rate(now),
            total_ns: self.times.sum(),
            quantiles_ns: self.times.quantiles().unwrap_or_default(),
            longest_ns: self.times.largest(),
        }
    }
}

impl Row for Subject {
    const LIMIT: usize = 1024;

    fn weight(&self) -> u64 {
        self.times.sum()
    }

    /// Evicted subjects need no row of their own: [`OtherActivities`] is the difference between the operation and its listed subjects.
    fn fold(&mut self, _row: Self) {}
}

/// Activities, finished and running.
#[derive(Debug, Clone)]
pub struct ActivitySnapshot {
    /// Operations, in order of first appearance.
    pub operations: Vec<OperationSnapshot>,
    /// Activities in progress, longest-running first; at most 30.
    pub running: Vec<RunningActivity>,
}

/// One kind of activity. Times in nanoseconds.
#[derive(Debug, Clone)]
pub struct OperationSnapshot {
    /// Event source; not sanitized.
    pub provider: String,
    /// Operation name; not sanitized.
    pub name: String,
    /// Role in the processing of an HTTP request.
    pub layer: Layer,
    /// Number of activities started.
    pub started: u64,
    /// Number of finished activities that failed: by a failure event, or a status of at least 500 (at least 400 for outgoing requests).
    pub failed: u64,
    /// Number of activities that ended; counts only those with an activity ID whose start was seen.
    pub ended: u64,
    /// Number of activities in progress.
    pub running: u64,
    /// Starts per second over the last ten seconds.
    pub rate: f64,
    /// Mean duration of finished activities.
    pub mean_ns: Option<f64>,
    /// Quantiles 0.5, 0.95 and 0.99 of the duration of finished activities.
    pub quantiles_ns: Option<[u64; 3]>,
    /// Longest duration.
    pub longest_ns: u64,
    /// Subjects by total time, descending; at most 100.
    pub subjects: Vec<ActivitySubject>,
    /// Finished activities whose subjects are not listed.
    pub others: OtherActivities,
}

/// Finished activities whose subjects are not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OtherActivities {
    /// Number of activities that ended.
    pub count: u64,
    /// Number of these that failed.
    pub failed: u64,
    /// Total time, in nanoseconds.
    pub total_ns: u64,
}

impl OperationSnapshot {
    /// Returns the name with the last part of the provider, as several providers publish operations of the same name: `Request (Hosting)`. Not
    /// sanitized.
    pub fn title(&self) -> String {
        format!("{} ({})", self.name, self.provider.rsplit(['.', '-']).next().unwrap_or_default())
    }

    /// Returns whether this is an operation for incoming requests whose events carry no status, such as those of ASP.NET Core's own event
    /// source: only exceptions are visible as failures.
    pub fn lacks_status(&self) -> bool {
        let outcomes = || self.subjects.iter().flat_map(|subject| &subject.outcomes).map(|(outcome, _)| *outcome);
        let is_unknown = self.subjects.is_empty() || outcomes().any(|outcome| outcome == Outcome::Unknown);
        self.layer == Layer::Server && self.ended > 0 && is_unknown && !outcomes().any(|outcome| matches!(outcome, Outcome::Status(_)))
    }
}

/// Activities with the same subject. Times in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivitySubject {
    /// Method and URL of an outgoing request, method and route of an incoming one. If the route is unknown, each path segment that is an
    /// identifier is replaced with `{number}`, `{guid}`, `{hex}` or `{token}`. For other operations, the texts of the start event. Not
    /// sanitized.
    pub text: String,
    /// Number of activities that ended.
    pub count: u64,
    /// Number of these that failed.
    pub failed: u64,
    /// Outcomes with their counts, most frequent first; at most 12.
    pub outcomes: Vec<(Outcome, u64)>,
    /// Activities ended per second, over the last few seconds.
    pub rate: f64,
    /// Total time.
    pub total_ns: u64,
    /// Quantiles 0.5, 0.95 and 0.99 of the duration.
    pub quantiles_ns: [u64; 3],
    /// Longest duration.
    pub longest_ns: u64,
}

impl ActivitySubject {
    /// Formats the outcomes that are failures, most frequent first: `500 ×12, failed ×3`.
    pub fn failures(&self, layer: Layer) -> String {
        list(self.outcomes.iter().filter(|(outcome, _)| layer.is_failure(*outcome)))
    }

    /// Formats the known outcomes, most frequent first.
    pub fn statuses(&self) -> String {
        list(self.outcomes.iter().filter(|(outcome, _)| *outcome != Outcome::Unknown))
    }
}

fn list<'a>(outcomes: impl Iterator<Item = &'a (Outcome, u64)>) -> String {
    outcomes.map(|(outcome, count)| format!("{outcome} ×{count}")).collect::<Vec<_>>().join(", ")
}

/// An activity that is in progress.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunningActivity {
    /// Index into [`ActivitySnapshot::operations`].
    pub operation: usize,
    /// Start time, in nanoseconds since the start of the session.
    pub since: i64,
    /// Thread of the start event.
    pub thread: ThreadId,
    /// Subject; not sanitized.
    pub subject: String,
    /// Outcome, if it is known before the end.
    pub outcome: Outcome,
    /// The subject before its path was replaced by the route; empty if it was not.
    pub(super) original: String,
    /// Whether the subject begins with the method of an outgoing request.
    pub(super) has_method: bool,
    /// Whether the subject contains a route instead of a path.
    pub(super) has_route: bool,
}

impl ActivitySnapshot {
    /// Returns outgoing and incoming requests by method and route, in descending order of total time.
    pub fn routes(&self) -> Vec<(&OperationSnapshot, &ActivitySubject)> {
        let requests = self.operations.iter().filter(|operation| operation.layer.request().is_some());
        let mut routes: Vec<_> = requests.flat_map(|operation| operation.subjects.iter().map(move |route| (operation, route))).collect();
        routes.compact_sort_by_key(|(_, route)| Reverse(route.total_ns));
        routes
    }

    /// Returns the number of requests started, each counted once: without their parts, their connections and lookups, or Kestrel's report of
    /// the same request. If there are no requests, all operations are counted.
    pub fn requests(&self) -> u64 {
        self.counted().iter().map(|operation| operation.started).sum()
    }

    /// Returns the number of requests that failed, counted as in [`Self::requests`].
    pub fn failed(&self) -> u64 {
        self.counted().iter().map(|operation| operation.failed).sum()
    }

    fn counted(&self) -> Vec<&OperationSnapshot> {
        let of = |layers: &[Layer]| {
            let has_begun = |operation: &&OperationSnapshot| operation.started > 0 && layers.contains(&operation.layer);
            self.operations.iter().filter(has_begun).collect::<Vec<_>>()
        };
        let mut counted = of(&[Layer::Server]);
        if counted.is_empty() {
            counted = of(&[Layer::Kestrel]);
        }
        counted.extend(of(&[Layer::Client, Layer::Other]));
        if counted.is_empty() { self.operations.iter().collect() } else { counted }
    }
}

impl Counts {
    fn snapshot(&self, operation: &Operation, subjects: Vec<ActivitySubject>, running: u64, now: i64) -> OperationSnapshot {
        let less = |all: u64, of: fn(&ActivitySubject) -> u64| subjects.iter().map(of).fold(all, u64::saturating_sub);
        let others = OtherActivities {
            count: less(self.times.count(), |subject| subject.count),
            failed: less(self.failed, |subject| subject.failed),
            total_ns: less(self.times.sum(), |subject| subject.total_ns),
        };
        OperationSnapshot {
            provider: operation.provider.clone(),
            name: operation.name.clone(),
            layer: operation.layer,
            started: self.started,
            failed: self.failed,
            ended: self.times.count(),
            running,
            rate: self.starts_over_time.rate(now, 10),
            mean_ns: self.times.mean(),
            quantiles_ns: self.times.quantiles(),
            longest_ns: self.times.largest(),
            subjects,
            others,
        }
    }
}

impl Activities {
    pub(super) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        let step = self.pairs.feed(context.kind, context.event, context.at);
        self.counts.resize_with(self.pairs.operations(), Counts::default);
        match step {
            Some(ActivityStep::Began { operation, .. }) => {
                let begun = &mut self.counts[operation];
                begun.started += 1;
                begun.starts_over_time.add(context.at, 1.0);
            }
            Some(ActivityStep::Ended { operation, place, outcome }) => {
                let activity = self.pairs.activity(place);
                let time_ns = u64::try_from(context.at.saturating_sub(activity.since)).unwrap_or(0);
                let ended = &mut self.counts[operation];
                let layer = self.pairs.operation(operation).layer;
                let has_failed = layer.is_failure(outcome);
                ended.times.add(time_ns);
                ended.failed += u64::from(has_failed);
                self.key.clear();
                self.key.extend((operation as u16).to_le_bytes());
                match layer {
                    Layer::Client | Layer::Server | Layer::Kestrel if !activity.has_route => {
                        http::add_without_ids(&mut self.key, &activity.subject);
                    }
                    _ => self.key.extend(activity.subject.as_bytes()),
                }
                let kind = match layer {
                    Layer::Server => 0,
                    Layer::Client => 1,
                    Layer::Kestrel | Layer::Part | Layer::Other => 2,
                };
                self.subjects[kind].row(&self.key).add(context.at, time_ns, outcome, has_failed);
                if layer != Layer::Part {
                    let mut finished = self.finished.take_oldest().unwrap_or_default();
                    (finished.end, finished.duration_ns, finished.layer, finished.outcome) = (context.at, time_ns, layer, outcome);
                    finished.operation.clone_from(&self.pairs.operation(operation).name);
                    let (subject, route) = match activity.original.as_str() {
                        "" => (activity.subject.as_str(), ""),
                        original => (original, activity.subject.as_str()),
                    };
                    subject.clone_into(&mut finished.subject);
                    route.clone_into(&mut finished.route);
                    self.finished.push(finished);
                }
            }
            None => {}
        }
        Some(())
    }

    /// Returns the finished activities after the first `seen`, without the parts of requests, each with its number. Kestrel's reports of incoming
    /// requests are omitted if there are others of the same requests.
    pub(super) fn after(&self, seen: u64) -> impl Iterator<Item = (u64, Option<Occurrence>)> {
        let has_server = (0..self.counts.len()).any(|number| self.pairs.operation(number).layer == Layer::Server);
        let is_shown = move |finished: &&FinishedActivity| !has_server || finished.layer != Layer::Kestrel;
        self.finished
            .after(seen)
            .map(move |(number, finished)| (number, Some(finished).filter(is_shown).cloned().map(Occurrence::Activity)))
    }

    pub(super) fn snapshot(&self, now: i64) -> ActivitySnapshot {
        let mut numbers = vec![0; self.counts.len()];
        let mut running: Vec<_> = self.pairs.running().map(|(_, activity)| activity.clone()).collect();
        running.iter().for_each(|activity| numbers[activity.operation] += 1);
        let mut subjects = vec![Vec::new(); self.counts.len()];
        for (key, subject) in self.subjects.iter().flat_map(|kind| kind.heaviest(usize::MAX)) {
            let of_operation = key
                .split_first_chunk()
                .and_then(|(number, text)| Some((subjects.get_mut(usize::from(u16::from_le_bytes(*number)))?, text)));
            if let Some((list, text)) = of_operation.filter(|(list, _)| list.len() < TOP) {
                list.push(subject.snapshot(text, now));
            }
        }
        let all = self.counts.iter().zip(subjects).zip(numbers).enumerate();
        let operations: Vec<_> = all
            .map(|(index, ((counts, subjects), running))| counts.snapshot(self.pairs.operation(index), subjects, running, now))
            .collect();
        running.compact_sort_by(|a, b| (a.since, &a.subject, a.operation, a.thread).cmp(&(b.since, &b.subject, b.operation, b.thread)));
        running.truncate(RUNNING);
        ActivitySnapshot { operations, running }
    }
}
