//! Queue of stream bytes waiting to be counted.
//!
//! A few megabytes are held in memory. Bytes that arrive faster than they are counted are read back later from the file they were written to,
//! because a decoder cannot skip bytes. A flight recorder that only keeps decoded events has no such file: there the reader blocks until
//! there is room. Analysis is dropped long before that point, and counting alone is faster than any runtime.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::count::{Counted, SecondarySinks};
use super::live_snapshots::MIN_SNAPSHOT_INTERVAL;
use super::progress::Progress;
use super::trace_session::{CHUNK, Cut, TraceSession};
use crate::net::files;
use crate::nettrace::{DecodeError, Decoder, Limits, Sink};

/// Maximum number of queued chunks. All but the newest are at least half full on average, since small ones are merged.
const MAX_CHUNKS: usize = 64;

/// Queue between the thread that reads a stream and the thread that counts it.
#[derive(Default)]
pub(super) struct Backlog {
    queue: Mutex<Queue>,
    /// Notified when bytes arrive, the stream ends, or room becomes available. Only one side ever waits: for bytes when the queue is empty,
    /// or for room.
    changed: Condvar,
    bytes: AtomicU64,
    ended: OnceLock<Instant>,
}

#[derive(Default)]
struct Queue {
    /// Each buffer with the number of its bytes that are valid.
    chunks: VecDeque<(Vec<u8>, usize)>,
    /// Number of bytes after the chunks that are available only in the file.
    in_file: u64,
    /// Buffers for reuse.
    empty: Vec<Vec<u8>>,
    /// Set when counting has stopped.
    gone: bool,
}

impl Queue {
    /// Appends a chunk to the last buffer if it fits there, otherwise as a new buffer. Returns it if there is no room.
    fn add(&mut self, chunk: Vec<u8>, length: usize) -> Result<(), Vec<u8>> {
        if let Some((last, used)) = self.chunks.back_mut()
            && let Some(free) = last.get_mut(*used..*used + length)
        {
            free.copy_from_slice(&chunk[..length]);
            *used += length;
            self.empty.push(chunk);
            return Ok(());
        }
        if self.chunks.len() >= MAX_CHUNKS {
            return Err(chunk);
        }
        self.chunks.push_back((chunk, length));
        Ok(())
    }
}

impl Backlog {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a buffer for the next chunk.
    pub(super) fn buffer(&self) -> Vec<u8> {
        self.queue().empty.pop().unwrap_or_else(|| vec![0; CHUNK])
    }

    /// Number of bytes not counted yet.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Time since the end of the stream, if it has ended.
    pub(super) fn since_end(&self) -> Option<Duration> {
        self.ended.get().map(Instant::elapsed)
    }

    /// Adds the first `length` bytes of a buffer, which are also in the file. Never blocks.
    pub(super) fn add_written(&self, chunk: Vec<u8>, length: usize) {
        self.bytes.fetch_add(length as u64, Ordering::Relaxed);
        let mut queue = self.queue();
        let refused = if queue.in_file > 0 { Err(chunk) } else { queue.add(chunk, length) };
        if let Err(chunk) = refused {
            queue.in_file += length as u64;
            queue.empty.push(chunk);
        }
        self.changed.notify_one();
    }

