//! Events counted by the block, without the rest of the stream: in any order of the blocks, and on any thread.
//!
//! What a block holds is counted by itself. Whether what it refers to is known, and whether anything is missing before it, is looked at where the decoder
//! gets to it; a block that is damaged, refers to what is not known, or has events that a sink needs, is decoded there.

use std::ops::Range;

use crate::wire::Reader;

use super::event::{Header, block_header, flag};
use super::frame::{Format, Frame, frame, prologue};
use super::{BlockKind, Limits, ThreadId};

/// Kinds of events, threads and gaps in a block that are distinguished. Blocks with more are decoded.
const MOST: usize = 255;
/// Places that are found without a search, as long as keys differ in the low bits.
const NEAR: usize = 64;
/// Fields of a header besides the time of the event.
const CHANGES: u8 = flag::METADATA | flag::SEQUENCE | flag::THREAD | flag::STACK;

/// The events of a block, counted.
#[derive(Debug)]
pub struct Counts<'a> {
    /// By kind of event.
    pub kinds: &'a [KindCount],
    /// The threads that they are about.
    pub threads: &'a [ThreadId],
    /// Timestamp of the oldest.
    pub oldest: i64,
    /// Timestamp of the newest.
    pub newest: i64,
}

/// The events of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct KindCount {
    /// [`Metadata::index`](super::Metadata::index) of the kind.
    pub metadata: u32,
    /// How many.
    pub events: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

/// Finds where the blocks of a stream end that comes in pieces, and counts what its event blocks hold.
#[derive(Debug)]
pub struct Cutter {
    format: Option<Format>,
    block_limit: usize,
    /// Offset of the next byte.
    at: u64,
    /// Bytes of a block that still come.
    skip: u64,
    /// No more blocks are found.
    is_over: bool,
}

/// The start of some bytes of a stream, up to the end of a block.
#[derive(Debug, Default)]
pub struct Cut {
    size: usize,
    blocks: Vec<EventBlock>,
    pub(super) counted: Vec<BlockCounts>,
}

/// Where an event block is.
#[derive(Debug)]
struct EventBlock {
    format: Format,
    at: u64,
    body: Range<usize>,
}

/// What an event block holds, in terms of the block.
#[derive(Debug, Default)]
pub(super) struct BlockCounts {
    /// Offset of the block's content from the start of the stream.
    pub(super) at: u64,
    /// By the id of their metadata.
    pub(super) kinds: Vec<KindCount>,
    /// Numbers or indexes of the threads that events are about.
    pub(super) threads: Vec<u64>,
    pub(super) runs: Vec<Run>,
    /// By capture thread, its last run.
    last_run: Vec<usize>,
    pub(super) oldest: i64,
    pub(super) newest: i64,
    /// Timestamp of the last event.
    pub(super) last: i64,
    /// Smallest and largest number of a stack.
    pub(super) stacks: Option<(u32, u32)>,
}

/// Events of a capture thread of which none is missing, by their numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// Number or index of the thread.
    pub(super) thread: u64,
    pub(super) first: u32,
    pub(super) last: u32,
    /// Of the first.
    pub(super) timestamp: i64,
}

impl Cutter {
    /// Waits for the first byte of a stream, of which a [`Decoder`](super::Decoder) with these limits gets every piece.
    pub fn new(limits: Limits) -> Self {
        Self { format: None, block_limit: limits.block_bytes, at: 0, skip: 0, is_over: false }
    }

