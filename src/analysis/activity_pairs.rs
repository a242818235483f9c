//! Pairs the start and stop events of activities.
//!
//! Pairing uses the activity ID, which is present only if the session enables TplEventSource with keyword 0x80.

use foldhash::HashMap;

use crate::clr::{DIAGNOSTIC_SOURCE_PROVIDER, EventKind};
use crate::nettrace::{Event, Metadata, Value, Values};
use crate::wire::Utf16;

use super::RunningActivity;
use super::activity_path::enclosing;
use super::diagnostic_source::{self, RequestDetail};
use super::http::{self, Layer, Outcome};

/// Maximum number of distinct operations.
const OPERATIONS: usize = 128;
/// Maximum number of activities in progress.
const RUNNING: usize = 4096;
/// Maximum length of a subject, in bytes.
const MAX_SUBJECT_LENGTH: usize = 200;
/// Maximum length of the name of an operation, in characters: it is kept with each activity.
const MAX_NAME_LENGTH: usize = 200;
/// Maximum length of a request method, in characters.
const MAX_METHOD_LENGTH: usize = 20;
/// Length of a subject, in bytes, from which route values are ignored: their names make it longer, and an event can be repeated.
const MAX_ROUTE_LENGTH: usize = 1000;
/// Statuses below 500 with which Kestrel answers bad requests (KestrelBadHttpRequestException).
const BAD_REQUESTS: [u16; 7] = [400, 405, 408, 411, 413, 414, 431];

/// Pairs start and stop events.
#[derive(Debug, Default)]
pub struct ActivityPairs {
    operations: Vec<Operation>,
    /// Index by provider and name.
    by_name: HashMap<Box<[u8]>, usize>,
    /// Provider and name of the latest lookup; a reused buffer.
    key: Vec<u8>,
    /// Latest route values; a reused buffer.
    route_values: String,
    /// By index of the metadata record; `None` if there was no room for another operation.
    by_metadata: HashMap<u32, Option<usize>>,
    running: HashMap<(usize, [u8; 16]), usize>,
    /// Slots of activities, reused after they end.
    places: Vec<RunningActivity>,
    free: Vec<usize>,
}

/// A kind of activity.
#[derive(Debug)]
pub struct Operation {
    /// Event source; not sanitized.
    pub provider: String,
    /// Operation name; not sanitized.
    pub name: String,
    /// Role in the processing of an HTTP request.
    pub layer: Layer,
}

/// A start or an end of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityStep {
    /// The activity started.
    Began {
        /// Operation number.
        operation: usize,
        /// Slot of the activity until it ends; `None` if it has no ID by which its end could be found. Slots are reused, even without an end:
        /// if too many activities are in progress, the oldest are abandoned.
        place: Option<usize>,
    },
    /// The activity ended.
    Ended {
        /// Operation number.
        operation: usize,
        /// Slot of the activity; valid until the next event.
        place: usize,
        /// Outcome.
        outcome: Outcome,
    },
}

