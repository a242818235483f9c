//! Writes V6 streams as collectors outside the runtime do: events of any process, in time order.

mod metadata;

use foldhash::HashMap;

use crate::wire::Put;

use super::super::event::Header;
use super::super::{Event, Metadata, ThreadId, TraceHeader, UtcTime};
use super::{BLOCK_SIZE, Block};

use metadata::put_text;

/// Block kinds of the format.
const TRACE: u32 = 1;
const EVENTS: u32 = 2;
const METADATA: u32 = 3;
const SEQUENCE_POINT: u32 = 4;
const STACKS: u32 = 5;
const THREADS: u32 = 6;
const LABELS: u32 = 8;
/// Thread options.
const NAME: u8 = 1;
const PROCESS_ID: u8 = 2;
const THREAD_ID: u8 = 3;
/// Event labels, and the flag of the last label in a list.
const ACTIVITY_ID: u8 = 1;
const RELATED_ACTIVITY_ID: u8 = 2;
const TEXT: u8 = 5;
const LAST: u8 = 0x80;
/// Flag of a sequence point after which thread indexes are reassigned.
const FLUSH_THREADS: u32 = 1;
/// Maximum number of threads that keep their indexes at a sequence point.
const MAX_THREADS: usize = 65_536;

/// Maximum size of a payload, a stack or a label list in bytes. The size of a block has 24 bits; runtimes write up to 64 KB per event.
const MAX_ROW_BYTES: usize = 1 << 20;

/// Output size in bytes from which the output should be taken.
const LONG: usize = 1 << 20;

/// Process ID and thread ID.
type ThreadKey = (u32, u64);

/// Encodes a stream of format 6. Events must be added in time order.
#[derive(Debug)]
pub struct CollectorEncoder {
    out: Vec<u8>,
    /// Pointer size in bytes.
    pointer_size: u8,
    /// Encoded stack of the latest event; reused to avoid allocations.
    frames: Vec<u8>,
    /// Thread indexes. Index 0 is the writer of events without a capture thread.
    threads: HashMap<ThreadKey, u32>,
    /// Last sequence number of each thread, by index.
    sequences: Vec<u32>,
    new_threads: Vec<u8>,
    stacks: ListTable,
    labels: ListTable,
    events: Block,
    newest: i64,
    next_metadata: u32,
}

/// Stacks or label lists, with IDs from 1.
#[derive(Debug, Default)]
struct ListTable {
    ids: HashMap<Vec<u8>, u32>,
    /// Rows of the next block.
    rows: Vec<u8>,
    /// ID of the first of these rows.
    first: u32,
}

impl CollectorEncoder {
    /// Starts a stream. Always writes version 6, whatever the version in `header`; a process ID of 0 is omitted.
    pub fn new(header: &TraceHeader) -> Self {
        let mut this = Self {
            out: b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec(),
            pointer_size: header.pointer_size,
            frames: Vec::new(),
            threads: HashMap::default(),
            sequences: Vec::new(),
            new_threads: Vec::new(),
            stacks: ListTable::default(),
            labels: ListTable::default(),
            events: Block::default(),
            newest: header.sync_ticks,
            next_metadata: 1,
        };
        this.reset_lists();
        this.add_writer();
        let mut body = Vec::new();
        header.sync_utc.map_or([0; 8], UtcTime::system_time).iter().for_each(|word| body.put_u16(*word));
        body.put_i64(header.sync_ticks);
        body.put_u64(header.ticks_per_second);
        body.put_u32(header.pointer_size.into());
        let process = (header.process_id != 0).then_some(("ProcessId", header.process_id));
        let pairs = [("HardwareThreadCount", header.processors), ("ExpectedCPUSamplingRate", header.sampling_interval_ns)];
        let pairs: Vec<_> = pairs.into_iter().chain(process).collect();
        body.put_u32(pairs.len() as u32);
        for (key, value) in pairs {
            put_text(&mut body, key);
            put_text(&mut body, &value.to_string());
        }
        this.block(TRACE, &body);
        this
    }

