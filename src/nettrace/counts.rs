//! Counting of events per block without decoding the rest of the stream: blocks can be counted in any order, on any thread.
//!
//! A block is counted in isolation. The decoder checks later, when it reaches the block, whether its references are defined and whether events
//! before it were lost. It decodes the block if it is damaged, has undefined references, or contains events that a sink needs.

use std::ops::Range;

use crate::wire::Reader;

use super::event::{Header, block_header, flag};
use super::frame::{Format, Frame, frame, prologue};
use super::{BlockKind, Limits, ThreadId};

/// Maximum number of distinct event kinds, threads and runs per block. Blocks with more are decoded.
const MAX_DISTINCT: usize = 255;
/// Size of the lookup table that avoids a search if keys differ in the low bits.
const CACHE_SLOTS: usize = 64;
/// Header fields other than the timestamp and the payload size.
const CHANGES: u8 = flag::METADATA | flag::SEQUENCE | flag::THREAD | flag::STACK;

/// Event counts of a block.
#[derive(Debug)]
pub struct Counts<'a> {
    /// Counts per kind of event.
    pub kinds: &'a [KindCount],
    /// The threads of the events.
    pub threads: &'a [ThreadId],
    /// Timestamp of the oldest event.
    pub oldest: i64,
    /// Timestamp of the newest event.
    pub newest: i64,
}

/// Event counts of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct KindCount {
    /// [`Metadata::index`](super::Metadata::index) of the kind.
    pub metadata: u32,
    /// Number of events.
    pub events: u64,
    /// Total size of the payloads in bytes.
    pub bytes: u64,
}

/// Finds block boundaries in a stream that arrives in pieces, and counts the events of its event blocks.
#[derive(Debug)]
pub struct BlockScanner {
    format: Option<Format>,
    block_limit: usize,
    /// Offset of the next byte.
    at: u64,
    /// Remaining bytes of a block to skip.
    skip: u64,
    /// No more blocks follow.
    is_over: bool,
}

/// A prefix of some bytes of a stream, ending at a block boundary.
#[derive(Debug, Default)]
pub struct ScannedBlocks {
    size: usize,
    blocks: Vec<EventBlock>,
    pub(super) counted: Vec<BlockCounts>,
}

/// Position of an event block.
#[derive(Debug)]
struct EventBlock {
    format: Format,
    at: u64,
    body: Range<usize>,
}

/// Counts of an event block, with IDs as in the block.
#[derive(Debug, Default)]
pub(super) struct BlockCounts {
    /// Offset of the block's content from the start of the stream.
    pub(super) at: u64,
    /// Per metadata ID.
    pub(super) kinds: Vec<KindCount>,
    /// IDs (or indexes in V6) of the threads of the events.
    pub(super) threads: Vec<u64>,
    pub(super) runs: Vec<Run>,
    /// Last run of each capture thread.
    last_run: Vec<usize>,
    pub(super) oldest: i64,
    pub(super) newest: i64,
    /// Timestamp of the last event.
    pub(super) last: i64,
    /// Smallest and largest stack ID.
    pub(super) stacks: Option<(u32, u32)>,
}

/// Events of a capture thread with consecutive sequence numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// ID (or index in V6) of the thread.
    pub(super) thread: u64,
    pub(super) first: u32,
    pub(super) last: u32,
    /// Timestamp of the first event.
    pub(super) timestamp: i64,
}

impl BlockScanner {
    /// Creates a scanner for the start of a stream that is decoded by a [`Decoder`](super::Decoder) with the same limits.
    pub fn new(limits: Limits) -> Self {
        Self { format: None, block_limit: limits.block_bytes, at: 0, skip: 0, is_over: false }
    }

    /// Scans the next bytes of the stream for complete blocks. The remaining bytes must be passed again, with more data. If `bytes`
    /// start with a block that is longer than they are, they are not held back.
    pub fn scan(&mut self, bytes: &[u8]) -> ScannedBlocks {
        let mut scanned = ScannedBlocks::default();
        while scanned.size < bytes.len() {
            let rest = &bytes[scanned.size..];
            let here = |size: u64| usize::try_from(size).unwrap_or(usize::MAX).min(rest.len());
            let size = match (self.format, self.skip) {
                _ if self.is_over => rest.len(),
                (_, 1..) => {
                    let skipped = here(self.skip);
                    self.skip -= skipped as u64;
                    skipped
                }
                (None, _) => match prologue(rest) {
                    Ok(Ok((format, size))) => {
                        self.format = Some(format);
                        size
                    }
                    Ok(Err(_)) => break,
                    // The decoder reports the error.
                    Err(_) => self.end(),
                },
                (Some(format), _) => match frame(format, rest, self.at, self.block_limit) {
                    Ok(Frame::Short(_)) => break,
                    Ok(Frame::Block { size, .. }) if size > rest.len() && scanned.size > 0 => break,
                    Ok(Frame::Block { kind: BlockKind::Event, body, size, .. }) if size <= rest.len() => {
                        let at = self.at + body.start as u64;
                        scanned.blocks.push(EventBlock { format, at, body: scanned.size + body.start..scanned.size + body.end });
                        size
                    }
                    Ok(Frame::Block { size, .. }) => self.pass(size as u64),
                    Ok(Frame::Unknown { size }) => self.pass(size),
                    Ok(Frame::End { .. }) | Err(_) => self.end(),
                },
            };
            scanned.size += size;
            self.at += size as u64;
        }
        scanned
    }

