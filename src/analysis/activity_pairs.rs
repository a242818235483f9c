//! The starts and stops of activities, paired.
//!
//! They are paired by their activity id, which there is only where the session has TplEventSource with keyword 0x80.

use foldhash::HashMap;

use crate::clr::EventKind;
use crate::nettrace::{Event, Metadata, Value, Values};
use crate::wire::Utf16;

use super::RunningActivity;
use super::diagnostic_source::{self, RequestDetail};
use super::http::{self, Layer, Outcome};

/// Kinds of activity that are distinguished.
const OPERATIONS: usize = 128;
/// Activities that are in progress at the same time.
const RUNNING: usize = 4096;
/// Bytes of a subject that are kept.
const SUBJECT: usize = 200;
/// Characters of a request's method that are kept.
const METHOD: usize = 20;
/// Below 500, the statuses that Kestrel answers bad requests with (KestrelBadHttpRequestException).
const BAD_REQUESTS: [u16; 7] = [400, 405, 408, 411, 413, 414, 431];

/// Pairs starts and stops.
#[derive(Debug, Default)]
pub struct ActivityPairs {
    operations: Vec<Operation>,
    /// By provider and name.
    by_name: HashMap<Box<[u8]>, usize>,
    /// The provider and name that were looked for last; kept for its memory.
    key: Vec<u8>,
    /// The route values that came last; kept for its memory.
    route_values: String,
    /// By index of the metadata record; `None` where there was no room for another operation.
    by_metadata: HashMap<u32, Option<usize>>,
    running: HashMap<(usize, [u8; 16]), usize>,
    /// Places of running activities, which are used again.
    places: Vec<RunningActivity>,
    free: Vec<usize>,
}

/// A kind of activity.
#[derive(Debug)]
pub struct Operation {
    /// The event source; not sanitised.
    pub provider: String,
    /// What it is; not sanitised.
    pub name: String,
    /// What it is to an HTTP request.
    pub layer: Layer,
}

/// What an event has of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityStep {
    /// It began.
    Began {
        /// The number of its operation.
        operation: usize,
        /// Where it is kept until it ends; `None` where it has no id by which its end would be found. A place is used again, also without an end:
        /// the oldest activities are given up where too many continue.
        place: Option<usize>,
    },
    /// It ended.
    Ended {
        /// The number of its operation.
        operation: usize,
        /// Where it is kept until the next event.
        place: usize,
        /// How.
        outcome: Outcome,
    },
}

impl ActivityPairs {
    /// Takes an event of the kinds `ActivityStart`, `ActivityStop`, `ActivityFailure` and `ActivityDetail`; does nothing with others.
    pub fn feed(&mut self, kind: EventKind, event: &Event<'_>, at: i64) -> Option<ActivityStep> {
        if kind == EventKind::ActivityDetail {
            self.detail(event);
            return None;
        }
        let operation = self.operation_of(kind, event)?;
        match kind {
            EventKind::ActivityStart => Some(ActivityStep::Began { operation, place: self.start(event, at, operation) }),
            EventKind::ActivityStop => self.stop(event, operation),
            EventKind::ActivityFailure => {
                let ended = &mut self.places[*self.running.get(&(operation, event.activity_id()))?].outcome;
                // Kestrel sets the status of a request that ends with an unhandled exception before ASP.NET Core reports the exception, first with the
                // status: where no response has started 500, or that of a BadHttpRequestException, which is the client's fault
                // (HttpProtocol.ProcessRequests, HostingApplicationDiagnostics.RequestEnd). Any other is that of a response that had begun.
                if !matches!(*ended, Outcome::Status(status) if status >= 500 || BAD_REQUESTS.contains(&status)) {
                    *ended = Outcome::Failed;
                }
                None
            }
            _ => None,
        }
    }

    /// How many operations there are.
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    /// An operation by its number.
    pub fn operation(&self, number: usize) -> &Operation {
        &self.operations[number]
    }

    /// The activity at a place.
    pub fn activity(&self, place: usize) -> &RunningActivity {
        &self.places[place]
    }

    /// Activities in progress, with their places.
    pub fn running(&self) -> impl Iterator<Item = (usize, &RunningActivity)> {
        self.running.values().map(|place| (*place, &self.places[*place]))
    }

