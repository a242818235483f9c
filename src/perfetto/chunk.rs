//! Chunks: packets of one writer, split into fragments if they do not fit.
//!
//! Source: as [`super::page`]. The size of a packet is known before its first byte is written, so chunks never need patching.

use std::collections::VecDeque;
use std::ops::Range;

use super::field::packet::PACKET;
use crate::wire::{Put, Reader};

/// Size of a chunk's header in bytes: chunk number, writer, number of fragments, and flags.
pub const CHUNK_HEADER: usize = 8;
/// Maximum number of fragments in a chunk.
const MAX_FRAGMENTS: u16 = (1 << 10) - 1;
/// No packet is started in fewer bytes than this: its length takes some of them.
const MIN_FRAGMENT_BYTES: usize = 16;
/// Maximum bytes of a packet's length in a chunk.
const LENGTH: usize = 4;

/// Flags of a chunk.
pub mod flag {
    /// The first fragment continues from the previous chunk.
    pub const CONTINUES: u16 = 1;
    /// The last fragment continues in the next chunk.
    pub const IS_CONTINUED: u16 = 2;
}

/// A writer, that is a sequence of packets: 1 to 32767.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriterId(u16);

impl WriterId {
    /// Returns `None` if the number is not valid for a writer.
    pub fn new(number: u16) -> Option<Self> {
        (1..=0x7fff).contains(&number).then_some(Self(number))
    }
}

/// The header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Sequence number of the chunk within its writer; wraps around.
    pub chunk: u32,
    /// Number of the writer.
    pub writer: u16,
    /// Number of fragments.
    pub fragments: u16,
    /// See [`flag`].
    pub flags: u16,
}

impl ChunkHeader {
    /// Encodes the header as in shared memory.
    pub fn encode(self) -> [u8; CHUNK_HEADER] {
        let mut bytes = [0; CHUNK_HEADER];
        bytes[..4].copy_from_slice(&self.chunk.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.writer.to_le_bytes());
        bytes[6..].copy_from_slice(&((self.fragments & MAX_FRAGMENTS) | (self.flags << 10)).to_le_bytes());
        bytes
    }

    /// Decodes a header from shared memory.
    pub fn decode(bytes: [u8; CHUNK_HEADER]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        let word = u16::from_le_bytes([g, h]);
        Self {
            chunk: u32::from_le_bytes([a, b, c, d]),
            writer: u16::from_le_bytes([e, f]),
            fragments: word & MAX_FRAGMENTS,
            flags: word >> 10,
        }
    }
}

/// Packets of a writer to be written into chunks. They stay in the batches in which they were pushed until copied into a chunk.
#[derive(Debug)]
pub struct ChunkWriter {
    writer: WriterId,
    next: u32,
    /// The first batch contains a packet that is not, or not completely, in chunks.
    batches: VecDeque<Vec<u8>>,
    /// The part of the first packet that is not in a chunk yet.
    first: Range<usize>,
    /// Whether another part of the first packet is in a chunk.
    is_continued: bool,
    /// Bytes of all batches from the start of `first`.
    bytes: usize,
}

impl ChunkWriter {
    /// Creates a writer whose first chunk has number 0.
    pub fn new(writer: WriterId) -> Self {
        Self::from(writer, 0)
    }

    /// Creates a writer whose first chunk has this number.
    pub(super) fn from(writer: WriterId, next: u32) -> Self {
        Self { writer, next, batches: VecDeque::new(), first: 0..0, is_continued: false, bytes: 0 }
    }

    /// Appends packets, each encoded as a `packet` field of a `Trace`. Anything after an invalid packet is dropped.
    pub fn push(&mut self, packets: Vec<u8>) {
        self.bytes += packets.len();
        self.batches.push_back(packets);
        if self.batches.len() == 1 {
            self.find_first(0);
        }
    }

    /// Whether all packets are in chunks.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Size in bytes of a chunk that fits all packets.
    pub fn required_size(&self) -> usize {
        // `bytes` does not include the length of a packet continued from another chunk.
        CHUNK_HEADER + LENGTH + self.bytes
    }

    /// Returns the next chunk, of at most `room` bytes; `None` if there are no packets.
    ///
    /// # Panics
    /// If `room` is less than the smallest chunk of any page.
    pub fn chunk(&mut self, room: usize) -> Option<Vec<u8>> {
        assert!(room >= CHUNK_HEADER + MIN_FRAGMENT_BYTES, "no chunk is that small");
        if self.is_empty() {
            return None;
        }
        let mut image = Vec::with_capacity(room.min(self.required_size()));
        image.resize(CHUNK_HEADER, 0);
        let mut header = ChunkHeader { chunk: self.next, writer: self.writer.0, fragments: 0, flags: 0 };
        if self.is_continued {
            header.flags |= flag::CONTINUES;
        }
        while let Some(batch) = self.batches.front()
            && header.fragments < MAX_FRAGMENTS
        {
            let left = room - image.len();
            let rest = self.first.len();
            let fits = rest + length_of(rest) <= left;
            if !fits && left < MIN_FRAGMENT_BYTES {
                break;
            }
            let part = if fits { rest } else { left - length_of(left) };
            let end = self.first.start + part;
            image.put_varint(part as u64);
            image.extend_from_slice(&batch[self.first.start..end]);
            header.fragments += 1;
            self.bytes -= part;
            self.is_continued = !fits;
            if !fits {
                self.first.start = end;
                header.flags |= flag::IS_CONTINUED;
                break;
            }
            self.find_first(end);
        }
        self.next = self.next.wrapping_add(1);
        image[..CHUNK_HEADER].copy_from_slice(&header.encode());
        Some(image)
    }

    /// Finds the first packet at or after an offset in the first batch. Batches without one are removed.
    fn find_first(&mut self, mut from: usize) {
        while let Some(batch) = self.batches.front() {
            let rest = &batch[from..];
            if let Some(packet) = first_packet(rest) {
                self.bytes -= packet.start;
                self.first = from + packet.start..from + packet.end;
                return;
            }
            self.bytes -= rest.len();
            self.batches.pop_front();
            from = 0;
        }
    }
}

/// Returns the range of the packet in a `packet` field at the start of these bytes.
fn first_packet(fields: &[u8]) -> Option<Range<usize>> {
    const KEY: u64 = (PACKET << 3 | 2) as u64;
    let mut reader = Reader::new(fields);
    let size = (reader.varu64() == Ok(KEY)).then(|| reader.varu64().ok()).flatten()?;
    let start = fields.len() - reader.remaining();
    let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size)).filter(|end| *end <= fields.len())?;
    Some(start..end)
}

/// Returns the size of a length as a varint, in bytes.
fn length_of(length: usize) -> usize {
    (usize::BITS - (length | 1).leading_zeros()).div_ceil(7) as usize
}
