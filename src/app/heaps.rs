//! Heaps from walks and files: the last two of each, for comparison.

use std::sync::Arc;
use std::time::Duration;

use super::{Now, State, Subject, Ticket};
use crate::analysis::{HeapSnapshot, Retention};
use crate::model::{ProcessKey, SafeText};

/// Number of processes whose heaps are kept.
const MAX_HEAPS: usize = 16;

/// The result of a heap walk.
#[derive(Debug, Clone)]
pub struct WalkedHeap {
    pub heap: HeapSnapshot,
    /// Retention paths by type, in the order of the types; `None` if unknown.
    pub retention: Option<Retention>,
    pub took: Duration,
    /// Why the session did not end properly.
    pub trouble: Option<SafeText>,
}

#[derive(Debug, Clone)]
pub(super) struct HeapWalk {
    pub(super) ticket: Ticket,
    /// When the walk ended.
    pub(super) at: Now,
    /// The source file; `None` for a walk.
    pub(super) file: Option<SafeText>,
    pub(super) found: Arc<WalkedHeap>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct WalkProgress {
    pub(super) ticket: Ticket,
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ProcessHeap {
    pub(super) subject: Subject,
    file: Option<SafeText>,
    pub(super) before: Option<HeapWalk>,
    pub(super) last: Option<HeapWalk>,
    pub(super) walking: Option<WalkProgress>,
    comparing: Option<(Ticket, SafeText)>,
    /// Why the last command failed.
    pub(super) failed: Option<SafeText>,
}

/// All heaps, the most recently walked last.
#[derive(Debug, Default)]
pub(super) struct Heaps {
    all: Vec<ProcessHeap>,
    /// The walk whose object graph is kept so that it can be written to a file.
    graph: Option<Ticket>,
}

impl Heaps {
    pub(super) fn of(&self, key: ProcessKey) -> Option<&ProcessHeap> {
        self.all.iter().find(|heap| heap.subject.key == key)
    }

    /// Returns the heap of this walk, if it can be written to a file.
    pub(super) fn written_by(&self, walk: Ticket) -> Option<&ProcessHeap> {
        let is_it = |heap: &&ProcessHeap| heap.last.as_ref().is_some_and(|last| last.ticket == walk);
        self.all.iter().find(is_it).filter(|_| self.graph == Some(walk))
    }

    pub(super) fn begin(&mut self, subject: Subject, ticket: Ticket) {
        let at = self.all.iter().position(|heap| heap.subject.key == subject.key);
        let known = at.map(|at| self.all.remove(at));
        if self.all.len() >= MAX_HEAPS
            && let Some(oldest) = self.all.iter().position(|heap| heap.walking.is_none() && heap.file.is_none())
        {
            self.all.remove(oldest);
        }
        let heap = known.unwrap_or(ProcessHeap { subject, ..ProcessHeap::default() });
        self.all.push(ProcessHeap { walking: Some(WalkProgress { ticket, objects: 0, bytes: 0 }), failed: None, ..heap });
        self.graph = None;
    }

    /// Begins to read a heap file. Open files are never evicted.
    pub(super) fn begin_file(&mut self, subject: Subject, ticket: Ticket) {
        self.forget(subject.key);
        let (file, walking) = (Some(subject.name.clone()), Some(WalkProgress { ticket, objects: 0, bytes: 0 }));
        self.all.push(ProcessHeap { subject, file, walking, ..ProcessHeap::default() });
    }

    /// Begins to read a heap file for comparison with an open heap. Returns the ticket of the read that this replaces.
    pub(super) fn compare(&mut self, key: ProcessKey, name: SafeText, ticket: Ticket) -> Option<Ticket> {
        let heap = self.all.iter_mut().find(|heap| heap.subject.key == key)?;
        heap.comparing.replace((ticket, name)).map(|(before, _)| before)
    }

    /// Returns the tickets of all pending reads for a file: its own and that of the file to compare with.
    pub(super) fn pending_reads(&self, key: ProcessKey) -> impl Iterator<Item = Ticket> {
        let of = |heap: &ProcessHeap| [heap.walking.map(|walking| walking.ticket), heap.comparing.as_ref().map(|(ticket, _)| *ticket)];
        self.of(key).map(of).into_iter().flatten().flatten()
    }

    /// Stores the heap to compare with. Returns false if the ticket is not awaited.
    pub(super) fn store_comparison(&mut self, ticket: Ticket, result: &Result<Arc<WalkedHeap>, SafeText>, at: Now) -> bool {
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

    /// Updates the progress of a walk.
    pub(super) fn advance(&mut self, ticket: Ticket, objects: u64, bytes: u64) {
        if let Some(heap) = self.walking(ticket) {
            heap.walking = Some(WalkProgress { ticket, objects, bytes });
        }
    }

    /// Stores the result of a walk; `None` if the walk was canceled.
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

    /// Cancels the current walk and returns its ticket.
    pub(super) fn cancel(&mut self, key: ProcessKey) -> Option<Ticket> {
        let heap = self.all.iter_mut().find(|heap| heap.subject.key == key)?;
        heap.walking.take().map(|walking| walking.ticket)
    }
}

impl State {
    /// Returns the heap of the selected process or file.
    pub(super) fn selected_heap(&self) -> Option<&ProcessHeap> {
        self.heaps.of(self.list.selected()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_heaps_are_forgotten_but_not_those_of_open_files() {
        let mut heaps = Heaps::default();
        let subject = |pid| Subject { key: ProcessKey { pid, started: 1 }, name: "Shop".into() };
        heaps.begin_file(subject(1), Ticket(1));
        heaps.end(Ticket(1), Err("cut off".into()), Now::default());
        for pid in 2..=2 * MAX_HEAPS as u32 {
            heaps.begin(subject(pid), Ticket(pid.into()));
            // The second is still walked.
            if pid > 2 {
                heaps.end(Ticket(pid.into()), Err("failed".into()), Now::default());
            }
        }
        assert_eq!(heaps.all.len(), MAX_HEAPS);
        let is_known = |pid: u32| heaps.of(subject(pid).key).is_some();
        assert_eq!([1, 2, 3, 2 * MAX_HEAPS as u32].map(is_known), [true, true, false, true]);
    }

    /// Both files are read at the same time.
    #[test]
    fn heap_to_compare_with_is_kept_if_it_is_read_first() {
        let mut heaps = Heaps::default();
        let key = ProcessKey { pid: 1, started: 1 };
        let heap = crate::app::test_app::walked_heap(1);
        heaps.begin_file(Subject { key, name: "after".into() }, Ticket(1));
        heaps.compare(key, "before".into(), Ticket(2));
        assert!(heaps.store_comparison(Ticket(2), &Ok(heap.clone()), Now::default()));
        heaps.end(Ticket(1), Ok(heap), Now::default());
        let tickets = heaps.of(key).map(|heap| [&heap.before, &heap.last].map(|walk| walk.as_ref().map(|walk| walk.ticket)));
        assert_eq!(tickets, Some([Some(Ticket(2)), Some(Ticket(1))]));
    }
}
