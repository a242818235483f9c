//! Writes V6 streams, as collectors outside the runtime do: events of any process, in the order of their times.

use foldhash::HashMap;

use crate::wire::Put;

use super::super::UtcTime;
use super::BLOCK_SIZE;

/// The kinds of blocks, by their numbers in the format.
const TRACE: u32 = 1;
const EVENTS: u32 = 2;
const METADATA: u32 = 3;
const SEQUENCE_POINT: u32 = 4;
const STACKS: u32 = 5;
const THREADS: u32 = 6;
/// Options of a thread.
const PROCESS_ID: u8 = 2;
const THREAD_ID: u8 = 3;
/// An event that repeats nothing of the one before it, and that no later event is older than.
const WHOLE: u8 = 0xdf;

/// What a stream says of itself.
#[derive(Debug, Clone, Copy)]
pub struct CollectorHeader {
    /// The moment of `sync_ns` in calendar time.
    pub sync_utc: UtcTime,
    /// A point on the clock of all timestamps, nanoseconds.
    pub sync_ns: i64,
    /// Processors of the machine.
    pub processors: u32,
    /// What a sample stands for, nanoseconds.
    pub sampling_interval_ns: u32,
}

/// Writes a stream of format 6 whose clock counts nanoseconds. Events are to be written in the order of their times.
#[derive(Debug)]
pub struct CollectorEncoder {
    out: Vec<u8>,
    threads: HashMap<(u32, u64), u64>,
    new_threads: Vec<u8>,
    stacks: Vec<u8>,
    stack_ids: HashMap<Vec<u64>, u32>,
    first_stack: u32,
    rows: Vec<u8>,
    /// The number of the last event.
    sequence: u32,
    first: i64,
    last: i64,
    next_metadata: u32,
}

impl CollectorEncoder {
    /// Begins a stream.
    pub fn new(header: &CollectorHeader) -> Self {
        let mut this = Self {
            out: b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec(),
            threads: HashMap::default(),
            new_threads: Vec::new(),
            stacks: Vec::new(),
            stack_ids: HashMap::default(),
            first_stack: 1,
            rows: Vec::new(),
            sequence: 0,
            first: header.sync_ns,
            last: header.sync_ns,
            next_metadata: 1,
        };
        // The thread that writes all events.
        put_thread(&mut this.new_threads, 0, 0, 0);
        let mut body = Vec::new();
        header.sync_utc.system_time().iter().for_each(|word| body.put_u16(*word));
        body.put_i64(header.sync_ns);
        body.put_u64(1_000_000_000);
        body.put_u32(8);
        body.put_u32(2);
        for (key, value) in [("HardwareThreadCount", header.processors), ("ExpectedCPUSamplingRate", header.sampling_interval_ns)] {
            put_text(&mut body, key);
            put_text(&mut body, &value.to_string());
        }
        this.block(TRACE, &body);
        this
    }

    /// Defines a kind of event whose fields have these names and types (numbers of the format), and gives the id that its events name.
    pub fn metadata(&mut self, provider: &str, event_id: u32, name: &str, fields: &[(&str, u8)]) -> u32 {
        let id = self.next_metadata;
        self.next_metadata += 1;
        let mut row = Vec::new();
        row.put_varint(id.into());
        put_text(&mut row, provider);
        row.put_varint(event_id.into());
        put_text(&mut row, name);
        row.put_u16(fields.len() as u16);
        for (name, kind) in fields {
            let mut field = Vec::new();
            put_text(&mut field, name);
            field.put_u8(*kind);
            put_row(&mut row, &field);
        }
        // No options.
        row.put_u16(0);
        let mut body = vec![0, 0];
        put_row(&mut body, &row);
        self.block(METADATA, &body);
        id
    }

