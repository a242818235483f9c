//! Turns packets into commits: chunks in the shared memory, or inside the commits if there is none.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::HashMap;
use tokio::time::Instant;

use crate::net::perfetto::SharedMemory;
use crate::perfetto::chunk::{ChunkWriter, WriterId};
use crate::perfetto::page::{PAGE_HEADER, PageSize};
use crate::perfetto::producer::Commit;

/// Maximum size of a commit, chosen so that it fits in a frame including the last chunk.
const MAX_COMMIT_BYTES: usize = 64 * 1024;
/// Maximum number of unanswered commits.
const MAX_UNANSWERED: usize = 8;
/// How long the memory may be full while no commit is pending: a service frees chunks as soon as it has copied them.
const FULL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

/// Size of the queued packets of one stream, in bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct PacketQuota(Arc<AtomicUsize>);

/// A share of a backlog, released on drop.
#[derive(Debug)]
pub(super) struct Share(Arc<AtomicUsize>, usize);

impl PacketQuota {
    /// Maximum number of queued bytes.
    const MAX_BYTES: usize = 8 << 20;

    /// Reserves room for this many bytes; `None` if there is too little, unless `needed` is set.
    pub(super) fn take(&self, bytes: usize, needed: bool) -> Option<Share> {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let share = Share(self.0.clone(), bytes);
        (needed || before + bytes <= Self::MAX_BYTES).then_some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// Work item, processed in order.
#[derive(Debug)]
pub(super) enum Work {
    Packets(Batch),
    /// Acknowledge a flush: everything before it is committed.
    Flushed(u64),
    /// A recording has ended: everything of it is committed.
    Stopped(u64),
}

/// Packets of one writer.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) writer: WriterId,
    pub(super) buffer: u32,
    /// Each encoded as a `packet` field of a `Trace`.
    pub(super) packets: Vec<u8>,
    /// Their share of the backlog.
    pub(super) _share: Share,
}

/// Next message to send.
#[derive(Debug)]
pub(super) enum Next {
    /// Arguments of a `CommitData` call with a reply.
    Commit(Vec<u8>),
    /// Arguments of a `CommitData` call without a reply.
    Acknowledge(Vec<u8>),
    Stopped(u64),
}

/// Everything waiting to be committed over one connection.
#[derive(Debug, Default)]
pub(super) struct Commits {
    memory: Option<SharedMemory>,
    work: VecDeque<Work>,
    writers: HashMap<WriterId, ChunkWriter>,
    unanswered: usize,
    /// Start of the wait for an answer: the last answer, or the first commit without one.
    waits_since: Option<Instant>,
    /// Since when the memory has been full without a pending commit.
    full_since: Option<Instant>,
}

impl Commits {
    /// Uses this memory from now on.
    pub(super) fn set_memory(&mut self, memory: SharedMemory) {
        self.memory = Some(memory);
    }

    pub(super) fn push(&mut self, work: Work) {
        // One answer acknowledges all earlier flushes (Perfetto's `NotifyFlushDoneForProducer`), so a service that flushes endlessly uses no
        // memory here.
        if let (Work::Flushed(later), Some(Work::Flushed(request))) = (&work, self.work.back_mut()) {
            *request = (*request).max(*later);
        } else {
            self.work.push_back(work);
        }
    }

    /// Records the answer to a commit.
    pub(super) fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.waits_since = (self.unanswered > 0).then(Instant::now);
    }

