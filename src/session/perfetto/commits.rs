//! From packets to commits: chunks in the shared memory, or in the commits themselves where there is none.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::HashMap;
use tokio::time::Instant;

use crate::net::perfetto::SharedMemory;
use crate::perfetto::chunk::{ChunkWriter, WriterId};
use crate::perfetto::page::{PAGE_HEADER, PageSize};
use crate::perfetto::producer::Commit;

/// Most bytes of a commit, so that it fits a frame with the chunk that is added last.
const COMMIT: usize = 64 * 1024;
/// Most commits that are not answered.
const UNANSWERED: usize = 8;
/// How long the memory may be full while no commit is under way: a service frees what it has taken at once.
const FULL: std::time::Duration = std::time::Duration::from_secs(2);

/// Bytes of packets that wait, of one stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Backlog(Arc<AtomicUsize>);

/// A part of a backlog, until it is dropped.
#[derive(Debug)]
pub(super) struct Share(Arc<AtomicUsize>, usize);

impl Backlog {
    /// Most bytes that wait.
    const MOST: usize = 8 << 20;

    /// Takes room for so many bytes; `None` where there is too little, unless it is `needed`.
    pub(super) fn take(&self, bytes: usize, needed: bool) -> Option<Share> {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let share = Share(self.0.clone(), bytes);
        (needed || before + bytes <= Self::MOST).then_some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// Something that is to be done in its turn.
#[derive(Debug)]
pub(super) enum Work {
    Packets(Batch),
    /// Acknowledge a flush: all before it is committed.
    Flushed(u64),
    /// A recording is over: all of it is committed.
    Stopped(u64),
}

/// Packets of a writer.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) writer: WriterId,
    pub(super) buffer: u32,
    /// Each as a `packet` field of a `Trace`.
    pub(super) packets: Vec<u8>,
    /// Their share of a backlog.
    pub(super) _share: Share,
}

/// What is to be sent next.
#[derive(Debug)]
pub(super) enum Next {
    /// The argument of a `CommitData` whose reply is waited for.
    Commit(Vec<u8>),
    /// The argument of one without reply.
    Acknowledge(Vec<u8>),
    Stopped(u64),
}

/// Everything that waits to be committed over one connection.
#[derive(Debug, Default)]
pub(super) struct Commits {
    memory: Option<SharedMemory>,
    work: VecDeque<Work>,
    writers: HashMap<WriterId, ChunkWriter>,
    unanswered: usize,
    /// Since when an answer is waited for: from the last one, or from the first commit that has none.
    waits_since: Option<Instant>,
    /// Since when the memory is full and no commit under way.
    full_since: Option<Instant>,
}

impl Commits {
    /// Uses this memory from now on.
    pub(super) fn set_memory(&mut self, memory: SharedMemory) {
        self.memory = Some(memory);
    }

    pub(super) fn push(&mut self, work: Work) {
        // An answer is one to all flushes before it (Perfetto's `NotifyFlushDoneForProducer`): a service that asks without end takes no memory.
        if let (Work::Flushed(later), Some(Work::Flushed(request))) = (&work, self.work.back_mut()) {
            *request = (*request).max(*later);
        } else {
            self.work.push_back(work);
        }
    }

    /// A commit was answered.
    pub(super) fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.waits_since = (self.unanswered > 0).then(Instant::now);
    }

    /// Since when the service answers no commit; `None` where it owes no answer.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.waits_since
    }

    /// Whether something waits for memory and nothing that comes would tell when there is some.
    pub(super) fn waits_for_memory(&self) -> bool {
        self.full_since.is_some()
    }

    /// What to send now; `None` where there is nothing, or where an answer or memory has to come first. The second value is what is wrong with the
    /// memory, which is then not used any more.
    pub(super) fn next(&mut self) -> (Option<Next>, Option<&'static str>) {
        let Some(batch) = (match self.work.front_mut() {
            None => return (None, None),
            Some(Work::Packets(batch)) => Some(batch),
            Some(_) => None,
        }) else {
            return (self.next_mark(), None);
        };
        if self.unanswered >= UNANSWERED {
            return (None, None);
        }
        let chunks = self.writers.entry(batch.writer).or_insert_with(|| ChunkWriter::new(batch.writer));
        chunks.push(std::mem::take(&mut batch.packets));
        let (mut commit, mut trouble) = (Commit::default(), None);
        while !chunks.is_empty() && commit.len() < COMMIT {
            let Some(memory) = &mut self.memory else {
                let image = chunks.chunk(PageSize::LARGEST.bytes() - PAGE_HEADER);
                image.iter().for_each(|image| commit.send_chunk(image, batch.buffer));
                continue;
            };
            let Some(slot) = memory.take(chunks.wanted()) else { break };
            let Some(image) = chunks.chunk(slot.size()) else { break };
            if memory.put(&slot, &image) {
                commit.move_chunk(slot.page, slot.chunk, batch.buffer);
            } else {
                commit.send_chunk(&image, batch.buffer);
                self.memory = None;
                trouble = Some("the service changed memory that it had left to dn-top");
            }
        }
        if commit.is_empty() && !chunks.is_empty() {
            if self.unanswered == 0 && self.full_since.get_or_insert_with(Instant::now).elapsed() > FULL {
                (self.memory, self.full_since) = (None, None);
                return (None, Some("the service does not free the memory that it has read"));
            }
            return (None, None);
        }
        self.full_since = None;
        if chunks.is_empty() {
            self.work.pop_front();
        }
        if commit.is_empty() {
            return self.next();
        }
        self.unanswered += 1;
        self.waits_since.get_or_insert_with(Instant::now);
        (Some(Next::Commit(commit.into_bytes())), trouble)
    }

    fn next_mark(&mut self) -> Option<Next> {
        match self.work.pop_front()? {
            Work::Flushed(request) => {
                let mut commit = Commit::default();
                commit.acknowledge(request);
                Some(Next::Acknowledge(commit.into_bytes()))
            }
            Work::Stopped(instance) => Some(Next::Stopped(instance)),
            Work::Packets(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_that_nothing_is_between_have_one_answer() {
        let mut commits = Commits::default();
        for work in [Work::Flushed(1), Work::Flushed(3), Work::Flushed(2), Work::Stopped(9), Work::Flushed(4)] {
            commits.push(work);
        }
        let acknowledged = |request| {
            let mut commit = Commit::default();
            commit.acknowledge(request);
            commit.into_bytes()
        };
        let mut next = || commits.next().0;
        assert!(matches!(next(), Some(Next::Acknowledge(commit)) if commit == acknowledged(3)));
        assert!(matches!(next(), Some(Next::Stopped(9))));
        assert!(matches!(next(), Some(Next::Acknowledge(commit)) if commit == acknowledged(4)));
        assert!(next().is_none());
    }
}
