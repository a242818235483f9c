//! What an analysis is, and what it is fed.

use crate::clr::EventKind;
use crate::clr::payload::{Fields, Payload};
use crate::nettrace::{Event, Stack, ThreadId};

use super::Symbols;

/// An accumulator: events in, a small snapshot out. Memory is bounded whatever comes, and no event that is like one before allocates.
pub(super) trait Analysis {
    /// What it finds.
    type Snapshot;

    /// Takes an event of a kind that it handles. `None` where the payload is malformed.
    fn feed(&mut self, known: &Known<'_>) -> Option<()>;

    /// A capture thread lost events: what began on it may have ended unseen.
    fn lost(&mut self, _capture_thread: ThreadId) {}

    /// What it finds.
    fn snapshot(&self, view: &View<'_>) -> Self::Snapshot;
}

/// An event, and what is known of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) kind: EventKind,
    pub(super) event: &'a Event<'a>,
    /// When, in nanoseconds since the start of the session.
    pub(super) at: i64,
    /// The thread that it is about.
    pub(super) thread: ThreadId,
    pub(super) pointer_size: u8,
}

impl<'a> Known<'a> {
    #[inline]
    pub(super) fn payload<P: Payload<'a>>(&self) -> Option<P> {
        P::read(Fields::of(self.event, self.pointer_size))
    }
}

/// From where a snapshot looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    /// The present, in nanoseconds since the start of the session.
    pub(super) now: i64,
    pub(super) symbols: &'a Symbols,
}

/// The leaf frames of a stack, copied: at most as many as there is room for.
#[derive(Debug, Clone, Default)]
pub(super) struct Frames(Vec<u64>);

impl Frames {
    /// Takes another stack into the same memory.
    pub(super) fn set(&mut self, stack: Option<Stack<'_>>, most: usize) {
        self.0.clear();
        if let Some(stack) = stack {
            self.0.extend(stack.frames().take(most));
        }
    }

    /// The methods of the frames, leaf first.
    pub(super) fn resolve(&self, symbols: &Symbols) -> Vec<String> {
        symbols.frame_names(&self.0).collect()
    }
}
