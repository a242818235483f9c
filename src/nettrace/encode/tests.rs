//! Round-trip tests of the encoder.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::trace::tests::HEADER;
use super::super::{Decoder, Ending, Event, Field, FieldType, Limits, Loss, LossKind, SequencePoint, Sink, ThreadId};
use super::*;

/// An encoder call with its expected result.
#[derive(Debug, Clone)]
enum Step {
    Metadata(Metadata),
    Event { event: NewEvent<'static>, payload: Vec<u8>, frames: Vec<u64> },
    Lose(u64, u32),
    SequencePoint(i64),
    Flush,
}

/// Decoded elements, comparable with [`Step`].
#[derive(Debug, Default)]
struct Found {
    header: Option<TraceHeader>,
    records: Vec<Metadata>,
    events: Vec<(NewEvent<'static>, Vec<u8>, Vec<u64>)>,
    lost: u64,
    points: Vec<i64>,
    problems: Vec<String>,
}

impl Sink for Found {
    fn trace(&mut self, header: &TraceHeader) {
        self.header = Some(*header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.records.push(metadata.clone());
    }

    fn event(&mut self, event: &Event<'_>) {
        let frames = event.stack().map_or(Vec::new(), |stack| stack.frames().collect());
        let found = NewEvent {
            metadata: event.metadata.index,
            timestamp: event.timestamp(),
            thread: event.thread().thread,
            capture_thread: event.capture_thread().thread,
            processor: event.processor(),
            stack: 0,
            activity_id: event.activity_id(),
            related_activity_id: event.related_activity_id(),
            sorted: event.is_sorted(),
            payload: &[],
        };
        self.events.push((found, event.payload.to_vec(), frames));
    }

    fn loss(&mut self, loss: &Loss) {
        assert_ne!(loss.count, 0);
        self.lost += u64::from(loss.count);
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.points.push(point.timestamp);
    }

    fn problem(&mut self, problem: &super::super::Problem) {
        self.problems.push(problem.to_string());
    }
}

fn field_type() -> impl Strategy<Value = FieldType> {
    let leaf = prop_oneof![
        Just(FieldType::Boolean),
        Just(FieldType::Int32),
        Just(FieldType::UInt64),
        Just(FieldType::Double),
        Just(FieldType::Guid),
        Just(FieldType::String),
        Just(FieldType::DateTime),
        Just(FieldType::Unknown(99)),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![inner.clone().prop_map(|kind| FieldType::Array(kind.into())), vec(field(inner), 0..3).prop_map(FieldType::Object),]
    })
}

fn field(kind: impl Strategy<Value = FieldType>) -> impl Strategy<Value = Field> {
    ("[^\0]{0,6}", kind).prop_map(|(name, kind)| Field { name, kind })
}

fn record() -> impl Strategy<Value = Metadata> {
    let names = ("[^\0]{0,12}", "[^\0]{0,12}");
    (names, any::<(u32, u64, u32, u32, Option<u8>)>(), vec(field(field_type()), 0..4)).prop_map(|(names, numbers, fields)| {
        let ((provider, name), (event_id, keywords, version, level, opcode)) = (names, numbers);
        Metadata { index: 0, id: 0, provider, event_id, name, keywords, version, level, opcode, fields }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let ids = (0..2_u8, 0..2_u8).prop_map(|(a, b)| ([a; 16], [b; 16]));
    let thread = prop_oneof![0..4_u64, any::<u64>()];
    let timestamp = prop_oneof![0..1000_i64, any::<i64>()];
    let event = (1..5_u32, timestamp, thread.clone(), 0..3_u64, any::<u8>(), ids, any::<bool>());
    let event = (event, vec(any::<u8>(), 0..200), vec(any::<u64>(), 0..3)).prop_map(|(event, payload, frames)| {
        let (metadata, timestamp, thread, capture_thread, processor, (activity_id, related_activity_id), sorted) = event;
        let processor = processor.into();
        let event = NewEvent {
            metadata,
            timestamp,
            thread,
            capture_thread,
            processor,
            activity_id,
            related_activity_id,
            sorted,
            ..NewEvent::default()
        };
        Step::Event { event, payload, frames }
    });
    prop_oneof![
        2 => record().prop_map(Step::Metadata),
        12 => event,
        1 => (0..3_u64, 1..9_u32).prop_map(|(thread, count)| Step::Lose(thread, count)),
        1 => any::<i64>().prop_map(Step::SequencePoint),
        1 => Just(Step::Flush),
    ]
}

proptest! {
    #[test]
    fn streams_round_trip(steps in vec(step(), 0..60), sizes in vec(1..100_usize, 1..8)) {
        let mut encoder = Encoder::new(HEADER);
        let (mut bytes, mut records, mut events, mut points) = (Vec::new(), Vec::<Metadata>::new(), Vec::new(), Vec::new());
        // Defined records: ID to write, expected index. The first ID is never defined.
        let (mut defined, mut lost) = (vec![(77, 0)], 0_u64);
        for step in &steps {
            match step {
                Step::Metadata(record) => {
                    let id = encoder.metadata(record);
                    let known = records.iter().find(|known| *record == Metadata { index: 0, id: 0, ..(*known).clone() });
                    let index = known.map_or(records.len() as u32 + 1, |known| known.index);
                    if known.is_none() {
                        records.push(Metadata { index, id, ..record.clone() });
                    }
                    defined.push((id, index));
                }
                Step::Event { event, payload, frames } => {
                    let (metadata, index) = defined[event.metadata as usize % defined.len()];
                    let stack = encoder.stack(frames);
                    encoder.event(&NewEvent { metadata, stack, payload, ..*event });
                    events.push((NewEvent { metadata: index, ..*event }, payload.clone(), frames.clone()));
                }
                Step::Lose(thread, count) => {
                    encoder.add_loss(*thread, *count);
                    lost += u64::from(*count);
                }
                Step::SequencePoint(timestamp) => {
                    encoder.sequence_point(*timestamp);
                    points.push(*timestamp);
                }
                Step::Flush => encoder.flush(),
            }
            if bytes.len() % 2 == 0 {
                bytes.append(&mut encoder.take());
            }
        }
        encoder.sequence_point(0);
        encoder.end();
        bytes.append(&mut encoder.take());

        let (mut decoder, mut found) = (Decoder::new(Limits::default()), Found::default());
        let (mut rest, mut sizes) = (&bytes[..], sizes.iter().cycle());
        while let (false, Some(size)) = (rest.is_empty(), sizes.next()) {
            let (piece, more) = rest.split_at(rest.len().min(*size));
            decoder.feed(piece, &mut found).unwrap();
            rest = more;
        }
        prop_assert_eq!(decoder.finish(&mut found), Ending::Complete);
        points.push(0);
        prop_assert_eq!(found.header, Some(HEADER));
        prop_assert_eq!(found.records, records);
        prop_assert_eq!(found.events, events);
        found.problems.retain(|problem| !problem.starts_with("an event with an undefined metadata id"));
        prop_assert_eq!((found.lost, found.points, found.problems), (lost, points, Vec::new()));
    }
}

#[test]
fn losses_are_classified_by_position() {
    #[derive(Default)]
    struct Losses(Vec<Loss>);
    impl Sink for Losses {
        fn loss(&mut self, loss: &Loss) {
            self.0.push(*loss);
        }
    }
    let mut encoder = Encoder::new(HEADER);
    let event = NewEvent { metadata: encoder.metadata(&Metadata::default()), timestamp: 10, capture_thread: 7, ..NewEvent::default() };
    encoder.add_loss(7, 1);
    encoder.event(&event);
    encoder.add_loss(7, 2);
    encoder.event(&NewEvent { timestamp: 20, ..event });
    encoder.add_loss(7, 3);
    encoder.add_loss(8, 4);
    encoder.sequence_point(30);
    encoder.end();
    let (mut decoder, mut losses) = (Decoder::new(Limits::default()), Losses::default());
    decoder.feed(&encoder.take(), &mut losses).unwrap();
    let loss = |count, kind, thread, timestamp| Loss { count, kind, capture_thread: ThreadId::of(thread), timestamp };
    let expected =
        [loss(1, LossKind::Start, 7, 10), loss(2, LossKind::Gap, 7, 20), loss(3, LossKind::Tail, 7, 30), loss(4, LossKind::Tail, 8, 30)];
    assert_eq!(losses.0, expected);
}

#[test]
fn collector_events_that_exceed_a_block_are_lost() {
    let mut encoder = CollectorEncoder::new(&HEADER);
    let metadata = encoder.metadata(&Metadata::default(), true);
    for (size, frames) in [(1, 1), (17 << 20, 1), (2, 3 << 20), (3, 1)] {
        encoder.event(metadata, (7, 70), 5, &vec![9; frames], None, &vec![0; size]);
    }
    let (mut decoder, mut found) = (Decoder::new(Limits::default()), Found::default());
    decoder.feed(&encoder.finish(), &mut found).unwrap();
    assert_eq!(decoder.finish(&mut found), Ending::Complete);
    let sizes: Vec<_> = found.events.iter().map(|(_, payload, frames)| (payload.len(), frames.len())).collect();
    assert_eq!((&sizes[..], found.lost, found.problems), (&[(1, 1), (2, 0), (3, 1)][..], 1, vec![]), "a stack that is too long is omitted");
}

#[test]
fn four_byte_pointers_are_encoded() {
    let mut encoder = Encoder::new(TraceHeader { pointer_size: 4, ..HEADER });
    let metadata = encoder.metadata(&Metadata::default());
    let stack = encoder.stack(&[1, u32::MAX.into()]);
    encoder.event(&NewEvent { metadata, stack, ..NewEvent::default() });
    encoder.end();
    let (mut decoder, mut found) = (Decoder::new(Limits::default()), Found::default());
    decoder.feed(&encoder.take(), &mut found).unwrap();
    assert_eq!(found.events[0].2, [1, u32::MAX.into()]);
}
