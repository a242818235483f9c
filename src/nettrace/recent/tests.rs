use std::sync::{Arc, Mutex};

use super::super::{Ending, trace};
use super::*;

/// A clock with millisecond resolution.
const HEADER: TraceHeader = TraceHeader { sync_ticks: 0, ticks_per_second: 1_000, ..trace::tests::HEADER };

/// A decoded event: kind, timestamp, thread, stack and payload.
type Seen = (String, i64, u64, Vec<u64>, Vec<u8>);

#[derive(Default)]
struct Found {
    header: Option<TraceHeader>,
    events: Vec<Seen>,
    lost: u64,
    at_start: u64,
}

impl Sink for Found {
    fn trace(&mut self, header: &TraceHeader) {
        self.header = Some(*header);
    }

    fn event(&mut self, event: &Event<'_>) {
        let frames = event.stack().map_or(Vec::new(), |stack| stack.frames().collect());
        let name = event.metadata.name.clone();
        self.events.push((name, event.timestamp(), event.thread().thread, frames, event.payload.to_vec()));
    }

    fn loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Gap | LossKind::Tail => self.lost += u64::from(loss.count),
            LossKind::Start => self.at_start += u64::from(loss.count),
        }
    }
}

/// A stream of `events` events of 1000 bytes, one per millisecond, of two kinds and three threads; `lost` lists those followed by losses.
fn stream(events: u32, lost: &[u32]) -> Vec<u8> {
    let mut encoder = Encoder::new(HEADER);
    let kinds =
        ["A", "B"].map(|name| encoder.metadata(&Metadata { provider: "P".to_owned(), name: name.to_owned(), ..Metadata::default() }));
    for number in 0..events {
        let stack = encoder.stack(&[u64::from(number % 50) + 1, 7]);
        let thread = u64::from(number % 3) + 10;
        encoder.event(&NewEvent {
            metadata: kinds[number as usize % 2],
            timestamp: number.into(),
            thread,
            capture_thread: thread,
            stack,
            sorted: true,
            payload: &[number.to_le_bytes().as_slice(), &[0; 996]].concat(),
            ..NewEvent::default()
        });
        if lost.contains(&number) {
            encoder.add_loss(thread, 4);
        }
        if number % 500 == 499 {
            encoder.sequence_point(number.into());
        }
    }
    encoder.end();
    encoder.take()
}

fn read(bytes: &[u8]) -> (Found, Ending) {
    let (mut found, mut decoder) = (Found::default(), Decoder::new(Limits::default()));
    decoder.feed(bytes, &mut found).unwrap();
    let ending = decoder.finish(&mut found);
    (found, ending)
}

/// An in-memory segment store with an optional limit, whose segments can be inspected.
#[derive(Debug, Default, Clone)]
struct Memory(Arc<Mutex<VecDeque<Vec<u8>>>>, Option<usize>);

impl Memory {
    fn all(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().iter().cloned().collect()
    }
}

impl SegmentStore for Memory {
    fn put(&mut self, segment: &[u8]) -> Result<(), StoreError> {
        let mut all = self.0.lock().unwrap();
        if self.1.is_some_and(|room| all.iter().map(Vec::len).sum::<usize>() + segment.len() > room) {
            return Err(StoreError::Full("no room".to_owned()));
        }
        all.push_back(segment.to_vec());
        Ok(())
    }

    fn drop_oldest(&mut self) {
        self.0.lock().unwrap().pop_front();
    }

    fn take_oldest(&mut self) -> Result<Vec<u8>, String> {
        self.0.lock().unwrap().pop_front().ok_or_else(|| "it is gone".to_owned())
    }

    fn release(&mut self) {}
}

fn recent(keep: RetentionLimits, bytes: &[u8]) -> FlightRecorder {
    record_into(Memory::default(), keep, bytes)
}

fn record_into(store: Memory, keep: RetentionLimits, bytes: &[u8]) -> FlightRecorder {
    let mut recent = FlightRecorder::new(keep, Box::new(store));
    Decoder::new(Limits::default()).feed(bytes, &mut recent).unwrap();
    recent
}

