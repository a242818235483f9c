//! Events and their headers.

use crate::wire::Reader;

use super::metadata::Table;
use super::rows::Rows;
use super::threads::Threads;
use super::{Labels, Metadata, Stack, ThreadId, Values};

/// Minimum size of an event block header: size, flags and two timestamps.
const BLOCK_HEADER: usize = 20;

/// An event, borrowed from its block.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Metadata record of the event; the one with [`Metadata::index`] 0 if the stream did not define it.
    pub metadata: &'a Metadata,
    /// Payload: decoded with [`Metadata::fields`], or with `clr` for native runtime events.
    pub payload: &'a [u8],
    pub(super) thread: ThreadId,
    pub(super) capture_thread: ThreadId,
    pub(super) header: &'a Header,
    pub(super) context: &'a Context,
}

/// The tables that events refer to.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) v6: bool,
    pub(super) pointer_size: u8,
    pub(super) metadata: Table,
    pub(super) stacks: Rows,
    pub(super) labels: Rows,
    /// Whether any list of labels so far overrides the version of a payload. No known collector writes such lists.
    pub(super) overrides_version: bool,
    pub(super) threads: Threads,
}

impl<'a> Event<'a> {
    /// Returns the timestamp, on the clock of the stream.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        self.header.timestamp as i64
    }

    /// Returns the thread that the event is about.
    #[inline]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Returns the thread that wrote the event; a different one for samples, which are written by the sampling thread.
    #[inline]
    pub fn capture_thread(&self) -> ThreadId {
        self.capture_thread
    }

    /// Returns the processor on which the capture thread ran.
    #[inline]
    pub fn processor(&self) -> u32 {
        self.header.processor
    }

    /// Returns the sequence number among the events of the capture thread.
    #[inline]
    pub fn sequence_number(&self) -> u32 {
        self.header.sequence
    }

    /// Returns the stack ID, 0 for none. Sequence points reset these IDs.
    #[inline]
    pub fn stack_id(&self) -> u32 {
        self.header.stack
    }

    /// Returns the stack; `None` if there is none or it is missing in the stream.
    #[inline]
    pub fn stack(&self) -> Option<Stack<'a>> {
        let bytes = self.context.stacks.get(self.header.stack)?;
        Some(Stack::new(bytes, self.context.pointer_size))
    }

    /// Returns the activity ID; opaque, zeros for none.
    pub fn activity_id(&self) -> [u8; 16] {
        if self.context.v6 { self.labels().activity_id() } else { self.header.activity }
    }

    /// Returns the ID of the activity that caused this one; opaque, zeros for none.
    pub fn related_activity_id(&self) -> [u8; 16] {
        if self.context.v6 { self.labels().related_activity_id() } else { self.header.related_activity }
    }

    /// Returns the version of the payload: that of the metadata, unless a label overrides it (V6).
    #[inline]
    pub fn version(&self) -> u32 {
        let overridden = if self.context.overrides_version { self.labels().version() } else { None };
        overridden.unwrap_or(self.metadata.version)
    }

    /// Returns the labels (V6).
    pub fn labels(&self) -> Labels<'a> {
        Labels::new(self.context.labels.get(self.header.labels).unwrap_or_default())
    }

    /// Returns whether no older event follows.
    #[inline]
    pub fn is_sorted(&self) -> bool {
        self.header.sorted
    }

    /// Returns the fields as described by the metadata. Native runtime events have none there.
    pub fn values(&self) -> Values<'a> {
        Values::new(&self.metadata.fields, self.payload, self.context.v6)
    }
}

/// An event header. Compressed headers only contain the fields that differ from the previous event.
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

/// The flags of the fields in a compressed header, named as in the format and in bit order.
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
    /// Reads the next event of a block with compressed headers; returns the flags of the fields present, and the payload. `None` if the event
    /// is truncated or malformed; the reader is then somewhere within the event.
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
        // A blob in a metadata block has no sequence number.
        if V6 || self.metadata != 0 {
            self.sequence = self.sequence.wrapping_add(1);
        }
        if flags & flag::THREAD != 0 {
            self.thread = reader.varu64().ok()?;
        }
        if flags & flag::STACK != 0 {
            self.stack = reader.varu32().ok()?;
        }
        // Time can go backwards: a step of 2^63 or more.
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

    /// Reads the next event of a block with uncompressed headers. The format pads events to a multiple of four bytes; runtimes include the
    /// padding in the size, other writers do not.
    pub(super) fn read_uncompressed<'a>(&mut self, reader: &mut Reader<'a>, v6: bool) -> Option<(u8, &'a [u8])> {
        let size = reader.u32().ok()? as usize;
        let mut event = Reader::new(reader.take(size).ok()?);
        let metadata = event.u32().ok()?;
        self.metadata = metadata & 0x7fff_ffff;
        // Contrary to the specification, runtimes set the bit if the event is not sorted.
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
        if padding != 0 && !v6 && !starts_uncompressed_event(reader.rest()) {
            reader.take(padding).ok()?;
        }
        Some((u8::MAX, payload))
    }
}

/// Returns whether an event with an uncompressed V4 header starts here: its two sizes are consistent.
fn starts_uncompressed_event(bytes: &[u8]) -> bool {
    /// Header size after the size field, including the payload size field.
    const HEADER: usize = 76;
    let mut reader = Reader::new(bytes);
    let (Ok(size), Ok(_), Ok(payload)) = (reader.u32(), reader.take(HEADER - 4), reader.u32()) else { return false };
    let exact = HEADER + payload as usize;
    (exact..exact + 4).contains(&(size as usize))
}

/// Reads the header of an event or V4 metadata block; returns whether the headers of its rows are compressed.
pub(super) fn block_header(reader: &mut Reader<'_>) -> Option<bool> {
    let (size, flags) = (reader.u16().ok()?, reader.u16().ok()?);
    let rest = usize::from(size).checked_sub(4).filter(|_| usize::from(size) >= BLOCK_HEADER)?;
    reader.take(rest).ok()?;
    Some(flags & 1 != 0)
}
