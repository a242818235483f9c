//! The push decoder for event streams.

mod blocks;
#[cfg(test)]
mod tests;

use super::frame::{Format, Frame, footer, foreign_start, frame, prologue};
use super::{BlockKind, DecodeError, Metadata, Problem, ProblemKind, ScannedBlocks, Sink, TraceHeader};

use blocks::Blocks;

/// Larger buffers are shrunk to this size after use.
const MAX_KEPT_BUFFER_BYTES: usize = 1 << 20;

/// Maximum size of an incomplete block that is left to the caller. Runtimes write blocks of about 100 KB.
pub(super) const MAX_LEFT_BYTES: usize = 256 << 10;

/// Limits of memory usage, regardless of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a block in bytes. Runtimes write blocks of about 100 KB.
    pub block_bytes: usize,
    /// Maximum number of metadata records.
    pub metadata_records: usize,
    /// Maximum total size of all metadata records in the stream, in bytes.
    pub metadata_bytes: usize,
    /// Maximum size in bytes of the stacks between two sequence points, and likewise of the labels; runtimes write a sequence point every 10
    /// MB of buffers.
    pub stack_bytes: usize,
    /// Maximum number of live threads.
    pub threads: usize,
}

impl Limits {
    /// For a stream from a process: its blocks are shorter, and it may be hostile.
    pub const LIVE: Self = Self { block_bytes: 16 << 20, ..Self::FILE };
    /// For a file.
    const FILE: Self =
        Self { block_bytes: 64 << 20, metadata_records: 65_536, metadata_bytes: 4 << 20, stack_bytes: 16 << 20, threads: 65_536 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::FILE
    }
}

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With its end marker.
    Complete,
    /// In the middle: the target died, or the reader stopped. Every complete event was delivered, including those of an incomplete block.
    Truncated {
        /// Bytes up to the end of the last complete block: the part of a file worth keeping.
        complete_bytes: u64,
        /// Bytes after it.
        trailing_bytes: u64,
    },
    /// With a decoding error.
    Broken {
        /// The error.
        error: DecodeError,
        /// Bytes up to the end of the last complete block.
        complete_bytes: u64,
    },
}

impl Ending {
    /// Returns whether the stream ended with its end marker.
    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }
}

/// Instructions to repair a truncated stream: keep its start, patch four bytes, append the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Number of bytes to keep.
    pub keep: u64,
    /// Offset and value of four bytes to overwrite: the size of the block that is now shorter.
    pub patch: Option<(u64, [u8; 4])>,
    /// Bytes to append.
    pub append: &'static [u8],
}

/// Decodes a stream that arrives in pieces of any size.
///
/// Blocks that are complete in the input are decoded in place; others are buffered first. The calls to the sink do not depend on how the
/// stream is split.
#[derive(Debug)]
pub struct Decoder {
    format: Option<Format>,
    /// The start of an incomplete block.
    pending: Vec<u8>,
    /// Number of bytes of that block needed to continue.
    needed: usize,
    /// Remaining bytes of an unknown block to skip.
    skip: u64,
    /// Stream offset of the next byte that is neither decoded nor skipped.
    at: u64,
    /// Stream offset of the end of the last complete block.
    whole: u64,
    ended: bool,
    failed: Option<DecodeError>,
    block_limit: usize,
    blocks: Blocks,
    /// How to keep the events of the block in which the stream was cut off.
    partial_repair: Option<Repair>,
}

impl Decoder {
    /// Creates a decoder for a stream from its first byte.
    pub fn new(limits: Limits) -> Self {
        Self {
            format: None,
            pending: Vec::new(),
            needed: 0,
            skip: 0,
            at: 0,
            whole: 0,
            ended: false,
            failed: None,
            block_limit: limits.block_bytes,
            blocks: Blocks::new(limits),
            partial_repair: None,
        }
    }

    /// Returns the trace header, once it is decoded.
    pub fn trace(&self) -> Option<&TraceHeader> {
        self.blocks.trace()
    }

    /// Returns the number of bytes up to the end of the last complete block.
    pub fn complete_bytes(&self) -> u64 {
        self.whole
    }

