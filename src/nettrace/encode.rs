//! The encoder: writes V4 streams as runtimes do.

mod metadata;
mod v6;

use foldhash::HashMap;

use crate::wire::Put;

pub use v6::CollectorEncoder;

use super::event::{Header, flag};
use super::frame::{BEGIN_PRIVATE_OBJECT, END_OBJECT, NULL_REFERENCE};
use super::{Metadata, TraceHeader, UtcTime};

/// Blocks are written out at this size in bytes, as in runtimes.
const BLOCK_SIZE: usize = 100_000;
/// Up to this number, all threads are listed at every sequence point, as in runtimes. A stream with a new thread ID for every event exceeds it.
const MAX_THREADS: usize = 65_536;
const PROLOGUE: &[u8] = b"Nettrace\x14\0\0\0!FastSerialization.1";

/// Encodes a stream in V4 format with compressed headers. The output is deterministic.
///
/// Events are buffered in blocks; [`flush`](Self::flush) writes out the incomplete ones, [`take`](Self::take) returns the encoded bytes.
#[derive(Debug)]
pub struct Encoder {
    out: Vec<u8>,
    /// Stream offset of the start of `out`.
    taken: u64,
    pointer_size: usize,
    metadata: Block,
    events: Block,
    /// Rows of the next stack block.
    stacks: Vec<u8>,
    first_stack: u32,
    next_stack: u32,
    stack_ids: HashMap<Vec<u64>, u32>,
    next_metadata: u32,
    /// The last sequence number of each capture thread, in order of first use.
    sequences: Vec<Sequence>,
    sequence_index: HashMap<u64, usize>,
}

#[derive(Debug, Clone, Copy)]
struct Sequence {
    thread: u64,
    last: u32,
    /// Whether it has written events since the last sequence point.
    is_active: bool,
}

/// An event to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NewEvent<'a> {
    /// Metadata ID returned by [`Encoder::metadata`].
    pub metadata: u32,
    /// Timestamp on the clock of the trace header.
    pub timestamp: i64,
    /// The thread that the event is about.
    pub thread: u64,
    /// The thread that writes the event.
    pub capture_thread: u64,
    /// Processor of the capture thread.
    pub processor: u32,
    /// Stack ID returned by [`Encoder::stack`] since the last sequence point, 0 for none.
    pub stack: u32,
    /// Activity ID; zeros for none.
    pub activity_id: [u8; 16],
    /// Related activity ID; zeros for none.
    pub related_activity_id: [u8; 16],
    /// Whether no older event follows.
    pub sorted: bool,
    /// Encoded fields.
    pub payload: &'a [u8],
}

/// A block of events or metadata under construction.
#[derive(Debug, Default)]
struct Block {
    rows: Vec<u8>,
    last: Header,
    /// Oldest and newest timestamp.
    span: Option<(i64, i64)>,
}

impl Encoder {
    /// Starts a stream. Always writes version 4, whatever the version in `header`.
    pub fn new(header: TraceHeader) -> Self {
        let mut out = PROLOGUE.to_vec();
        begin_object(&mut out, "Trace", 4);
        for word in header.sync_utc.map_or([0; 8], UtcTime::system_time) {
            out.put_u16(word);
        }
        out.put_i64(header.sync_ticks);
        out.put_u64(header.ticks_per_second);
        out.put_u32(header.pointer_size.into());
        out.put_u32(header.process_id);
        out.put_u32(header.processors);
        out.put_u32(header.sampling_interval_ns);
        out.put_u8(END_OBJECT);
        Self { out, ..Self::continuing(0, header.pointer_size, 1, Vec::new()) }
    }

    /// Continues a stream of `taken` bytes that has no end marker: metadata IDs start at `next_metadata`, and the sequence numbers of the
    /// listed threads continue. Start with a [`sequence_point`](Self::sequence_point), after which stack IDs start at 1 again.
    pub(super) fn continuing(taken: u64, pointer_size: u8, next_metadata: u32, last: impl IntoIterator<Item = (u64, u32)>) -> Self {
        let sequences: Vec<_> = last.into_iter().map(|(thread, last)| Sequence { thread, last, is_active: false }).collect();
        Self {
            out: Vec::new(),
            taken,
            pointer_size: pointer_size.into(),
            metadata: Block::default(),
            events: Block::default(),
            stacks: Vec::new(),
            first_stack: 1,
            next_stack: 1,
            stack_ids: HashMap::default(),
            next_metadata,
            sequence_index: sequences.iter().zip(0..).map(|(sequence, index)| (sequence.thread, index)).collect(),
            sequences,
        }
    }

