//! The push decoder: bytes in, findings out.

mod blocks;
mod repair;
#[cfg(test)]
mod tests;

use super::frame::{Format, Frame, footer, frame, prologue};
use super::{BlockKind, Cut, DecodeError, Problem, ProblemKind, Sink, TraceHeader};

use blocks::Blocks;
pub use repair::Repair;

/// A buffer that grew beyond this for one large block is given back.
const KEPT_BUFFER: usize = 1 << 20;

/// How much is kept in memory, whatever arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest block that is read, bytes. Runtimes write blocks of some 100 KB.
    pub block_bytes: usize,
    /// Most metadata records.
    pub metadata_records: usize,
    /// Most bytes that all metadata records together take in the stream.
    pub metadata_bytes: usize,
    /// Most bytes of stacks between two sequence points; runtimes write a sequence point every 10 MB of buffers. As many for labels.
    pub stack_bytes: usize,
    /// Most threads at a time.
    pub threads: usize,
}

impl Limits {
    /// For a stream that comes from a process: it has no longer blocks, and may be hostile.
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
    /// The way a whole stream ends.
    Complete,
    /// In the middle: the target died, or the reader stopped. Every whole event was delivered, those of an unfinished block included.
    Truncated {
        /// Bytes up to the end of the last whole block: what can be kept of a file.
        whole_bytes: u64,
        /// Bytes behind it.
        loose_bytes: u64,
    },
    /// It could not be read to its end.
    Broken {
        /// Why not.
        error: DecodeError,
        /// Bytes up to the end of the last whole block.
        whole_bytes: u64,
    },
}

impl Ending {
    /// Whether it is the way a whole stream ends.
    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }
}

/// Decodes a stream that comes in pieces of any size.
///
/// Blocks that are whole in what is fed are decoded in place. One that is not is gathered first. However the stream is cut, the sink gets
/// the same calls.
#[derive(Debug)]
pub struct Decoder {
    format: Option<Format>,
    /// The start of a block that is not whole yet.
    pending: Vec<u8>,
    /// Bytes of that block that are needed to get on.
    needed: usize,
    /// Bytes of an unknown block that are still to come.
    skip: u64,
    /// Offset of the next byte that is neither decoded nor skipped.
    at: u64,
    /// Offset behind the last whole block.
    whole: u64,
    ended: bool,
    failed: Option<DecodeError>,
    block_limit: usize,
    blocks: Blocks,
    /// How the events of the block that the stream ended in can be kept.
    loose: Option<Repair>,
}

impl Decoder {
    /// Waits for the first byte of a stream.
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
            loose: None,
        }
    }

    /// What the whole stream has in common, once it has come.
    pub fn trace(&self) -> Option<&TraceHeader> {
        self.blocks.trace()
    }

    /// Bytes up to the end of the last whole block.
    pub fn whole_bytes(&self) -> u64 {
        self.whole
    }

    /// The largest id of a kind of event that the stream defined, 0 where it defined none.
    pub fn largest_metadata_id(&self) -> u32 {
        self.blocks.largest_metadata_id()
    }

    /// Whether the stream came to its end. Bytes behind it are ignored.
    pub fn is_complete(&self) -> bool {
        self.ended && self.failed.is_none()
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// Returns why the stream cannot be read on, also in every call thereafter.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<(), DecodeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.take(bytes, sink);
        self.blocks.settle(sink);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
            self.pending = Vec::new();
        }
        result
    }

    /// The same with the start of the next bytes that a [`Cutter`](super::Cutter) cut. What it counted of them is given to a sink that takes counts.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn feed_cut(&mut self, bytes: &[u8], cut: Cut, sink: &mut impl Sink) -> Result<(), DecodeError> {
        let bytes = &bytes[..cut.size()];
        self.blocks.counted = cut.counted.into_iter().peekable();
        self.feed(bytes, sink)
    }

    /// Delivers all events that are held back to be put in time order. For a live stream that has paused: what is older and comes later is out of order.
    pub fn flush(&mut self, sink: &mut impl Sink) {
        self.blocks.flush(sink);
    }

    /// Ends the stream. Delivers what events an unfinished block holds, and all that were held back.
    pub fn finish(&mut self, sink: &mut impl Sink) -> Ending {
        let ending = self.end(sink);
        self.blocks.flush(sink);
        ending
    }

    fn end(&mut self, sink: &mut impl Sink) -> Ending {
        let whole_bytes = self.whole;
        if let Some(error) = self.failed.clone() {
            return Ending::Broken { error, whole_bytes };
        }
        if self.ended {
            return Ending::Complete;
        }
        let pending = std::mem::take(&mut self.pending);
        let loose_bytes = self.at + pending.len() as u64 - whole_bytes;
        if let Some(format) = self.format
            && let Ok(Frame::Block { kind: BlockKind::Event, size_at, body, .. }) = frame(format, &pending, self.at, self.block_limit)
            && let Some(part) = pending.get(body.start..)
            && let Some(size) = self.blocks.unfinished_events(part, self.at + body.start as u64, sink)
        {
            self.loose = Some(Repair::of_block(format, self.at, size_at, body.start, size));
        }
        self.failed = Some(DecodeError::Damaged { at: self.at, what: "the stream was marked as ended here" });
        Ending::Truncated { whole_bytes, loose_bytes }
    }

    /// How a file that holds this stream becomes a whole one that loses no event; `None` where there is nothing to keep. Ask once the
    /// stream was finished, or could not be read on. A stream that is complete needs none.
    pub fn repair(&self) -> Option<Repair> {
        let format = self.format.filter(|_| self.trace().is_some())?;
        Some(self.loose.clone().unwrap_or_else(|| Repair::behind(format, self.whole)))
    }

    fn take(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Result<(), DecodeError> {
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
                    self.gather(bytes);
                    return Ok(());
                }
                bytes = &bytes[used..];
            } else {
                let (more, rest) = bytes.split_at((self.needed - self.pending.len()).min(bytes.len()));
                self.gather(more);
                bytes = rest;
                if self.pending.len() < self.needed {
                    return Ok(());
                }
                let mut pending = std::mem::take(&mut self.pending);
                if self.step(&pending, sink)? > 0 {
                    pending.clear();
                    pending.shrink_to(KEPT_BUFFER);
                }
                self.pending = pending;
            }
        }
        Ok(())
    }

    /// Decodes what `bytes` begin with and returns how many of them that took. None where they are too few; `needed` then is how many there
    /// must be.
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

    /// Keeps bytes of a block that is not whole. The buffer grows with what comes, not with the size in the block's header, and never beyond.
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
