//! The latest individual events, with their payloads.
//!
//! Only events that pass a filter are kept, up to a maximum rate: an event that does not pass costs only a lookup of its kind. If the runtime samples
//! its threads, the thousands of suspensions per second that this takes would leave no room for other events: they are kept only on request.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::clr::{SAMPLE_PROFILER, events};
use crate::nettrace::{ByMetadata, Event, Metadata, ThreadId};
use crate::sorting::CompactSort;

use super::event_context::Frames;
use super::event_count::is_suspension;
use super::{Described, LiveEventFilter, Occurrence, Symbols, describe};

/// Maximum number of events kept.
const MAX_EVENTS: usize = 500;
/// Maximum number of events kept per second, and in a burst.
const RATE: i64 = 250;
const BURST: i64 = 250;
/// The same in nanoseconds: per event, and for a full burst.
const STEP: i64 = 1_000_000_000 / RATE;
const SLACK: i64 = STEP * BURST;
/// Maximum number of frames kept per stack.
const FRAMES: usize = 64;
/// Maximum length of a provider or an event name, in characters: an event has both.
const NAME: usize = 200;

/// Keeps the latest individual events.
#[derive(Debug, Default)]
pub(super) struct Recent {
    filter: LiveEventFilter,
    /// Kind of event by metadata index, with whether it passes the filter.
    kinds: ByMetadata<(Arc<EventName>, bool)>,
    /// Whether the runtime samples its threads.
    is_sampled: bool,
    ring: VecDeque<Kept>,
    /// Time until which the rate is exhausted by the events kept so far.
    filled: i64,
    seen: u64,
    skipped: u64,
}

#[derive(Debug)]
struct Kept {
    event: Arc<SingleEvent>,
    frames: Frames,
    /// Frame names, and the number of known method bodies when they were resolved.
    stack: Option<(usize, Arc<[String]>)>,
}

/// Kind of an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EventName {
    /// Provider; not sanitized.
    pub provider: String,
    /// Event ID.
    pub event_id: u32,
    /// Event name; empty if unknown. Not sanitized.
    pub name: String,
}

/// A single event.
#[derive(Debug, PartialEq)]
pub struct SingleEvent {
    /// Sequence number among all events that passed the filter.
    pub number: u64,
    /// Time, in nanoseconds since the start of the session.
    pub at: i64,
    /// Thread of the event.
    pub thread: ThreadId,
    /// Kind of the event.
    pub kind: Arc<EventName>,
    /// Fields formatted as text.
    pub payload: Described,
    /// Payload size in bytes.
    pub bytes: usize,
    /// Activity ID; `None` if there is none.
    pub activity: Option<[u8; 16]>,
}

impl SingleEvent {
    /// Returns the event name, or the ID if it has no name; not sanitized.
    pub fn title(&self) -> String {
        if self.kind.name.is_empty() { format!("event {}", self.kind.event_id) } else { self.kind.name.clone() }
    }
}

/// The latest individual events.
#[derive(Debug, Clone, Default)]
pub struct RecentSnapshot {
    /// Events with the methods of their stacks (leaf first), latest first; at most 500.
    pub events: Vec<(Arc<SingleEvent>, Arc<[String]>)>,
    /// Number of events that passed the filter since it was set.
    pub seen: u64,
    /// Number of these that were skipped because of the maximum rate.
    pub skipped: u64,
}

/// Returns whether events of a kind are left out because sampling causes them.
fn is_left_out(filter: &LiveEventFilter, is_sampled: bool, kind: &EventName) -> bool {
    is_sampled && !filter.has_required_words() && is_suspension(&kind.provider, kind.event_id)
}

/// Returns whether events of a kind have to be examined, as events with names in their payloads always do.
fn passes_kind(filter: &LiveEventFilter, is_sampled: bool, kind: &EventName) -> bool {
    let may_pass = events::is_dynamic(&kind.provider, kind.event_id) || filter.passes(&kind.provider, &kind.name);
    may_pass && !is_left_out(filter, is_sampled, kind)
}

impl Recent {
    pub(super) fn new() -> Self {
        Self { filled: i64::MIN, ..Self::default() }
    }

    pub(super) fn set_filter(&mut self, filter: LiveEventFilter) {
        if filter == self.filter {
            return;
        }
        self.filter = filter;
        self.apply_filter();
        (self.seen, self.skipped, self.filled) = (self.ring.len() as u64, 0, i64::MIN);
    }

