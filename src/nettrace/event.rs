//! Events and their headers.

use crate::wire::Reader;

use super::labels::Labels;
use super::metadata::Table;
use super::rows::Rows;
use super::stacks::Stack;
use super::threads::Threads;
use super::{Metadata, ThreadId, Values};

/// Smallest header of an event block: its size, its flags and two timestamps.
const BLOCK_HEADER: usize = 20;

/// An event, borrowed from the block that it stands in.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// What kind of event. Where the stream refers to a record that it never defined, the record of [`Metadata::index`] 0.
    pub metadata: &'a Metadata,
    /// Its fields, by [`Metadata::fields`], or for native runtime events by `clr`.
    pub payload: &'a [u8],
    pub(super) thread: ThreadId,
    pub(super) capture_thread: ThreadId,
    pub(super) header: &'a Header,
    pub(super) context: &'a Context,
}

/// What events refer to.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) v6: bool,
    pub(super) pointer_size: u8,
    pub(super) metadata: Table,
    pub(super) stacks: Rows,
    pub(super) labels: Rows,
    pub(super) threads: Threads,
}

impl<'a> Event<'a> {
    /// When it happened, on the clock of all timestamps.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        self.header.timestamp as i64
    }

    /// The thread that it is about.
    #[inline]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// The thread that wrote it; another one where a sampler writes for the thread it samples.
    #[inline]
    pub fn capture_thread(&self) -> ThreadId {
        self.capture_thread
    }

    /// The processor that its capture thread ran on.
    #[inline]
    pub fn processor(&self) -> u32 {
        self.header.processor
    }

    /// Its number among the events of its capture thread.
    #[inline]
    pub fn sequence_number(&self) -> u32 {
        self.header.sequence
    }

    /// The number of its stack, 0 where it has none. A sequence point resets the numbers.
    #[inline]
    pub fn stack_id(&self) -> u32 {
        self.header.stack
    }

    /// Its stack; `None` where it has none or the stream does not hold it.
    #[inline]
    pub fn stack(&self) -> Option<Stack<'a>> {
        let bytes = self.context.stacks.get(self.header.stack)?;
        Some(Stack::new(bytes, self.context.pointer_size))
    }

    /// The activity that it is part of; opaque, zeroes where there is none.
    pub fn activity_id(&self) -> [u8; 16] {
        if self.context.v6 { self.labels().activity_id() } else { self.header.activity }
    }

    /// The activity that caused its own; opaque, zeroes where there is none.
    pub fn related_activity_id(&self) -> [u8; 16] {
        if self.context.v6 { self.labels().related_activity_id() } else { self.header.related_activity }
    }

    /// Its labels (V6).
    pub fn labels(&self) -> Labels<'a> {
        Labels::new(self.context.labels.get(self.header.labels).unwrap_or_default())
    }

    /// Whether no event behind this one is older.
    #[inline]
    pub fn is_sorted(&self) -> bool {
        self.header.sorted
    }

    /// Its fields by its metadata. Native runtime events have none there.
    pub fn values(&self) -> Values<'a> {
        Values::new(&self.metadata.fields, self.payload, self.context.v6)
    }
}

/// A header as it is after the event before it was read: compressed headers hold only what changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Header {
    pub(super) metadata: u32,
    pub(super) sequence: u32,
    pub(super) capture_thread: u64,
    pub(super) processor: u32,
    pub(super) thread: u64,
    pub(super) stack: u32,
    pub(super) timestamp: u64,
    pub(super) activity: [u8; 16],
    pub(super) related_activity: [u8; 16],
    pub(super) labels: u32,
    pub(super) sorted: bool,
    pub(super) payload_size: u32,
}

/// The fields that a compressed header holds. The names of the format, in the order of its bits.
pub(super) mod flag {
    pub(in super::super) const METADATA: u8 = 0x01;
    pub(in super::super) const SEQUENCE: u8 = 0x02;
    pub(in super::super) const THREAD: u8 = 0x04;
    pub(in super::super) const STACK: u8 = 0x08;
    /// In V6: the label list.
    pub(in super::super) const ACTIVITY: u8 = 0x10;
    pub(in super::super) const RELATED_ACTIVITY: u8 = 0x20;
    pub(in super::super) const SORTED: u8 = 0x40;
    pub(in super::super) const PAYLOAD_SIZE: u8 = 0x80;
}

