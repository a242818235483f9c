//! The buffer between a socket and a decoder.

use std::ops::Range;

use super::decoder::MAX_LEFT_BYTES;

/// Minimum size of a read, in bytes.
const MIN_READ_BYTES: usize = 32 << 10;
/// Size of the buffer at first: enough for streams of some kilobytes a second.
const FIRST_BYTES: usize = 2 * MIN_READ_BYTES;
/// Size of the buffer once it was too small: large enough that unused bytes are rarely moved.
const CAPACITY: usize = 2 * MAX_LEFT_BYTES;

/// The bytes of a stream from the first block that is not complete yet. Parts of a block are thus next to each other without being copied for each
/// read, and [`Decoder::feed_blocks`](super::Decoder::feed_blocks) decodes them in place.
#[derive(Debug)]
pub struct StreamBuffer {
    bytes: Vec<u8>,
    unused: Range<usize>,
}

impl Default for StreamBuffer {
    fn default() -> Self {
        Self { bytes: vec![0; FIRST_BYTES], unused: 0..0 }
    }
}

impl StreamBuffer {
    /// Returns the space for the next bytes.
    pub fn space(&mut self) -> &mut [u8] {
        if self.bytes.len() - self.unused.end < MIN_READ_BYTES {
            self.bytes.copy_within(self.unused.clone(), 0);
            self.unused = 0..self.unused.len();
        }
        if self.bytes.len() - self.unused.end < MIN_READ_BYTES {
            self.bytes.resize(CAPACITY, 0);
        }
        &mut self.bytes[self.unused.end..]
    }

    /// Declares that `count` bytes were put into the space. Returns all bytes that are not used yet.
    pub fn filled(&mut self, count: usize) -> &[u8] {
        self.unused.end = self.bytes.len().min(self.unused.end + count);
        self.unused()
    }

    /// Returns the bytes that are not used yet.
    pub fn unused(&self) -> &[u8] {
        &self.bytes[self.unused.clone()]
    }

    /// Removes `count` bytes from the start.
    pub fn consume(&mut self, count: usize) {
        self.unused.start = self.unused.end.min(self.unused.start + count);
        if self.unused.is_empty() {
            self.unused = 0..0;
        }
    }
}
