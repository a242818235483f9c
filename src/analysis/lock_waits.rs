//! Waits for locks that have ended, one by one.

use crate::nettrace::Stack;

use super::event_context::Frames;
use super::latest::Latest;
use super::{Occurrence, Symbols, ThreadId};

/// Maximum number of waits kept.
const RECENT: usize = 64;
/// Maximum number of frames kept per stack.
const DEPTH: usize = 64;

/// The latest waits of a minimum duration.
#[derive(Debug)]
pub(super) struct LockWaits {
    min_ns: u64,
    recent: Latest<(LockWait, Frames), RECENT>,
    /// Buffers of stacks that are no longer needed: at most one for each thread that waited at the same time.
    spare: Vec<Frames>,
}

/// A wait for a lock that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWait {
    /// The end, in nanoseconds since the start of the session.
    pub end: i64,
    /// The thread that waited.
    pub thread: ThreadId,
    /// Duration in nanoseconds.
    pub wait_ns: u64,
    /// Operating system ID of the thread that held the lock when the wait began; `None` if unknown, as before .NET 8.
    pub owner: Option<u64>,
    /// Methods or addresses, leaf first: those of the lock itself, then the method that takes it. Empty if the event has no stack. Not sanitized.
    pub frames: Vec<String>,
}

impl LockWaits {
    pub(super) fn new(min_ns: u64) -> Self {
        Self { min_ns, recent: Latest::default(), spare: Vec::new() }
    }

    /// Copies the stack of a wait that begins.
    pub(super) fn stack(&mut self, stack: Option<Stack<'_>>) -> Frames {
        let mut frames = self.spare.pop().unwrap_or_default();
        frames.set(stack, DEPTH);
        frames
    }

    /// Adds a wait that has ended, with its stack.
    pub(super) fn add(&mut self, wait: LockWait, stack: Frames) {
        if wait.wait_ns < self.min_ns {
            self.spare.push(stack);
            return;
        }
        self.spare.extend(self.recent.take_oldest().map(|(_, stack)| stack));
        self.recent.push((wait, stack));
    }

    /// Returns the waits after the first `seen`, without their stacks unless there are `symbols`, each with its number.
    pub(super) fn after(&self, seen: u64, symbols: Option<&Symbols>) -> impl Iterator<Item = (u64, Option<Occurrence>)> {
        self.recent.after(seen).map(move |(number, (wait, stack))| {
            let frames = symbols.map_or_else(Vec::new, |symbols| stack.resolve(symbols).collect());
            (number, Some(Occurrence::LockWait(LockWait { frames, ..wait.clone() })))
        })
    }
}
