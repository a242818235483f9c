//! Things that begin and end, as the event sources of libraries tell them: requests, connections, look-ups, commands to a database.
//!
//! Start and stop are paired by their activity id, which there is only where the session has TplEventSource with keyword 0x80.

use std::cmp::Reverse;

use crate::nettrace::ThreadId;
use crate::sorting::CompactSort;

use super::activity_pairs::{ActivityPairs, ActivityStep, Operation};
use super::distribution::Distribution;
use super::http::{self, Layer, Outcome};
use super::known::{Analysis, Known, View};
use super::ranking::{Ranking, Row};
use super::rates::RecentRate;
use super::timeline::{Merge, Timeline};

/// Subjects that are distinguished: of requests that are served, of those that are sent, and of all other operations together.
const SUBJECTS: usize = 1024;
/// Subjects of an operation that a snapshot has.
const TOP: usize = 100;
/// Activities that a snapshot has.
const RUNNING: usize = 30;
/// Ways to end that are distinguished for a subject.
const OUTCOMES: usize = 12;

/// What begins and ends, by operation.
#[derive(Debug)]
pub(super) struct Activities {
    pairs: ActivityPairs,
    /// By the number of the operation.
    counts: Vec<Counts>,
    /// Of requests that are served, of those that are sent, and of all other operations: many of one kind displace none of another.
    subjects: [Ranking<Subject>; 3],
    /// The number of an operation and a text; kept for its memory.
    key: Vec<u8>,
}

#[derive(Debug)]
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

    fn snapshot(&self, text: &[u8], view: &View<'_>) -> ActivitySubject {
        let mut outcomes = self.outcomes.clone();
        outcomes.compact_sort_by_key(|(outcome, count)| (Reverse(*count), *outcome));
        ActivitySubject {
            text: String::from_utf8_lossy(text).into_owned(),
            count: self.times.count(),
            failed: self.failed,
            outcomes,
            rate: self.recent_rate.rate(view.now),
            total_ns: self.times.sum(),
            quantiles_ns: self.times.quantiles().unwrap_or_default(),
            longest_ns: self.times.largest(),
        }
    }
}

impl Row for Subject {
    fn weight(&self) -> u64 {
        self.times.sum()
    }

    /// What is not distinguished is what the operation has besides its subjects.
    fn fold(&mut self, _row: Self) {}
}

/// What begins and ends.
#[derive(Debug, Clone)]
pub struct ActivitySnapshot {
    /// Operations, in the order in which they first came.
    pub operations: Vec<OperationSnapshot>,
    /// What is in progress, longest first: no more than 30.
    pub running: Vec<RunningActivity>,
}

/// One kind of activity. Times in nanoseconds.
#[derive(Debug, Clone)]
pub struct OperationSnapshot {
    /// Its source; not sanitised.
    pub provider: String,
    /// What it is; not sanitised.
    pub name: String,
    /// What it is to an HTTP request.
    pub layer: Layer,
    /// How many began.
    pub started: u64,
    /// How many of those that ended failed: by an event, or a status of 500 and more, of requests that are sent of 400 and more.
    pub failed: u64,
    /// How many ended, of those whose begin was seen and that had an activity id.
    pub ended: u64,
    /// How many are in progress.
    pub running: u64,
    /// Begins a second over the last ten seconds.
    pub rate: f64,
    /// Mean time of those that ended.
    pub mean_ns: Option<f64>,
    /// Quantiles 0.5, 0.95 and 0.99 of the same.
    pub quantiles_ns: Option<[u64; 3]>,
    /// The longest.
    pub longest_ns: u64,
    /// What they were about, most time first: no more than 100.
    pub subjects: Vec<ActivitySubject>,
    /// Those that ended and are about something that is not in the list.
    pub others: OtherActivities,
}

/// Activities that are not distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OtherActivities {
    /// How many ended.
    pub count: u64,
    /// Of them, how many failed.
    pub failed: u64,
    /// All of them together.
    pub total_ns: u64,
}

impl OperationSnapshot {
    /// Whether it is served requests whose events have no status, as those of ASP.NET Core's own event source: of failures only exceptions are seen.
    pub fn lacks_status(&self) -> bool {
        let outcomes = || self.subjects.iter().flat_map(|subject| &subject.outcomes).map(|(outcome, _)| *outcome);
        let is_unknown = self.subjects.is_empty() || outcomes().any(|outcome| outcome == Outcome::Unknown);
        self.layer == Layer::Server && self.ended > 0 && is_unknown && !outcomes().any(|outcome| matches!(outcome, Outcome::Status(_)))
    }
}

/// What activities are about. Times in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivitySubject {
    /// Method and URL of a request that is sent, method and route of one that is served. Where no route is known, the path has `{number}`, `{guid}`,
    /// `{hex}` or `{token}` for each segment that is an identifier. Of others the texts that the start event holds. Not sanitised.
    pub text: String,
    /// How many ended.
    pub count: u64,
    /// Of them, how many failed.
    pub failed: u64,
    /// How they ended, the most frequent first: no more than 12.
    pub outcomes: Vec<(Outcome, u64)>,
    /// How many end a second, over some seconds.
    pub rate: f64,
    /// All of them together.
    pub total_ns: u64,
    /// Quantiles 0.5, 0.95 and 0.99.
    pub quantiles_ns: [u64; 3],
    /// The longest.
    pub longest_ns: u64,
}