#[test]
fn kept_events_are_the_unchanged_end_of_the_stream() {
    let bytes = stream(6_000, &[]);
    let (all, _) = read(&bytes);
    let kept = recent(RetentionLimits { bytes: 2 << 20, span: None }, &bytes);
    let (size, span) = kept.kept();
    assert!((1 << 20..=(2 << 20) + (1 << 18)).contains(&size), "{size}");
    let file: Vec<u8> = kept.pieces(true).flatten().collect();
    let (found, ending) = read(&file);
    assert_eq!(ending, Ending::Complete);
    assert!(found.events.len() > 1_000 && found.events.len() < 2_300, "{}", found.events.len());
    assert_eq!(found.events, all.events[all.events.len() - found.events.len()..]);
    assert_eq!((found.lost, found.at_start), (0, 0), "what is not kept is not lost");
    assert_eq!(span, Duration::from_millis(found.events.len() as u64 - 1));
    let header = found.header.unwrap();
    let first = found.events[0].1;
    assert_eq!((header.sync_ticks, header.unix_ms(first)), (first, HEADER.unix_ms(first)));
}

#[test]
fn span_limit_holds_and_segments_are_self_contained() {
    let bytes = stream(4_000, &[]);
    let store = Memory::default();
    let kept =
        record_into(store.clone(), RetentionLimits { bytes: RetentionLimits::MAX_BYTES, span: Some(Duration::from_secs(1)) }, &bytes);
    let (_, span) = kept.kept();
    assert!((1_000..1_200).contains(&span.as_millis()), "{span:?}");
    let segments = store.all();
    assert!(segments.len() > 10);
    for segment in &segments {
        let (found, ending) = read(segment);
        assert!(ending == Ending::Complete && !found.events.is_empty() && found.events.iter().all(|event| event.3.len() == 2));
    }
}

#[test]
fn jumping_timestamps_create_few_segments() {
    let mut encoder = Encoder::new(HEADER);
    let kind = encoder.metadata(&Metadata { provider: "P".to_owned(), name: "A".to_owned(), ..Metadata::default() });
    for number in 0..10_000_u64 {
        // A pseudorandom 40-bit permutation.
        let timestamp = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) as i64;
        encoder.event(&NewEvent { metadata: kind, timestamp, payload: &number.to_le_bytes(), ..NewEvent::default() });
    }
    encoder.end();
    let bytes = encoder.take();
    for most in [RetentionLimits::MIN_BYTES, RetentionLimits::MAX_BYTES] {
        let store = Memory::default();
        record_into(store.clone(), RetentionLimits { bytes: most, span: Some(Duration::from_secs(10)) }, &bytes);
        assert!(store.all().len() <= 200, "{}", store.all().len());
    }
}

#[test]
fn losses_of_the_runtime_are_preserved() {
    let bytes = stream(3_000, &[100, 2_500, 2_900]);
    assert_eq!(read(&bytes).0.lost, 12);
    let file: Vec<u8> = recent(RetentionLimits { bytes: RetentionLimits::MIN_BYTES, span: None }, &bytes).pieces(true).flatten().collect();
    let (found, _) = read(&file);
    assert!(found.events.len() < 1_300);
    assert_eq!(found.lost, 8);
}

#[test]
fn frozen_recorder_drops_nothing_and_keeps_truncation() {
    let bytes = stream(3_000, &[]);
    let mut kept = FlightRecorder::new(RetentionLimits { bytes: RetentionLimits::MIN_BYTES, span: None }, Box::new(Memory::default()));
    kept.freeze();
    Decoder::new(Limits::default()).feed(&bytes, &mut kept).unwrap();
    let file: Vec<u8> = kept.pieces(false).flatten().collect();
    let (found, ending) = read(&file);
    assert_eq!(found.events.len(), 3_000);
    assert!(matches!(ending, Ending::Truncated { trailing_bytes: 0, .. }), "{ending:?}");
    assert_eq!(
        FlightRecorder::new(RetentionLimits { bytes: RetentionLimits::MIN_BYTES, span: None }, Box::new(Memory::default()))
            .pieces(true)
            .count(),
        0,
        "no stream came"
    );
}

#[test]
fn full_store_drops_oldest_segments_and_reports_it() {
    let bytes = stream(6_000, &[]);
    let all = read(&bytes).0.events;
    let store = Memory(Arc::default(), Some(1 << 20));
    let kept = record_into(store.clone(), RetentionLimits { bytes: 4 << 20, span: None }, &bytes);
    let held: usize = store.all().iter().map(Vec::len).sum();
    assert!((1 << 19..=1 << 20).contains(&held), "{held}");
    assert_eq!(kept.first_error(), Some("no room"), "known while it records");
    let mut pieces = kept.pieces(true);
    assert_eq!(pieces.first_error(), Some("no room"));
    let file: Vec<u8> = pieces.by_ref().flatten().collect();
    let (found, ending) = read(&file);
    assert_eq!(ending, Ending::Complete);
    assert!(found.events.len() > 500 && found.lost == 0, "{}", found.events.len());
    assert_eq!(found.events, all[all.len() - found.events.len()..]);
}

