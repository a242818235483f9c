//! Heaps that were walked: the last two of each process, to be compared.

use std::sync::Arc;
use std::time::Duration;

use super::dialog::Subject;
use super::{Now, Ticket};
use crate::analysis::{HeapSnapshot, Retention};
use crate::model::{ProcessKey, SafeText};

/// Processes whose heaps are kept.
const KEPT: usize = 16;

/// What a walk over a heap found.
#[derive(Debug, Clone)]
pub struct WalkedHeap {
    /// Objects by type.
    pub heap: HeapSnapshot,
    /// What keeps them alive, in the order of the types; `None` where that is not known.
    pub retention: Option<Retention>,
    /// How long it took.
    pub took: Duration,
    /// Why its session did not end properly.
    pub trouble: Option<SafeText>,
}

/// A walk that is over.
#[derive(Debug, Clone)]
pub(super) struct HeapWalk {
    /// The command that began it.
    pub(super) ticket: Ticket,
    /// When it was over.
    pub(super) at: Now,
    /// What it found.
    pub(super) found: Arc<WalkedHeap>,
}

/// A walk in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walking {
    pub(super) ticket: Ticket,
    /// So far.
    pub(super) objects: u64,
    /// So far.
    pub(super) bytes: u64,
}

/// The heap of a process.
#[derive(Debug, Clone)]
pub(super) struct ProcessHeap {
    pub(super) subject: Subject,
    pub(super) before: Option<HeapWalk>,
    pub(super) last: Option<HeapWalk>,
    pub(super) walking: Option<Walking>,
    /// Why the last command found nothing.
    pub(super) failed: Option<SafeText>,
}

/// All of them, those that were walked last at the end.
#[derive(Debug, Default)]
pub(super) struct Heaps {
    all: Vec<ProcessHeap>,
    /// The walk of which all objects are kept, so that they can be written to a file.
    graph: Option<Ticket>,
}

impl Heaps {
    pub(super) fn of(&self, key: ProcessKey) -> Option<&ProcessHeap> {
        self.all.iter().find(|heap| heap.subject.key == key)
    }

    /// The process whose heap can be written to a file, by the walk.
    pub(super) fn written_by(&self, walk: Ticket) -> Option<&ProcessHeap> {
        let is_it = |heap: &&ProcessHeap| heap.last.as_ref().is_some_and(|last| last.ticket == walk);
        self.all.iter().find(is_it).filter(|_| self.graph == Some(walk))
    }

    pub(super) fn begin(&mut self, subject: Subject, ticket: Ticket) {
        let at = self.all.iter().position(|heap| heap.subject.key == subject.key);
        let known = at.map(|at| self.all.remove(at));
        if self.all.len() >= KEPT
            && let Some(oldest) = self.all.iter().position(|heap| heap.walking.is_none())
        {
            self.all.remove(oldest);
        }
        let heap = known.unwrap_or(ProcessHeap { subject, before: None, last: None, walking: None, failed: None });
        self.all.push(ProcessHeap { walking: Some(Walking { ticket, objects: 0, bytes: 0 }), failed: None, ..heap });
        self.graph = None;
    }

    fn walking(&mut self, ticket: Ticket) -> Option<&mut ProcessHeap> {
        self.all.iter_mut().find(|heap| heap.walking.is_some_and(|walking| walking.ticket == ticket))
    }

    /// Updates the progress of a walk. Returns whether the walk is known.
    pub(super) fn advance(&mut self, ticket: Ticket, objects: u64, bytes: u64) -> bool {
        let heap = self.walking(ticket);
        heap.map(|heap| heap.walking = Some(Walking { ticket, objects, bytes })).is_some()
    }

    /// Stores what a walk found; `None` where it was canceled.
    pub(super) fn end(&mut self, ticket: Ticket, result: Result<Arc<WalkedHeap>, SafeText>, at: Now) -> Option<()> {
        let heap = self.walking(ticket)?;
        heap.walking = None;
        match result {
            Ok(found) => {
                heap.before = heap.last.take().or(heap.before.take());
                heap.last = Some(HeapWalk { ticket, at, found });
                self.graph = Some(ticket);
            }
            Err(why) => heap.failed = Some(why),
        }
        Some(())
    }

    /// Waits for a walk no longer.
    pub(super) fn cancel(&mut self, key: ProcessKey) -> Option<Ticket> {
        let heap = self.all.iter_mut().find(|heap| heap.subject.key == key)?;
        heap.walking.take().map(|walking| walking.ticket)
    }
}