    /// Defines a kind of event and returns its metadata ID; the index and ID in `record` are ignored. Field types that only V6 has lose their
    /// element type.
    pub fn metadata(&mut self, record: &Metadata) -> u32 {
        let id = self.next_metadata;
        self.next_metadata += 1;
        let mut payload = Vec::new();
        metadata::put(&mut payload, id, record);
        self.metadata.push::<false>(Header { sorted: true, ..Header::default() }, &payload);
        self.flush_if_long();
        id
    }

    /// Returns the ID of a stack, leaf first, valid until the next sequence point; 0 for an empty stack.
    pub fn stack(&mut self, frames: &[u64]) -> u32 {
        if frames.is_empty() {
            return 0;
        }
        if let Some(id) = self.stack_ids.get(frames) {
            return *id;
        }
        let id = self.next_stack;
        self.next_stack += 1;
        self.stacks.put_u32((frames.len() * self.pointer_size) as u32);
        for frame in frames {
            self.stacks.put(&frame.to_le_bytes()[..self.pointer_size]);
        }
        self.stack_ids.insert(frames.to_vec(), id);
        id
    }

    /// Encodes an event.
    pub fn event(&mut self, event: &NewEvent<'_>) {
        let header = Header {
            metadata: event.metadata,
            sequence: self.advance(event.capture_thread, 1),
            capture_thread: event.capture_thread,
            processor: event.processor,
            thread: event.thread,
            stack: event.stack,
            timestamp: event.timestamp as u64,
            activity: event.activity_id,
            related_activity: event.related_activity_id,
            labels: 0,
            sorted: event.sorted,
            payload_size: 0,
        };
        self.events.push::<false>(header, event.payload);
        self.flush_if_long();
    }

    /// Skips sequence numbers of a capture thread, as a runtime does when it drops events because its buffers are full.
    pub fn add_loss(&mut self, capture_thread: u64, count: u32) {
        self.advance(capture_thread, count);
    }

    /// Writes out all incomplete blocks.
    pub fn flush(&mut self) {
        if let Some(body) = self.metadata.finish() {
            self.object("MetadataBlock", &body);
        }
        if self.next_stack > self.first_stack {
            let mut body = Vec::with_capacity(8 + self.stacks.len());
            body.put_u32(self.first_stack);
            body.put_u32(self.next_stack - self.first_stack);
            body.append(&mut self.stacks);
            self.first_stack = self.next_stack;
            self.object("StackBlock", &body);
        }
        if let Some(body) = self.events.finish() {
            self.object("EventBlock", &body);
        }
    }

    /// Writes a sequence point: lists the last sequence number of every thread and invalidates all stack IDs. If there are very many threads,
    /// those without events since the previous point are dropped.
    pub fn sequence_point(&mut self, timestamp: i64) {
        self.flush();
        let mut body = Vec::new();
        body.put_i64(timestamp);
        body.put_u32(self.sequences.len() as u32);
        for Sequence { thread, last, .. } in &self.sequences {
            body.put_u64(*thread);
            body.put_u32(*last);
        }
        self.object("SPBlock", &body);
        if self.sequences.len() > MAX_THREADS {
            self.sequences.retain(|sequence| sequence.is_active);
            self.sequence_index = self.sequences.iter().zip(0..).map(|(sequence, index)| (sequence.thread, index)).collect();
        }
        self.sequences.iter_mut().for_each(|sequence| sequence.is_active = false);
        self.stack_ids.clear();
        (self.first_stack, self.next_stack) = (1, 1);
    }

    /// Writes out all blocks and the end marker.
    pub fn end(&mut self) {
        self.flush();
        self.out.put_u8(NULL_REFERENCE);
    }

