//! Writes V6 streams, block by block, including malformed ones. (The library writes V4 only.)

use dn_top::wire::Put;

/// A stream being written.
pub(crate) struct V6(Vec<u8>);

/// Kinds of blocks, by their numbers in the format.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Trace = 1,
    Event = 2,
    Metadata = 3,
    SequencePoint = 4,
    Stack = 5,
    Thread = 6,
    RemoveThread = 7,
    LabelList = 8,
}

/// An event. The sequence number is per thread, counted from 1.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Row<'a> {
    pub(crate) metadata: u32,
    pub(crate) sequence: u32,
    pub(crate) thread: u64,
    pub(crate) stack: u32,
    pub(crate) labels: u32,
    pub(crate) timestamp: i64,
    pub(crate) payload: &'a [u8],
}

impl V6 {
    /// Starts a stream with a clock in nanoseconds from 0, of a 64-bit process.
    pub(crate) fn new() -> Self {
        let mut stream = Self(b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec());
        let mut body = vec![0; 24];
        body.put_u64(1_000_000_000);
        body.put_u32(8);
        body.put_u32(0);
        stream.block(Kind::Trace, &body);
        stream
    }

    pub(crate) fn block(&mut self, kind: Kind, body: &[u8]) {
        self.0.put_u32(body.len() as u32 | (kind as u32) << 24);
        self.0.put(body);
    }

    /// Adds a kind of event with `count` fields, described by `fields`; opcode 1 is a start, 2 a stop.
    pub(crate) fn metadata(&mut self, id: u32, provider: &str, name: &str, opcode: u8, count: u16, fields: &[u8]) {
        let mut record = Vec::new();
        record.put_varint(id.into());
        text(&mut record, provider);
        record.put_varint(id.into());
        text(&mut record, name);
        record.put_u16(count);
        record.put(fields);
        // The options: an opcode.
        record.put(&[2, 0, 1, opcode]);
        let mut body = vec![0, 0];
        body.put(&sized(&record));
        self.block(Kind::Metadata, &body);
    }

    /// Adds threads by index, process and thread ID.
    pub(crate) fn threads(&mut self, threads: impl IntoIterator<Item = (u64, u64, u64)>) {
        let mut body = Vec::new();
        for (index, process, thread) in threads {
            let mut row = Vec::new();
            row.put_varint(index);
            row.put_u8(2);
            row.put_varint(process);
            row.put_u8(3);
            row.put_varint(thread);
            body.put(&sized(&row));
        }
        self.block(Kind::Thread, &body);
    }

    /// Adds events with compressed headers.
    pub(crate) fn events<'a>(&mut self, rows: impl IntoIterator<Item = Row<'a>>) {
        let mut body = block_header(1);
        let (mut sequence, mut timestamp) = (0_u32, 0_i64);
        for row in rows {
            // All fields are written, except those that V6 does not have.
            body.put_u8(0xdf);
            body.put_varint(row.metadata.into());
            body.put_varint(row.sequence.wrapping_sub(sequence).wrapping_sub(1).into());
            body.put_varint(row.thread);
            body.put_varint(0);
            body.put_varint(row.thread);
            body.put_varint(row.stack.into());
            body.put_varint(row.timestamp.wrapping_sub(timestamp) as u64);
            body.put_varint(row.labels.into());
            body.put_varint(row.payload.len() as u64);
            body.put(row.payload);
            (sequence, timestamp) = (row.sequence, row.timestamp);
        }
        self.block(Kind::Event, &body);
    }

    /// Removes threads by index, with the sequence number of their last event.
    pub(crate) fn remove(&mut self, threads: &[(u64, u32)]) {
        let mut body = Vec::new();
        for (thread, last) in threads {
            body.put_varint(*thread);
            body.put_varint((*last).into());
        }
        self.block(Kind::RemoveThread, &body);
    }

    /// Adds a sequence point; flag 1 drops all threads, 2 all kinds of events.
    pub(crate) fn sequence_point(&mut self, timestamp: i64, flags: u32, threads: &[(u64, u32)]) {
        let mut body = Vec::new();
        body.put_i64(timestamp);
        body.put_u32(flags);
        body.put_u32(threads.len() as u32);
        for (thread, last) in threads {
            body.put_varint(*thread);
            body.put_varint((*last).into());
        }
        self.block(Kind::SequencePoint, &body);
    }

    /// Adds label lists, numbered from `first`; each ends with a label marked as the last.
    pub(crate) fn labels(&mut self, first: u32, lists: &[Vec<u8>]) {
        let mut body = Vec::new();
        body.put_u32(first);
        body.put_u32(lists.len() as u32);
        lists.iter().for_each(|list| body.put(list));
        self.block(Kind::LabelList, &body);
    }

    /// Returns the stream with its end.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.put_u32(0);
        self.0
    }

    /// Number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Returns the header of an event block: its size, its flags (1 for compressed headers), oldest and newest timestamp.
pub(crate) fn block_header(flags: u16) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_u16(20);
    body.put_u16(flags);
    body.put_i64(0);
    body.put_i64(0);
    body
}

/// Returns a row preceded by its size.
pub(crate) fn sized(row: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u16(row.len() as u16);
    out.put(row);
    out
}

/// Returns a field: its name and type description.
pub(crate) fn field(name: &str, kind: &[u8]) -> Vec<u8> {
    let mut row = Vec::new();
    text(&mut row, name);
    row.put(kind);
    sized(&row)
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.put_varint(text.len() as u64);
    out.put(text.as_bytes());
}
