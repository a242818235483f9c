//! Block contents, and the state kept between blocks.

mod counted;

use std::cell::Cell;

use crate::wire::{Reader, WireError};

use super::super::counts::BlockCounts;
use super::super::event::{Context, Header, block_header, flag};
use super::super::frame::Format;
use super::super::metadata::{Added, Table, parse_v4, parse_v6};
use super::super::pending::{Pending, Receiver};
use super::super::rows::Rows;
use super::super::sequence::{NO_SLOT, Sequences};
use super::super::threads::{self, Threads, parse as parse_thread};
use super::super::{
    BlockKind, DecodeError, Event, Labels, Limit, Loss, LossKind, Metadata, Problem, ProblemKind, SequencePoint, Sink, Thread, ThreadId,
    TraceHeader, fields, labels, stacks,
};
use super::Limits;

/// The decoding state of a stream.
#[derive(Debug)]
pub(super) struct Blocks {
    trace: Option<TraceHeader>,
    context: Context,
    sequences: Sequences,
    pending: Pending,
    /// Whether any events must be delivered in time order.
    orders: bool,
    /// Timestamp of the last event.
    now: i64,
    /// Limits that were reached and reported.
    reported: Vec<Limit>,
    /// Counts of the blocks to come, in stream order.
    pub(super) counted: std::iter::Peekable<std::vec::IntoIter<BlockCounts>>,
}

/// Offset in a block from which its content is invalid.
type Damage = Option<usize>;

