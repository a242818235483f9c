//! Events in time order: sequentially written blocks of several threads are merged.

#[path = "support/captures.rs"]
mod captures;
#[path = "support/v6.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod v6;

use allocation_counter::measure;
use captures::{CAPTURES, capture};
use dn_top::analysis::{Live, SampleFilter, ThreadId, Throughput, Totals};
use dn_top::nettrace::{
    Decoder, Encoder, Event, Limit, Limits, Loss, Metadata, NewEvent, Problem, ProblemKind, SequencePoint, Sink, TraceHeader,
};
use dn_top::wire::Put;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// Events in time order: timestamp, thread, payload and frames, with the losses among them.
#[derive(Debug, Default)]
struct Ordered {
    events: Vec<(i64, u64, Vec<u8>, Vec<u64>)>,
    losses: Vec<(usize, u32)>,
    points: Vec<usize>,
    problems: Vec<ProblemKind>,
    /// Number of events in stream order.
    seen: usize,
}

impl Sink for Ordered {
    fn needs_order(&self, metadata: &Metadata) -> bool {
        metadata.name != "Unordered"
    }

    fn event(&mut self, _event: &Event<'_>) {
        self.seen += 1;
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        let frames = event.stack().map_or(Vec::new(), |stack| stack.frames().collect());
        self.events.push((event.timestamp(), event.thread().thread, event.payload.to_vec(), frames));
    }

    fn ordered_loss(&mut self, loss: &Loss) {
        self.losses.push((self.events.len(), loss.count));
    }

    fn sequence_point(&mut self, _point: &SequencePoint) {
        self.points.push(self.events.len());
    }

    fn problem(&mut self, problem: &Problem) {
        self.problems.push(problem.kind);
    }
}

/// How a stream marks the point up to which it can be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrderHints {
    /// By a sequence point after every round.
    Points,
    /// By marks: the first event of each thread in a round is the oldest of those remaining, as runtimes do.
    Marks,
    Nothing,
}

const THREADS: u64 = 4;
const EVENTS: i64 = 50;

/// Encodes rounds in which four threads write events of the same time span, one thread after the other, each in its own block, with this
/// many stacks.
fn worst_order(rounds: i64, stacks: i64, hints: OrderHints, mut each: impl FnMut(&[u8])) {
    let mut encoder = Encoder::new(TraceHeader::default());
    let metadata = encoder.metadata(&Metadata { provider: "Shop".into(), name: "Sold".into(), ..Metadata::default() });
    for round in 0..rounds {
        for thread in 0..THREADS {
            for number in 0..EVENTS {
                let timestamp = round * 1000 + number * THREADS as i64 + thread as i64;
                let stack = encoder.stack(&[(timestamp % stacks) as u64 + 1, 7]);
                let sorted = hints == OrderHints::Marks && number == 0;
                let payload = timestamp.to_le_bytes();
                let (metadata, payload) = (metadata, &payload[..]);
                encoder.event(&NewEvent {
                    metadata,
                    timestamp,
                    thread,
                    capture_thread: thread,
                    stack,
                    sorted,
                    payload,
                    ..NewEvent::default()
                });
            }
            encoder.flush();
        }
        if hints == OrderHints::Points {
            encoder.sequence_point(round * 1000 + 999);
        }
        each(&encoder.take());
    }
    encoder.end();
    each(&encoder.take());
}

fn assert_ordered(ordered: &Ordered, rounds: i64) {
    assert_eq!((ordered.events.len(), ordered.seen), ((rounds * EVENTS) as usize * THREADS as usize, ordered.events.len()));
    let newest = ordered.events.iter().try_fold(i64::MIN, |last, (at, ..)| (*at > last).then_some(*at));
    assert!(newest.is_some(), "in the order of time");
    for (at, thread, payload, frames) in &ordered.events {
        assert_eq!(payload, &at.to_le_bytes());
        assert_eq!(
            (*thread, &frames[..]),
            ((at % 1000) as u64 % THREADS, &[*at as u64 % 50 + 1, 7][..]),
            "its stack, though it stood before a point"
        );
    }
}