impl ActivityPairs {
    /// Processes an event of kind `ActivityStart`, `ActivityStop`, `ActivityFailure` or `ActivityDetail`; ignores all others.
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
                let place = self.place_around(operation, event)?;
                let ended = &mut self.places[place].outcome;
                // Kestrel sets the status of a request that ends with an unhandled exception before ASP.NET Core reports the exception, and
                // the status arrives first: if no response has started, it is 500, or the status of a BadHttpRequestException, which is a
                // client error (HttpProtocol.ProcessRequests, HostingApplicationDiagnostics.RequestEnd). Any other status is that of a
                // response that had already started.
                if !matches!(*ended, Outcome::Status(status) if status >= 500 || BAD_REQUESTS.contains(&status)) {
                    *ended = Outcome::Failed;
                }
                None
            }
            _ => None,
        }
    }

    /// Returns the number of operations.
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    /// Returns the operation with this number.
    pub fn operation(&self, number: usize) -> &Operation {
        &self.operations[number]
    }

    /// Returns the activity in this slot.
    pub fn activity(&self, place: usize) -> &RunningActivity {
        &self.places[place]
    }

    /// Returns the activities in progress, with their slots.
    pub fn running(&self) -> impl Iterator<Item = (usize, &RunningActivity)> {
        self.running.values().map(|place| (*place, &self.places[*place]))
    }

    /// Applies an event within a request: method, status, and route in place of the path.
    fn detail(&mut self, event: &Event<'_>) -> Option<()> {
        let (layer, RequestDetail { method, route_values, outcome }) = RequestDetail::read(event.values())?;
        let (provider, name) = layer.request()?;
        let operation = self.find_operation(provider, name.as_bytes())?;
        let place = self.place_around(operation, event)?;
        let activity = &mut self.places[place];
        if activity.outcome == Outcome::Unknown {
            activity.outcome = outcome;
        }
        // A redirected request is sent again.
        if let Some(method) = method.filter(|_| !activity.has_method) {
            activity.has_method = true;
            activity.subject.insert(0, ' ');
            method.chars().filter(char::is_ascii).take(MAX_METHOD_LENGTH).enumerate().for_each(|(at, c)| activity.subject.insert(at, c));
        }
        if let Some(values) = route_values.filter(|_| activity.subject.len() < MAX_ROUTE_LENGTH) {
            values.copy_prefix(&mut self.route_values, MAX_SUBJECT_LENGTH);
            if activity.original.is_empty() {
                activity.original.clone_from(&activity.subject);
            }
            http::add_route(&mut activity.subject, &self.route_values);
            // Beyond the route values that were kept, path segments may still be identifiers.
            activity.has_route = values.chars().nth(MAX_SUBJECT_LENGTH).is_none();
        }
        Some(())
    }

    /// Returns the slot of the activity with the ID of an event; if there is none, of the innermost one around it: log scopes are activities, too.
    fn place_around(&self, operation: usize, event: &Event<'_>) -> Option<usize> {
        let id = event.activity_id();
        std::iter::once(id).chain(enclosing(id)).find_map(|id| self.running.get(&(operation, id)).copied())
    }

    fn operation_of(&mut self, kind: EventKind, event: &Event<'_>) -> Option<usize> {
        let metadata = event.metadata;
        if let Some(operation) = self.by_metadata.get(&metadata.index) {
            return *operation;
        }
        if kind == EventKind::ActivityFailure {
            let failed = http::failed_operation(&metadata.provider, &metadata.name)?;
            return self.find_operation(&metadata.provider, failed.as_bytes());
        }
        if metadata.provider == DIAGNOSTIC_SOURCE_PROVIDER {
            // One metadata record is shared by many libraries.
            let source = diagnostic_source::source(event.values())?.as_bytes();
            let source = Utf16::new(&source[..source.len().min(2 * MAX_SUBJECT_LENGTH)]);
            return self.find_or_add_operation(metadata, source.as_bytes(), || source.to_string());
        }
        let name = metadata.name.strip_suffix("Start").or_else(|| metadata.name.strip_suffix("Stop")).unwrap_or(&metadata.name);
        let index = self.find_or_add_operation(metadata, name.as_bytes(), || name.chars().take(MAX_NAME_LENGTH).collect());
        // Bounded by the number of metadata records in a stream.
        self.by_metadata.insert(metadata.index, index);
        index
    }

    /// Returns the operation with this name, if there is one.
    fn find_operation(&mut self, provider: &str, name: &[u8]) -> Option<usize> {
        self.key.clear();
        self.key.extend_from_slice(provider.as_bytes());
        // Never occurs in UTF-8 text.
        self.key.push(0xff);
        self.key.extend_from_slice(name);
        self.by_name.get(&self.key[..]).copied()
    }

    /// Returns the operation with this name, creating it if needed; `None` if there is no room.
    fn find_or_add_operation(&mut self, metadata: &Metadata, name: &[u8], make_name: impl FnOnce() -> String) -> Option<usize> {
        let known = self.find_operation(&metadata.provider, name);
        if known.is_some() {
            return known;
        }
        let next = self.operations.len();
        if next >= OPERATIONS {
            return None;
        }
        self.by_name.insert(self.key[..].into(), next);
        let name = make_name();
        self.operations.push(Operation { provider: metadata.provider.clone(), layer: Layer::of(&metadata.provider, &name), name });
        Some(next)
    }

    /// Returns the slot of the started activity; `None` if it has no ID.
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
        running.original.clear();
        let values = event.values();
        let layer = self.operations[operation].layer;
        match event.metadata.provider.as_str() {
            DIAGNOSTIC_SOURCE_PROVIDER => diagnostic_source::add_subject(&mut running.subject, values, MAX_SUBJECT_LENGTH),
            _ if layer == Layer::Client && http::add_url(&mut running.subject, values.clone(), MAX_SUBJECT_LENGTH) => {}
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
            (Outcome::Unknown, Layer::Client | Layer::Server | Layer::Kestrel) => Outcome::from_stop_event(event.values()),
            (outcome, _) => outcome,
        };
        self.free.push(place);
        Some(ActivityStep::Ended { operation, place, outcome })
    }

    /// Abandons the older half of the activities in progress: their end was lost or will not happen.
    fn abandon(&mut self) {
        let mut begins: Vec<i64> = self.running.values().map(|place| self.places[*place].since).collect();
        let half = begins.len() / 2;
        let middle = *begins.select_nth_unstable(half).1;
        let Self { running, places, free, .. } = self;
        running.retain(|_, place| {
            let is_kept = places[*place].since > middle;
            if !is_kept {
                free.push(*place);
            }
            is_kept
        });
    }
}

/// Truncates the path of a request that was cut off to its last complete segment: a partial identifier cannot be recognized as one.
fn end_at_segment(subject: &mut String) {
    if subject.chars().count() >= MAX_SUBJECT_LENGTH
        && let Some(at) = subject.rfind('/')
    {
        subject.truncate(at + 1);
        subject.push('…');
    }
}

/// Appends the texts of a payload, separated by spaces, up to about 200 bytes. `depth` is 0 in the outermost call.
fn add_texts(subject: &mut String, values: Values<'_>, depth: u32) {
    for (field, value) in values {
        if subject.len() >= MAX_SUBJECT_LENGTH || depth > 2 {
            return;
        }
        match value {
            Value::Text(text) if !text.is_empty() && !http::IDS.contains(&field.name.as_str()) => {
                if !subject.is_empty() {
                    subject.push(' ');
                }
                if field.name == "address" && http::add_address(subject, text) {
                    continue;
                }
                let room = MAX_SUBJECT_LENGTH.saturating_sub(subject.len());
                // The query string differs from request to request.
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
