//! Things that begin and end, as the event sources of libraries tell them: requests, connections, look-ups, commands to a database.
//!
//! Start and stop are paired by their activity id, which there is only where the session has TplEventSource with keyword 0x80.

use foldhash::HashMap;

use crate::clr::EventKind;
use crate::nettrace::{Metadata, ThreadId, Value, Values};
use crate::wire::Utf16;

use super::diagnostic_source;
use super::distribution::Distribution;
use super::http::{self, Layer, Outcome};
use super::known::{Analysis, Known, View};
use super::ranking::{Ranking, Row};
use super::timeline::{Merge, Timeline};

/// Kinds of activity that are told apart.
const OPERATIONS: usize = 128;
/// Activities that go on at the same time.
const RUNNING: usize = 4096;
/// Subjects of an operation that are told apart, and that a snapshot has.
const SUBJECTS: usize = 128;
const TOP: usize = 30;
/// Bytes of a subject that are kept.
const SUBJECT: usize = 200;

/// Pairs starts and stops.
#[derive(Debug, Default)]
pub(super) struct Activities {
    operations: Vec<Operation>,
    /// By provider and name.
    by_name: HashMap<Box<[u8]>, usize>,
    /// The provider and name, or the outcome and text, that were looked for last; kept for its memory.
    key: Vec<u8>,
    /// By index of the metadata record; `None` where there was no room for another operation.
    by_metadata: HashMap<u32, Option<usize>>,
    running: HashMap<(usize, [u8; 16]), usize>,
    /// Places of running activities, which are used again.
    places: Vec<Running>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct Operation {
    provider: String,
    name: String,
    layer: Layer,
    started: u64,
    failed: u64,
    times: Distribution,
    starts_over_time: Timeline,
    subjects: Ranking<Subject>,
}

#[derive(Debug, Default)]
struct Running {
    at: i64,
    thread: ThreadId,
    subject: String,
    /// An event said so.
    failed: bool,
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
    /// Who tells of it; not sanitised.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningActivity {
    /// Index into the operations.
    pub operation: usize,
    /// When it began, nanoseconds since the start of the session.
    pub since: i64,
    /// Where it began.
    pub thread: ThreadId,
    /// What it is about; not sanitised.
    pub subject: String,
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

impl Activities {
    fn operation(&mut self, known: &Known<'_>) -> Option<usize> {
        let metadata = known.event.metadata;
        if let Some(known) = self.by_metadata.get(&metadata.index) {
            return *known;
        }
        if known.kind == EventKind::ActivityFailure {
            let failed = http::failed_operation(&metadata.provider, &metadata.name)?;
            return self.known(&metadata.provider, failed.as_bytes());
        }
        if metadata.provider == diagnostic_source::PROVIDER {
            // One record serves many libraries.
            let source = diagnostic_source::source(known.event.values())?.as_bytes();
            let source = Utf16::new(&source[..source.len().min(2 * SUBJECT)]);
            return self.named(metadata, source.as_bytes(), || source.to_string());
        }
        let name = metadata.name.strip_suffix("Start").or_else(|| metadata.name.strip_suffix("Stop")).unwrap_or(&metadata.name);
        let index = self.named(metadata, name.as_bytes(), || name.to_owned());
        // As many records as a stream can have.
        self.by_metadata.insert(metadata.index, index);
        index
    }

    /// The operation of this name, where it is known.
    fn known(&mut self, provider: &str, name: &[u8]) -> Option<usize> {
        self.key.clear();
        self.key.extend_from_slice(provider.as_bytes());
        // In no text.
        self.key.push(0xff);
        self.key.extend_from_slice(name);
        self.by_name.get(&self.key[..]).copied()
    }

    /// The operation of this name, a new one where there is none yet; `None` where there is no room for it.
    fn named(&mut self, metadata: &Metadata, name: &[u8], words: impl FnOnce() -> String) -> Option<usize> {
        let known = self.known(&metadata.provider, name);
        if known.is_some() {
            return known;
        }
        let next = self.operations.len();
        if next >= OPERATIONS {
            return None;
        }
        self.by_name.insert(self.key[..].into(), next);
        let name = words();
        self.operations.push(Operation {
            provider: metadata.provider.clone(),
            layer: Layer::of(&metadata.provider, &name),
            name,
            started: 0,
            failed: 0,
            times: Distribution::default(),
            starts_over_time: Timeline::new(Merge::Sum),
            subjects: Ranking::new(SUBJECTS),
        });
        Some(next)
    }

    fn start(&mut self, known: &Known<'_>, operation: usize) {
        let begun = &mut self.operations[operation];
        begun.started += 1;
        begun.starts_over_time.add(known.at, 1.0);
        let id = known.event.activity_id();
        if id == [0; 16] {
            return;
        }
        if self.running.len() >= RUNNING {
            self.abandon();
        }
        let place = match self.running.get(&(operation, id)) {
            Some(place) => *place,
            None => {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.places.push(Running::default());
                    self.places.len() - 1
                });
                self.running.insert((operation, id), place);
                place
            }
        };
        let running = &mut self.places[place];
        (running.at, running.thread, running.failed) = (known.at, known.thread, false);
        running.subject.clear();
        let values = known.event.values();
        let layer = self.operations[operation].layer;
        match known.event.metadata.provider.as_str() {
            diagnostic_source::PROVIDER => diagnostic_source::add_subject(&mut running.subject, values, SUBJECT),
            _ if layer == Layer::Client && http::add_url(&mut running.subject, values.clone(), SUBJECT) => {}
            _ => add_texts(&mut running.subject, values, 0),
        }
    }

