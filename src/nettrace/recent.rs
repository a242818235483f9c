//! The flight recorder: the newest part of a stream, for a recording that is only saved when something has happened.
//!
//! The start of a stream cannot simply be cut off: later blocks refer to its stacks and metadata, and readers would count the missing events
//! as lost. Events are therefore re-encoded into segments that can be read independently; the oldest segments are dropped as new ones are
//! added. Closed segments are kept in a [`SegmentStore`], the open one in memory. [`FlightRecorder::pieces`] joins the remaining segments into one
//! stream.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use foldhash::HashMap;

use super::{Decoder, Encoder, Event, Limits, Loss, LossKind, Metadata, NewEvent, Sink, TraceHeader, UtcTime};

/// Limits of what is kept. The oldest part is dropped when either is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Maximum size in bytes.
    pub bytes: u64,
    /// Maximum age, rounded up to whole segments.
    pub span: Option<Duration>,
}

impl RetentionLimits {
    /// Upper bound of `bytes`.
    pub const MAX_BYTES: u64 = 1 << 30;
    /// Lower bound of `bytes`: less does not hold what a runtime writes at once.
    pub const MIN_BYTES: u64 = 1_000_000;
}

/// A FIFO store of segments. They are large and need not be kept in memory.
pub trait SegmentStore: Debug + Send {
    /// Adds a segment.
    ///
    /// # Errors
    /// [`StoreError`] if the segment was not stored.
    fn put(&mut self, segment: &[u8]) -> Result<(), StoreError>;

    /// Drops the oldest segment.
    fn drop_oldest(&mut self);

    /// Removes and returns the oldest segment. Its stored copy is kept until [`SegmentStore::release`], so that the data is never lost.
    ///
    /// # Errors
    /// Returns the reason why the segment cannot be read.
    fn take_oldest(&mut self) -> Result<Vec<u8>, String>;

    /// Deletes the stored copy of the last segment returned by `take_oldest`, which has been saved elsewhere.
    fn release(&mut self);
}

/// Reason why a segment was not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// No space left: dropping another segment makes room.
    Full(String),
    /// Any other error.
    Failed(String),
}

/// Number of segments that the kept part is divided into.
const SEGMENTS: u32 = 16;
/// With this many segments more than required by size, segments are no longer closed by age: otherwise jumping timestamps would create one
/// segment per event.
const MAX_EXTRA_SEGMENTS: usize = 2 * SEGMENTS as usize;
/// Maximum size of a segment in bytes; the stacks of a longer one might exceed the limits of readers.
const MAX_SEGMENT_BYTES: usize = 8 << 20;
/// Maximum number of stack frames to keep, from the leaf. Runtimes write 100.
const MAX_FRAMES: usize = 256;

/// Keeps the newest part of the decoded stream.
#[derive(Debug)]
pub struct FlightRecorder {
    keep: RetentionLimits,
    header: Option<TraceHeader>,
    /// Closed segments, oldest first; their bytes are in the store.
    segments: VecDeque<Segment>,
    store: Box<dyn SegmentStore>,
    shortage: Option<Shortage>,
    /// Size of all closed segments in bytes.
    bytes: u64,
    open: Option<(Writer, Range)>,
    frozen: bool,
}

#[derive(Debug)]
struct Segment {
    bytes: u64,
    range: Range,
}

/// Part of what should be kept, but is not.
#[derive(Debug)]
struct Shortage {
    /// The first reason.
    why: String,
    /// Newest timestamp of the missing segments.
    until: i64,
}

/// Oldest and newest timestamp.
type Range = (i64, i64);

impl FlightRecorder {
    /// Creates a flight recorder with these limits, which keeps closed segments in `store`.
    pub fn new(keep: RetentionLimits, store: Box<dyn SegmentStore>) -> Self {
        Self { keep, header: None, segments: VecDeque::new(), store, shortage: None, bytes: 0, open: None, frozen: false }
    }

