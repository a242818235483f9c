//! Heaps that were walked, and those of files: the last two of each, to be compared.

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
    pub heap: HeapSnapshot,
    /// What keeps them alive, in the order of the types; `None` where that is not known.
    pub retention: Option<Retention>,
    pub took: Duration,
    /// Why its session did not end properly.
    pub trouble: Option<SafeText>,
}

#[derive(Debug, Clone)]
pub(super) struct HeapWalk {
    pub(super) ticket: Ticket,
    /// When it was over.
    pub(super) at: Now,
    /// The file that it was read from; `None` for a walk.
    pub(super) file: Option<SafeText>,
    pub(super) found: Arc<WalkedHeap>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Walking {
    pub(super) ticket: Ticket,
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone)]
pub(super) struct ProcessHeap {
    pub(super) subject: Subject,
    file: Option<SafeText>,
    pub(super) before: Option<HeapWalk>,
    pub(super) last: Option<HeapWalk>,
    pub(super) walking: Option<Walking>,
    comparing: Option<(Ticket, SafeText)>,
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
            && let Some(oldest) = self.all.iter().position(|heap| heap.walking.is_none() && heap.file.is_none())
        {
            self.all.remove(oldest);
        }
        let heap =
            known.unwrap_or(ProcessHeap { subject, file: None, before: None, last: None, walking: None, comparing: None, failed: None });
        self.all.push(ProcessHeap { walking: Some(Walking { ticket, objects: 0, bytes: 0 }), failed: None, ..heap });
        self.graph = None;
    }

    /// Awaits what is in a file. Of these all are kept that are open.
    pub(super) fn begin_file(&mut self, subject: Subject, ticket: Ticket) {
        self.forget(subject.key);
        let (file, walking) = (Some(subject.name.clone()), Some(Walking { ticket, objects: 0, bytes: 0 }));
        self.all.push(ProcessHeap { subject, file, before: None, last: None, walking, comparing: None, failed: None });
    }

    /// Awaits what is in a file, to compare the heap of another with it. Returns the file that is awaited no longer.
    pub(super) fn compare(&mut self, key: ProcessKey, name: SafeText, ticket: Ticket) -> Option<Ticket> {
        let heap = self.all.iter_mut().find(|heap| heap.subject.key == key)?;
        heap.comparing.replace((ticket, name)).map(|(before, _)| before)
    }

    /// What is awaited for a file: what is in it, and in the one to compare it with.
    pub(super) fn awaited(&self, key: ProcessKey) -> impl Iterator<Item = Ticket> {
        let of = |heap: &ProcessHeap| [heap.walking.map(|walking| walking.ticket), heap.comparing.as_ref().map(|(ticket, _)| *ticket)];
        self.of(key).map(of).into_iter().flatten().flatten()
    }

    /// Stores what is compared with. Returns whether a heap waited for it.
    pub(super) fn compared(&mut self, ticket: Ticket, result: &Result<Arc<WalkedHeap>, SafeText>, at: Now) -> bool {
        let waits = |heap: &&mut ProcessHeap| heap.comparing.as_ref().is_some_and(|(asked, _)| *asked == ticket);
        let Some(heap) = self.all.iter_mut().find(waits) else { return false };
        let file = heap.comparing.take().map(|(_, name)| name);
        if let Ok(found) = result {
            heap.before = Some(HeapWalk { ticket, at, file, found: Arc::clone(found) });
        }
        true
    }

    pub(super) fn forget(&mut self, key: ProcessKey) {
        self.all.retain(|heap| heap.subject.key != key);
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
                heap.last = Some(HeapWalk { ticket, at, file: heap.file.clone(), found });
                if heap.file.is_none() {
                    self.graph = Some(ticket);
                }
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