impl Blocks {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            trace: None,
            context: Context {
                v6: false,
                pointer_size: 8,
                metadata: Table::new(limits.metadata_records, limits.metadata_bytes),
                stacks: Rows::new(limits.stack_bytes),
                labels: Rows::new(limits.stack_bytes),
                overrides_version: false,
                threads: Threads::new(limits.threads),
            },
            sequences: Sequences::new(limits.threads),
            pending: Pending::default(),
            orders: false,
            now: 0,
            reported: Vec::new(),
            counted: Vec::new().into_iter().peekable(),
        }
    }

    pub(super) fn trace(&self) -> Option<&TraceHeader> {
        self.trace.as_ref()
    }

    pub(super) fn metadata_records(&self) -> &[Metadata] {
        self.context.metadata.records()
    }

    pub(super) fn largest_metadata_id(&self) -> u32 {
        self.context.metadata.largest_id()
    }

    /// Decodes a complete block whose content starts at stream offset `at`.
    pub(super) fn whole(
        &mut self,
        format: Format,
        kind: BlockKind,
        version: u32,
        block: &[u8],
        at: u64,
        sink: &mut impl Sink,
    ) -> Result<(), DecodeError> {
        let damage = match (kind, self.trace) {
            (BlockKind::Trace, None) => return self.begin(format, version, block, at, sink),
            // A second trace block has no new information.
            (BlockKind::Trace, Some(_)) => None,
            (_, None) => return Err(DecodeError::Damaged { at, what: "a block before the trace header" }),
            (BlockKind::Event, _) => self.events(block, at, sink),
            (BlockKind::Metadata, _) => self.metadata(block, at, sink),
            (BlockKind::Stack, _) => self.stacks(block, at, sink),
            (BlockKind::SequencePoint, _) => self.sequence_point(block, at, sink),
            (BlockKind::Thread, _) => self.threads(block, at, sink),
            (BlockKind::RemoveThread, _) => self.remove_threads(block, at, sink),
            (BlockKind::LabelList, _) => self.labels(block, at, sink),
        };
        if let Some(damage) = damage {
            sink.problem(&Problem { kind: ProblemKind::DamagedBlock(kind), at: at + damage as u64 });
        }
        Ok(())
    }

    /// Decodes the start of an event block in which the stream was cut off; returns its length up to the end of the last complete event, if
    /// there is one. Other kinds of blocks only matter for events after them.
    pub(super) fn unfinished_events(&mut self, block: &[u8], at: u64, sink: &mut impl Sink) -> Option<usize> {
        self.trace?;
        let header = u16::from_le_bytes(*block.first_chunk()?);
        let end = self.events(block, at, sink).unwrap_or(block.len());
        (end > header.into()).then_some(end)
    }

    /// Delivers the held-back events before which no older event can arrive.
    pub(super) fn deliver_safe(&mut self, sink: &mut impl Sink) {
        self.pending.deliver_safe(&mut Receiver { context: &self.context, sink: &mut *sink });
    }

    /// Delivers all held-back events.
    pub(super) fn flush(&mut self, sink: &mut impl Sink) {
        self.pending.flush(&mut Receiver { context: &self.context, sink: &mut *sink });
    }

    fn begin(&mut self, format: Format, version: u32, block: &[u8], at: u64, sink: &mut impl Sink) -> Result<(), DecodeError> {
        let trace = match format {
            Format::V4 if !(4..=5).contains(&version) => return Err(DecodeError::Version(version)),
            Format::V4 => TraceHeader::parse_v4(block, version),
            Format::V6 => TraceHeader::parse_v6(block),
        };
        let trace = trace.map_err(|_| DecodeError::Damaged { at, what: "the trace header is too short" })?;
        self.context.v6 = format == Format::V6;
        self.context.pointer_size = trace.pointer_size;
        sink.trace(&trace);
        self.trace = Some(trace);
        Ok(())
    }

    /// Decodes the events of a block. This is the hot loop.
    fn rows<const V6: bool, const COMPRESSED: bool>(&mut self, reader: &mut Reader<'_>, at: u64, sink: &mut impl Sink) -> Damage {
        let Self { context, sequences, pending, orders, .. } = self;
        let context = &*context;
        let mut header = Header::default();
        let mut kind = context.metadata.get(0);
        let mut slot = NO_SLOT;
        let described = |index| context.threads.get(index).unwrap_or(ThreadId::UNKNOWN);
        let (mut thread, mut capture_thread) = (described(0), described(0));
        let (mut is_ordered, mut is_undefined, mut has_overflowed) = (false, true, false);
        let mut damage = None;
        while !reader.is_empty() {
            let start = reader.at();
            let row = if COMPRESSED { header.read_compressed::<V6>(reader) } else { header.read_uncompressed(reader, V6) };
            let Some((flags, payload)) = row else {
                damage = Some(start);
                break;
            };
            if flags & flag::METADATA != 0 {
                kind = context.metadata.get(header.metadata);
                is_ordered = context.metadata.is_ordered(kind.index);
                is_undefined = kind.index == 0;
            }
            if flags & flag::SEQUENCE != 0 || slot == NO_SLOT {
                slot = sequences.slot(header.capture_thread);
            }
            if !V6 {
                (thread, capture_thread) = (ThreadId::of(header.thread), ThreadId::of(header.capture_thread));
            } else if flags & (flag::SEQUENCE | flag::THREAD) != 0 {
                capture_thread = described(header.capture_thread);
                thread = if header.thread == header.capture_thread { capture_thread } else { described(header.thread) };
            }
            let mut is_held = false;
            let mut problem = |kind| sink.problem(&Problem { kind, at: at + start as u64 });
            if is_undefined {
                problem(ProblemKind::UndefinedMetadata);
            }
            if flags & flag::STACK != 0 && header.stack != 0 && !context.stacks.has(header.stack) {
                problem(ProblemKind::UndefinedStack);
            }
            if V6 && (thread == ThreadId::UNKNOWN || capture_thread == ThreadId::UNKNOWN) {
                problem(ProblemKind::UndefinedThread);
            }
            if (V6 || header.metadata != 0)
                && let Some((count, kind)) = sequences.event(slot, header.sequence)
            {
                let kind = kind.of(V6, capture_thread);
                let loss = Loss { count, kind, capture_thread, timestamp: header.timestamp as i64 };
                sink.loss(&loss);
                if *orders {
                    pending.loss(loss);
                    is_held = true;
                }
            }
            let event = Event { metadata: kind, payload, thread, capture_thread, header: &header, context };
            sink.event(&event);
            if is_ordered {
                pending.event(&event);
                is_held = true;
            }
            if header.sorted {
                pending.set_safe(header.timestamp as i64);
            }
            if is_held && pending.is_full() {
                has_overflowed |= pending.make_room(&mut Receiver { context, sink: &mut *sink });
            }
        }
        pending.deliver_safe_batch(&mut Receiver { context, sink: &mut *sink });
        self.now = header.timestamp as i64;
        if has_overflowed {
            self.report_limit(Limit::Order, at, sink);
        }
        damage
    }

    fn metadata(&mut self, block: &[u8], at: u64, sink: &mut impl Sink) -> Damage {
        let mut reader = Reader::new(block);
        if self.context.v6 {
            // The size of this header excludes the size field itself.
            if reader.u16().and_then(|size| reader.take(size.into())).is_err() {
                return Some(0);
            }
            while !reader.is_empty() {
                let start = at + reader.at() as u64;
                let Ok((record, size)) = parse_v6(&mut reader) else { return Some(reader.at()) };
                if fields::have_variable_elements(&record.fields) {
                    sink.problem(&Problem { kind: ProblemKind::VariableElements, at: start });
                }
                self.define(record, size, start, sink);
            }
            return None;
        }
        let Some(compressed) = block_header(&mut reader) else { return Some(0) };
        let mut header = Header::default();
        while !reader.is_empty() {
            let start = reader.at();
            let blob = if compressed { header.read_compressed::<false>(&mut reader) } else { header.read_uncompressed(&mut reader, false) };
            let Some((_, payload)) = blob else { return Some(start) };
            if self.context.metadata.has_room(payload.len()) {
                let Ok(record) = parse_v4(payload) else { return Some(start) };
                self.define(record, payload.len(), at + start as u64, sink);
            } else {
                // Records that exceed the limit are not parsed.
                let Ok(id) = Reader::new(payload).u32() else { return Some(start) };
                self.context.metadata.undefine(id);
                self.report_limit(Limit::Metadata, at + start as u64, sink);
            }
        }
        None
    }

    fn define(&mut self, record: Metadata, size: usize, at: u64, sink: &mut impl Sink) {
        let (added, meant_another) = self.context.metadata.add(record, size);
        let mut is_full = false;
        match added {
            Added::New(record) => {
                sink.metadata(record);
                if sink.needs_order(record) {
                    self.context.metadata.set_ordered();
                    self.orders = true;
                }
            }
            Added::Known => {}
            Added::Full => is_full = true,
        }
        if meant_another {
            sink.problem(&Problem { kind: ProblemKind::RedefinedMetadata, at });
        }
        if is_full {
            self.report_limit(Limit::Metadata, at, sink);
        }
    }

    fn stacks(&mut self, block: &[u8], at: u64, sink: &mut impl Sink) -> Damage {
        self.flush_before(block, |context| &context.stacks, sink);
        let loaded = self.context.stacks.load(block, stacks::row);
        sink.stacks(loaded.count);
        if !loaded.kept {
            self.report_limit(Limit::Stacks, at, sink);
        }
        loaded.damage
    }

    fn labels(&mut self, block: &[u8], at: u64, sink: &mut impl Sink) -> Damage {
        self.flush_before(block, |context| &context.labels, sink);
        let overrides_version = Cell::new(self.context.overrides_version);
        let loaded = self.context.labels.load(block, |reader| {
            let row = labels::row(reader)?;
            overrides_version.set(overrides_version.get() || Labels::new(row).version().is_some());
            Some(row)
        });
        self.context.overrides_version = overrides_version.get();
        if !loaded.kept {
            self.report_limit(Limit::Labels, at, sink);
        }
        loaded.damage
    }

    /// Delivers all held-back events if a block of rows evicts other rows, which those events may refer to.
    fn flush_before(&mut self, block: &[u8], rows: impl Fn(&Context) -> &Rows, sink: &mut impl Sink) {
        let first = block.first_chunk().map_or(0, |first| u32::from_le_bytes(*first));
        if !rows(&self.context).keeps(first, block.len()) {
            self.flush(sink);
        }
    }

    fn threads(&mut self, block: &[u8], at: u64, sink: &mut impl Sink) -> Damage {
        let mut reader = Reader::new(block);
        let process = self.trace.map_or(0, |trace| trace.process_id);
        while !reader.is_empty() {
            let start = at + reader.at() as u64;
            let Ok(row) = parse_thread(&mut reader) else { return Some(reader.at()) };
            let added = self.context.threads.add(&row, process);
            match added {
                threads::Added::Defined(id) | threads::Added::Redefined(id) => sink.thread(&Thread { id, name: row.name }),
                threads::Added::Full => self.report_limit(Limit::Threads, start, sink),
            }
            if let threads::Added::Redefined(_) = added {
                // The sequence numbers were those of another thread.
                self.sequences.remove(row.index);
                sink.problem(&Problem { kind: ProblemKind::RedefinedThread, at: start });
            }
        }
        None
    }

    fn remove_threads(&mut self, block: &[u8], at: u64, sink: &mut impl Sink) -> Damage {
        let mut reader = Reader::new(block);
        while !reader.is_empty() {
            let start = at + reader.at() as u64;
            let (Ok(index), Ok(last)) = (reader.varu64(), reader.varu32()) else { return Some(reader.at()) };
            self.listed(index, last, self.now, start, sink);
            self.sequences.remove(index);
            self.context.threads.remove(index);
        }
        None
    }

    fn sequence_point(&mut self, block: &[u8], at: u64, sink: &mut impl Sink) -> Damage {
        self.flush(sink);
        let mut reader = Reader::new(block);
        let flags = self.listed_threads(&mut reader, at, sink);
        self.sequences.end_point();
        self.context.stacks.clear();
        self.context.labels.clear();
        let Ok(flags) = flags else { return Some(reader.at()) };
        if flags & 1 != 0 {
            self.sequences.clear();
            self.context.threads.clear();
        }
        if flags & 2 != 0 {
            self.context.metadata.clear_ids();
        }
        None
    }

    /// Counts the events that threads lost before a sequence point; returns the flags of the point.
    fn listed_threads(&mut self, reader: &mut Reader<'_>, at: u64, sink: &mut impl Sink) -> Result<u32, WireError> {
        let v6 = self.context.v6;
        let timestamp = reader.i64()?;
        let flags = if v6 { reader.u32()? } else { 0 };
        let threads = reader.u32()?;
        for _ in 0..threads {
            let start = at + reader.at() as u64;
            let (thread, last) = if v6 { (reader.varu64()?, reader.varu32()?) } else { (reader.u64()?, reader.u32()?) };
            self.listed(thread, last, timestamp, start, sink);
        }
        self.flush(sink);
        sink.sequence_point(&SequencePoint { timestamp, threads });
        Ok(flags)
    }

    /// Handles the last sequence number of a thread, given by ID (up to V5) or by index (V6).
    fn listed(&mut self, thread: u64, last: u32, timestamp: i64, at: u64, sink: &mut impl Sink) {
        let capture_thread = if self.context.v6 { self.context.threads.get(thread) } else { Some(ThreadId::of(thread)) };
        if capture_thread.is_none() {
            sink.problem(&Problem { kind: ProblemKind::UndefinedThread, at });
        }
        if let Some(count) = self.sequences.listed(thread, last) {
            let capture_thread = capture_thread.unwrap_or(ThreadId::UNKNOWN);
            let loss = Loss { count, kind: LossKind::Tail, capture_thread, timestamp };
            sink.loss(&loss);
            if self.orders {
                self.pending.loss(loss);
            }
            if self.pending.is_full() {
                self.pending.make_room(&mut Receiver { context: &self.context, sink: &mut *sink });
            }
        }
    }

    /// Reports a reached limit, once.
    fn report_limit(&mut self, limit: Limit, at: u64, sink: &mut impl Sink) {
        if !self.reported.contains(&limit) {
            self.reported.push(limit);
            sink.problem(&Problem { kind: ProblemKind::Limit(limit), at });
        }
    }
}