/// The disk may have been full for a moment, hours ago.
#[test]
fn shortage_is_not_reported_once_the_limits_are_reached_again() {
    let bytes = stream(6_000, &[]);
    let limits = RetentionLimits { bytes: RetentionLimits::MIN_BYTES, span: None };
    for (end, error) in [(1_700_000, Some("no room")), (bytes.len(), None)] {
        let segments = Arc::default();
        let (mut decoder, mut kept) =
            (Decoder::new(Limits::default()), FlightRecorder::new(limits, Box::new(Memory(Arc::clone(&segments), Some(500_000)))));
        decoder.feed(&bytes[..1_500_000], &mut kept).unwrap();
        kept.store = Box::new(Memory(segments, None));
        decoder.feed(&bytes[1_500_000..end], &mut kept).unwrap();
        let size = kept.kept().0;
        assert_eq!(kept.pieces(true).first_error(), error, "{size} bytes");
    }
}

#[test]
fn last_segment_that_does_not_fit_into_the_store_drops_no_others() {
    let bytes = stream(1_000, &[]);
    let limits = RetentionLimits { bytes: 4 << 20, span: None };
    // As many bytes as the closed segments have: not one more fits.
    let store = Memory::default();
    let kept = record_into(store.clone(), limits, &bytes);
    let room = store.all().iter().map(Vec::len).sum();
    drop(kept);
    let store = Memory(Arc::default(), Some(room));
    let kept = record_into(store.clone(), limits, &bytes);
    assert!(kept.kept().0 > room as u64 && store.all().len() > 1, "a segment is open");
    let mut pieces = kept.pieces(true);
    let file: Vec<u8> = pieces.by_ref().flatten().collect();
    assert_eq!(pieces.first_error(), None, "nothing is missing");
    let (found, ending) = read(&file);
    assert_eq!((found.events.len(), ending), (1_000, Ending::Complete));
    // A store that takes nothing at all.
    let mut pieces = record_into(Memory(Arc::default(), Some(0)), limits, &bytes).pieces(true);
    let (found, _) = read(&pieces.by_ref().flatten().collect::<Vec<u8>>());
    assert!(pieces.first_error().is_some() && !found.events.is_empty() && found.events.len() < 1_000, "{}", found.events.len());
}

#[test]
fn missing_segment_is_reported_and_others_are_read() {
    let store = Memory::default();
    let kept = record_into(store.clone(), RetentionLimits { bytes: RetentionLimits::MIN_BYTES, span: None }, &stream(3_000, &[]));
    let count = store.all().len();
    store.0.lock().unwrap().truncate(count - 2);
    let mut pieces = kept.pieces(true);
    let file: Vec<u8> = pieces.by_ref().flatten().collect();
    assert_eq!(pieces.first_error(), Some("it is gone"));
    let (found, ending) = read(&file);
    assert!(ending == Ending::Complete && found.events.len() > 300, "{}", found.events.len());
}

#[test]
fn leftover_segments_are_joined_into_one_stream() {
    let bytes = stream(3_000, &[40, 41]);
    let store = Memory::default();
    let kept = record_into(store.clone(), RetentionLimits { bytes: 64 << 20, span: Some(Duration::from_secs(8)) }, &bytes);
    let left = store.all();
    // The open segment is lost, and one in the middle.
    drop(kept);
    let given: Vec<_> = [&left[..2], &left[3..]].concat();
    let each: Vec<Found> = given.iter().map(|segment| read(segment).0).collect();
    let range = |found: &Found| (found.events[0].1, found.events[found.events.len() - 1].1);
    let header = each[0].header.unwrap();
    let again = Memory(Arc::new(Mutex::new(given.into())), None);
    let joined = Pieces::join(header, each.iter().map(range), Box::new(again)).flatten().collect::<Vec<u8>>();
    let (found, ending) = read(&joined);
    assert_eq!(ending, Ending::Complete);
    assert!(found.events.iter().eq(each.iter().flat_map(|each| &each.events)));
    assert_eq!(found.lost, each.iter().map(|each| each.lost + each.at_start).sum::<u64>());
    assert_eq!(found.header.unwrap().sync_ticks, found.events[0].1);
}