    /// Returns all metadata records so far, in the order of the stream. The first one stands for undefined IDs.
    pub fn metadata(&self) -> &[Metadata] {
        self.blocks.metadata_records()
    }

    /// Returns the largest metadata ID defined in the stream, 0 if there is none.
    pub fn largest_metadata_id(&self) -> u32 {
        self.blocks.largest_metadata_id()
    }

    /// Decodes the next bytes of the stream.
    ///
    /// # Errors
    /// The error that stopped decoding; all later calls return it, too.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<(), DecodeError> {
        self.feed_part(bytes, 0, sink).map(|_| ())
    }

    /// Decodes the complete blocks at the start of these bytes, and returns how many bytes were used. The others are to be passed again, followed by
    /// the next ones: at the end of the stream, to [`feed`](Self::feed). Saves copying every block that arrives in several reads.
    ///
    /// # Errors
    /// As for [`feed`](Self::feed).
    pub fn feed_blocks(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, DecodeError> {
        self.feed_part(bytes, MAX_LEFT_BYTES, sink)
    }

    /// Decodes the next bytes, but leaves an incomplete block of at most `left` bytes to the caller. Returns the number of bytes used.
    fn feed_part(&mut self, bytes: &[u8], left: usize, sink: &mut impl Sink) -> Result<usize, DecodeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.take(bytes, left, sink);
        self.blocks.deliver_safe(sink);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
            self.pending = Vec::new();
        }
        result
    }

    /// Decodes the prefix of `bytes` that a [`BlockScanner`](super::BlockScanner) found. Its counts are passed to the sink if it accepts them.
    ///
    /// # Errors
    /// As for [`feed`](Self::feed).
    pub fn feed_scanned(&mut self, bytes: &[u8], scanned: ScannedBlocks, sink: &mut impl Sink) -> Result<(), DecodeError> {
        let bytes = &bytes[..scanned.size()];
        self.blocks.counted = scanned.counted.into_iter().peekable();
        self.feed(bytes, sink)
    }

    /// Delivers all events held back for sorting by time. For a live stream that has paused: older events that arrive later are out of order.
    pub fn flush(&mut self, sink: &mut impl Sink) {
        self.blocks.flush(sink);
    }

    /// Ends the stream. Delivers the complete events of an incomplete block, and all events that were held back.
    pub fn finish(&mut self, sink: &mut impl Sink) -> Ending {
        let ending = self.end(sink);
        self.blocks.flush(sink);
        ending
    }

    fn end(&mut self, sink: &mut impl Sink) -> Ending {
        let complete_bytes = self.whole;
        if let Some(error) = self.failed.clone() {
            return Ending::Broken { error, complete_bytes };
        }
        if self.ended {
            return Ending::Complete;
        }
        let pending = std::mem::take(&mut self.pending);
        let trailing_bytes = self.at + pending.len() as u64 - complete_bytes;
        if self.format.is_none()
            && let Some(error) = foreign_start(&pending)
        {
            self.failed = Some(error.clone());
            return Ending::Broken { error, complete_bytes };
        }
        if let Some(format) = self.format
            && let Ok(Frame::Block { kind: BlockKind::Event, size_at, body, .. }) = frame(format, &pending, self.at, self.block_limit)
            && let Some(part) = pending.get(body.start..)
            && let Some(size) = self.blocks.unfinished_events(part, self.at + body.start as u64, sink)
        {
            self.partial_repair = Some(Repair::within_block(format, self.at, size_at, body.start, size));
        }
        self.failed = Some(DecodeError::Damaged { at: self.at, what: "the stream was already finished" });
        Ending::Truncated { complete_bytes, trailing_bytes }
    }

    /// Returns how to turn a file with this stream into a complete one without losing an event; `None` if there is nothing to keep. To be
    /// called after the stream was finished or failed. Not needed for a complete stream.
    pub fn repair(&self) -> Option<Repair> {
        let format = self.format.filter(|_| self.trace().is_some())?;
        Some(self.partial_repair.clone().unwrap_or_else(|| Repair::after_last_block(format, self.whole)))
    }

    fn take(&mut self, all: &[u8], left: usize, sink: &mut impl Sink) -> Result<usize, DecodeError> {
        let mut bytes = all;
        while !bytes.is_empty() && !self.ended {
            if self.skip > 0 {
                let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
                self.advance(skipped);
                self.skip -= skipped as u64;
                if self.skip == 0 {
                    self.whole = self.at;
                }
                bytes = &bytes[skipped..];
            } else if self.pending.is_empty() {
                let used = self.step(bytes, sink)?;
                if used == 0 {
                    if bytes.len() <= left {
                        return Ok(all.len() - bytes.len());
                    }
                    self.gather(bytes);
                    break;
                }
                bytes = &bytes[used..];
            } else {
                let (more, rest) = bytes.split_at((self.needed - self.pending.len()).min(bytes.len()));
                self.gather(more);
                bytes = rest;
                if self.pending.len() < self.needed {
                    break;
                }
                let mut pending = std::mem::take(&mut self.pending);
                if self.step(&pending, sink)? > 0 {
                    pending.clear();
                    pending.shrink_to(MAX_KEPT_BUFFER_BYTES);
                }
                self.pending = pending;
            }
        }
        Ok(all.len())
    }

    /// Decodes the next element at the start of `bytes` and returns its size; 0 if it is incomplete, with the required number of bytes in `needed`.
    fn step(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, DecodeError> {
        let Some(format) = self.format else {
            return Ok(match prologue(bytes)? {
                Ok((format, size)) => {
                    self.format = Some(format);
                    self.whole_block(size)
                }
                Err(needed) => self.short(needed),
            });
        };
        Ok(match frame(format, bytes, self.at, self.block_limit)? {
            Frame::Short(needed) => self.short(needed),
            Frame::Block { size, .. } if size > bytes.len() => self.short(size),
            Frame::Block { kind, version, body, size, .. } => {
                footer(format, &bytes[body.end..size], self.at + body.end as u64)?;
                let start = self.at + body.start as u64;
                self.blocks.whole(format, kind, version, &bytes[body], start, sink)?;
                self.whole_block(size)
            }
            Frame::Unknown { size } => {
                sink.problem(&Problem { kind: ProblemKind::UnknownBlock, at: self.at });
                let here = usize::try_from(size).unwrap_or(usize::MAX).min(bytes.len());
                self.skip = size - here as u64;
                self.advance(here);
                if self.skip == 0 {
                    self.whole = self.at;
                }
                here
            }
            Frame::End { size } => {
                self.ended = true;
                self.whole_block(size)
            }
        })
    }

    /// Buffers bytes of an incomplete block. The buffer grows with the received data and not with the size in the block's header, and never
    /// beyond that size.
    fn gather(&mut self, bytes: &[u8]) {
        let size = self.pending.len() + bytes.len();
        if size > self.pending.capacity() {
            let grown = (2 * self.pending.capacity()).min(self.needed).max(size);
            self.pending.reserve_exact(grown - self.pending.len());
        }
        self.pending.extend_from_slice(bytes);
    }

    fn short(&mut self, needed: usize) -> usize {
        self.needed = needed;
        0
    }

    fn whole_block(&mut self, size: usize) -> usize {
        self.advance(size);
        self.whole = self.at;
        size
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes as u64;
    }
}

impl Repair {
    /// Ends the stream after its last complete block.
    fn after_last_block(format: Format, whole: u64) -> Self {
        let append = match format {
            Format::V4 => &[1][..],
            Format::V6 => &[0; 4],
        };
        Self { keep: whole, patch: None, append }
    }

    /// Ends the event block at offset `at` after `size` bytes of its content, and then the stream.
    fn within_block(format: Format, at: u64, size_at: usize, body: usize, size: usize) -> Self {
        let (patch, append) = match format {
            Format::V4 => (size as u32, &[6, 1][..]),
            // The block kind is stored in the high byte of the size.
            Format::V6 => (size as u32 | 2 << 24, &[0; 4][..]),
        };
        Self { keep: at + (body + size) as u64, patch: Some((at + size_at as u64, patch.to_le_bytes())), append }
    }
}
