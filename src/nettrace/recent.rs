//! The newest part of a stream, for a recording that is kept only when something has happened.
//!
//! Blocks of a stream cannot simply be cut off at its front: later ones refer to the stacks and kinds of events in them, and readers would take
//! the numbers of the events that are gone for losses. So the encoder writes events again, into segments that can each be read alone;
//! the oldest go as new ones come. Where closed ones are kept is up to the [`SegmentStore`]; only the open one is here.
//! [`Recent::pieces`] makes one stream of those that are left.

mod segment_store;

use std::collections::VecDeque;
use std::time::Duration;

use foldhash::HashMap;

pub use segment_store::{Refusal, SegmentStore};

use super::{Decoder, Encoder, Event, Limits, Loss, LossKind, Metadata, NewEvent, Sink, TraceHeader, UtcTime};

/// How much of a stream is kept. The oldest part goes when either is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// At most so many bytes.
    pub bytes: u64,
    /// Of the last so much time, and what came in the same segment before it.
    pub span: Option<Duration>,
}

impl Keep {
    /// More bytes than this are not kept.
    pub const MOST: u64 = 1 << 30;
    /// Fewer do not hold what a runtime writes at once.
    pub const LEAST: u64 = 1 << 20;
}

/// Into how many segments that which is kept is divided.
const SEGMENTS: u32 = 16;
/// Beyond so many segments more than their length needs, age ends none: timestamps that jump would make one of every event.
const BY_AGE: usize = 2 * SEGMENTS as usize;
/// The stacks of a longer segment might be more than readers hold.
const LONGEST: usize = 8 << 20;
/// Most frames of a stack that are kept, counted from the leaf. Runtimes write 100.
const FRAMES: usize = 256;

/// Keeps the newest part of the stream that it is fed.
#[derive(Debug)]
pub struct Recent {
    keep: Keep,
    header: Option<TraceHeader>,
    /// The closed ones, oldest first; their bytes are on the store.
    segments: VecDeque<Segment>,
    store: Box<dyn SegmentStore>,
    trouble: Option<String>,
    /// Bytes of all segments but the open one.
    bytes: u64,
    open: Option<(Writer, Range)>,
    frozen: bool,
}

#[derive(Debug)]
struct Segment {
    bytes: u64,
    range: Range,
}

/// Oldest and newest timestamp.
type Range = (i64, i64);

impl Recent {
    /// Keeps so much, there.
    pub fn new(keep: Keep, store: Box<dyn SegmentStore>) -> Self {
        Self { keep, header: None, segments: VecDeque::new(), store, trouble: None, bytes: 0, open: None, frozen: false }
    }

    /// From now on nothing goes: what comes belongs to the end of the stream.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// How many bytes are kept, and what time they span.
    pub fn kept(&self) -> (u64, Duration) {
        let open = self.open.as_ref();
        let bytes = self.bytes + open.map_or(0, |(writer, _)| writer.encoder.len() as u64);
        let oldest = self.segments.iter().map(|segment| segment.range.0).chain(open.map(|(_, range)| range.0)).min();
        let newest = open.map(|(_, range)| range.1).or_else(|| self.segments.back().map(|segment| segment.range.1));
        let span = oldest.zip(newest).zip(self.header).map_or(0, |((oldest, newest), header)| header.nanoseconds_between(oldest, newest));
        (bytes, Duration::from_nanos(span.max(0).unsigned_abs()))
    }

    /// One stream of all that is kept, in pieces of a few megabytes; complete where the whole stream was.
    pub fn pieces(mut self, whole: bool) -> Pieces {
        self.close();
        let writer = self.header.map(|header| Writer::new(beginning(header, &self.segments)));
        Pieces { writer, segments: self.segments, store: self.store, trouble: self.trouble, whole }
    }

    fn writer(&mut self, timestamp: i64) -> Option<&mut Writer> {
        let header = self.header?;
        let (writer, range) = self.open.get_or_insert_with(|| (Writer::new(header), (timestamp, timestamp)));
        *range = (range.0.min(timestamp), range.1.max(timestamp));
        Some(writer)
    }

    /// Ends the open segment once it is long enough.
    fn turn(&mut self) {
        let (Some((writer, range)), Some(header)) = (&self.open, self.header) else { return };
        let longest = LONGEST.min((self.keep.bytes / u64::from(SEGMENTS)) as usize);
        let by_length = self.keep.bytes / longest as u64;
        let spans = header.nanoseconds_between(range.0, range.1);
        let is_few = self.segments.len() < by_length as usize + BY_AGE;
        let too_old = |span: Duration| is_few && Duration::from_nanos(spans.max(0).unsigned_abs()) >= span / SEGMENTS;
        if writer.encoder.len() < longest && !self.keep.span.is_some_and(too_old) {
            return;
        }
        let newest = range.1;
        self.close();
        while !self.frozen
            && let Some(oldest) = self.segments.front()
        {
            let age = Duration::from_nanos(header.nanoseconds_between(oldest.range.1, newest).max(0).unsigned_abs());
            if self.bytes <= self.keep.bytes && self.keep.span.is_none_or(|span| age <= span) {
                break;
            }
            self.drop_oldest();
        }
    }

    fn close(&mut self) {
        if let Some((mut writer, range)) = self.open.take() {
            writer.encoder.end();
            let segment = writer.encoder.take();
            while let Err(refusal) = self.store.put(&segment) {
                // The newest is worth more than the oldest.
                let again = matches!(refusal, Refusal::Full(_)) && self.drop_oldest();
                let (Refusal::Full(words) | Refusal::Failed(words)) = refusal;
                self.trouble.get_or_insert(words);
                if !again {
                    return;
                }
            }
            let bytes = segment.len() as u64;
            self.bytes += bytes;
            self.segments.push_back(Segment { bytes, range });
        }
    }

