//! Garbage collection: pauses, collections, heap sizes and allocations.

mod allocation_samples;
mod allocations;
mod collections;
mod finalizers;
mod marks;
mod pauses;
mod suspensions;

use crate::clr::EventKind;
use crate::clr::payload::{HeapStats, PerHeapHistory};
use crate::nettrace::ThreadId;

use super::event_context::EventContext;
use super::timeline::Maxima;
use super::{Occurrence, Symbols, Timeline};

use allocation_samples::AllocationSamples;
use allocations::Allocations;
use collections::Collections;
use pauses::Pauses;

pub use allocation_samples::AllocationSample;
pub use allocations::{AllocatedType, AllocationSnapshot};
pub use collections::{Collection, CollectionCount};
pub use finalizers::FinalizerWait;
pub(in crate::analysis) use finalizers::Finalizers;
pub(in crate::analysis) use marks::GcMarks;
pub use marks::{FullCollection, GcMark};
pub use pauses::PauseSnapshot;
pub(in crate::analysis) use suspensions::Suspensions;

/// Maximum number of individual collections kept.
const RECENT: usize = 256;

/// Analyses the events of the garbage collector.
#[derive(Debug, Default)]
pub(super) struct Gc {
    pauses: Pauses,
    collections: Collections,
    allocations: Allocations,
    /// `None` unless individual allocation events are shown.
    samples: Option<AllocationSamples>,
    finalizers: Finalizers,
    heap: Option<Heap>,
    heap_size: Maxima,
    parts_over_time: [Maxima; 5],
}

/// Garbage collection of a recording.
#[derive(Debug, Clone)]
pub struct GcSnapshot {
    /// Number of collections started, by oldest generation collected: 0, 1 and 2.
    pub collections: [u64; 3],
    /// Number of induced collections.
    pub induced: u64,
    /// Number of collections by generation, reason and type, descending.
    pub causes: Vec<CollectionCount>,
    /// Number of collections started but not ended.
    pub running: usize,
    /// GC pauses.
    pub pauses: PauseSnapshot,
    /// Heap after the latest collection; `None` before the first.
    pub heap: Option<Heap>,
    /// Heap size after collections over time, in bytes.
    pub heap_size: Timeline,
    /// Sizes of the parts of the heap over time, in the order of [`Heap::parts`].
    pub parts_over_time: [Timeline; 5],
    /// Objects that wait for their finalizers.
    pub finalizer_wait: Option<FinalizerWait>,
    /// Allocations; `None` if there are no allocation events (requires level verbose).
    pub allocations: Option<AllocationSnapshot>,
    /// The latest collections, newest first.
    pub recent: Vec<Collection>,
}

/// The heap after a collection. Sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heap {
    /// Time, in nanoseconds since the start of the session.
    pub at: i64,
    /// Sizes of generations 0, 1 and 2.
    pub generations: [u64; 3],
    /// Size of the large object heap.
    pub large: u64,
    /// Size of the pinned object heap; `None` before .NET 5.
    pub pinned: Option<u64>,
    /// Promoted bytes.
    pub promoted: u64,
    /// Number of objects promoted because they are ready for finalization.
    pub finalization: u64,
    /// Number of pinned objects.
    pub pinned_objects: u32,
    /// Number of GC handles.
    pub handles: u32,
}

impl Heap {
    fn new(at: i64, stats: &HeapStats) -> Self {
        let [gen0, gen1, gen2, large] = stats.generations.map(|generation| generation.size);
        let all = stats.generations.iter().chain(&stats.pinned_heap);
        Self {
            at,
            generations: [gen0, gen1, gen2],
            large,
            pinned: stats.pinned_heap.map(|heap| heap.size),
            promoted: all.fold(0, |sum, generation| sum.saturating_add(generation.promoted)),
            finalization: stats.finalization_promoted_count,
            pinned_objects: stats.pinned_objects,
            handles: stats.handles,
        }
    }

