//! Objects that wait for a finalizer thread that is blocked, or busy for long.

use crate::clr::EventKind;
use crate::clr::payload::{GcEnd, GcStart, GcType, HeapStats};
use crate::nettrace::ThreadId;

use super::super::event_context::EventContext;

/// Objects that wait for their finalizers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinalizerWait {
    /// How long the finalizer thread has not finished, in nanoseconds: since it began to run finalizers, or since objects were queued.
    pub waiting_ns: u64,
    /// Objects that collections have queued since then.
    pub queued: u64,
}

/// Tracks the finalizer thread. It is woken after a collection that queues objects, writes an event when it begins, and another one when
/// it has finalized all of them. If it is blocked since before the session started, neither event is written.
#[derive(Debug, Default)]
pub(in crate::analysis) struct Finalizers {
    /// Since when objects have been waiting, in nanoseconds since the start of the session.
    since: Option<i64>,
    queued: u64,
    /// Number of the latest collection that is not a background one.
    foreground: Option<u32>,
    /// Thread on which a background collection has just ended: its heap statistics follow.
    background_ended: Option<ThreadId>,
    /// Whether the finalizer thread has finished since the latest background collection started.
    has_finished: bool,
}

impl Finalizers {
    /// Returns whether events of this kind are used.
    pub(in crate::analysis) fn uses(kind: EventKind) -> bool {
        matches!(kind, EventKind::GcStart | EventKind::GcEnd | EventKind::HeapStats | EventKind::FinalizersBegin | EventKind::FinalizersEnd)
    }

    /// Processes an event, in time order. `None` if the payload is malformed.
    pub(in crate::analysis) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        let thread = context.event.capture_thread();
        match context.kind {
            EventKind::GcStart => {
                let start: GcStart = context.payload()?;
                match start.kind {
                    GcType::BACKGROUND => self.has_finished = false,
                    _ => self.foreground = Some(start.number),
                }
            }
            EventKind::GcEnd => {
                let end: GcEnd = context.payload()?;
                self.background_ended = (self.foreground != Some(end.number)).then_some(thread);
            }
            EventKind::HeapStats => {
                let stats: HeapStats = context.payload()?;
                // A background collection wakes the finalizer thread before it reports what it has queued (seen in .NET 9).
                let is_finalized = self.background_ended.take() == Some(thread) && self.has_finished;
                if stats.finalization_promoted_count > 0 && !is_finalized {
                    self.since.get_or_insert(context.at);
                    self.queued = self.queued.saturating_add(stats.finalization_promoted_count);
                }
            }
            EventKind::FinalizersBegin => (self.since, self.queued) = (Some(context.at), 0),
            EventKind::FinalizersEnd => (self.since, self.queued, self.has_finished) = (None, 0, true),
            _ => {}
        }
        Some(())
    }

    /// Forgets what waits: events are missing, as in another stream.
    pub(in crate::analysis) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Returns what waits at this time.
    pub(in crate::analysis) fn waiting(&self, now: i64) -> Option<FinalizerWait> {
        let waiting_ns = u64::try_from(now.saturating_sub(self.since?)).ok()?;
        Some(FinalizerWait { waiting_ns, queued: self.queued })
    }
}