    /// Applies the filter to the known kinds and the kept events.
    fn apply_filter(&mut self) {
        let (filter, is_sampled) = (&self.filter, self.is_sampled);
        for (kind, passes) in self.kinds.iter_mut() {
            *passes = passes_kind(filter, is_sampled, kind);
        }
        self.ring.retain(|kept| {
            let kind = &kept.event.kind;
            filter.passes(&kind.provider, &kind.name) && !is_left_out(filter, is_sampled, kind)
        });
    }

    pub(super) fn metadata(&mut self, metadata: &Metadata) {
        let Metadata { provider, event_id, name, .. } = metadata;
        if !self.is_sampled && provider == SAMPLE_PROFILER {
            self.is_sampled = true;
            self.apply_filter();
        }
        let name = if name.is_empty() { events::name(provider, *event_id).unwrap_or_default() } else { name };
        let short = |name: &str| name.chars().take(NAME).collect();
        let kind = EventName { provider: short(provider), event_id: *event_id, name: short(name) };
        let passes = passes_kind(&self.filter, self.is_sampled, &kind);
        self.kinds.push((Arc::new(kind), passes));
    }

    #[inline]
    pub(super) fn event(&mut self, at: i64, event: &Event<'_>, pointer_size: u8) {
        if self.kinds.get(event.metadata).is_some_and(|(_, passes)| *passes) {
            self.take(at, event, pointer_size);
        }
    }

    fn take(&mut self, at: i64, event: &Event<'_>, pointer_size: u8) {
        let Some((kind, _)) = self.kinds.get(event.metadata) else { return };
        let mut kind = kind.clone();
        if events::is_dynamic(&kind.provider, kind.event_id) {
            if let Some(name) = events::dynamic_name(event.payload) {
                let name = events::dynamic_title(name).chars().take(NAME).collect();
                kind = Arc::new(EventName { provider: kind.provider.clone(), event_id: kind.event_id, name });
            }
            if !self.filter.passes(&kind.provider, &kind.name) {
                return;
            }
        }
        self.seen += 1;
        let ahead = self.filled.saturating_sub(at);
        // A large step back of the clock is treated as a reset.
        if (SLACK..2 * SLACK).contains(&ahead) {
            self.skipped += 1;
            return;
        }
        self.filled = if ahead >= 2 * SLACK { at } else { self.filled.max(at) }.saturating_add(STEP);
        let single = SingleEvent {
            number: self.seen,
            at,
            thread: event.thread(),
            kind,
            payload: describe(event, pointer_size),
            bytes: event.payload.len(),
            activity: Some(event.activity_id()).filter(|activity| *activity != [0; 16]),
        };
        // Reuse the buffer of the oldest event.
        let mut frames = if self.ring.len() >= MAX_EVENTS {
            self.ring.pop_front().map(|kept| kept.frames).unwrap_or_default()
        } else {
            Frames::default()
        };
        frames.set(event.stack(), FRAMES);
        self.ring.push_back(Kept { event: Arc::new(single), frames, stack: None });
    }

    /// Returns the events after the first `seen` that passed the filter, without their stacks unless there are `symbols`, each with its number.
    pub(super) fn after(&self, seen: u64, symbols: Option<&Symbols>) -> impl Iterator<Item = (u64, Option<Occurrence>)> {
        let new = self.ring.iter().filter(move |kept| kept.event.number > seen);
        new.map(move |kept| {
            let frames = symbols.map_or_else(Vec::new, |symbols| kept.frames.resolve(symbols).collect());
            (kept.event.number, Some(Occurrence::Event(Arc::clone(&kept.event), frames)))
        })
    }

    pub(super) fn snapshot(&mut self, symbols: &Symbols) -> RecentSnapshot {
        let bodies = symbols.bodies();
        let line = |kept: &mut Kept| {
            let stack = match &kept.stack {
                Some((known, stack)) if *known == bodies || *known == usize::MAX => stack.clone(),
                _ => kept.frames.resolve(symbols).collect(),
            };
            // A fully resolved stack does not change any more.
            let known = if stack.iter().any(|name| name.starts_with("0x")) { bodies } else { usize::MAX };
            kept.stack = Some((known, stack.clone()));
            (kept.event.clone(), stack)
        };
        let mut events: Vec<_> = self.ring.iter_mut().rev().map(line).collect();
        // Threads write separate blocks, so later events in the stream can be earlier in time.
        events.compact_sort_by_key(|(event, _)| std::cmp::Reverse(event.at));
        RecentSnapshot { events, seen: self.seen, skipped: self.skipped }
    }
}
