use super::super::{Ending, trace};
use super::*;

/// A clock of milliseconds.
const HEADER: TraceHeader = TraceHeader { sync_ticks: 0, ticks_per_second: 1_000, ..trace::tests::HEADER };

/// An event as a reader finds it: its kind, time, thread, stack and payload.
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
        self.events.push((name, event.timestamp(), event.thread(), frames, event.payload.to_vec()));
    }

    fn loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Gap | LossKind::Tail => self.lost += u64::from(loss.count),
            LossKind::Start => self.at_start += u64::from(loss.count),
        }
    }
}

/// A stream of so many events of 1000 bytes, one each millisecond, by two kinds and three threads; `lost` says after which ones some are lost.
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
            encoder.lose(thread, 4);
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

fn recent(keep: Keep, bytes: &[u8]) -> Recent {
    let mut recent = Recent::new(keep);
    Decoder::new(Limits::default()).feed(bytes, &mut recent).unwrap();
    recent
}

#[test]
fn what_is_kept_is_the_end_of_the_stream_as_it_was() {
    let bytes = stream(6_000, &[]);
    let (all, _) = read(&bytes);
    let kept = recent(Keep { bytes: 2 << 20, span: None }, &bytes);
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
fn time_limits_too_and_every_segment_can_be_read_alone() {
    let bytes = stream(4_000, &[]);
    let kept = recent(Keep { bytes: Keep::MOST, span: Some(Duration::from_secs(1)) }, &bytes);
    let (_, span) = kept.kept();
    assert!((1_000..1_200).contains(&span.as_millis()), "{span:?}");
    assert!(kept.segments.len() > 10);
    for segment in &kept.segments {
        let (found, ending) = read(&segment.bytes);
        assert!(ending == Ending::Complete && !found.events.is_empty() && found.events.iter().all(|event| event.3.len() == 2));
    }
}

#[test]
fn what_the_runtime_lost_stays_lost() {
    let bytes = stream(3_000, &[100, 2_500, 2_900]);
    assert_eq!(read(&bytes).0.lost, 12);
    let file: Vec<u8> = recent(Keep { bytes: Keep::LEAST, span: None }, &bytes).pieces(true).flatten().collect();
    let (found, _) = read(&file);
    assert!(found.events.len() < 1_300);
    assert_eq!(found.lost, 8);
}

#[test]
fn nothing_goes_once_it_is_frozen_and_a_cut_stream_stays_cut() {
    let bytes = stream(3_000, &[]);
    let mut kept = Recent::new(Keep { bytes: Keep::LEAST, span: None });
    kept.freeze();
    Decoder::new(Limits::default()).feed(&bytes, &mut kept).unwrap();
    let file: Vec<u8> = kept.pieces(false).flatten().collect();
    let (found, ending) = read(&file);
    assert_eq!(found.events.len(), 3_000);
    assert!(matches!(ending, Ending::Truncated { loose_bytes: 0, .. }), "{ending:?}");
    assert_eq!(Recent::new(Keep { bytes: Keep::LEAST, span: None }).pieces(true).count(), 0, "no stream came");
}