    /// Returns the sizes of generations 0, 1 and 2, LOH and POH.
    pub fn parts(&self) -> [u64; 5] {
        let [gen0, gen1, gen2] = self.generations;
        [gen0, gen1, gen2, self.large, self.pinned.unwrap_or(0)]
    }

    /// Returns the total size.
    pub fn size(&self) -> u64 {
        self.generations.into_iter().chain([self.large]).chain(self.pinned).fold(0, u64::saturating_add)
    }
}

impl Gc {
    /// Drops cached stack IDs, which have new meanings from here on.
    pub(super) fn forget_stacks(&mut self) {
        self.allocations.forget_stacks();
    }

    pub(super) fn feed(&mut self, context: &EventContext<'_>, symbols: &Symbols) -> Option<()> {
        let (at, thread) = (context.at, context.event.capture_thread());
        self.finalizers.feed(context)?;
        match context.kind {
            EventKind::SuspendBegin => _ = self.pauses.suspensions.begin(at, thread, context.payload()?),
            EventKind::RestartEnd => self.pauses.restarted(at, thread),
            EventKind::GcStart => self.collections.start(at, context.payload()?),
            EventKind::GcEnd => self.collections.end(at, thread, context.payload()?),
            EventKind::AllocationTick => {
                let tick = context.payload()?;
                self.allocations.tick(context, symbols, &tick);
                if let Some(samples) = &mut self.samples {
                    samples.add(context, &tick);
                }
            }
            EventKind::AllocationSampled => self.allocations.sampled(context, symbols, &context.payload()?),
            EventKind::HeapStats => {
                let heap = Heap::new(at, &context.payload()?);
                self.collections.heap(thread, &heap);
                self.heap_size.add(at, heap.size() as f64);
                for (line, size) in self.parts_over_time.iter_mut().zip(heap.parts()) {
                    line.add(at, size as f64);
                }
                if self.heap.is_none_or(|last| last.at <= at) {
                    self.heap = Some(heap);
                }
            }
            // Version 3 has sizes; no version of .NET Core writes older ones.
            EventKind::PerHeapHistory if context.event.version() >= 3 => {
                let history: PerHeapHistory = context.payload()?;
                self.collections.before(thread, history.size_before);
            }
            _ => {}
        }
        Some(())
    }

    pub(super) fn lost(&mut self, capture_thread: ThreadId) {
        self.pauses.suspensions.lost(capture_thread);
        self.collections.lost(capture_thread);
        self.finalizers.restart();
    }

    /// Returns the collections after the first `seen`, each with its position; see [`Collections::after`].
    pub(super) fn after(&self, seen: u64, is_over: bool) -> Vec<(u64, Option<Occurrence>)> {
        self.collections.after(seen, is_over, self.pauses.recent())
    }

    /// Also keeps the latest allocation events. To be called before the stream begins.
    pub(super) fn list_allocations(&mut self) {
        self.samples = Some(AllocationSamples::default());
    }

    /// Returns the allocation events after the first `seen` of those that are kept, each with its number.
    pub(super) fn allocations_after(&self, seen: u64, symbols: Option<&Symbols>) -> impl Iterator<Item = (u64, Option<Occurrence>)> {
        self.samples.iter().flat_map(move |samples| samples.after(seen, symbols))
    }

    pub(super) fn snapshot(&self, symbols: &Symbols, now: i64) -> GcSnapshot {
        GcSnapshot {
            collections: self.collections.by_generation,
            induced: self.collections.induced,
            causes: self.collections.causes(),
            running: self.collections.running(),
            pauses: self.pauses.snapshot(now),
            heap: self.heap,
            heap_size: Timeline::clone(&self.heap_size),
            parts_over_time: self.parts_over_time.each_ref().map(|part| Timeline::clone(part)),
            finalizer_wait: self.finalizers.waiting(now),
            allocations: self.allocations.snapshot(symbols, now),
            recent: self.collections.recent(self.pauses.recent()),
        }
    }
}