    /// Defines a kind of event and returns its metadata ID; the index and ID in `record` are ignored. `is_v6`: whether timestamp fields are
    /// encoded as in this format; otherwise they are declared as plain numbers.
    pub fn metadata(&mut self, record: &Metadata, is_v6: bool) -> u32 {
        let id = self.next_metadata;
        self.next_metadata += 1;
        let mut body = vec![0, 0];
        metadata::put(&mut body, id, record, is_v6);
        self.block(METADATA, &body);
        id
    }

    /// Writes an event of a thread (process ID, thread ID), with its stack, leaf first, and a label (key, value).
    pub fn event(&mut self, metadata: u32, thread: (u32, u64), timestamp: i64, stack: &[u64], label: Option<(&str, &str)>, payload: &[u8]) {
        let thread = self.thread(thread).into();
        self.frames.clear();
        for frame in stack {
            self.frames.put(&frame.to_le_bytes()[..self.pointer_size.into()]);
        }
        let stack = self.stacks.stack(&self.frames);
        let labels = label.map_or(0, |label| self.labels.label(label));
        self.put(Header { metadata, thread, stack, timestamp: timestamp as u64, labels, ..Header::default() }, payload);
    }

    /// Copies an event from another stream with the same pointer size, including stack, activity IDs and labels. `process`: the process ID for
    /// threads without one. Returns false if its payload does not fit into a block: then it is marked as lost.
    pub fn copy(&mut self, metadata: u32, process: u32, event: &Event<'_>) -> bool {
        let of = |id: ThreadId| (id.process_or(process), id.thread);
        let (thread, capture_thread) = (self.thread(of(event.thread())).into(), self.thread(of(event.capture_thread())).into());
        let stack = event.stack().map_or(0, |stack| self.stacks.stack(stack.as_bytes()));
        let labels = match event.context.v6 {
            true => self.labels.number(event.labels().as_bytes(), |_| {}),
            false => self.activities(&event.header.activity, &event.header.related_activity),
        };
        self.put(Header { metadata, thread, capture_thread, stack, labels, ..event.header.clone() }, event.payload)
    }

    fn activities(&mut self, activity: &[u8; 16], related: &[u8; 16]) -> u32 {
        let mut list = [0; 34];
        let mut length = 0;
        for (kind, id) in [(ACTIVITY_ID, activity), (RELATED_ACTIVITY_ID, related)].into_iter().filter(|(_, id)| **id != [0; 16]) {
            list[length] = kind;
            list[length + 1..][..16].copy_from_slice(id);
            length += 17;
        }
        if let Some(last) = length.checked_sub(17) {
            list[last] |= LAST;
        }
        self.labels.number(&list[..length], |_| {})
    }

    /// Sets the name of a thread.
    pub fn name_thread(&mut self, thread: (u32, u64), name: &str) {
        let index = self.thread(thread);
        put_thread(&mut self.new_threads, index.into(), thread, name);
        if self.new_threads.len() >= BLOCK_SIZE {
            self.flush();
        }
    }

    /// Returns whether the output is long enough to be taken.
    pub fn is_long(&self) -> bool {
        self.out.len() >= LONG
    }

    /// Skips sequence numbers of a capture thread, as a runtime does when it drops events because its buffers are full.
    pub fn add_loss(&mut self, thread: (u32, u64), count: u32) {
        let index = self.thread(thread);
        let last = &mut self.sequences[index as usize];
        *last = last.wrapping_add(count);
    }

    /// Writes an event; returns false if it does not fit.
    fn put(&mut self, mut header: Header, payload: &[u8]) -> bool {
        let sequence = &mut self.sequences[header.capture_thread as usize];
        *sequence = sequence.wrapping_add(1);
        header.sequence = *sequence;
        if payload.len() > MAX_ROW_BYTES {
            return false;
        }
        let timestamp = header.timestamp as i64;
        header.sorted = timestamp >= self.newest;
        self.newest = self.newest.max(timestamp);
        self.events.push::<true>(header, payload);
        if self.events.rows.len() + self.stacks.rows.len() + self.labels.rows.len() >= BLOCK_SIZE {
            self.flush();
        }
        true
    }

