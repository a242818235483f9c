//! Things that begin and end, as the event sources of libraries tell them: requests, connections, look-ups, commands to a database.
//!
//! Start and stop are paired by their activity id, which there is only where the session has TplEventSource with keyword 0x80.

use crate::nettrace::ThreadId;

use super::activity_pairs::{ActivityPairs, ActivityStep, Operation};
use super::distribution::Distribution;
use super::http::{Layer, Outcome};
use super::known::{Analysis, Known, View};
use super::ranking::{Ranking, Row};
use super::timeline::{Merge, Timeline};

/// Subjects of an operation that are distinguished, and that a snapshot has.
const SUBJECTS: usize = 128;
const TOP: usize = 30;

/// What begins and ends, by operation.
#[derive(Debug, Default)]
pub(super) struct Activities {
    pairs: ActivityPairs,
    /// By the number of the operation.
    counts: Vec<Counts>,
    /// An outcome and a text; kept for its memory.
    key: Vec<u8>,
}

#[derive(Debug)]
struct Counts {
    started: u64,
    failed: u64,
    times: Distribution,
    starts_over_time: Timeline,
    subjects: Ranking<Subject>,
}

#[derive(Debug, Default)]
struct Subject {
    count: u64,
    total_ns: u64,
    longest_ns: u64,
}

impl Row for Subject {
    fn weight(&self) -> u64 {
        self.total_ns
    }

    fn fold(&mut self, row: Self) {
        self.count += row.count;
        self.total_ns = self.total_ns.saturating_add(row.total_ns);
        self.longest_ns = self.longest_ns.max(row.longest_ns);
    }
}

/// What begins and ends.
#[derive(Debug, Clone)]
pub struct ActivitySnapshot {
    /// Operations, in the order in which they first came.
    pub operations: Vec<OperationSnapshot>,
    /// What goes on, longest first: no more than 30.
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
    /// How many of those that ended failed: an event said so, or a status of 500 and more, of requests that are sent of 400 and more.
    pub failed: u64,
    /// How many ended, of those whose begin was seen and that had an activity id.
    pub ended: u64,
    /// How many go on.
    pub running: u64,
    /// Begins a second over the last ten seconds.
    pub rate: f64,
    /// Begins by step.
    pub over_time: Timeline,
    /// Mean time of those that ended.
    pub mean_ns: Option<f64>,
    /// Quantiles 0.5, 0.95 and 0.99 of the same.
    pub quantiles_ns: Option<[u64; 3]>,
    /// The longest.
    pub longest_ns: u64,
    /// What they were about, most time first: no more than 30.
    pub subjects: Vec<ActivitySubject>,
}

impl OperationSnapshot {
    /// Whether it is served requests whose events have no status, as those of ASP.NET Core's own event source: of failures only exceptions are seen.
    pub fn lacks_status(&self) -> bool {
        let has_status = |subject: &ActivitySubject| matches!(subject.outcome, Outcome::Status(_));
        self.layer == Layer::Server && self.ended > 0 && !self.subjects.iter().any(has_status)
    }
}

/// What activities are about, and how they ended: those that are alike in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivitySubject {
    /// The URL of a request that is sent; of others the texts that the start event holds, such as method and path. Not sanitised.
    pub text: String,
    /// How they ended.
    pub outcome: Outcome,
    /// How many ended.
    pub count: u64,
    /// All of them together.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

/// An activity that goes on.
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
    /// Whether an event said that it failed.
    pub has_failed: bool,
}

impl ActivitySnapshot {
    /// What began, each request once: not its parts, nor the connections and look-ups that it took, nor the same once more as Kestrel reports
    /// it. Where there is nothing else, these.
    pub fn requests(&self) -> u64 {
        let started = |of: &dyn Fn(Layer) -> bool| -> u64 {
            self.operations.iter().filter(|operation| of(operation.layer)).map(|operation| operation.started).sum()
        };
        let served = match started(&|layer| layer == Layer::Server) {
            0 => started(&|layer| layer == Layer::Kestrel),
            served => served,
        };
        match served + started(&|layer| matches!(layer, Layer::Client | Layer::Other)) {
            0 => started(&|_| true),
            requests => requests,
        }
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            started: 0,
            failed: 0,
            times: Distribution::default(),
            starts_over_time: Timeline::new(Merge::Sum),
            subjects: Ranking::new(SUBJECTS),
        }
    }
}

impl Counts {
    fn snapshot(&self, operation: &Operation, running: u64, view: &View<'_>) -> OperationSnapshot {
        let subject = |(key, subject): (&[u8], &Subject)| ActivitySubject {
            text: String::from_utf8_lossy(key.get(2..).unwrap_or_default()).into_owned(),
            outcome: key.first_chunk().map_or(Outcome::Unknown, |bytes| Outcome::from_bytes(*bytes)),
            count: subject.count,
            total_ns: subject.total_ns,
            longest_ns: subject.longest_ns,
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
            over_time: self.starts_over_time.clone(),
            mean_ns: self.times.mean(),
            quantiles_ns: self.times.quantiles(),
            longest_ns: self.times.largest(),
            subjects: self.subjects.heaviest(TOP).into_iter().map(subject).collect(),
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
                ended.times.add(time_ns);
                ended.failed += u64::from(self.pairs.operation(operation).layer.is_failure(outcome));
                self.key.clear();
                self.key.extend(outcome.to_bytes());
                self.key.extend(activity.subject.as_bytes());
                ended.subjects.row(&self.key).fold(Subject { count: 1, total_ns: time_ns, longest_ns: time_ns });
            }
            None => {}
        }
        Some(())
    }

    fn snapshot(&self, view: &View<'_>) -> ActivitySnapshot {
        let mut numbers = vec![0; self.counts.len()];
        let mut running: Vec<_> = self.pairs.running().map(|(_, activity)| activity.clone()).collect();
        running.iter().for_each(|activity| numbers[activity.operation] += 1);
        let snapshot = |(index, (counts, running)): (usize, (&Counts, u64))| counts.snapshot(self.pairs.operation(index), running, view);
        let operations: Vec<_> = self.counts.iter().zip(numbers).enumerate().map(snapshot).collect();
        running.sort_by(|a, b| (a.since, &a.subject, a.operation, a.thread).cmp(&(b.since, &b.subject, b.operation, b.thread)));
        running.truncate(TOP);
        ActivitySnapshot { operations, running }
    }
}
