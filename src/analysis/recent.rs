//! The latest single events, with what is in them.
//!
//! Only events that a filter lets through are kept, and of these no more than some a second: an event that is not kept costs a look at its kind.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::clr::events;
use crate::nettrace::{Event, Metadata, ThreadId};
use crate::sorting::CompactSort;

use super::Symbols;
use super::event_text::{Described, describe};
use super::filter::EventFilter;

/// How many are kept.
const KEPT: usize = 500;
/// How many are kept of a second, and how many of them may come at once.
const RATE: i64 = 250;
const BURST: i64 = 250;
/// Nanoseconds for each of them, and for so many at once.
const STEP: i64 = 1_000_000_000 / RATE;
const SLACK: i64 = STEP * BURST;
/// Frames of a stack that are kept.
const FRAMES: usize = 64;
/// Characters of a name that is in a payload.
const NAME: usize = 100;

/// Keeps the latest single events.
#[derive(Debug, Default)]
pub(super) struct Recent {
    filter: EventFilter,
    /// By metadata index, and whether the filter lets it through.
    kinds: Vec<(Arc<EventName>, bool)>,
    ring: VecDeque<Kept>,
    /// The moment until which what was kept fills the rate.
    filled: i64,
    seen: u64,
    skipped: u64,
    pointer_size: u8,
}

#[derive(Debug)]
struct Kept {
    event: Arc<SingleEvent>,
    frames: Vec<u64>,
    /// The names of the frames, and how many method bodies were known then.
    stack: Option<(usize, Arc<[String]>)>,
}

/// What kind of event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EventName {
    /// Who writes it; not sanitised.
    pub provider: String,
    /// Its number.
    pub event_id: u32,
    /// Its name; empty where it is not known. Not sanitised.
    pub name: String,
}

/// One event.
#[derive(Debug, PartialEq)]
pub struct SingleEvent {
    /// Its place among all that passed the filter.
    pub number: u64,
    /// When it happened, nanoseconds since the start of the session.
    pub at: i64,
    /// Whose event it is.
    pub thread: ThreadId,
    /// What kind of event.
    pub kind: Arc<EventName>,
    /// Its fields in words.
    pub payload: Described,
    /// Bytes of its payload.
    pub bytes: usize,
    /// The activity that it is part of; `None` where there is none.
    pub activity: Option<[u8; 16]>,
}

impl SingleEvent {
    /// Its name, or its number where it has none; not sanitised.
    pub fn title(&self) -> String {
        if self.kind.name.is_empty() { format!("event {}", self.kind.event_id) } else { self.kind.name.clone() }
    }
}

/// The latest single events.
#[derive(Debug, Clone, Default)]
pub struct RecentSnapshot {
    /// Events with the methods of their stacks, leaf first: the latest first, no more than 500.
    pub events: Vec<(Arc<SingleEvent>, Arc<[String]>)>,
    /// How many passed the filter since it was set.
    pub seen: u64,
    /// How many of these came too fast to be kept.
    pub skipped: u64,
}

/// Whether events of a kind are looked at: those whose names are in their payloads have to be.
fn passes_kind(filter: &EventFilter, kind: &EventName) -> bool {
    events::is_dynamic(&kind.provider, kind.event_id) || filter.passes(&kind.provider, &kind.name)
}

impl Recent {
    pub(super) fn new(pointer_size: u8) -> Self {
        let mut recent = Self { filled: i64::MIN, pointer_size, ..Self::default() };
        // The record of events whose kind was never reported.
        recent.kinds.push((Arc::default(), false));
        recent
    }

    pub(super) fn set_pointer_size(&mut self, size: u8) {
        self.pointer_size = size;
    }

    pub(super) fn set_filter(&mut self, filter: EventFilter) {
        if filter == self.filter {
            return;
        }
        self.filter = filter;
        for (kind, passes) in self.kinds.iter_mut().skip(1) {
            *passes = passes_kind(&self.filter, kind);
        }
        self.ring.retain(|kept| self.filter.passes(&kept.event.kind.provider, &kept.event.kind.name));
        (self.seen, self.skipped, self.filled) = (self.ring.len() as u64, 0, i64::MIN);
    }

    pub(super) fn metadata(&mut self, metadata: &Metadata) {
        let Metadata { provider, event_id, name, .. } = metadata;
        let name = if name.is_empty() { events::name(provider, *event_id).unwrap_or_default() } else { name };
        let kind = EventName { provider: provider.clone(), event_id: *event_id, name: name.to_owned() };
        let passes = passes_kind(&self.filter, &kind);
        self.kinds.push((Arc::new(kind), passes));
    }

    #[inline]
    pub(super) fn event(&mut self, at: i64, event: &Event<'_>) {
        if self.kinds.get(event.metadata.index as usize).is_some_and(|(_, passes)| *passes) {
            self.take(at, event);
        }
    }

    fn take(&mut self, at: i64, event: &Event<'_>) {
        let Some((kind, _)) = self.kinds.get(event.metadata.index as usize) else { return };
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
        // A clock that went back by far is a reset.
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
            payload: describe(event, self.pointer_size),
            bytes: event.payload.len(),
            activity: Some(event.activity_id()).filter(|activity| *activity != [0; 16]),
        };
        // The oldest one's memory is used again.
        let mut frames =
            if self.ring.len() >= KEPT { self.ring.pop_front().map(|kept| kept.frames).unwrap_or_default() } else { Vec::new() };
        frames.clear();
        if let Some(stack) = event.stack() {
            frames.extend(stack.frames().take(FRAMES));
        }
        self.ring.push_back(Kept { event: Arc::new(single), frames, stack: None });
    }

    pub(super) fn snapshot(&mut self, symbols: &Symbols) -> RecentSnapshot {
        let bodies = symbols.bodies();
        let line = |kept: &mut Kept| {
            let stack = match &kept.stack {
                Some((known, stack)) if *known == bodies || *known == usize::MAX => stack.clone(),
                _ => symbols.frame_names(&kept.frames).collect(),
            };
            // A stack whose methods are all known stays what it is.
            let known = if stack.iter().any(|name| name.starts_with("0x")) { bodies } else { usize::MAX };
            kept.stack = Some((known, stack.clone()));
            (kept.event.clone(), stack)
        };
        let mut events: Vec<_> = self.ring.iter_mut().rev().map(line).collect();
        // Threads write blocks of their own, so that what came later can be earlier.
        events.compact_sort_by_key(|(event, _)| std::cmp::Reverse(event.at));
        RecentSnapshot { events, seen: self.seen, skipped: self.skipped }
    }
}