    fn thread(&mut self, key: ThreadKey) -> u32 {
        let next = self.sequences.len() as u32;
        let index = *self.threads.entry(key).or_insert(next);
        if index == next {
            self.sequences.push(0);
            put_thread(&mut self.new_threads, index.into(), key, "");
        }
        index
    }

    /// Adds the writer of events without a capture thread.
    fn add_writer(&mut self) {
        self.sequences.push(0);
        put_thread(&mut self.new_threads, 0, (0, 0), "");
    }

    /// Writes out all incomplete blocks.
    fn flush(&mut self) {
        if !self.new_threads.is_empty() {
            let body = std::mem::take(&mut self.new_threads);
            self.block(THREADS, &body);
        }
        for (kind, body) in [(STACKS, self.stacks.take()), (LABELS, self.labels.take())] {
            if let Some(body) = body {
                self.block(kind, &body);
            }
        }
        if let Some(body) = self.events.finish() {
            self.block(EVENTS, &body);
        }
    }

    /// Writes a sequence point: stack and label IDs start at 1 again, and so do thread indexes if there are very many.
    pub fn sequence_point(&mut self) {
        self.flush();
        let has_many = self.sequences.len() > MAX_THREADS;
        let mut body = Vec::new();
        body.put_i64(self.newest);
        body.put_u32(if has_many { FLUSH_THREADS } else { 0 });
        body.put_u32(self.sequences.len() as u32);
        for (index, last) in self.sequences.iter().enumerate() {
            body.put_varint(index as u64);
            body.put_varint((*last).into());
        }
        self.block(SEQUENCE_POINT, &body);
        self.reset_lists();
        if has_many {
            (self.threads, self.sequences) = (HashMap::default(), Vec::new());
            self.add_writer();
        }
    }

    fn reset_lists(&mut self) {
        for lists in [&mut self.stacks, &mut self.labels] {
            *lists = ListTable { first: 1, ..ListTable::default() };
        }
    }

    /// Returns the bytes encoded since the last call, without incomplete blocks.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Ends the stream and returns the remaining bytes.
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

impl ListTable {
    fn stack(&mut self, frames: &[u8]) -> u32 {
        self.number(frames, |rows| rows.put_u32(frames.len() as u32))
    }

    /// Returns the ID of a list with one label.
    fn label(&mut self, (key, value): (&str, &str)) -> u32 {
        let mut list = vec![TEXT | LAST];
        put_text(&mut list, key);
        put_text(&mut list, value);
        self.number(&list, |_| {})
    }

    /// Returns the ID of a list, 0 if it is empty or does not fit into a block; `begin` writes the prefix of a new one.
    fn number(&mut self, list: &[u8], begin: impl FnOnce(&mut Vec<u8>)) -> u32 {
        if list.is_empty() || list.len() > MAX_ROW_BYTES {
            return 0;
        }
        if let Some(id) = self.ids.get(list) {
            return *id;
        }
        let id = self.ids.len() as u32 + 1;
        begin(&mut self.rows);
        self.rows.put(list);
        self.ids.insert(list.to_vec(), id);
        id
    }

    /// Returns the content of the block, if any, and starts the next.
    fn take(&mut self) -> Option<Vec<u8>> {
        let next = self.ids.len() as u32 + 1;
        let count = next - std::mem::replace(&mut self.first, next);
        (count > 0).then(|| {
            let mut body = Vec::with_capacity(8 + self.rows.len());
            body.put_u32(next - count);
            body.put_u32(count);
            body.append(&mut self.rows);
            body
        })
    }
}

fn put_thread(out: &mut Vec<u8>, index: u64, (process, thread): ThreadKey, name: &str) {
    let mut row = Vec::new();
    row.put_varint(index);
    if !name.is_empty() {
        row.put_u8(NAME);
        put_text(&mut row, name);
    }
    row.put_u8(PROCESS_ID);
    row.put_varint(process.into());
    row.put_u8(THREAD_ID);
    row.put_varint(thread);
    metadata::put_sized(out, &row);
}