impl Header {
    /// Reads the next event of a block with compressed headers: the fields that it holds, and the payload. `None` where the bytes end or make
    /// no sense; the reader then stands somewhere inside the event.
    #[inline(always)]
    pub(super) fn read_compressed<'a, const V6: bool>(&mut self, reader: &mut Reader<'a>) -> Option<(u8, &'a [u8])> {
        let flags = reader.u8().ok()?;
        if flags & flag::METADATA != 0 {
            self.metadata = reader.varu32().ok()?;
        }
        if flags & flag::SEQUENCE != 0 {
            self.sequence = self.sequence.wrapping_add(reader.varu32().ok()?);
            self.capture_thread = reader.varu64().ok()?;
            self.processor = reader.varu32().ok()?;
        }
        // A blob of a metadata block has no number of its own.
        if V6 || self.metadata != 0 {
            self.sequence = self.sequence.wrapping_add(1);
        }
        if flags & flag::THREAD != 0 {
            self.thread = reader.varu64().ok()?;
        }
        if flags & flag::STACK != 0 {
            self.stack = reader.varu32().ok()?;
        }
        // Time goes back now and then: a step of 2^63 or more.
        self.timestamp = self.timestamp.wrapping_add(reader.varu64().ok()?);
        if flags & flag::ACTIVITY != 0 {
            if V6 {
                self.labels = reader.varu32().ok()?;
            } else {
                self.activity = reader.array().ok()?;
            }
        }
        if !V6 && flags & flag::RELATED_ACTIVITY != 0 {
            self.related_activity = reader.array().ok()?;
        }
        self.sorted = flags & flag::SORTED != 0;
        if flags & flag::PAYLOAD_SIZE != 0 {
            self.payload_size = reader.varu32().ok()?;
        }
        let payload = reader.take(self.payload_size as usize).ok()?;
        Some((flags, payload))
    }

    /// Reads the next event of a block with whole headers. The format has zeroes between events, so that each stands at a multiple of four; runtimes count
    /// them in the size, and other writers leave them out.
    pub(super) fn read_whole<'a>(&mut self, reader: &mut Reader<'a>, v6: bool) -> Option<(u8, &'a [u8])> {
        let size = reader.u32().ok()? as usize;
        let mut event = Reader::new(reader.take(size).ok()?);
        let metadata = event.u32().ok()?;
        self.metadata = metadata & 0x7fff_ffff;
        // Contrary to the specification's words, runtimes set the bit where the event is not sorted.
        self.sorted = metadata >> 31 == 0;
        self.sequence = event.u32().ok()?;
        self.thread = event.u64().ok()?;
        self.capture_thread = event.u64().ok()?;
        self.processor = event.u32().ok()?;
        self.stack = event.u32().ok()?;
        self.timestamp = event.u64().ok()?;
        if v6 {
            self.labels = event.u32().ok()?;
        } else {
            self.activity = event.array().ok()?;
            self.related_activity = event.array().ok()?;
        }
        self.payload_size = event.u32().ok()?;
        let payload = event.take(self.payload_size as usize).ok()?;
        let padding = (reader.at().wrapping_neg() % 4).min(reader.remaining());
        if padding != 0 && !v6 && !begins_whole(reader.rest()) {
            reader.take(padding).ok()?;
        }
        Some((u8::MAX, payload))
    }
}

/// Whether an event with a whole header, of V4, stands here: both of its sizes agree.
fn begins_whole(bytes: &[u8]) -> bool {
    /// Bytes from behind the size to the payload, and to its size.
    const HEADER: usize = 76;
    let mut reader = Reader::new(bytes);
    let (Ok(size), Ok(_), Ok(payload)) = (reader.u32(), reader.take(HEADER - 4), reader.u32()) else { return false };
    let exact = HEADER + payload as usize;
    (exact..exact + 4).contains(&(size as usize))
}

/// Reads the header of an event or V4 metadata block and returns whether its rows are compressed.
pub(super) fn block_header(reader: &mut Reader<'_>) -> Option<bool> {
    let (size, flags) = (reader.u16().ok()?, reader.u16().ok()?);
    let rest = usize::from(size).checked_sub(4).filter(|_| usize::from(size) >= BLOCK_HEADER)?;
    reader.take(rest).ok()?;
    Some(flags & 1 != 0)
}
