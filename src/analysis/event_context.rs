//! The interface of an analysis and its input.

use crate::clr::EventKind;
use crate::clr::payload::{Fields, Payload};
use crate::nettrace::{Event, Stack, ThreadId};

use super::Symbols;

/// An accumulator: events in, a small snapshot out. Memory is bounded for any input, and an event similar to an earlier one does not allocate.
pub(super) trait Analysis {
    /// Result of the analysis.
    type Snapshot;

    /// Processes an event of a kind handled by this analysis. `None` if the payload is malformed.
    fn feed(&mut self, context: &EventContext<'_>) -> Option<()>;

    /// Handles lost events of a capture thread: operations started on it may have ended unseen.
    fn lost(&mut self, _capture_thread: ThreadId) {}

    /// Returns the current result.
    fn snapshot(&self, view: &View<'_>) -> Self::Snapshot;
}

/// An event with its context.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventContext<'a> {
    pub(super) kind: EventKind,
    pub(super) event: &'a Event<'a>,
    /// Time, in nanoseconds since the start of the session.
    pub(super) at: i64,
    /// The thread to which the event applies.
    pub(super) thread: ThreadId,
    pub(super) pointer_size: u8,
}

impl<'a> EventContext<'a> {
    #[inline]
    pub(super) fn payload<P: Payload<'a>>(&self) -> Option<P> {
        P::read(Fields::of(self.event, self.pointer_size))
    }
}

/// Context of a snapshot.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    /// Current time, in nanoseconds since the start of the session.
    pub(super) now: i64,
    pub(super) symbols: &'a Symbols,
}

/// The leaf frames of a stack, copied up to a maximum depth.
#[derive(Debug, Clone, Default)]
pub(super) struct Frames(Vec<u64>);

impl Frames {
    /// Overwrites this with another stack, reusing its buffer.
    pub(super) fn set(&mut self, stack: Option<Stack<'_>>, most: usize) {
        self.0.clear();
        if let Some(stack) = stack {
            self.0.extend(stack.frames().take(most));
        }
    }

    /// Returns the methods of the frames, leaf first.
    pub(super) fn resolve(&self, symbols: &Symbols) -> Vec<String> {
        symbols.frame_names(&self.0).collect()
    }
}