    /// What an event in a request has of it: the method, the status, and the route instead of the path.
    fn detail(&mut self, event: &Event<'_>) -> Option<()> {
        let (layer, RequestDetail { method, route_values, outcome }) = RequestDetail::read(event.values())?;
        let (provider, name) = layer.request()?;
        let operation = self.known(provider, name.as_bytes())?;
        let activity = &mut self.places[*self.running.get(&(operation, event.activity_id()))?];
        if activity.outcome == Outcome::Unknown {
            activity.outcome = outcome;
        }
        // A request that is redirected is sent again.
        if let Some(method) = method.filter(|_| !activity.has_method) {
            activity.has_method = true;
            activity.subject.insert(0, ' ');
            method.chars().filter(char::is_ascii).take(METHOD).enumerate().for_each(|(at, c)| activity.subject.insert(at, c));
        }
        if let Some(values) = route_values {
            values.copy_start(&mut self.route_values, SUBJECT);
            http::add_route(&mut activity.subject, &self.route_values);
            // Behind the values that are kept, segments of the path may be identifiers still.
            activity.has_route = values.chars().nth(SUBJECT).is_none();
        }
        Some(())
    }

    fn operation_of(&mut self, kind: EventKind, event: &Event<'_>) -> Option<usize> {
        let metadata = event.metadata;
        if let Some(known) = self.by_metadata.get(&metadata.index) {
            return *known;
        }
        if kind == EventKind::ActivityFailure {
            let failed = http::failed_operation(&metadata.provider, &metadata.name)?;
            return self.known(&metadata.provider, failed.as_bytes());
        }
        if metadata.provider == diagnostic_source::PROVIDER {
            // One record serves many libraries.
            let source = diagnostic_source::source(event.values())?.as_bytes();
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
        self.operations.push(Operation { provider: metadata.provider.clone(), layer: Layer::of(&metadata.provider, &name), name });
        Some(next)
    }

    /// Where the activity that begins is kept; `None` where it has no id.
    fn start(&mut self, event: &Event<'_>, at: i64, operation: usize) -> Option<usize> {
        let id = event.activity_id();
        if id == [0; 16] {
            return None;
        }
        if self.running.len() >= RUNNING {
            self.abandon();
        }
        let place = match self.running.get(&(operation, id)) {
            Some(place) => *place,
            None => {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.places.push(RunningActivity::default());
                    self.places.len() - 1
                });
                self.running.insert((operation, id), place);
                place
            }
        };
        let running = &mut self.places[place];
        (running.operation, running.since, running.thread) = (operation, at, event.thread());
        (running.outcome, running.has_method, running.has_route) = (Outcome::Unknown, false, false);
        running.subject.clear();
        let values = event.values();
        let layer = self.operations[operation].layer;
        match event.metadata.provider.as_str() {
            diagnostic_source::PROVIDER => diagnostic_source::add_subject(&mut running.subject, values, SUBJECT),
            _ if layer == Layer::Client && http::add_url(&mut running.subject, values.clone(), SUBJECT) => {}
            _ => add_texts(&mut running.subject, values, 0),
        }
        if matches!(layer, Layer::Client | Layer::Server | Layer::Kestrel) {
            end_at_segment(&mut running.subject);
        }
        Some(place)
    }

    fn stop(&mut self, event: &Event<'_>, operation: usize) -> Option<ActivityStep> {
        let place = self.running.remove(&(operation, event.activity_id()))?;
        let outcome = match (self.places[place].outcome, self.operations[operation].layer) {
            (Outcome::Unknown, Layer::Client | Layer::Server | Layer::Kestrel) => Outcome::of_stop(event.values()),
            (outcome, _) => outcome,
        };
        self.free.push(place);
        Some(ActivityStep::Ended { operation, place, outcome })
    }

    /// Gives up the older half of what is in progress: its end was lost, or never comes.
    fn abandon(&mut self) {
        let mut begins: Vec<i64> = self.running.values().map(|place| self.places[*place].since).collect();
        let half = begins.len() / 2;
        let middle = *begins.select_nth_unstable(half).1;
        let Self { running, places, free, .. } = self;
        running.retain(|_, place| {
            let stays = places[*place].since > middle;
            if !stays {
                free.push(*place);
            }
            stays
        });
    }
}

/// Ends the path of a request that was cut off behind its last whole segment: a part of an identifier is not known to be one.
fn end_at_segment(subject: &mut String) {
    if subject.chars().count() >= SUBJECT
        && let Some(at) = subject.rfind('/')
    {
        subject.truncate(at + 1);
        subject.push('…');
    }
}

/// Appends the texts of a payload, with a space between: 200 bytes or so. The first call has a depth of 0.
fn add_texts(subject: &mut String, values: Values<'_>, depth: u32) {
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
