//! Allocation events, one by one.

use crate::clr::payload::{AllocationKind, AllocationTick};
use crate::clr::{TypeArguments, type_name};

use super::super::event_context::{EventContext, Frames};
use super::super::latest::Latest;
use super::super::{Occurrence, Symbols, ThreadId};

/// Maximum number of samples kept.
const RECENT: usize = 64;
/// Maximum number of frames kept per stack.
const DEPTH: usize = 64;
/// Maximum length of the name of a type, in characters.
const NAME: usize = 400;

/// The latest AllocationTick events.
#[derive(Debug, Default)]
pub(super) struct AllocationSamples(Latest<Sample, RECENT>);

#[derive(Debug, Default)]
struct Sample {
    at: i64,
    thread: ThreadId,
    kind: AllocationKind,
    bytes: u64,
    object_bytes: Option<u64>,
    type_name: String,
    frames: Frames,
}

/// An AllocationTick event: a sample of the allocations on one heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationSample {
    /// Time, in nanoseconds since the start of the session.
    pub at: i64,
    /// The allocating thread.
    pub thread: ThreadId,
    /// Heap of the allocations.
    pub kind: AllocationKind,
    /// Bytes allocated on the heap since its previous sample: about 100 KB, or the object if it is larger.
    pub bytes: u64,
    /// Size of the object that was allocated last, in bytes; `None` before .NET 6.
    pub object_bytes: Option<u64>,
    /// Its type, with type arguments without namespaces. Not sanitized.
    pub type_name: String,
    /// Methods or addresses, leaf first, starting at the one that allocates; empty if the event has no stack. Not sanitized.
    pub frames: Vec<String>,
}

impl AllocationSamples {
    pub(super) fn add(&mut self, context: &EventContext<'_>, tick: &AllocationTick<'_>) {
        // Its buffers are used again.
        let mut sample = self.0.take_oldest().unwrap_or_default();
        (sample.at, sample.thread, sample.kind) = (context.at, context.thread, tick.kind);
        (sample.bytes, sample.object_bytes) = (tick.amount, tick.object_size);
        tick.type_name.copy_prefix(&mut sample.type_name, NAME);
        sample.frames.set(context.event.stack(), DEPTH);
        self.0.push(sample);
    }

    /// Returns the samples after the first `seen`, without their stacks unless there are `symbols`, each with its number.
    pub(super) fn after(&self, seen: u64, symbols: Option<&Symbols>) -> impl Iterator<Item = (u64, Option<Occurrence>)> {
        let found = move |Sample { at, thread, kind, bytes, object_bytes, type_name: name, frames }: &Sample| AllocationSample {
            at: *at,
            thread: *thread,
            kind: *kind,
            bytes: *bytes,
            object_bytes: *object_bytes,
            type_name: type_name(name, TypeArguments::Short),
            frames: symbols.map_or_else(Vec::new, |symbols| frames.resolve(symbols).collect()),
        };
        self.0.after(seen).map(move |(number, sample)| (number, Some(Occurrence::Allocation(found(sample)))))
    }
}