    fn stop(&mut self, known: &Known<'_>, operation: usize) {
        let Some(place) = self.running.remove(&(operation, known.event.activity_id())) else { return };
        let running = &self.places[place];
        let outcome = match self.operations[operation].layer {
            _ if running.failed => Outcome::Failed,
            Layer::Client | Layer::Server | Layer::Kestrel => Outcome::of_stop(known.event.values()),
            Layer::Part | Layer::Other => Outcome::Unknown,
        };
        let time_ns = u64::try_from(known.at.saturating_sub(running.at)).unwrap_or(0);
        let ended = &mut self.operations[operation];
        ended.times.add(time_ns);
        ended.failed += u64::from(ended.layer.is_failure(outcome));
        self.key.clear();
        self.key.extend(outcome.to_bytes());
        self.key.extend(running.subject.as_bytes());
        ended.subjects.row(&self.key).fold(Subject { count: 1, total_ns: time_ns, longest_ns: time_ns });
        self.free.push(place);
    }

    /// What goes on under this id fails.
    fn fail(&mut self, known: &Known<'_>, operation: usize) {
        if let Some(place) = self.running.get(&(operation, known.event.activity_id())) {
            self.places[*place].failed = true;
        }
    }

    /// Gives up the older half of what goes on: its end was lost, or never comes.
    fn abandon(&mut self) {
        let mut begins: Vec<i64> = self.running.values().map(|place| self.places[*place].at).collect();
        let half = begins.len() / 2;
        let middle = *begins.select_nth_unstable(half).1;
        let Self { running, places, free, .. } = self;
        running.retain(|_, place| {
            let stays = places[*place].at > middle;
            if !stays {
                free.push(*place);
            }
            stays
        });
    }
}

impl Operation {
    fn snapshot(&self, running: u64, view: &View<'_>) -> OperationSnapshot {
        let subject = |(key, subject): (&[u8], &Subject)| ActivitySubject {
            text: String::from_utf8_lossy(key.get(2..).unwrap_or_default()).into_owned(),
            outcome: key.first_chunk().map_or(Outcome::Unknown, |bytes| Outcome::from_bytes(*bytes)),
            count: subject.count,
            total_ns: subject.total_ns,
            longest_ns: subject.longest_ns,
        };
        OperationSnapshot {
            provider: self.provider.clone(),
            name: self.name.clone(),
            layer: self.layer,
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
        if let Some(operation) = self.operation(known) {
            match known.kind {
                EventKind::ActivityStart => self.start(known, operation),
                EventKind::ActivityStop => self.stop(known, operation),
                EventKind::ActivityFailure => self.fail(known, operation),
                _ => {}
            }
        }
        Some(())
    }

    fn snapshot(&self, view: &View<'_>) -> ActivitySnapshot {
        let mut running = vec![0; self.operations.len()];
        self.running.keys().for_each(|(operation, _)| running[*operation] += 1);
        let snapshot = |(operation, running): (&Operation, u64)| operation.snapshot(running, view);
        let operations: Vec<_> = self.operations.iter().zip(running).map(snapshot).collect();
        let going_on = |((operation, _), place): (&(usize, [u8; 16]), &usize)| {
            let Running { at, thread, ref subject, .. } = self.places[*place];
            RunningActivity { operation: *operation, since: at, thread, subject: subject.clone() }
        };
        let mut running: Vec<_> = self.running.iter().map(going_on).collect();
        running.sort_by(|a, b| (a.since, &a.subject, a.operation, a.thread).cmp(&(b.since, &b.subject, b.operation, b.thread)));
        running.truncate(TOP);
        ActivitySnapshot { operations, running }
    }
}

/// Appends the texts of a payload, with a space between: 200 bytes or so. The first call has a depth of 0.
pub fn add_texts(subject: &mut String, values: Values<'_>, depth: u32) {
    for (field, value) in values {
        if subject.len() >= SUBJECT || depth > 2 {
            return;
        }
        match value {
            Value::Text(text) if !text.is_empty() && !http::is_id(&field.name) => {
                if !subject.is_empty() {
                    subject.push(' ');
                }
                if field.name == "address" && http::add_address(subject, text) {
                    continue;
                }
                let room = SUBJECT.saturating_sub(subject.len());
                // What follows a path differs from request to request.
                subject.extend(text.chars().take_while(|c| *c != '?').take(room));
            }
            Value::Object(inner) => add_texts(subject, inner, depth + 1),
            Value::Array(elements) => {
                for element in elements {
                    if let Value::Object(inner) = element {
                        add_texts(subject, inner, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }
}