    /// Whether there was one.
    fn drop_oldest(&mut self) -> bool {
        let oldest = self.segments.pop_front();
        if let Some(oldest) = &oldest {
            self.bytes -= oldest.bytes;
            self.store.drop_oldest();
        }
        oldest.is_some()
    }
}

/// The header of a stream that begins where its segments do.
fn beginning(header: TraceHeader, segments: &VecDeque<Segment>) -> TraceHeader {
    match segments.iter().map(|segment| segment.range.0).min() {
        Some(oldest) => TraceHeader { sync_utc: header.unix_ms(oldest).map(UtcTime::from_unix_ms), sync_ticks: oldest, ..header },
        None => header,
    }
}

impl Sink for Recent {
    fn trace(&mut self, header: &TraceHeader) {
        self.header = Some(*header);
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Some(writer) = self.writer(event.timestamp()) {
            writer.event(event);
            self.turn();
        }
    }

    fn loss(&mut self, loss: &Loss) {
        if let LossKind::Gap | LossKind::Tail = loss.kind
            && let Some(writer) = self.writer(loss.timestamp)
        {
            writer.encoder.lose(loss.capture_thread.thread, loss.count);
        }
    }
}

/// The pieces of one stream. A segment leaves its store when the piece after it is requested.
#[derive(Debug)]
pub struct Pieces {
    writer: Option<Writer>,
    segments: VecDeque<Segment>,
    store: Box<dyn SegmentStore>,
    trouble: Option<String>,
    whole: bool,
}

impl Pieces {
    /// One whole stream of segments of one recording, which a store hands out in this order. Of each the oldest and the newest timestamp are given.
    pub fn join(header: TraceHeader, ranges: impl IntoIterator<Item = (i64, i64)>, store: Box<dyn SegmentStore>) -> Self {
        let segments = ranges.into_iter().map(|range| Segment { bytes: 0, range }).collect();
        Self { writer: Some(Writer::new(beginning(header, &segments))), segments, store, trouble: None, whole: true }
    }

    /// The segment that the last piece was made of is not needed any more.
    pub fn release(&mut self) {
        self.store.release();
    }

    /// The first reason why less was kept than was to be, in words.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

impl Iterator for Pieces {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.store.release();
        let Some(Segment { range, .. }) = self.segments.pop_front() else {
            let mut writer = self.writer.take()?;
            if self.whole {
                writer.encoder.end();
            } else {
                writer.encoder.flush();
            }
            return Some(writer.encoder.take());
        };
        let writer = self.writer.as_mut()?;
        let bytes = self.store.take_oldest().unwrap_or_else(|words| {
            self.trouble.get_or_insert(words);
            Vec::new()
        });
        // Each segment numbers its kinds of events from 1.
        writer.ids.clear();
        let mut decoder = Decoder::new(Limits { metadata_bytes: usize::MAX, ..Limits::default() });
        // A segment is this program's own writing: it can be read. Where it cannot, what is whole of it counts. The decoder is the one that reads files.
        let _ = decoder.feed(&bytes, &mut (&mut *writer as &mut dyn Sink));
        // Readers may forget its stacks.
        writer.encoder.sequence_point(range.1);
        Some(writer.encoder.take())
    }
}

/// Writes events again.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) encoder: Encoder,
    /// By metadata index of the stream that is read: the id here, 0 where it has none yet.
    ids: Vec<u32>,
    known: HashMap<Metadata, u32>,
    frames: Vec<u64>,
}

impl Writer {
    fn new(header: TraceHeader) -> Self {
        Self::with(Encoder::new(header))
    }

    /// Writes behind what the encoder has written.
    pub(super) fn with(encoder: Encoder) -> Self {
        Self { encoder, ids: Vec::new(), known: HashMap::default(), frames: Vec::new() }
    }

    fn id(&mut self, metadata: &Metadata) -> u32 {
        let index = metadata.index as usize;
        if self.ids.len() <= index {
            self.ids.resize(index + 1, 0);
        }
        if self.ids[index] == 0 {
            let record = Metadata { index: 0, id: 0, ..metadata.clone() };
            let encoder = &mut self.encoder;
            self.ids[index] = *self.known.entry(record).or_insert_with_key(|record| encoder.metadata(record));
        }
        self.ids[index]
    }
}

/// Both what comes from a runtime and what comes from a segment are written like this.
impl Sink for Writer {
    fn event(&mut self, event: &Event<'_>) {
        let metadata = self.id(event.metadata);
        self.frames.clear();
        self.frames.extend(event.stack().into_iter().flat_map(|stack| stack.frames().take(FRAMES)));
        let stack = self.encoder.stack(&self.frames);
        self.encoder.event(&NewEvent {
            metadata,
            timestamp: event.timestamp(),
            thread: event.thread().thread,
            capture_thread: event.capture_thread().thread,
            processor: event.processor(),
            stack,
            activity_id: event.activity_id(),
            related_activity_id: event.related_activity_id(),
            sorted: event.is_sorted(),
            payload: event.payload,
        });
    }

    /// In a segment numbers begin at 1, so that even what is missing before a thread's first event was lost.
    fn loss(&mut self, loss: &Loss) {
        self.encoder.lose(loss.capture_thread.thread, loss.count);
    }
}

#[cfg(test)]
mod tests;
