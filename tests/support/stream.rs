//! Blocks and events of a nettrace file, read by an independent implementation.

use std::collections::{HashMap, HashSet};

/// Process and thread ID; the process is 0 for that of the stream.
pub(super) type Thread = (u64, u64);

pub(super) struct Event<'a> {
    pub(super) kind: usize,
    pub(super) at: i64,
    pub(super) thread: Thread,
    /// Whether events are missing just before this one, from the thread that wrote it.
    pub(super) behind_loss: bool,
    pub(super) payload: Bytes<'a>,
}

#[derive(Clone)]
pub(super) struct Kind {
    pub(super) provider: String,
    pub(super) id: u32,
    pub(super) version: u32,
}

/// Bytes read from the front.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Bytes<'a> {
        let (front, rest) = self.0.split_at(count);
        self.0 = rest;
        Bytes(front)
    }

    /// Reads a little-endian number of `size` bytes.
    pub(super) fn number(&mut self, size: usize) -> u64 {
        self.take(size).0.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    pub(super) fn u32(&mut self) -> u32 {
        self.number(4) as u32
    }

    /// Reads a number of seven bits per byte, least significant first.
    fn varint(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.number(1);
            number |= (byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    /// Reads zero-terminated UTF-16.
    pub(super) fn utf16(&mut self) -> String {
        let units = std::iter::from_fn(|| Some(self.number(2) as u16).filter(|unit| *unit != 0));
        String::from_utf16_lossy(&units.collect::<Vec<_>>())
    }

    fn utf8(&mut self) -> String {
        let size = self.varint() as usize;
        String::from_utf8_lossy(self.take(size).0).into_owned()
    }

    fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Default)]
pub(super) struct Stream<'a> {
    v6: bool,
    process: u64,
    pub(super) kinds: Vec<Kind>,
    /// Index of each kind, by its ID in the stream.
    ids: HashMap<u64, usize>,
    /// Threads by index (V6).
    threads: HashMap<u64, Thread>,
    /// The last sequence number of each capture thread.
    last: HashMap<u64, u32>,
    /// Capture threads that lost events after their last one.
    gaps: HashSet<u64>,
    pub(super) lost: u64,
    pub(super) stacks: u64,
    pub(super) sequence_points: u64,
    pub(super) events: Vec<Event<'a>>,
}

impl<'a> Stream<'a> {
    pub(super) fn read(file: &'a [u8]) -> Self {
        let mut stream = Self::default();
        let mut bytes = Bytes(file);
        assert_eq!(bytes.take(8).0, b"Nettrace");
        stream.v6 = bytes.number(4) == 0;
        if stream.v6 {
            assert_eq!(bytes.number(4), 6);
            bytes.take(4);
            loop {
                let header = bytes.u32();
                let block = bytes.take((header & 0x00ff_ffff) as usize);
                if header >> 24 == 0 {
                    return stream;
                }
                stream.block_v6(header >> 24, block);
            }
        }
        assert_eq!(bytes.take(20).0, b"!FastSerialization.1");
        while bytes.number(1) == 5 {
            assert_eq!(bytes.take(2).0, [5, 1]);
            bytes.take(8);
            let size = bytes.number(4) as usize;
            let name = bytes.take(size).0;
            assert_eq!(bytes.number(1), 6);
            if name == b"Trace" {
                let mut trace = bytes.take(48);
                trace.take(16 + 8 + 8);
                assert_eq!(trace.u32(), 8, "bytes of a pointer");
                stream.process = trace.number(4);
            } else {
                let size = bytes.number(4) as usize;
                bytes.take((bytes.0.as_ptr() as usize - file.as_ptr() as usize).wrapping_neg() % 4);
                let block = bytes.take(size);
                match name {
                    b"EventBlock" => stream.event_block(block),
                    b"MetadataBlock" => stream.metadata_v4(block),
                    b"StackBlock" => stream.stack_block(block),
                    b"SPBlock" => stream.sequence_point(block),
                    _ => panic!("{name:?}"),
                }
            }
            assert_eq!(bytes.number(1), 6);
        }
        assert!(bytes.is_empty(), "{} bytes behind the end", bytes.0.len());
        stream
    }

    fn block_v6(&mut self, kind: u32, mut block: Bytes<'a>) {
        match kind {
            1 => {
                block.take(16 + 8 + 8 + 4);
                for _ in 0..block.u32() {
                    if block.utf8() == "ProcessId" {
                        self.process = block.utf8().parse().expect("a process id");
                    } else {
                        block.utf8();
                    }
                }
            }
            2 => self.event_block(block),
            3 => self.metadata_v6(block),
            4 => self.sequence_point(block),
            5 => self.stack_block(block),
            6 => {
                while !block.is_empty() {
                    let size = block.number(2) as usize;
                    let mut row = block.take(size);
                    let (index, mut thread) = (row.varint(), (0, 0));
                    while !row.is_empty() {
                        match row.number(1) {
                            1 => drop(row.utf8()),
                            2 => thread.0 = row.varint(),
                            3 => thread.1 = row.varint(),
                            _ => drop((row.utf8(), row.utf8())),
                        }
                    }
                    if thread.0 == self.process {
                        thread.0 = 0;
                    }
                    self.threads.insert(index, thread);
                    self.last.insert(index, 0);
                }
            }
            7 => {
                while !block.is_empty() {
                    let (index, last) = (block.varint(), block.varint() as u32);
                    self.listed(index, last);
                    self.last.remove(&index);
                    self.threads.remove(&index);
                }
            }
            8 => {}
            _ => panic!("a block of kind {kind}"),
        }
    }

