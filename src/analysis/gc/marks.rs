//! Garbage collections as marks on a time axis: time, pause and generation.

use std::collections::VecDeque;

use crate::clr::EventKind;
use crate::clr::payload::{GcEnd, GcStart, GcType};
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

/// Tracks the pauses of a session that has only the informational GC events.
#[derive(Debug, Default)]
pub(in crate::analysis) struct GcMarks {
    suspensions: Suspensions,
    /// Generation of the collection started since the latest suspension, and whether it is induced.
    started: Option<(u32, bool)>,
    /// The background collection in progress: it has further pauses after the one in which it starts.
    background: Option<u32>,
    marks: VecDeque<GcMark>,
}

impl GcMarks {
    /// Returns whether the pauses are determined from events of this kind.
    pub(in crate::analysis) fn uses(kind: EventKind) -> bool {
        matches!(kind, EventKind::SuspendBegin | EventKind::RestartEnd | EventKind::GcStart | EventKind::GcEnd)
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
        *self = Self { marks: std::mem::take(&mut self.marks), ..Self::default() };
    }

    /// Returns the marks, oldest first.
    pub(in crate::analysis) fn marks(&self) -> Vec<GcMark> {
        self.marks.iter().copied().collect()
    }
}