    /// Stops dropping segments: later events belong to the end of the stream.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Returns the size in bytes and the time span of the kept part.
    pub fn kept(&self) -> (u64, Duration) {
        let open = self.open.as_ref();
        let bytes = self.bytes + open.map_or(0, |(writer, _)| writer.encoder.len() as u64);
        let oldest = self.segments.iter().map(|segment| segment.range.0).chain(open.map(|(_, range)| range.0)).min();
        let newest = open.map(|(_, range)| range.1).or_else(|| self.segments.back().map(|segment| segment.range.1));
        let span = oldest.zip(newest).zip(self.header).map_or(0, |((oldest, newest), header)| header.nanoseconds_between(oldest, newest));
        (bytes, Duration::from_nanos(span.max(0).unsigned_abs()))
    }

    /// Returns the first reason why less is kept than requested.
    pub fn first_error(&self) -> Option<&str> {
        self.shortage.as_ref().map(|shortage| shortage.why.as_str())
    }

    /// Returns the kept part as one stream, in pieces of a few megabytes; ends it if the whole stream was complete.
    pub fn pieces(mut self, whole: bool) -> Pieces {
        let mut unstored = None;
        if let Some((segment, range)) = self.take_open() {
            // The last segment, with the rundown, is the longest. If the store is full, it is passed on from memory: dropping others for it could
            // drop all, and save nothing.
            if let Err(refusal) = self.store.put(&segment) {
                unstored = Some(segment);
                if let StoreError::Failed(words) = refusal {
                    self.missing(words, range.1);
                }
            }
            self.segments.push_back(Segment { bytes: 0, range });
        }
        let first_error = self.shortage.map(|shortage| shortage.why);
        let writer = self.header.map(|header| Writer::new(header_from_oldest(header, &self.segments)));
        Pieces { writer, segments: self.segments, unstored, store: self.store, first_error, whole }
    }

    fn writer(&mut self, timestamp: i64) -> Option<&mut Writer> {
        let header = self.header?;
        let (writer, range) = self.open.get_or_insert_with(|| (Writer::new(header), (timestamp, timestamp)));
        *range = (range.0.min(timestamp), range.1.max(timestamp));
        Some(writer)
    }

    /// Closes the open segment if it is long enough, and drops the oldest ones.
    fn rotate(&mut self) {
        let (Some((writer, range)), Some(header)) = (&self.open, self.header) else { return };
        let longest = MAX_SEGMENT_BYTES.min((self.keep.bytes / u64::from(SEGMENTS)) as usize);
        let by_length = self.keep.bytes / longest as u64;
        let spans = header.nanoseconds_between(range.0, range.1);
        let is_few = self.segments.len() < by_length as usize + MAX_EXTRA_SEGMENTS;
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
            let limit = self.drop_oldest();
            // The limits have reached beyond what is missing.
            self.shortage = self.shortage.take().filter(|shortage| limit.is_some_and(|dropped| dropped.1 <= shortage.until));
        }
    }

    /// Ends the open segment and returns it.
    fn take_open(&mut self) -> Option<(Vec<u8>, Range)> {
        let (mut writer, range) = self.open.take()?;
        writer.encoder.end();
        Some((writer.encoder.take(), range))
    }

    fn close(&mut self) {
        if let Some((segment, range)) = self.take_open() {
            while let Err(refusal) = self.store.put(&segment) {
                // The newest segment is more valuable than the oldest.
                let dropped = if let StoreError::Full(_) = refusal { self.drop_oldest() } else { None };
                let (StoreError::Full(words) | StoreError::Failed(words)) = refusal;
                self.missing(words, dropped.unwrap_or(range).1);
                if dropped.is_none() {
                    return;
                }
            }
            let bytes = segment.len() as u64;
            self.bytes += bytes;
            self.segments.push_back(Segment { bytes, range });
        }
    }

    /// Drops the oldest segment and returns its range, if there is one.
    fn drop_oldest(&mut self) -> Option<Range> {
        let oldest = self.segments.pop_front()?;
        self.bytes -= oldest.bytes;
        self.store.drop_oldest();
        Some(oldest.range)
    }

    /// Notes that a segment up to this timestamp is missing.
    fn missing(&mut self, why: String, until: i64) {
        let shortage = self.shortage.get_or_insert(Shortage { why, until });
        shortage.until = shortage.until.max(until);
    }
}