    /// Adds the first `length` bytes of a buffer, which are stored nowhere else. Blocks until there is room.
    pub(super) fn add(&self, mut chunk: Vec<u8>, length: usize) {
        self.bytes.fetch_add(length as u64, Ordering::Relaxed);
        let mut queue = self.queue();
        while !queue.gone {
            match queue.add(chunk, length) {
                Ok(()) => break,
                Err(refused) => chunk = refused,
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        self.changed.notify_one();
    }

    /// Adds this many bytes of the file.
    pub(super) fn add_file(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.queue().in_file += bytes;
        self.changed.notify_one();
    }

    /// Marks the end of the stream.
    pub(super) fn end(&self) {
        let queue = self.queue();
        // Fails only if the end is already marked.
        let _ = self.ended.set(Instant::now());
        drop(queue);
        self.changed.notify_one();
    }

    /// Returns the next work item, waiting for it at most [`MIN_SNAPSHOT_INTERVAL`].
    fn next(&self) -> Work {
        let mut queue = self.queue();
        if queue.chunks.is_empty() && queue.in_file == 0 && self.ended.get().is_none() {
            queue = self.changed.wait_timeout(queue, MIN_SNAPSHOT_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some((chunk, length)) = queue.chunks.pop_front() {
            self.changed.notify_one();
            return Work::Chunk(chunk, length);
        }
        match std::mem::take(&mut queue.in_file) {
            0 if self.ended.get().is_some() => Work::Ended,
            0 => Work::Idle,
            bytes => Work::InFile(bytes),
        }
    }
}

/// Next work item of the counting thread.
enum Work {
    /// A buffer and the number of its valid bytes.
    Chunk(Vec<u8>, usize),
    /// Number of bytes available only in the file.
    InFile(u64),
    Idle,
    /// The stream has ended and everything is counted.
    Ended,
}

/// Source of the bytes to count.
pub(super) struct Source {
    backlog: Arc<Backlog>,
    file: Option<File>,
    /// The session to cut if its stream cannot be decoded.
    session: Option<Arc<TraceSession>>,
    /// Number of bytes counted so far, which is the offset in the file.
    at: u64,
    progress: Arc<Progress>,
}

impl Drop for Source {
    fn drop(&mut self) {
        self.backlog.queue().gone = true;
        self.backlog.changed.notify_one();
    }
}

/// Why counting ended before the stream did.
#[derive(Debug)]
enum CountError {
    Undecodable(DecodeError),
    Unreadable(io::Error),
    Abandoned,
}

impl CountError {
    fn message(&self) -> String {
        match self {
            Self::Undecodable(error) => format!("cannot decode the event stream: {error}; the bytes are kept"),
            Self::Unreadable(error) => format!("cannot read the file back, so its end could not be verified: {error}"),
            Self::Abandoned => "canceled before all events were counted; the bytes are kept".to_owned(),
        }
    }
}

impl Source {
    pub(super) fn new(backlog: Arc<Backlog>, file: Option<File>, session: Option<Arc<TraceSession>>, progress: Arc<Progress>) -> Self {
        Self { backlog, file, session, at: 0, progress }
    }

    /// Feeds a decoder until the stream ends and returns the result. `publish` is called before and after each chunk, while the stream is
    /// idle, and at the end.
    pub(super) fn drain<S: Sink>(
        mut self,
        mut sink: (S, SecondarySinks),
        mut publish: impl FnMut(&mut (S, SecondarySinks), bool),
    ) -> Counted {
        let mut decoder = Decoder::new(Limits::LIVE);
        let mut outcome = Ok(());
        loop {
            publish(&mut sink, false);
            match self.backlog.next() {
                Work::Ended => break,
                // Rates fall while the stream is idle. A runtime writes all pending events ten times a second, so nothing older can still
                // arrive.
                Work::Idle => decoder.flush(&mut sink),
                work if outcome.is_ok() => outcome = self.feed(work, &mut decoder, &mut sink, &mut publish),
                Work::Chunk(chunk, _) => self.backlog.queue().empty.push(chunk),
                Work::InFile(_) => {}
            }
            if let Some(session) = &self.session {
                session.examine(&decoder);
            }
            if let Err(CountError::Undecodable(error)) = &outcome
                && !matches!(error, DecodeError::Version(_))
                && let Some(session) = self.session.take()
            {
                session.cut(Cut::Undecodable(error.clone()));
            }
        }
        let complete = decoder.finish(&mut sink).is_complete();
        publish(&mut sink, true);
        Counted { complete: complete && outcome.is_ok(), trouble: outcome.err().map(|why| why.message()), recent: sink.1.recent }
    }

    fn feed<S: Sink>(
        &mut self,
        work: Work,
        decoder: &mut Decoder,
        sink: &mut (S, SecondarySinks),
        publish: &mut impl FnMut(&mut (S, SecondarySinks), bool),
    ) -> Result<(), CountError> {
        let Self { backlog, at, progress, file, session, .. } = self;
        let mut took = |bytes: usize| {
            *at += bytes as u64;
            backlog.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
            *at
        };
        match (work, file) {
            (Work::Chunk(chunk, length), _) => {
                let fed = decoder.feed(&chunk[..length], sink);
                took(length);
                backlog.queue().empty.push(chunk);
                fed.map_err(CountError::Undecodable)
            }
            (Work::InFile(mut left), Some(file)) => {
                let (mut buffer, mut at) = (vec![0; CHUNK], took(0));
                while left > 0 {
                    if progress.abandoned.load(Ordering::Relaxed) {
                        return Err(CountError::Abandoned);
                    }
                    let size = left.min(CHUNK as u64) as usize;
                    files::read_exact_at(file, &mut buffer[..size], at).map_err(CountError::Unreadable)?;
                    decoder.feed(&buffer[..size], sink).map_err(CountError::Undecodable)?;
                    at = took(size);
                    left -= size as u64;
                    if let Some(session) = session {
                        session.examine(decoder);
                    }
                    publish(sink, false);
                }
                Ok(())
            }
            (Work::InFile(_) | Work::Idle | Work::Ended, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_the_maximum_are_read_from_the_file_in_order() {
        let backlog = Backlog::default();
        let add = || backlog.add_written(vec![0; CHUNK], CHUNK);
        (0..MAX_CHUNKS + 2).for_each(|_| add());
        assert!(matches!(backlog.next(), Work::Chunk(..)));
        // There is room again, but the bytes in the file precede these.
        add();
        let mut queued = 0;
        let in_file = loop {
            match backlog.next() {
                Work::Chunk(..) => queued += 1,
                Work::InFile(bytes) => break bytes,
                Work::Idle | Work::Ended => panic!("nothing is left"),
            }
        };
        assert_eq!((queued, in_file), (MAX_CHUNKS - 1, 3 * CHUNK as u64));
    }
}