    fn define(&mut self, id: u64, kind: Kind) {
        self.ids.insert(id, self.kinds.len());
        self.kinds.push(kind);
    }

    fn metadata_v4(&mut self, block: Bytes<'a>) {
        rows(block, false, &mut |row| {
            let mut record = row.payload;
            let id = record.number(4);
            let (provider, event) = (record.utf16(), record.u32());
            record.utf16();
            record.take(8);
            let version = record.u32();
            self.define(id, Kind { provider, id: event, version });
        });
    }

    fn metadata_v6(&mut self, mut block: Bytes<'a>) {
        let header = block.number(2) as usize;
        block.take(header);
        while !block.is_empty() {
            let size = block.number(2) as usize;
            let mut row = block.take(size);
            let (id, provider, event) = (row.varint(), row.utf8(), row.varint() as u32);
            self.define(id, Kind { provider, id: event, version: 0 });
        }
    }

    fn stack_block(&mut self, mut block: Bytes<'a>) {
        block.take(4);
        self.stacks += block.number(4);
    }

    fn event_block(&mut self, block: Bytes<'a>) {
        let v6 = self.v6;
        rows(block, v6, &mut |row| {
            // In V6, the number before the first event of a thread is 0; in older formats, it is unknown.
            let before = if v6 { Some(self.last[&row.capture_thread]) } else { self.last.get(&row.capture_thread).copied() };
            let lost = before.map_or(0, |last| row.sequence.wrapping_sub(last).wrapping_sub(1));
            self.lost += u64::from(lost);
            let behind_loss = self.gaps.remove(&row.capture_thread) || (lost > 0);
            self.last.insert(row.capture_thread, row.sequence);
            let thread = if v6 { self.threads[&row.thread] } else { (0, row.thread) };
            let kind = self.ids[&row.metadata];
            self.events.push(Event { kind, at: row.at as i64, thread, behind_loss, payload: row.payload });
        });
    }

    fn sequence_point(&mut self, mut block: Bytes<'a>) {
        self.sequence_points += 1;
        block.take(8);
        let flags = if self.v6 { block.number(4) } else { 0 };
        for _ in 0..block.number(4) {
            let (thread, last) = if self.v6 { (block.varint(), block.varint() as u32) } else { (block.number(8), block.u32()) };
            self.listed(thread, last);
        }
        if flags & 1 != 0 {
            self.threads.clear();
            self.last.clear();
        }
        if flags & 2 != 0 {
            self.ids.clear();
        }
    }

    /// Handles the last sequence number of a thread, as recorded in the stream.
    fn listed(&mut self, thread: u64, last: u32) {
        // Without an earlier number, none of its events were received.
        let lost = last.wrapping_sub(self.last.insert(thread, last).unwrap_or(0));
        self.lost += u64::from(lost);
        if lost > 0 {
            self.gaps.insert(thread);
        }
    }
}

/// An event, or a record of a metadata block in V4.
struct Row<'a> {
    metadata: u64,
    sequence: u32,
    capture_thread: u64,
    thread: u64,
    at: u64,
    payload: Bytes<'a>,
}

/// Calls `each` with each row of a block with compressed headers, as written by all runtimes.
fn rows<'a>(mut block: Bytes<'a>, v6: bool, each: &mut dyn FnMut(&Row<'a>)) {
    let header = block.number(2) as usize;
    assert_eq!(block.number(2) & 1, 1, "compressed headers");
    block.take(header - 4);
    let mut row = Row { metadata: 0, sequence: 0, capture_thread: 0, thread: 0, at: 0, payload: Bytes(&[]) };
    let mut size = 0;
    while !block.is_empty() {
        let flags = block.number(1);
        let has = |flag: u64| flags & flag != 0;
        if has(1) {
            row.metadata = block.varint();
        }
        if has(2) {
            row.sequence = row.sequence.wrapping_add(block.varint() as u32);
            row.capture_thread = block.varint();
            block.varint();
        }
        if v6 || row.metadata != 0 {
            row.sequence = row.sequence.wrapping_add(1);
        }
        if has(4) {
            row.thread = block.varint();
        }
        if has(8) {
            block.varint();
        }
        row.at = row.at.wrapping_add(block.varint());
        match (has(0x10), v6) {
            (true, true) => _ = block.varint(),
            (true, false) => _ = block.take(16),
            _ => {}
        }
        if has(0x20) && !v6 {
            block.take(16);
        }
        if has(0x80) {
            size = block.varint() as usize;
        }
        row.payload = block.take(size);
        each(&row);
    }
}