/// Returns the header of a stream that starts with these segments.
fn header_from_oldest(header: TraceHeader, segments: &VecDeque<Segment>) -> TraceHeader {
    match segments.iter().map(|segment| segment.range.0).min() {
        Some(oldest) => TraceHeader { sync_utc: header.unix_ms(oldest).map(UtcTime::from_unix_ms), sync_ticks: oldest, ..header },
        None => header,
    }
}

impl Sink for FlightRecorder {
    fn trace(&mut self, header: &TraceHeader) {
        self.header = Some(*header);
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Some(writer) = self.writer(event.timestamp()) {
            writer.event(event);
            self.rotate();
        }
    }

    fn loss(&mut self, loss: &Loss) {
        if let LossKind::Gap | LossKind::Tail = loss.kind
            && let Some(writer) = self.writer(loss.timestamp)
        {
            writer.encoder.add_loss(loss.capture_thread.thread, loss.count);
        }
    }
}

/// Iterator over the pieces of one stream. A segment is removed from its store when the next piece is requested.
#[derive(Debug)]
pub struct Pieces {
    writer: Option<Writer>,
    segments: VecDeque<Segment>,
    /// The last segment, if it is not in the store.
    unstored: Option<Vec<u8>>,
    store: Box<dyn SegmentStore>,
    first_error: Option<String>,
    whole: bool,
}

impl Pieces {
    /// Joins the segments of one recording into a complete stream. `ranges`: the oldest and newest timestamp of each segment, in the order of
    /// `store`.
    pub fn join(header: TraceHeader, ranges: impl IntoIterator<Item = (i64, i64)>, store: Box<dyn SegmentStore>) -> Self {
        let segments = ranges.into_iter().map(|range| Segment { bytes: 0, range }).collect();
        Self {
            writer: Some(Writer::new(header_from_oldest(header, &segments))),
            segments,
            unstored: None,
            store,
            first_error: None,
            whole: true,
        }
    }

    /// Removes the segment of the last piece from the store.
    pub fn release(&mut self) {
        self.store.release();
    }

    /// Returns the first reason why less was kept than requested.
    pub fn first_error(&self) -> Option<&str> {
        self.first_error.as_deref()
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
        let unstored = self.unstored.take_if(|_| self.segments.is_empty());
        let bytes = unstored.map_or_else(|| self.store.take_oldest(), Ok).unwrap_or_else(|words| {
            self.first_error.get_or_insert(words);
            Vec::new()
        });
        // Metadata IDs start at 1 in each segment.
        writer.ids.clear();
        let mut decoder = Decoder::new(Limits { metadata_bytes: usize::MAX, ..Limits::default() });
        // Segments are written by this program and normally valid; of an invalid one the part before the error is used. `dyn` reuses the
        // decoder instantiation for files.
        let _ = decoder.feed(&bytes, &mut (&mut *writer as &mut dyn Sink));
        // Allows readers to drop the stacks of the segment.
        writer.encoder.sequence_point(range.1);
        Some(writer.encoder.take())
    }
}

/// Re-encodes events.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) encoder: Encoder,
    /// Metadata ID in the output by metadata index of the input, 0 if not yet defined.
    ids: Vec<u32>,
    known: HashMap<Metadata, u32>,
    frames: Vec<u64>,
}

impl Writer {
    fn new(header: TraceHeader) -> Self {
        Self::with(Encoder::new(header))
    }

    /// Appends to the output of an encoder.
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

/// Re-encodes events of a runtime as well as those of a segment.
impl Sink for Writer {
    fn event(&mut self, event: &Event<'_>) {
        let metadata = self.id(event.metadata);
        self.frames.clear();
        self.frames.extend(event.stack().into_iter().flat_map(|stack| stack.frames().take(MAX_FRAMES)));
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

    /// Sequence numbers start at 1 in a segment, so events missing before a thread's first event count as lost, too.
    fn loss(&mut self, loss: &Loss) {
        self.encoder.add_loss(loss.capture_thread.thread, loss.count);
    }
}

#[cfg(test)]
mod tests;
