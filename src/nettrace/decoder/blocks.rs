//! The content of blocks, and what has to be remembered from one to the next.

use crate::wire::{Reader, WireError};

use super::super::event::{Context, Header, flag};
use super::super::frame::Format;
use super::super::metadata::{Added, Table, parse_v4, parse_v6};
use super::super::rows::Rows;
use super::super::sequence::{NO_SLOT, Sequences};
use super::super::threads::{Threads, parse as parse_thread};
use super::super::{BlockKind, DecodeError, Event, Limit, Loss, SequencePoint, Sink, TraceHeader, Trouble, labels, stacks};
use super::Limits;

/// Smallest header of an event block: its size, its flags and two timestamps.
const EVENT_BLOCK_HEADER: usize = 20;

/// Everything that is remembered of a stream.
#[derive(Debug)]
pub(super) struct Blocks {
    trace: Option<TraceHeader>,
    metadata: Table,
    context: Context,
    sequences: Sequences,
    /// Timestamp of the last event.
    now: i64,
    /// The limits that were reached and said.
    said: Vec<Limit>,
}

/// Where in a block its content stops making sense.
type Damage = Option<usize>;

impl Blocks {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            trace: None,
            metadata: Table::new(limits.metadata_records, limits.metadata_bytes),
            context: Context {
                v6: false,
                pointer_size: 8,
                stacks: Rows::new(limits.stack_bytes),
                labels: Rows::new(limits.stack_bytes),
                threads: Threads::new(limits.threads),
            },
            sequences: Sequences::new(limits.threads),
            now: 0,
            said: Vec::new(),
        }
    }

    pub(super) fn trace(&self) -> Option<&TraceHeader> {
        self.trace.as_ref()
    }

    /// Decodes a whole block whose content begins `at` bytes behind the start of the stream.
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
            // A second one says nothing new.
            (BlockKind::Trace, Some(_)) => None,
            (_, None) => return Err(DecodeError::Damaged { at, what: "a block before the one that every stream begins with" }),
            (BlockKind::Event, _) => self.events(block, sink),
            (BlockKind::Metadata, _) => self.metadata(block, sink),
            (BlockKind::Stack, _) => self.stacks(block, sink),
            (BlockKind::SequencePoint, _) => self.sequence_point(block, sink),
            (BlockKind::Thread, _) => self.threads(block, sink),
            (BlockKind::RemoveThread, _) => self.remove_threads(block, sink),
            (BlockKind::LabelList, _) => self.labels(block, sink),
        };
        if let Some(damage) = damage {
            sink.trouble(&Trouble::DamagedBlock { kind, block: at, at: at + damage as u64 });
        }
        Ok(())
    }

    /// Decodes the start of an event block that the stream ends in, and says how long it is up to the end of its last whole event, where there is one.
    /// The other kinds of blocks only serve events behind them.
    pub(super) fn unfinished_events(&mut self, block: &[u8], sink: &mut impl Sink) -> Option<usize> {
        self.trace?;
        let header = u16::from_le_bytes(*block.first_chunk()?);
        let end = self.events(block, sink).unwrap_or(block.len());
        (end > header.into()).then_some(end)
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

    fn events(&mut self, block: &[u8], sink: &mut impl Sink) -> Damage {
        let mut reader = Reader::new(block);
        let Some(compressed) = event_block_header(&mut reader) else { return Some(0) };
        match (self.context.v6, compressed) {
            (false, true) => self.rows::<false, true>(&mut reader, sink),
            (true, true) => self.rows::<true, true>(&mut reader, sink),
            (false, false) => self.rows::<false, false>(&mut reader, sink),
            (true, false) => self.rows::<true, false>(&mut reader, sink),
        }
    }

    /// The events of a block. This loop is where the time goes.
    fn rows<const V6: bool, const COMPRESSED: bool>(&mut self, reader: &mut Reader<'_>, sink: &mut impl Sink) -> Damage {
        let Self { metadata, context, sequences, .. } = self;
        let mut header = Header::default();
        let mut kind = metadata.get(0);
        let mut slot = NO_SLOT;
        let mut damage = None;
        while !reader.is_empty() {
            let start = reader.at();
            let row = if COMPRESSED { header.read_compressed::<V6>(reader) } else { header.read_whole(reader, V6) };
            let Some((flags, payload)) = row else {
                damage = Some(start);
                break;
            };
            if flags & flag::METADATA != 0 {
                kind = metadata.get(header.metadata);
            }
            if flags & flag::SEQUENCE != 0 || slot == NO_SLOT {
                slot = sequences.slot(header.capture_thread);
            }
            if (V6 || header.metadata != 0)
                && let Some((count, kind)) = sequences.event(slot, header.sequence)
            {
                sink.loss(&Loss { count, kind, capture_thread: header.capture_thread, timestamp: header.timestamp as i64 });
            }
            sink.event(&Event { metadata: kind, payload, header: &header, context });
        }
        self.now = header.timestamp as i64;
        if sequences.has_overflowed() {
            self.say(Limit::Threads, sink);
        }
        damage
    }

    fn metadata(&mut self, block: &[u8], sink: &mut impl Sink) -> Damage {
        let mut reader = Reader::new(block);
        if self.context.v6 {
            // The size of this header does not count itself.
            if reader.u16().and_then(|size| reader.take(size.into())).is_err() {
                return Some(0);
            }
            while !reader.is_empty() {
                let Ok((record, size)) = parse_v6(&mut reader) else { return Some(reader.at()) };
                self.define(record, size, sink);
            }
            return None;
        }
        let Some(compressed) = event_block_header(&mut reader) else { return Some(0) };
        let mut header = Header::default();
        while !reader.is_empty() {
            let start = reader.at();
            let blob = if compressed { header.read_compressed::<false>(&mut reader) } else { header.read_whole(&mut reader, false) };
            let Some((_, payload)) = blob else { return Some(start) };
            if self.metadata.has_room(payload.len()) {
                let Ok(record) = parse_v4(payload) else { return Some(start) };
                self.define(record, payload.len(), sink);
            } else {
                // What would not be kept is not built either.
                let Ok(id) = Reader::new(payload).u32() else { return Some(start) };
                self.metadata.undefine(id);
                self.say(Limit::Metadata, sink);
            }
        }
        None
    }

    fn define(&mut self, record: super::super::Metadata, size: usize, sink: &mut impl Sink) {
        match self.metadata.add(record, size) {
            Added::New(record) => sink.metadata(record),
            Added::Known => {}
            Added::Full => self.say(Limit::Metadata, sink),
        }
    }

    fn stacks(&mut self, block: &[u8], sink: &mut impl Sink) -> Damage {
        let loaded = stacks::load(block, &mut self.context.stacks);
        sink.stacks(loaded.count);
        if !loaded.kept {
            self.say(Limit::Stacks, sink);
        }
        loaded.damage
    }

    fn labels(&mut self, block: &[u8], sink: &mut impl Sink) -> Damage {
        let loaded = labels::load(block, &mut self.context.labels);
        if !loaded.kept {
            self.say(Limit::Labels, sink);
        }
        loaded.damage
    }

    fn threads(&mut self, block: &[u8], sink: &mut impl Sink) -> Damage {
        let mut reader = Reader::new(block);
        while !reader.is_empty() {
            let Ok(thread) = parse_thread(&mut reader) else { return Some(reader.at()) };
            sink.thread(&thread);
            if !self.context.threads.add(thread) {
                self.say(Limit::Threads, sink);
            }
        }
        None
    }

    fn remove_threads(&mut self, block: &[u8], sink: &mut impl Sink) -> Damage {
        let mut reader = Reader::new(block);
        while !reader.is_empty() {
            let (Ok(thread), Ok(last)) = (reader.varu64(), reader.varu32()) else { return Some(reader.at()) };
            if let Some(loss) = self.sequences.listed(thread, last, self.now) {
                sink.loss(&loss);
            }
            self.sequences.remove(thread);
            self.context.threads.remove(thread);
        }
        None
    }

    fn sequence_point(&mut self, block: &[u8], sink: &mut impl Sink) -> Damage {
        let mut reader = Reader::new(block);
        let flags = self.listed_threads(&mut reader, sink);
        self.sequences.end_point();
        self.context.stacks.clear();
        self.context.labels.clear();
        let Ok(flags) = flags else { return Some(reader.at()) };
        if flags & 1 != 0 {
            self.sequences.clear();
            self.context.threads.clear();
        }
        if flags & 2 != 0 {
            self.metadata.forget_ids();
        }
        None
    }

    /// Counts what threads lost before a sequence point, and gives its flags.
    fn listed_threads(&mut self, reader: &mut Reader<'_>, sink: &mut impl Sink) -> Result<u32, WireError> {
        let v6 = self.context.v6;
        let timestamp = reader.i64()?;
        let flags = if v6 { reader.u32()? } else { 0 };
        let threads = reader.u32()?;
        for _ in 0..threads {
            let (thread, last) = if v6 { (reader.varu64()?, reader.varu32()?) } else { (reader.u64()?, reader.u32()?) };
            if let Some(loss) = self.sequences.listed(thread, last, timestamp) {
                sink.loss(&loss);
            }
        }
        sink.sequence_point(&SequencePoint { timestamp, threads });
        Ok(flags)
    }

    /// Says once that a limit was reached.
    fn say(&mut self, limit: Limit, sink: &mut impl Sink) {
        if !self.said.contains(&limit) {
            self.said.push(limit);
            sink.trouble(&Trouble::Limit(limit));
        }
    }
}

/// Reads the header of an event or V4 metadata block and says whether its rows are compressed.
fn event_block_header(reader: &mut Reader<'_>) -> Option<bool> {
    let (size, flags) = (reader.u16().ok()?, reader.u16().ok()?);
    let rest = usize::from(size).checked_sub(4).filter(|_| usize::from(size) >= EVENT_BLOCK_HEADER)?;
    reader.take(rest).ok()?;
    Some(flags & 1 != 0)
}