    /// Cuts the next bytes of the stream behind the last block that ends in them. What is behind that has to come again, with more behind it. Bytes of a
    /// block that begins with them and is longer are not held back.
    pub fn cut(&mut self, bytes: &[u8]) -> Cut {
        let mut cut = Cut::default();
        while cut.size < bytes.len() {
            let rest = &bytes[cut.size..];
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
                    // The decoder reports what is wrong.
                    Err(_) => self.end(),
                },
                (Some(format), _) => match frame(format, rest, self.at, self.block_limit) {
                    Ok(Frame::Short(_)) => break,
                    Ok(Frame::Block { size, .. }) if size > rest.len() && cut.size > 0 => break,
                    Ok(Frame::Block { kind: BlockKind::Event, body, size, .. }) if size <= rest.len() => {
                        let at = self.at + body.start as u64;
                        cut.blocks.push(EventBlock { format, at, body: cut.size + body.start..cut.size + body.end });
                        size
                    }
                    Ok(Frame::Block { size, .. }) => self.pass(size as u64),
                    Ok(Frame::Unknown { size }) => self.pass(size),
                    Ok(Frame::End { .. }) | Err(_) => self.end(),
                },
            };
            cut.size += size;
            self.at += size as u64;
        }
        cut
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

impl Cut {
    /// How many bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Cuts behind these bytes instead: nothing comes behind them.
    pub fn extend(&mut self, size: usize) {
        self.size = size;
    }

    /// Counts what the event blocks in these bytes hold, the same ones that were cut; once.
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
    /// `None` where there is more than counts.
    fn of<const V6: bool>(block: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(block);
        let is_compressed = block_header(&mut reader)?;
        if !is_compressed || reader.is_empty() {
            return None;
        }
        let (mut kinds, mut writers, mut threads) = (Places::new(), Places::new(), Places::new());
        let mut counts = Self { oldest: i64::MAX, newest: i64::MIN, ..Self::default() };
        let mut header = Header::default();
        let (mut kind, mut run) = (None, None);
        let (mut events, mut bytes) = (0, 0);
        while !reader.is_empty() {
            let number = header.sequence;
            let (flags, payload) = header.read_compressed::<V6>(&mut reader)?;
            // Most events continue where the one before them was.
            if flags & CHANGES != 0 || run.is_none() {
                if flags & flag::METADATA != 0 || kind.is_none() {
                    counts.add(kind, events, bytes);
                    (events, bytes) = (0, 0);
                    let place = kinds.of(header.metadata.into(), || {
                        counts.kinds.push(KindCount { metadata: header.metadata, ..KindCount::default() })
                    })?;
                    // Blobs without a kind have no numbers.
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

    /// The run that an event is in: the last one of its capture thread, where its number is the next.
    fn run(&mut self, writers: &mut Places, header: &Header) -> Option<usize> {
        let Header { capture_thread: thread, sequence: first, .. } = *header;
        let writer = writers.of(thread, || self.last_run.push(self.runs.len()))?;
        let place = self.last_run[writer];
        let before = first.wrapping_sub(1);
        if self.runs.get(place).is_some_and(|run| run.last == before) {
            return Some(place);
        }
        self.last_run[writer] = self.runs.len();
        self.runs.push(Run { thread, first, last: before, timestamp: header.timestamp as i64 });
        (self.runs.len() <= MOST).then(|| self.runs.len() - 1)
    }

    fn end_run(&mut self, run: Option<usize>, last: u32) {
        if let Some(run) = run.and_then(|place| self.runs.get_mut(place)) {
            run.last = last;
        }
    }
}

/// Which place each of a few keys has, in the order in which they came.
struct Places {
    keys: Vec<u64>,
    near: [u8; NEAR],
}

impl Places {
    fn new() -> Self {
        Self { keys: Vec::new(), near: [0; NEAR] }
    }

    /// The place of a key, which is made where there is none. `None` where there are too many.
    #[inline]
    fn of(&mut self, key: u64, add: impl FnOnce()) -> Option<usize> {
        let near = usize::from(self.near[key as usize % NEAR]);
        if self.keys.get(near) == Some(&key) {
            return Some(near);
        }
        let place = match self.keys.iter().position(|known| *known == key) {
            Some(place) => place,
            None if self.keys.len() == MOST => return None,
            None => {
                add();
                self.keys.push(key);
                self.keys.len() - 1
            }
        };
        self.near[key as usize % NEAR] = place as u8;
        Some(place)
    }
}
