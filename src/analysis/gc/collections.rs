//! Collections one by one.

use std::collections::{BTreeMap, VecDeque};

use foldhash::HashMap;

use crate::clr::payload::{GcEnd, GcReason, GcStart, GcType};
use crate::nettrace::ThreadId;
use crate::sorting::CompactSort;

use super::suspensions::Pause;
use super::{Heap, RECENT};

/// Collections that are in progress at the same time: a background one and one in front of it.
const OPEN: usize = 64;
/// Combinations of generation, reason and type that are distinguished: real ones are fewer.
const CAUSES: usize = 256;

/// Pairs starts and ends of collections by their number.
///
/// A background collection ends after others that began later, and with the server's collector start and end are reported by different threads, so that
/// the end can stand before the start in the stream.
#[derive(Debug, Default)]
pub(super) struct Collections {
    by_generation: [u64; 3],
    induced: u64,
    causes: BTreeMap<(u32, GcReason, GcType), u64>,
    begun: HashMap<u32, (i64, GcStart)>,
    ended: HashMap<u32, Ended>,
    /// The collection whose end each thread reported last: sizes of the heap follow it.
    last_ended: HashMap<ThreadId, u32>,
    /// Sizes before a collection that the thread has not reported the end of, all heaps together.
    before: HashMap<ThreadId, u64>,
    recent: VecDeque<Collection>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Ended {
    end: i64,
    heap_before: Option<u64>,
    heap_after: Option<u64>,
    promoted: Option<u64>,
}

/// A collection that ended. Moments are nanoseconds since the start of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collection {
    /// Its number in the life of the process.
    pub number: u32,
    /// The oldest generation that it collected.
    pub generation: u32,
    /// Why.
    pub reason: GcReason,
    /// How.
    pub kind: GcType,
    /// When it began.
    pub start: i64,
    /// When it ended.
    pub end: i64,
    /// How long the program stood for it; `None` where that was not seen. A pause counts for one collection only.
    pub pause_ns: Option<u64>,
    /// Size of the heap before it, bytes.
    pub heap_before: Option<u64>,
    /// Size of the heap after it, bytes.
    pub heap_after: Option<u64>,
    /// What survived it, bytes.
    pub promoted: Option<u64>,
}

/// How many collections were alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectionCount {
    /// The oldest generation that they collected.
    pub generation: u32,
    /// Why.
    pub reason: GcReason,
    /// How.
    pub kind: GcType,
    /// How many.
    pub count: u64,
}

impl Collections {
    pub(super) fn start(&mut self, at: i64, start: GcStart) {
        self.by_generation[start.generation.min(2) as usize] += 1;
        self.induced += u64::from(start.reason.is_induced());
        let cause = (start.generation, start.reason, start.kind);
        if self.causes.len() < CAUSES || self.causes.contains_key(&cause) {
            *self.causes.entry(cause).or_default() += 1;
        }
        match self.ended.remove(&start.number) {
            Some(ended) => self.close(at, start, ended),
            None => {
                // Where the end of one before was lost: only a background collection is in progress when another begins.
                self.begun.retain(|number, (_, begun)| {
                    *number > start.number || (begun.kind == GcType::BACKGROUND && start.kind != GcType::BACKGROUND)
                });
                forget(&mut self.begun, start.number);
                self.begun.insert(start.number, (at, start));
            }
        }
    }

    pub(super) fn end(&mut self, at: i64, thread: ThreadId, end: GcEnd) {
        if self.last_ended.len() >= OPEN && !self.last_ended.contains_key(&thread) {
            self.last_ended.clear();
        }
        self.last_ended.insert(thread, end.number);
        let ended = Ended { end: at, heap_before: self.before.remove(&thread), ..Ended::default() };
        match self.begun.remove(&end.number) {
            Some((begin, start)) => self.close(begin, start, ended),
            None => {
                forget(&mut self.ended, end.number);
                self.ended.insert(end.number, ended);
            }
        }
    }

    /// Size of one heap before a collection, which the thread that reports its end reports.
    pub(super) fn before(&mut self, thread: ThreadId, bytes: u64) {
        if self.before.len() >= OPEN && !self.before.contains_key(&thread) {
            self.before.clear();
        }
        let all = self.before.entry(thread).or_default();
        *all = all.saturating_add(bytes);
    }

    /// Sizes of the heap, which follow the end of a collection on the same thread.
    pub(super) fn heap(&mut self, thread: ThreadId, heap: &Heap) {
        let Some(number) = self.last_ended.remove(&thread) else { return };
        let (size, promoted) = (Some(heap.size()), Some(heap.promoted));
        if let Some(ended) = self.ended.get_mut(&number) {
            (ended.heap_after, ended.promoted) = (size, promoted);
        } else if let Some(collection) = self.recent.iter_mut().rev().find(|collection| collection.number == number) {
            (collection.heap_after, collection.promoted) = (size, promoted);
        }
    }

    fn close(&mut self, begin: i64, start: GcStart, ended: Ended) {
        let GcStart { number, generation, reason, kind } = start;
        let Ended { end, heap_before, heap_after, promoted } = ended;
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Collection {
            number,
            generation,
            reason,
            kind,
            start: begin,
            end,
            pause_ns: None,
            heap_before,
            heap_after,
            promoted,
        });
    }

    pub(super) fn by_generation(&self) -> [u64; 3] {
        self.by_generation
    }

    pub(super) fn induced(&self) -> u64 {
        self.induced
    }

    pub(super) fn causes(&self) -> Vec<CollectionCount> {
        let count = |(&(generation, reason, kind), &count): (&_, &u64)| CollectionCount { generation, reason, kind, count };
        let mut causes: Vec<_> = self.causes.iter().map(count).collect();
        causes.compact_sort_by_key(|cause| std::cmp::Reverse(cause.count));
        causes
    }

    pub(super) fn running(&self) -> usize {
        self.begun.len()
    }

    /// The latest collections, newest first, each with the pauses that it caused.
    ///
    /// A collection that is not done in the background is within one pause. The pauses of a background collection overlap with it and
    /// have no other collection within.
    pub(super) fn recent<'a>(&self, pauses: impl Iterator<Item = &'a Pause>) -> Vec<Collection> {
        let mut recent: Vec<_> = self.recent.iter().copied().collect();
        recent.compact_sort_by_key(|collection| std::cmp::Reverse((collection.start, collection.number)));
        for pause in pauses {
            let foreground = |collection: &Collection| {
                collection.kind != GcType::BACKGROUND && pause.begin <= collection.start && collection.end <= pause.end
            };
            let background = |collection: &Collection| {
                collection.kind == GcType::BACKGROUND && pause.begin <= collection.end && collection.start <= pause.end
            };
            let found = recent.iter().position(foreground).or_else(|| recent.iter().position(background));
            if let Some(found) = found {
                let all = recent[found].pause_ns.get_or_insert(0);
                *all = all.saturating_add(pause.nanoseconds());
            }
        }
        recent
    }
}

/// Makes room where there are more open ends than there can be: the oldest number goes.
fn forget<T>(open: &mut HashMap<u32, T>, number: u32) {
    if open.len() >= OPEN && !open.contains_key(&number) {
        let oldest = open.keys().copied().min().unwrap_or_default();
        open.remove(&oldest);
    }
}
