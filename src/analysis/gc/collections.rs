//! Individual garbage collections.

use std::collections::BTreeMap;

use foldhash::HashMap;

use crate::clr::payload::{GcEnd, GcReason, GcStart, GcType};
use crate::nettrace::ThreadId;
use crate::sorting::CompactSort;

use super::super::latest::Latest;
use super::super::occurrences::Occurrence;
use super::suspensions::Pause;
use super::{Heap, RECENT};

/// Maximum number of collections tracked as open; in practice a background collection and a foreground one.
const OPEN: usize = 64;
/// Maximum number of distinct combinations of generation, reason and type; fewer exist in practice.
const CAUSES: usize = 256;

/// Pairs the start and end events of collections by number.
///
/// A background collection ends after foreground ones that started later. With server GC, start and end are reported by different threads, so
/// the end can precede the start in the stream.
#[derive(Debug, Default)]
pub(super) struct Collections {
    pub(super) by_generation: [u64; 3],
    pub(super) induced: u64,
    causes: BTreeMap<(u32, GcReason, GcType), u64>,
    begun: HashMap<u32, (i64, GcStart)>,
    ended: HashMap<u32, Ended>,
    /// Last collection whose end each thread reported; heap sizes follow it.
    last_ended: HashMap<ThreadId, u32>,
    /// Heap size before a collection whose end the thread has not reported yet, summed over all heaps.
    before: HashMap<ThreadId, u64>,
    recent: Latest<Collection, RECENT>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Ended {
    end: i64,
    heap_before: Option<u64>,
    heap_after: Option<u64>,
    promoted: Option<u64>,
}

/// A finished collection. Times in nanoseconds since the start of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collection {
    /// Sequence number in the process.
    pub number: u32,
    /// Oldest generation collected.
    pub generation: u32,
    /// Reason.
    pub reason: GcReason,
    /// Type.
    pub kind: GcType,
    /// Start.
    pub start: i64,
    /// End.
    pub end: i64,
    /// Total time the application was paused for it; `None` if no pause was seen. Each pause is attributed to one collection only.
    pub pause_ns: Option<u64>,
    /// Heap size before the collection, in bytes.
    pub heap_before: Option<u64>,
    /// Heap size after the collection, in bytes.
    pub heap_after: Option<u64>,
    /// Promoted bytes.
    pub promoted: Option<u64>,
}

/// Number of collections with the same generation, reason and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectionCount {
    /// Oldest generation collected.
    pub generation: u32,
    /// Reason.
    pub reason: GcReason,
    /// Type.
    pub kind: GcType,
    /// Number of collections.
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
                // Remove collections whose end was lost: only a background collection can be in progress when another one starts.
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

    /// Adds the size of one heap before a collection, reported by the same thread as the end of the collection.
    pub(super) fn before(&mut self, thread: ThreadId, bytes: u64) {
        if self.before.len() >= OPEN && !self.before.contains_key(&thread) {
            self.before.clear();
        }
        let all = self.before.entry(thread).or_default();
        *all = all.saturating_add(bytes);
    }

    /// Handles lost events of a thread: the end of the collection whose sizes it reported may be among them.
    pub(super) fn lost(&mut self, thread: ThreadId) {
        self.before.remove(&thread);
        self.last_ended.remove(&thread);
    }

    /// Applies heap sizes, which follow the end of a collection on the same thread.
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
        self.recent.push(Collection {
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

    pub(super) fn causes(&self) -> Vec<CollectionCount> {
        let count = |(&(generation, reason, kind), &count): (&_, &u64)| CollectionCount { generation, reason, kind, count };
        let mut causes: Vec<_> = self.causes.iter().map(count).collect();
        causes.compact_sort_by_key(|cause| std::cmp::Reverse(cause.count));
        causes
    }

    pub(super) fn running(&self) -> usize {
        self.begun.len()
    }

    /// Returns the collections after the first `seen`, in the order of their ends, each with its position in this order.
    ///
    /// Pauses and heap sizes follow the end: a collection without them is only returned if a later one has them, or with `is_over`.
    pub(super) fn after<'a>(&self, seen: u64, is_over: bool, pauses: impl Iterator<Item = &'a Pause>) -> Vec<(u64, Option<Occurrence>)> {
        if self.recent.after(seen).next().is_none() {
            return Vec::new();
        }
        let known = self.recent(pauses);
        let with_pause = |(position, collection): (u64, &Collection)| {
            let same = |other: &&Collection| (other.number, other.start) == (collection.number, collection.start);
            (position, *known.iter().find(same).unwrap_or(collection))
        };
        let mut new: Vec<_> = self.recent.after(seen).map(with_pause).collect();
        let is_whole = |(_, collection): &(u64, Collection)| collection.pause_ns.is_some() && collection.heap_after.is_some();
        if !is_over {
            new.truncate(new.iter().rposition(is_whole).map_or(0, |last| last + 1));
        }
        new.into_iter().map(|(position, collection)| (position, Some(Occurrence::Collection(collection)))).collect()
    }

    /// Returns the latest collections, newest first, each with the total duration of its pauses.
    ///
    /// A foreground collection lies within a single pause. The pauses of a background collection overlap it and contain no other collection.
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

/// Makes room by removing the lowest number if there are more open collections than possible.
fn forget<T>(open: &mut HashMap<u32, T>, number: u32) {
    if open.len() >= OPEN && !open.contains_key(&number) {
        let oldest = open.keys().copied().min().unwrap_or_default();
        open.remove(&oldest);
    }
}
