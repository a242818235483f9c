//! Limits of memory usage.

use super::super::super::Limit;
use super::*;

#[test]
fn limits_are_enforced_and_reported_once() {
    let limits = Limits { metadata_records: 3, metadata_bytes: 1000, stack_bytes: 64, threads: 2, ..Limits::default() };
    let mut encoder = Encoder::new(HEADER);
    let mut event = NewEvent::default();
    for round in 0..2 {
        for i in 0..6 {
            let metadata = encoder.metadata(&Metadata { event_id: i + 10 * round, ..Metadata::default() });
            let stack = encoder.stack(&[u64::from(i); 3]);
            event = NewEvent { metadata, stack, thread: i.into(), capture_thread: i.into(), ..event };
            encoder.event(&event);
        }
        encoder.flush();
    }
    encoder.end();
    let (log, ending) = decode_within(limits, &encoder.take(), 4096);
    assert_eq!((ending, log.lines("event").len()), (Ending::Complete, 12));
    for limit in [Limit::Metadata, Limit::Stacks, Limit::Threads] {
        assert_eq!(log.lines(&limit.to_string()).len(), 1, "{limit}: {log:?}");
    }
    let stacks = |some: &str| log.lines("event").iter().filter(|line| line.contains(some)).count();
    assert!(stacks("Some([") >= 2 && stacks(" None [") >= 2, "{log:?}");
}

/// Counts the events that are held back for sorting by time.
#[derive(Default)]
struct Held(usize, Vec<i64>);

impl Sink for Held {
    fn needs_order(&self, _metadata: &Metadata) -> bool {
        true
    }

    fn event(&mut self, _event: &Event<'_>) {
        self.0 += 1;
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        self.0 -= 1;
        self.1.push(event.timestamp());
    }
}

#[test]
fn events_beyond_the_held_back_limit_are_delivered_whatever_their_size() {
    let mut encoder = Encoder::new(HEADER);
    let metadata = encoder.metadata(&Metadata::default());
    let mut feed = |events: &[(i64, usize)], decoder: &mut Decoder, held: &mut Held| {
        for (timestamp, size) in events {
            encoder.event(&NewEvent { metadata, timestamp: *timestamp, payload: &vec![0; *size], ..NewEvent::default() });
        }
        encoder.flush();
        decoder.feed(&encoder.take(), held).unwrap();
    };
    let (mut decoder, mut held) = (Decoder::new(Limits::default()), Held::default());
    feed(&[(5, 1), (9, 5 << 20), (6, 1)], &mut decoder, &mut held);
    assert_eq!((held.0, &held.1[..]), (1, &[5, 9][..]), "one of 5 MB exceeds the limit alone");
    feed(&[(i64::MAX, 3 << 20), (7, 1), (8, 3 << 20), (4, 1)], &mut decoder, &mut held);
    assert_eq!((held.0, &held.1[2..]), (1, &[6, 7, 8, i64::MAX][..]), "what is left is at most half of the limit");
}

/// Otherwise an endless name would be kept in memory.
#[test]
fn long_type_names_of_blocks_are_refused() {
    let mut bytes = small().take();
    let at = bytes.len();
    bytes.extend(object(at, &"x".repeat(65), &[]));
    let Ending::Broken { error, .. } = decode(&bytes, 64).1 else { panic!("not noticed") };
    assert!(error.to_string().contains("the type name of a block is too long"), "{error}");
}