#[test]
fn blocks_in_worst_order_are_sorted() {
    for hints in [OrderHints::Points, OrderHints::Marks, OrderHints::Nothing] {
        for piece in [7, 4096, usize::MAX] {
            let (mut decoder, mut ordered) = (Decoder::new(Limits::default()), Ordered::default());
            let mut latest = 0;
            worst_order(20, 50, hints, |bytes| {
                bytes.chunks(piece.min(bytes.len().max(1))).for_each(|piece| decoder.feed(piece, &mut ordered).unwrap());
                latest = latest.max(ordered.seen - ordered.events.len());
            });
            assert!(decoder.finish(&mut ordered).is_complete());
            assert_ordered(&ordered, 20);
            assert_eq!(ordered.problems, []);
            match hints {
                // Events before a point are delivered before it.
                OrderHints::Points => assert_eq!(ordered.points, (1..=20).map(|round| round * 200).collect::<Vec<_>>()),
                OrderHints::Marks => assert!(latest <= 2 * 200, "{latest} events were held back"),
                OrderHints::Nothing => assert_eq!(latest, 20 * 200, "nothing hints that no older event comes"),
            }
        }
    }
}

/// A stream that never marks how far it can be ordered takes bounded memory and loses nothing, and events possibly out of order are reported.
#[test]
fn memory_is_bounded_without_marks() {
    let (mut decoder, mut count) = (Decoder::new(Limits::default()), Count::default());
    let info = measure(|| {
        worst_order(2000, 50, OrderHints::Nothing, |bytes| decoder.feed(bytes, &mut count).unwrap());
        assert!(decoder.finish(&mut count).is_complete());
    });
    assert_eq!((count.events, count.ordered), (400_000, 400_000));
    assert_eq!(count.problems, [ProblemKind::Limit(Limit::Order)]);
    assert!(count.late == 0, "these rounds are short: {} out of order", count.late);
    assert!(info.bytes_max < 48 << 20, "{info:?}");
}

#[derive(Debug, Default)]
struct Count {
    events: u64,
    ordered: u64,
    late: u64,
    newest: i64,
    problems: Vec<ProblemKind>,
}

impl Sink for Count {
    fn needs_order(&self, _metadata: &Metadata) -> bool {
        true
    }
    fn event(&mut self, _event: &Event<'_>) {
        self.events += 1;
    }
    fn ordered_event(&mut self, event: &Event<'_>) {
        self.ordered += 1;
        self.late += u64::from(event.timestamp() < self.newest);
        self.newest = self.newest.max(event.timestamp());
    }
    fn problem(&mut self, problem: &Problem) {
        self.problems.push(problem.kind);
    }
}

/// Kinds of events that need no order cost nothing and are delivered once; counts do not depend on ordering.
#[test]
fn counts_do_not_depend_on_order() {
    let mut bytes = Vec::new();
    worst_order(20, 50, OrderHints::Marks, |part| bytes.extend_from_slice(part));
    let totals = |sink: &mut dyn Counts| -> Totals {
        let mut sink = sink;
        let mut decoder = Decoder::new(Limits::default());
        decoder.feed(&bytes, &mut sink).unwrap();
        assert!(decoder.finish(&mut sink).is_complete());
        sink.totals()
    };
    let (mut alone, mut both) = (Throughput::default(), (Throughput::default(), Ordered::default()));
    assert_eq!(totals(&mut alone), totals(&mut both));
    assert_eq!(alone.counts(), both.0.counts());
}

trait Counts: Sink {
    fn totals(&self) -> Totals;
}

impl Counts for Throughput {
    fn totals(&self) -> Totals {
        self.snapshot()
    }
}

impl Counts for (Throughput, Ordered) {
    fn totals(&self) -> Totals {
        self.0.snapshot()
    }
}

