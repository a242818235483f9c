//! Garbage collections as marks on a time axis: time, pause and generation.

use std::collections::VecDeque;

use crate::clr::EventKind;
use crate::clr::payload::{GcEnd, GcStart, GcType, HeapStats};
use crate::nettrace::ThreadId;

use super::super::event_context::EventContext;
use super::super::ranking::push_latest;
use super::suspensions::Suspensions;

/// Maximum number of marks.
const MARKS: usize = 4096;
/// The generation of a background collection.
const BACKGROUND_GENERATION: u32 = 2;

/// A GC pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcMark {
    /// Start, in nanoseconds since the start of the session.
    pub at: i64,
    /// Time for which all managed threads were paused.
    pub pause_ns: u64,
    /// Oldest generation collected.
    pub generation: u32,
    /// Whether the collection was induced by `GC.Collect`.
    pub is_induced: bool,
}

/// A finished gen 2 collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullCollection {
    /// End, in nanoseconds since the start of the session.
    pub at: i64,
    /// Bytes of all objects that were still referenced. After a background collection, the heap is larger: it includes what has been allocated or
    /// promoted during the collection, and what is yet to be swept.
    pub survived: u64,
}

/// Tracks the pauses of a session that has only the informational GC events.
#[derive(Debug, Default)]
pub(in crate::analysis) struct GcMarks {
    suspensions: Suspensions,
    /// Generation of the collection started since the latest suspension, and whether it is induced.
    started: Option<(u32, bool)>,
    /// The background collection in progress: it has further pauses after the one in which it starts.
    background: Option<u32>,
    marks: VecDeque<GcMark>,
    /// Thread on which a gen 2 collection has just ended: its heap statistics follow.
    full_ended: Option<ThreadId>,
    full: VecDeque<FullCollection>,
}

impl GcMarks {
    /// Returns whether the pauses are determined from events of this kind.
    pub(in crate::analysis) fn uses(kind: EventKind) -> bool {
        matches!(kind, EventKind::SuspendBegin | EventKind::RestartEnd | EventKind::GcStart | EventKind::GcEnd | EventKind::HeapStats)
    }

    /// Processes an event, in time order: with server GC, the thread that starts a collection is not the one that suspends the others. `None` if
    /// the payload is malformed.
    pub(in crate::analysis) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        let thread = context.event.capture_thread();
        match context.kind {
            EventKind::SuspendBegin => {
                let is_for_gc = self.suspensions.begin(context.at, thread, context.payload()?);
                if is_for_gc {
                    self.started = None;
                }
            }
            EventKind::GcStart => {
                let start: GcStart = context.payload()?;
                self.started = Some((start.generation, start.reason.is_induced()));
                if start.kind == GcType::BACKGROUND {
                    self.background = Some(start.number);
                }
            }
            EventKind::GcEnd => {
                let end: GcEnd = context.payload()?;
                self.background = self.background.filter(|number| *number != end.number);
                self.full_ended = (end.generation == 2).then_some(thread);
            }
            EventKind::HeapStats if self.full_ended.take() == Some(thread) => {
                let stats: HeapStats = context.payload()?;
                let heaps = stats.generations.iter().chain(&stats.pinned_heap);
                let survived = heaps.fold(0, |sum, heap| u64::saturating_add(sum, heap.promoted));
                push_latest(&mut self.full, MARKS, FullCollection { at: context.at, survived });
            }
            EventKind::RestartEnd => self.restarted(context.at, thread),
            _ => {}
        }
        Some(())
    }

    /// Handles lost events of a capture thread: the end of its suspension may be among them.
    pub(in crate::analysis) fn lost(&mut self, capture_thread: ThreadId) {
        self.suspensions.lost(capture_thread);
    }

    fn restarted(&mut self, at: i64, thread: ThreadId) {
        let Some(pause) = self.suspensions.end(at, thread) else { return };
        // A pause in which no collection starts belongs to the background collection; without one, the start event was lost.
        let background = self.background.map(|_| (BACKGROUND_GENERATION, false));
        let Some((generation, is_induced)) = self.started.take().or(background) else { return };
        push_latest(&mut self.marks, MARKS, GcMark { at: pause.begin, pause_ns: pause.nanoseconds(), generation, is_induced });
    }

    /// Starts another stream, in which collections in progress are unknown. The marks are kept.
    pub(in crate::analysis) fn restart(&mut self) {
        *self = Self { marks: std::mem::take(&mut self.marks), full: std::mem::take(&mut self.full), ..Self::default() };
    }

    /// Returns the finished gen 2 collections, oldest first.
    pub(in crate::analysis) fn full_collections(&self) -> Vec<FullCollection> {
        self.full.iter().copied().collect()
    }

    /// Returns the marks, oldest first.
    pub(in crate::analysis) fn marks(&self) -> Vec<GcMark> {
        self.marks.iter().copied().collect()
    }
}
