//! Heap walks, one at a time, and the objects of the latest one, which can be written to a file; also reading of heap files.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use foldhash::HashMap;
use tokio::sync::mpsc;

use super::tasks::{blocking, spawn, start_blocking};
use crate::app::{JobResult, Msg, Ticket, WalkedHeap};
use crate::model::{Process, SafeText};
use crate::net::client::Client;
use crate::session::{HeapFile, HeapWalk, read_heap, walk_heap};

/// A walk is aborted if no event arrives for this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A walk with all its objects.
struct LatestWalk {
    ticket: Ticket,
    walk: HeapWalk,
    process: Process,
}

/// The heap walks and file reads in progress, and the latest walk.
#[derive(Default)]
pub(super) struct Heaps {
    active: HashMap<Ticket, Arc<AtomicBool>>,
    /// The objects of the latest walk. There may be millions, so only those of one walk are kept.
    last: Arc<Mutex<Option<Arc<LatestWalk>>>>,
    /// Held during a walk: the session of a canceled walk may still be stopping.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Held while reading a file: each may take several times its size in memory.
    reading: Arc<tokio::sync::Mutex<()>>,
}

impl Heaps {
    /// Walks a heap, unless it is canceled before its turn.
    pub(super) fn walk(&mut self, client: Client, process: Process, ticket: Ticket, inbox: mpsc::Sender<Msg>) {
        let active = self.register(ticket);
        let (turn, last) = (Arc::clone(&self.turn), Arc::clone(&self.last));
        spawn(async move {
            let _turn = turn.lock().await;
            let is_wanted = || active.load(Ordering::Relaxed) && !inbox.is_closed();
            // Each walk costs the process a GC.
            if !is_wanted() {
                return;
            }
            last.lock().unwrap_or_else(PoisonError::into_inner).take();
            let began = Instant::now();
            let on_progress = |objects, bytes| {
                // If the loop is busy, the next report suffices.
                let _ = inbox.try_send(Msg::HeapProgress { ticket, objects, bytes });
                is_wanted()
            };
            let result = match walk_heap(client, process.runtime.as_ref(), true, IDLE_TIMEOUT, on_progress).await {
                Ok(walk) => {
                    let took = began.elapsed();
                    blocking(move || found(walk, took)).await.map_err(SafeText::from).map(|(walk, found)| {
                        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(LatestWalk { ticket, walk, process }));
                        Arc::new(found)
                    })
                }
                Err(error) => Err(error.to_string().into()),
            };
            // The receiver is gone once the dashboard has quit.
            drop(inbox.send(Msg::HeapWalked { ticket, result }).await);
        });
    }

    /// Reads a file, unless it is canceled before its turn.
    pub(super) fn read(&mut self, path: PathBuf, ticket: Ticket, inbox: mpsc::Sender<Msg>) {
        let (active, reading) = (self.register(ticket), Arc::clone(&self.reading));
        spawn(async move {
            let turn = reading.lock_owned().await;
            let read = move || {
                // The next read starts when this one ends, even if it was canceled.
                let _turn = turn;
                if !active.load(Ordering::Relaxed) {
                    return;
                }
                let began = Instant::now();
                let result = read_heap(&path).map(|dump| {
                    let retention = if active.load(Ordering::Relaxed) { dump.retention() } else { None };
                    Arc::new(WalkedHeap { heap: dump.heap, retention, took: began.elapsed(), trouble: None })
                });
                // The receiver is gone once the dashboard has quit.
                let _ = inbox.blocking_send(Msg::HeapWalked { ticket, result: result.map_err(SafeText::from) });
            };
            start_blocking(read);
        });
    }

    /// Registers a job, and returns a flag that is cleared when the job is canceled.
    fn register(&mut self, ticket: Ticket) -> Arc<AtomicBool> {
        self.active.retain(|_, active| Arc::strong_count(active) > 1);
        let active = Arc::new(AtomicBool::new(true));
        self.active.insert(ticket, Arc::clone(&active));
        active
    }

    /// Cancels a walk, as soon as the runtime allows its session to be stopped, or a read that has not started.
    pub(super) fn cancel(&mut self, ticket: Ticket) {
        if let Some(active) = self.active.remove(&ticket) {
            active.store(false, Ordering::Relaxed);
        }
    }

    /// Returns work that writes the objects of the latest walk to a new file.
    pub(super) fn write(&self, walk: Ticket, destination: PathBuf) -> impl FnOnce() -> Result<JobResult, String> + use<> {
        let latest = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone().filter(|latest| latest.ticket == walk);
        move || {
            let latest = latest.ok_or("another heap was walked since then: walk this one again")?;
            let file = HeapFile::create(&destination).map_err(|error| error.to_string())?;
            let HeapWalk { graph, heap, .. } = &latest.walk;
            let written = file.write(graph.clone(), heap, &latest.process, &|| true).map_err(|error| error.to_string())?;
            let bytes = written.metadata().ok().map(|facts| facts.len());
            Ok(JobResult { files: vec![SafeText::from_path(&written)], bytes, note: None })
        }
    }
}

/// Summarizes a walk, including what keeps the objects alive.
fn found(walk: HeapWalk, took: Duration) -> (HeapWalk, WalkedHeap) {
    let trouble = walk.ended.as_ref().err().map(|why| SafeText::from(why.to_string()));
    let found = WalkedHeap { heap: walk.heap.clone(), retention: walk.retention(), took, trouble };
    (walk, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessKey;
    use crate::net::endpoint::Endpoint;

    #[tokio::test]
    async fn walk_canceled_before_its_turn_sends_nothing_to_the_process() {
        let key = ProcessKey { pid: 1, started: 1 };
        // Connecting fails, which is reported.
        let client = || Client::new(Endpoint { key, socket: PathBuf::from("/nonexistent/socket") });
        for is_canceled in [false, true] {
            let (mut heaps, (inbox, mut messages)) = (Heaps::default(), mpsc::channel(9));
            let turn = Arc::clone(&heaps.turn).lock_owned().await;
            heaps.walk(client(), Process::new(key), Ticket(1), inbox);
            if is_canceled {
                heaps.cancel(Ticket(1));
            }
            drop(turn);
            assert_eq!(messages.recv().await.is_none(), is_canceled);
        }
    }
}
