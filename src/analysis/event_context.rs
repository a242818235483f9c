//! The input of an analysis.
//!
//! Each analysis has the methods `feed`, which returns `None` if the payload of an event is malformed, `snapshot`, and `lost` if events of a
//! capture thread that were lost may have ended what began on it.

use crate::clr::EventKind;
use crate::clr::payload::{Fields, Payload};
use crate::nettrace::{Event, Stack, ThreadId};

use super::Symbols;

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
    pub(super) fn resolve(&self, symbols: &Symbols) -> impl Iterator<Item = String> {
        symbols.frame_names(&self.0)
    }
}