/// A loss is delivered before the event that reveals it, and after older events.
#[test]
fn losses_keep_their_place() {
    let mut encoder = Encoder::new(TraceHeader::default());
    let metadata = encoder.metadata(&Metadata::default());
    let mut event = |thread, timestamp, lost| {
        encoder.add_loss(thread, lost);
        encoder.event(&NewEvent { metadata, timestamp, thread, capture_thread: thread, ..NewEvent::default() });
        encoder.flush();
    };
    for (thread, timestamp, lost) in [(1, 10, 0), (1, 30, 5), (2, 5, 0), (2, 20, 0), (2, 40, 2)] {
        event(thread, timestamp, lost);
    }
    encoder.sequence_point(50);
    encoder.end();
    let (mut decoder, mut ordered) = (Decoder::new(Limits::default()), Ordered::default());
    decoder.feed(&encoder.take(), &mut ordered).unwrap();
    assert!(decoder.finish(&mut ordered).is_complete());
    assert_eq!(ordered.events.iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [5, 10, 20, 30, 40]);
    assert_eq!(ordered.losses, [(3, 5), (4, 2)], "before the events at 30 and at 40");
}

/// A stack block that resets the stack IDs without a sequence point drops the earlier stacks: events that refer to them are delivered first.
#[test]
fn events_keep_stacks_dropped_from_stream() {
    let limits = Limits { stack_bytes: 4000, ..Limits::default() };
    let mut bytes = Vec::new();
    worst_order(20, i64::MAX, OrderHints::Marks, |part| bytes.extend_from_slice(part));
    let (mut decoder, mut ordered) = (Decoder::new(limits), Ordered::default());
    decoder.feed(&bytes, &mut ordered).unwrap();
    assert!(decoder.finish(&mut ordered).is_complete());
    assert_eq!((ordered.events.len(), &ordered.problems[..]), (20 * 200, &[ProblemKind::Limit(Limit::Stacks)][..]));
    for (at, _, _, frames) in &ordered.events {
        assert_eq!(frames[..], [*at as u64 + 1, 7]);
    }
}

/// A sample of a thread waiting for a lock counts as waiting, wherever the sampler's block is in the stream.
#[test]
fn samples_are_paired_with_waits_of_other_blocks() {
    let mut encoder = Encoder::new(TraceHeader::default());
    let sampler = encoder.metadata(&Metadata { provider: SAMPLER.into(), ..Metadata::default() });
    let [start, stop] = [81, 91].map(|event_id| {
        let version = u32::from(event_id == 91);
        encoder.metadata(&Metadata { provider: RUNTIME.into(), event_id, version, ..Metadata::default() })
    });
    // The sampler writes as thread 9 about thread 1: during a wait, and after it.
    for timestamp in [150, 250] {
        let stack = encoder.stack(&[0x100]);
        let payload = &[1, 0, 0, 0];
        encoder.event(&NewEvent { metadata: sampler, timestamp, thread: 1, capture_thread: 9, stack, payload, ..NewEvent::default() });
    }
    encoder.flush();
    let mut duration = vec![0, 0, 0];
    duration.put_f64(100.0);
    for (metadata, timestamp, payload) in [(start, 100, &[0, 0, 0][..]), (stop, 200, &duration)] {
        encoder.event(&NewEvent { metadata, timestamp, thread: 1, capture_thread: 1, payload, ..NewEvent::default() });
    }
    encoder.sequence_point(300);
    encoder.end();
    let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default());
    decoder.feed(&encoder.take(), &mut live).unwrap();
    decoder.finish(&mut live);
    let samples = live.profile().methods(SampleFilter::ALL, 1).samples;
    assert_eq!((samples.waiting, samples.running), (1, 1));
    assert_eq!(live.profile().methods(SampleFilter::ALL, 1).threads[0].thread, ThreadId::of(1));
}

/// Real streams have marks often enough: no event is out of order, and no more are held back than a runtime writes at once.
#[test]
fn captures_come_out_in_order() {
    for name in CAPTURES {
        let bytes = capture(name);
        let (mut decoder, mut count) = (Decoder::new(Limits::default()), Count::default());
        bytes.chunks(1 << 16).for_each(|piece| decoder.feed(piece, &mut count).unwrap());
        assert!(decoder.finish(&mut count).is_complete());
        assert_eq!((count.ordered, count.late), (count.events, 0), "{name}");
        assert_eq!(count.problems, [], "{name}");
    }
}