    /// Writes an event of a thread of a process, with its stack, leaf first. One that is older than the event before it gets the time of that.
    pub fn event(&mut self, metadata: u32, (process, thread): (u32, u64), timestamp: i64, stack: &[u64], payload: &[u8]) {
        let thread = self.thread(process, thread);
        let stack = self.stack(stack);
        let (timestamp, before) = (timestamp.max(self.last), if self.rows.is_empty() { 0 } else { self.last });
        if self.rows.is_empty() {
            self.first = timestamp;
        }
        let sequence = if self.rows.is_empty() { self.sequence } else { 0 };
        self.sequence = self.sequence.wrapping_add(1);
        self.last = timestamp;
        let rows = &mut self.rows;
        rows.put_u8(WHOLE);
        rows.put_varint(metadata.into());
        rows.put_varint(sequence.into());
        // All are written by one thread, whose index is 0, on a processor that does not matter.
        rows.put(&[0, 0]);
        rows.put_varint(thread);
        rows.put_varint(stack.into());
        rows.put_varint(timestamp.wrapping_sub(before) as u64);
        rows.put_varint(0);
        rows.put_varint(payload.len() as u64);
        rows.put(payload);
        if self.rows.len() + self.stacks.len() >= BLOCK_SIZE {
            self.flush();
        }
    }

    fn thread(&mut self, process: u32, thread: u64) -> u64 {
        // Index 0 is the writer.
        let next = self.threads.len() as u64 + 1;
        let index = *self.threads.entry((process, thread)).or_insert(next);
        if index == next {
            put_thread(&mut self.new_threads, index, process, thread);
        }
        index
    }

    fn stack(&mut self, frames: &[u64]) -> u32 {
        if frames.is_empty() {
            return 0;
        }
        if let Some(id) = self.stack_ids.get(frames) {
            return *id;
        }
        let id = self.stack_ids.len() as u32 + 1;
        self.stacks.put_u32(frames.len() as u32 * 8);
        frames.iter().for_each(|frame| self.stacks.put_u64(*frame));
        self.stack_ids.insert(frames.to_vec(), id);
        id
    }

    /// Writes out all blocks that were begun.
    fn flush(&mut self) {
        if !self.new_threads.is_empty() {
            let body = std::mem::take(&mut self.new_threads);
            self.block(THREADS, &body);
        }
        if !self.stacks.is_empty() {
            let next = self.stack_ids.len() as u32 + 1;
            let mut body = Vec::with_capacity(8 + self.stacks.len());
            body.put_u32(self.first_stack);
            body.put_u32(next - self.first_stack);
            body.append(&mut self.stacks);
            self.first_stack = next;
            self.block(STACKS, &body);
        }
        if !self.rows.is_empty() {
            let mut body = Vec::with_capacity(20 + self.rows.len());
            body.put_u16(20);
            // Compressed headers.
            body.put_u16(1);
            body.put_i64(self.first);
            body.put_i64(self.last);
            body.append(&mut self.rows);
            self.block(EVENTS, &body);
        }
    }

    /// Writes a sequence point: stacks are numbered from 1 again.
    pub fn sequence_point(&mut self) {
        self.flush();
        let mut body = Vec::new();
        body.put_i64(self.last);
        body.put_u32(0);
        body.put_u32(1);
        body.put_varint(0);
        body.put_varint(self.sequence.into());
        self.block(SEQUENCE_POINT, &body);
        self.stack_ids = HashMap::default();
        self.first_stack = 1;
    }

    /// What was written since this was last called, but for blocks that were begun.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Ends the stream: all that was not taken yet.
    pub fn finish(mut self) -> Vec<u8> {
        self.sequence_point();
        self.out.put_u32(0);
        self.out
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        self.out.put_u32(body.len() as u32 | kind << 24);
        self.out.put(body);
    }
}

fn put_thread(out: &mut Vec<u8>, index: u64, process: u32, thread: u64) {
    let mut row = Vec::new();
    row.put_varint(index);
    row.put_u8(PROCESS_ID);
    row.put_varint(process.into());
    row.put_u8(THREAD_ID);
    row.put_varint(thread);
    put_row(out, &row);
}

/// A row with its size before it.
fn put_row(out: &mut Vec<u8>, row: &[u8]) {
    out.put_u16(row.len() as u16);
    out.put(row);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.put_varint(text.len() as u64);
    out.put(text.as_bytes());
}