impl ActivitySubject {
    /// How those ended that failed, the most frequent first: `500 ×12, failed ×3`.
    pub fn failures(&self, layer: Layer) -> String {
        list(self.outcomes.iter().filter(|(outcome, _)| layer.is_failure(*outcome)))
    }

    /// How those ended of which that is known.
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
    /// Index into the operations.
    pub operation: usize,
    /// When it began, nanoseconds since the start of the session.
    pub since: i64,
    /// Where it began.
    pub thread: ThreadId,
    /// What it is about; not sanitised.
    pub subject: String,
    /// How it ends, as far as that is known before.
    pub outcome: Outcome,
    /// Whether its subject begins with the method of a request that is sent.
    pub(super) has_method: bool,
    /// Whether its subject has a route instead of a path.
    pub(super) has_route: bool,
}

impl ActivitySnapshot {
    /// The requests that were sent and served, by method and route, those first that most time went to.
    pub fn routes(&self) -> Vec<(&OperationSnapshot, &ActivitySubject)> {
        let requests = self.operations.iter().filter(|operation| operation.layer.request().is_some());
        let mut routes: Vec<_> = requests.flat_map(|operation| operation.subjects.iter().map(move |route| (operation, route))).collect();
        routes.compact_sort_by_key(|(_, route)| Reverse(route.total_ns));
        routes
    }

    /// What began, each request once: not its parts, nor the connections and look-ups that it took, nor the same once more as Kestrel reports
    /// it. Where there is nothing else, these.
    pub fn requests(&self) -> u64 {
        self.counted().iter().map(|operation| operation.started).sum()
    }

    /// Of these, those that failed.
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

impl Default for Counts {
    fn default() -> Self {
        Self { started: 0, failed: 0, times: Distribution::default(), starts_over_time: Timeline::new(Merge::Sum) }
    }
}

impl Default for Activities {
    fn default() -> Self {
        Self {
            pairs: ActivityPairs::default(),
            counts: Vec::new(),
            subjects: std::array::from_fn(|_| Ranking::new(SUBJECTS)),
            key: Vec::new(),
        }
    }
}

impl Counts {
    fn snapshot(&self, operation: &Operation, subjects: Vec<ActivitySubject>, running: u64, view: &View<'_>) -> OperationSnapshot {
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
            rate: self.starts_over_time.rate(view.now, 10),
            mean_ns: self.times.mean(),
            quantiles_ns: self.times.quantiles(),
            longest_ns: self.times.largest(),
            subjects,
            others,
        }
    }
}

impl Analysis for Activities {
    type Snapshot = ActivitySnapshot;

    fn feed(&mut self, known: &Known<'_>) -> Option<()> {
        let step = self.pairs.feed(known.kind, known.event, known.at);
        self.counts.resize_with(self.pairs.operations(), Counts::default);
        match step {
            Some(ActivityStep::Began { operation, .. }) => {
                let begun = &mut self.counts[operation];
                begun.started += 1;
                begun.starts_over_time.add(known.at, 1.0);
            }
            Some(ActivityStep::Ended { operation, place, outcome }) => {
                let activity = self.pairs.activity(place);
                let time_ns = u64::try_from(known.at.saturating_sub(activity.since)).unwrap_or(0);
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
                self.subjects[kind].row(&self.key).add(known.at, time_ns, outcome, has_failed);
            }
            None => {}
        }
        Some(())
    }

    fn snapshot(&self, view: &View<'_>) -> ActivitySnapshot {
        let mut numbers = vec![0; self.counts.len()];
        let mut running: Vec<_> = self.pairs.running().map(|(_, activity)| activity.clone()).collect();
        running.iter().for_each(|activity| numbers[activity.operation] += 1);
        let mut subjects = vec![Vec::new(); self.counts.len()];
        for (key, subject) in self.subjects.iter().flat_map(|kind| kind.heaviest(usize::MAX)) {
            let of_operation = key
                .split_first_chunk()
                .and_then(|(number, text)| Some((subjects.get_mut(usize::from(u16::from_le_bytes(*number)))?, text)));
            if let Some((list, text)) = of_operation.filter(|(list, _)| list.len() < TOP) {
                list.push(subject.snapshot(text, view));
            }
        }
        let all = self.counts.iter().zip(subjects).zip(numbers).enumerate();
        let operations: Vec<_> = all
            .map(|(index, ((counts, subjects), running))| counts.snapshot(self.pairs.operation(index), subjects, running, view))
            .collect();
        running.compact_sort_by(|a, b| (a.since, &a.subject, a.operation, a.thread).cmp(&(b.since, &b.subject, b.operation, b.thread)));
        running.truncate(RUNNING);
        ActivitySnapshot { operations, running }
    }
}