    /// Returns the bytes encoded since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        self.taken += self.out.len() as u64;
        std::mem::take(&mut self.out)
    }

    /// Returns the number of bytes not yet taken, including incomplete blocks.
    pub(super) fn len(&self) -> usize {
        self.out.len() + self.metadata.rows.len() + self.events.rows.len() + self.stacks.len()
    }

    fn flush_if_long(&mut self) {
        if [&self.metadata.rows, &self.events.rows, &self.stacks].iter().any(|rows| rows.len() >= BLOCK_SIZE) {
            self.flush();
        }
    }

    /// Advances the sequence number of a capture thread by `count` and returns it.
    fn advance(&mut self, capture_thread: u64, count: u32) -> u32 {
        let index = *self.sequence_index.entry(capture_thread).or_insert_with(|| {
            self.sequences.push(Sequence { thread: capture_thread, last: 0, is_active: true });
            self.sequences.len() - 1
        });
        let sequence = &mut self.sequences[index];
        sequence.is_active = true;
        sequence.last = sequence.last.wrapping_add(count);
        sequence.last
    }

    fn object(&mut self, name: &str, body: &[u8]) {
        begin_object(&mut self.out, name, 2);
        self.out.put_u32(body.len() as u32);
        // The content is aligned to four bytes, relative to the start of the stream.
        let padding = (self.taken + self.out.len() as u64).wrapping_neg() % 4;
        self.out.put(&[0; 3][..padding as usize]);
        self.out.put(body);
        self.out.put_u8(END_OBJECT);
    }
}

fn begin_object(out: &mut Vec<u8>, name: &str, version: u32) {
    out.put(&[BEGIN_PRIVATE_OBJECT, BEGIN_PRIVATE_OBJECT, NULL_REFERENCE]);
    out.put_u32(version);
    out.put_u32(version);
    out.put_u32(name.len() as u32);
    out.put(name.as_bytes());
    out.put_u8(END_OBJECT);
}

impl Block {
    fn push<const V6: bool>(&mut self, mut header: Header, payload: &[u8]) {
        header.payload_size = payload.len() as u32;
        put_compressed::<V6>(&mut self.rows, &header, &self.last);
        self.rows.put(payload);
        let timestamp = header.timestamp as i64;
        let (oldest, newest) = self.span.unwrap_or((timestamp, timestamp));
        self.span = Some((oldest.min(timestamp), newest.max(timestamp)));
        self.last = header;
    }

    /// Returns the content of the block, if any, and resets it.
    fn finish(&mut self) -> Option<Vec<u8>> {
        let Self { mut rows, span, .. } = std::mem::take(self);
        let (oldest, newest) = span?;
        let mut body = Vec::with_capacity(20 + rows.len());
        // Header size, and the flag for compressed event headers.
        body.put_u16(20);
        body.put_u16(1);
        body.put_i64(oldest);
        body.put_i64(newest);
        body.append(&mut rows);
        Some(body)
    }
}

/// Encodes the header fields that differ from the last header.
fn put_compressed<const V6: bool>(out: &mut Vec<u8>, header: &Header, last: &Header) {
    let next = last.sequence.wrapping_add(u32::from(V6 || header.metadata != 0));
    let differs = |differs: bool, flag: u8| if differs { flag } else { 0 };
    let activity = if V6 { header.labels != last.labels } else { header.activity != last.activity };
    let sequence = header.sequence != next || header.capture_thread != last.capture_thread || header.processor != last.processor;
    let flags = differs(header.metadata != last.metadata, flag::METADATA)
        | differs(sequence, flag::SEQUENCE)
        | differs(header.thread != last.thread, flag::THREAD)
        | differs(header.stack != last.stack, flag::STACK)
        | differs(activity, flag::ACTIVITY)
        | differs(!V6 && header.related_activity != last.related_activity, flag::RELATED_ACTIVITY)
        | differs(header.sorted, flag::SORTED)
        | differs(header.payload_size != last.payload_size, flag::PAYLOAD_SIZE);
    out.put_u8(flags);
    if flags & flag::METADATA != 0 {
        out.put_varint(header.metadata.into());
    }
    if flags & flag::SEQUENCE != 0 {
        out.put_varint(header.sequence.wrapping_sub(next).into());
        out.put_varint(header.capture_thread);
        out.put_varint(header.processor.into());
    }
    if flags & flag::THREAD != 0 {
        out.put_varint(header.thread);
    }
    if flags & flag::STACK != 0 {
        out.put_varint(header.stack.into());
    }
    out.put_varint(header.timestamp.wrapping_sub(last.timestamp));
    if flags & flag::ACTIVITY != 0 {
        if V6 {
            out.put_varint(header.labels.into());
        } else {
            out.put(&header.activity);
        }
    }
    if flags & flag::RELATED_ACTIVITY != 0 {
        out.put(&header.related_activity);
    }
    if flags & flag::PAYLOAD_SIZE != 0 {
        out.put_varint(header.payload_size.into());
    }
}

#[cfg(test)]
mod tests;