    /// Since when the service has answered no commit; `None` if no answer is pending.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.waits_since
    }

    /// Whether packets wait for memory without a pending answer that would signal free memory.
    pub(super) fn waits_for_memory(&self) -> bool {
        self.full_since.is_some()
    }

    /// Returns the message to send now; `None` if there is none, or an answer or free memory is needed first. The second value is a fault of
    /// the shared memory, which is no longer used after it.
    pub(super) fn next(&mut self) -> (Option<Next>, Option<&'static str>) {
        let batch = match self.work.front_mut() {
            None => return (None, None),
            Some(Work::Packets(batch)) => batch,
            Some(Work::Flushed(request)) => {
                let mut commit = Commit::default();
                commit.acknowledge(*request);
                self.work.pop_front();
                return (Some(Next::Acknowledge(commit.into_bytes())), None);
            }
            Some(Work::Stopped(instance)) => {
                let stopped = Next::Stopped(*instance);
                self.work.pop_front();
                return (Some(stopped), None);
            }
        };
        if self.unanswered >= MAX_UNANSWERED {
            return (None, None);
        }
        let chunks = self.writers.entry(batch.writer).or_insert_with(|| ChunkWriter::new(batch.writer));
        chunks.push(std::mem::take(&mut batch.packets));
        let (mut commit, mut trouble) = (Commit::default(), None);
        while !chunks.is_empty() && commit.len() < MAX_COMMIT_BYTES {
            let Some(memory) = &mut self.memory else {
                let image = chunks.chunk(PageSize::MAX.bytes() - PAGE_HEADER);
                image.iter().for_each(|image| commit.send_chunk(image, batch.buffer));
                continue;
            };
            let Some(slot) = memory.take(chunks.required_size()) else { break };
            let Some(image) = chunks.chunk(slot.size()) else { break };
            if memory.put(&slot, &image) {
                commit.move_chunk(slot.page, slot.chunk, batch.buffer);
            } else {
                commit.send_chunk(&image, batch.buffer);
                self.memory = None;
                trouble = Some("the service modified shared memory owned by dn-top");
            }
        }
        if commit.is_empty() && !chunks.is_empty() {
            if self.unanswered == 0 && self.full_since.get_or_insert_with(Instant::now).elapsed() > FULL_TIMEOUT {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of a writer, 100 bytes each.
    fn batch(packets: usize) -> Work {
        let packets = [&[0x0a, 98][..], &[7; 98]].concat().repeat(packets);
        let share = PacketQuota::default().take(packets.len(), true).unwrap();
        Work::Packets(Batch { writer: WriterId::new(1).unwrap(), buffer: 0, packets, _share: share })
    }

    #[test]
    fn queued_packets_have_a_limit_that_needed_ones_exceed() {
        let quota = PacketQuota::default();
        let all = quota.take(PacketQuota::MAX_BYTES, false).unwrap();
        assert!(quota.take(1, false).is_none());
        let needed = quota.take(1, true);
        drop(all);
        assert!(needed.is_some() && quota.take(PacketQuota::MAX_BYTES, false).is_none());
        drop(needed);
        assert!(quota.take(PacketQuota::MAX_BYTES, false).is_some());
    }

    /// A service that answers nothing keeps no more than a few commits, and each fits in a frame.
    #[test]
    fn size_and_number_of_unanswered_commits_are_limited() {
        let mut commits = Commits::default();
        commits.push(batch(10_000));
        for _ in 0..MAX_UNANSWERED {
            let Some(Next::Commit(commit)) = commits.next().0 else { panic!("no commit") };
            let with_last = MAX_COMMIT_BYTES + PageSize::MAX.bytes();
            assert!((MAX_COMMIT_BYTES..with_last).contains(&commit.len()), "{}", commit.len());
        }
        assert!(commits.next().0.is_none());
        commits.answered();
        assert!(matches!(commits.next().0, Some(Next::Commit(_))));
    }

    /// Memory that stays full is no longer used, but not while an answer may free it.
    #[cfg(target_os = "linux")]
    #[tokio::test(start_paused = true)]
    async fn memory_that_is_never_freed_is_abandoned() {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
        use std::os::unix::fs::FileExt;
        use tokio::time::advance;
        let file = memfd_create("memory", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, 4096).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        let service_file = std::fs::File::from(file.try_clone().unwrap());
        let mut commits = Commits::default();
        commits.set_memory(SharedMemory::map(vec![file], Some(PageSize::DEFAULT)).unwrap());
        commits.push(batch(1000));
        assert!(matches!(commits.next(), (Some(Next::Commit(_)), None)));
        for _ in 0..2 {
            assert!(matches!(commits.next(), (None, None)));
            advance(2 * FULL_TIMEOUT).await;
        }
        commits.answered();
        assert!(matches!(commits.next(), (None, None)) && commits.waits_for_memory());
        advance(FULL_TIMEOUT / 2).await;
        // The service frees the page.
        service_file.write_all_at(&[0; 4], 0).unwrap();
        assert!(matches!(commits.next(), (Some(Next::Commit(_)), None)) && !commits.waits_for_memory());
        commits.answered();
        assert!(matches!(commits.next(), (None, None)));
        advance(FULL_TIMEOUT - std::time::Duration::from_millis(100)).await;
        assert!(matches!(commits.next(), (None, None)));
        advance(FULL_TIMEOUT).await;
        assert!(matches!(commits.next(), (None, Some(_))));
        assert!(matches!(commits.next(), (Some(Next::Commit(_)), None)), "the rest is sent without it");
    }

    #[test]
    fn consecutive_flushes_get_one_acknowledgement() {
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