    fn pass(&mut self, size: u64) -> usize {
        self.skip = size;
        0
    }

    fn end(&mut self) -> usize {
        self.is_over = true;
        0
    }
}

impl ScannedBlocks {
    /// Returns the length of the prefix in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Extends the prefix to `size` bytes, for the end of the stream.
    pub fn extend(&mut self, size: usize) {
        self.size = size;
    }

    /// Counts the event blocks in these bytes, which must be the ones that were scanned. To be called once.
    pub fn count(&mut self, bytes: &[u8]) {
        for EventBlock { format, at, body } in self.blocks.drain(..) {
            let counts = match format {
                Format::V4 => BlockCounts::of::<false>(&bytes[body]),
                Format::V6 => BlockCounts::of::<true>(&bytes[body]),
            };
            self.counted.extend(counts.map(|counts| BlockCounts { at, ..counts }));
        }
    }
}

impl BlockCounts {
    /// Returns `None` if the block cannot be counted and must be decoded.
    fn of<const V6: bool>(block: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(block);
        let is_compressed = block_header(&mut reader)?;
        if !is_compressed || reader.is_empty() {
            return None;
        }
        let (mut kinds, mut writers, mut threads) = (KeyIndexes::new(), KeyIndexes::new(), KeyIndexes::new());
        let mut counts = Self { oldest: i64::MAX, newest: i64::MIN, ..Self::default() };
        let mut header = Header::default();
        let (mut kind, mut run) = (None, None);
        let (mut events, mut bytes) = (0, 0);
        while !reader.is_empty() {
            let number = header.sequence;
            let (flags, payload) = header.read_compressed::<V6>(&mut reader)?;
            // Most events have the same kind, thread and stack as the previous one.
            if flags & CHANGES != 0 || run.is_none() {
                if flags & flag::METADATA != 0 || kind.is_none() {
                    counts.add(kind, events, bytes);
                    (events, bytes) = (0, 0);
                    let place = kinds.of(header.metadata.into(), || {
                        counts.kinds.push(KindCount { metadata: header.metadata, ..KindCount::default() })
                    })?;
                    // In V4, blobs without a kind have no sequence number.
                    kind = Some(place).filter(|_| V6 || header.metadata != 0);
                }
                kind?;
                if flags & flag::SEQUENCE != 0 || run.is_none() {
                    counts.end_run(run, number);
                    run = Some(counts.run(&mut writers, &header)?);
                }
                if flags & flag::THREAD != 0 || counts.threads.is_empty() {
                    threads.of(header.thread, || counts.threads.push(header.thread))?;
                }
                if flags & flag::STACK != 0 && header.stack != 0 {
                    let (least, most) = counts.stacks.unwrap_or((header.stack, header.stack));
                    counts.stacks = Some((least.min(header.stack), most.max(header.stack)));
                }
            }
            let timestamp = header.timestamp as i64;
            counts.oldest = counts.oldest.min(timestamp);
            counts.newest = counts.newest.max(timestamp);
            events += 1;
            bytes += payload.len() as u64;
        }
        counts.add(kind, events, bytes);
        counts.end_run(run, header.sequence);
        counts.last = header.timestamp as i64;
        Some(counts)
    }

    fn add(&mut self, kind: Option<usize>, events: u64, bytes: u64) {
        if let Some(kind) = kind.and_then(|place| self.kinds.get_mut(place)) {
            kind.events += events;
            kind.bytes += bytes;
        }
    }

    /// Returns the run of an event: the last one of its capture thread if the sequence number is the next, else a new one.
    fn run(&mut self, writers: &mut KeyIndexes, header: &Header) -> Option<usize> {
        let Header { capture_thread: thread, sequence: first, .. } = *header;
        let writer = writers.of(thread, || self.last_run.push(self.runs.len()))?;
        let place = self.last_run[writer];
        let before = first.wrapping_sub(1);
        if self.runs.get(place).is_some_and(|run| run.last == before) {
            return Some(place);
        }
        self.last_run[writer] = self.runs.len();
        self.runs.push(Run { thread, first, last: before, timestamp: header.timestamp as i64 });
        (self.runs.len() <= MAX_DISTINCT).then(|| self.runs.len() - 1)
    }

    fn end_run(&mut self, run: Option<usize>, last: u32) {
        if let Some(run) = run.and_then(|place| self.runs.get_mut(place)) {
            run.last = last;
        }
    }
}

/// Assigns consecutive indexes to a small number of keys, in the order of their first use.
struct KeyIndexes {
    keys: Vec<u64>,
    cache: [u8; CACHE_SLOTS],
}

impl KeyIndexes {
    fn new() -> Self {
        Self { keys: Vec::new(), cache: [0; CACHE_SLOTS] }
    }

    /// Returns the index of a key, adding the key if necessary. `None` if there are too many.
    #[inline]
    fn of(&mut self, key: u64, add: impl FnOnce()) -> Option<usize> {
        let cached = usize::from(self.cache[key as usize % CACHE_SLOTS]);
        if self.keys.get(cached) == Some(&key) {
            return Some(cached);
        }
        let place = match self.keys.iter().position(|known| *known == key) {
            Some(place) => place,
            None if self.keys.len() == MAX_DISTINCT => return None,
            None => {
                add();
                self.keys.push(key);
                self.keys.len() - 1
            }
        };
        self.cache[key as usize % CACHE_SLOTS] = place as u8;
        Some(place)
    }
}
