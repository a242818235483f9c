//! Cost of hostile streams: not above that of an ordinary stream of the same size and shape.
//!
//! Each case plays two streams with the same number of events, an ordinary one and one designed to be slow, and compares the CPU time of
//! decoding and analyzing them. An unguarded attack would cost a hundred times as much, or far more: the bound is four times.

#[path = "support/captures.rs"]
mod captures;
#[path = "support/v6.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod v6;

use std::time::Duration;

use dn_top::analysis::{CounterSnapshot, Live, SampleFilter, without_duplicates};
use dn_top::nettrace::{
    Decoder, Encoder, Field, FieldType, FlightRecorder, Limits, Metadata, NewEvent, RetentionLimits, SegmentStore, Sink, StoreError,
    TraceHeader,
};
use dn_top::wire::Put;
use v6::{Kind, Row, V6, field};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
/// Shorter times cannot be measured reliably.
const MIN_TIME: Duration = Duration::from_millis(25);
/// Maximum ratio of the hostile stream's cost to the ordinary one's.
const MAX_RATIO: u32 = 4;

/// Returns the CPU time used by this thread.
fn time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
}

/// Returns the shorter of two runs.
fn cost(work: impl Fn()) -> Duration {
    let run = || {
        let before = time();
        work();
        time() - before
    };
    run().min(run())
}

fn decode(stream: &[u8], sink: &mut impl Sink) {
    let mut decoder = Decoder::new(Limits::default());
    decoder.feed(stream, sink).expect("a readable stream");
    assert!(decoder.finish(sink).is_complete());
}

#[track_caller]
fn compare(what: &str, ordinary: impl Fn(), hostile: impl Fn()) {
    let (ordinary, hostile) = (cost(ordinary), cost(hostile));
    assert!(hostile <= ordinary.max(MIN_TIME) * MAX_RATIO, "{what}: {hostile:?}, and {ordinary:?} ordinarily");
}

/// Decodes and analyzes both, and compares their costs.
#[track_caller]
fn compare_streams(what: &str, ordinary: &[u8], hostile: &[u8]) {
    let analyze = |stream: &[u8]| {
        let mut live = Live::default();
        decode(stream, &mut live);
        assert!(live.throughput().snapshot().events > 0, "{what}");
        live.snapshot(live.newest());
    };
    compare(what, || analyze(ordinary), || analyze(hostile));
}

fn encoder() -> Encoder {
    Encoder::new(TraceHeader::default())
}

fn whole(mut encoder: Encoder) -> Vec<u8> {
    encoder.end();
    encoder.take()
}

/// Returns IDs that an unseeded one-multiplication hash function maps to the same bucket of a table of up to 2^24 buckets: the inverse of FxHash.
fn colliding(number: u64) -> u64 {
    /// Inverse of the factor of FxHash, modulo 2^64.
    const INVERSE: u64 = inverse(0xf135_7aea_2e62_a9c5);
    (number << 24).rotate_right(26).wrapping_mul(INVERSE)
}

const fn inverse(odd: u64) -> u64 {
    // Each step doubles the number of correct bits.
    let (mut found, mut step) = (odd, 0);
    while step < 6 {
        found = found.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(found)));
        step += 1;
    }
    found
}

/// IDs in every table filled by a stream, chosen to collide.
#[test]
fn colliding_ids_cost_no_more() {
    const COUNT: u64 = 40_000;
    let runtime = |event_id, version| Metadata { provider: RUNTIME.into(), event_id, version, ..Metadata::default() };
    type Write = fn(&mut Encoder, u32, u64);
    fn event(encoder: &mut Encoder, metadata: u32, thread: u64, payload: &[u8]) {
        encoder.event(&NewEvent { metadata, thread, capture_thread: thread, payload, ..NewEvent::default() });
    }
    let threads: Write = |encoder, metadata, id| event(encoder, metadata, id, &[]);
    let types: Write = |encoder, metadata, id| {
        let mut payload = vec![0; 10];
        payload[4] = 1;
        [1, 24, id, 0].into_iter().for_each(|word| payload.put_u64(word));
        event(encoder, metadata, 1, &payload);
    };
    let modules: Write = |encoder, metadata, id| {
        let mut payload = Vec::new();
        [id, 0].into_iter().for_each(|word| payload.put_u64(word));
        payload.put(&[0; 8]);
        payload.put_utf16z("a");
        payload.put_utf16z("");
        payload.put(&[0; 100]);
        event(encoder, metadata, 1, &payload);
    };
    let samples: Write = |encoder, metadata, id| event(encoder, metadata, id, &[2, 0, 0, 0]);
    let sampler = Metadata { provider: SAMPLER.into(), ..Metadata::default() };
    let cases: [(&str, Metadata, Write); 4] = [
        ("threads", runtime(9999, 0), threads),
        ("types on the heap", runtime(18, 0), types),
        ("modules", runtime(152, 2), modules),
        ("threads that are sampled", sampler, samples),
    ];
    for (what, record, write) in cases {
        let stream = |id: fn(u64) -> u64| {
            let mut encoder = encoder();
            let metadata = encoder.metadata(&record);
            (1..=COUNT).for_each(|number| write(&mut encoder, metadata, id(number)));
            whole(encoder)
        };
        compare_streams(what, &stream(|number| number * 7), &stream(colliding));
    }
}

/// The same for the tables that only V6 fills.
#[test]
fn colliding_thread_indexes_cost_no_more() {
    let stream = |id: fn(u64) -> u64| {
        let mut stream = V6::new();
        stream.metadata(1, "Shop", "Sold", 0, 0, &[]);
        stream.threads((1..=40_000).map(|number| (id(number), 1, number)));
        stream.events((1..=40_000).map(|number| Row { metadata: 1, sequence: 1, thread: id(number), ..Row::default() }));
        stream.end()
    };
    compare_streams("thread indexes", &stream(|number| number * 7), &stream(colliding));
}

/// A stack written into a segment of a flight recording: IDs collide there as well.
#[test]
fn flight_recording_cost_is_proportional_to_stream_size() {
    let stream = |frames: u64| {
        let mut encoder = encoder();
        let metadata = encoder.metadata(&Metadata { provider: "Shop".into(), name: "Sold".into(), ..Metadata::default() });
        for timestamp in 0..4000 {
            let stack = encoder.stack(&(0..frames).collect::<Vec<_>>());
            encoder.event(&NewEvent { metadata, timestamp, stack, ..NewEvent::default() });
        }
        whole(encoder)
    };
    let record = |stream: &[u8]| {
        decode(
            stream,
            &mut FlightRecorder::new(RetentionLimits { bytes: RetentionLimits::MIN_BYTES, span: None }, Box::new(DiscardingStore)),
        )
    };
    let (ordinary, hostile) = (stream(100), stream(100_000));
    compare("a stack of 100,000 frames", || record(&ordinary), || record(&hostile));
}

/// A store that keeps nothing.
#[derive(Debug)]
struct DiscardingStore;

impl SegmentStore for DiscardingStore {
    fn put(&mut self, _segment: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }
    fn drop_oldest(&mut self) {}
    fn take_oldest(&mut self) -> Result<Vec<u8>, String> {
        Err("nothing is kept".to_owned())
    }
    fn release(&mut self) {}
}

fn activity(name: &str) -> Metadata {
    Metadata { provider: "Shop".into(), name: name.into(), ..Metadata::default() }
}

/// More operation names than are distinguished, differing only at their ends.
#[test]
fn operations_beyond_limit_cost_no_more() {
    let stream = |names: u32| {
        let mut encoder = encoder();
        let shared = "x".repeat(100);
        let records: Vec<_> = (0..names).map(|number| encoder.metadata(&activity(&format!("{shared}{number:08}Start")))).collect();
        for number in 0..200_000 {
            let metadata = records[number % records.len()];
            encoder.event(&NewEvent { metadata, ..NewEvent::default() });
        }
        whole(encoder)
    };
    compare_streams("names in the metadata", &stream(64), &stream(2000));

    // A single kind of event, with the name in its payload.
    let stream = |names: u32| {
        let mut encoder = encoder();
        let fields = vec![Field { name: "SourceName".into(), kind: FieldType::String }];
        let provider = "Microsoft-Diagnostics-DiagnosticSource".to_owned();
        let metadata = encoder.metadata(&Metadata { provider, fields, ..activity("Activity1Start") });
        for number in 0..50_000_u32 {
            let mut payload = Vec::new();
            payload.put_utf16z(&format!("{}{:08}", "x".repeat(100), number % names));
            encoder.event(&NewEvent { metadata, payload: &payload, ..NewEvent::default() });
        }
        whole(encoder)
    };
    compare_streams("names in payloads", &stream(64), &stream(2000));
}

/// Stops without a start, all at the same time.
#[test]
fn stop_events_without_start_cost_no_more() {
    let stream = |begins: bool| {
        let mut encoder = encoder();
        let [start, stop] = ["SaleStart", "SaleStop"].map(|name| encoder.metadata(&activity(name)));
        for number in 1..=100_000_u128 {
            let event = NewEvent { activity_id: number.to_le_bytes(), ..NewEvent::default() };
            encoder.event(&NewEvent { metadata: if begins { start } else { stop }, ..event });
            encoder.event(&NewEvent { metadata: stop, ..event });
        }
        whole(encoder)
    };
    compare_streams("ends without a begin", &stream(true), &stream(false));
}

/// A label list referenced by many events.
#[test]
fn long_lists_of_labels_cost_no_more() {
    let stream = |labels: usize| {
        let mut stream = V6::new();
        stream.metadata(1, "Shop", "SaleStart", 1, 0, &[]);
        let mut list = [7, 0].repeat(labels);
        list.extend([0x87, 0]);
        stream.labels(1, &[list]);
        stream.events((1..=20_000).map(|sequence| Row { metadata: 1, sequence, labels: 1, ..Row::default() }));
        stream.end()
    };
    compare_streams("a list of 100,000 labels", &stream(32), &stream(100_000));
}

/// Arrays stored out of line in the payload, all at the same place.
#[test]
fn overlapping_arrays_cost_no_more() {
    const BYTE: u8 = 6;
    let far = |element: &[u8]| [&[25], element].concat();
    let object = |of: &[u8]| [&[1, 1, 0][..], &field("", of)].concat();
    let stream = |count: u16, fields: &[u8], payload: &[u8]| {
        let mut stream = V6::new();
        stream.metadata(1, "Shop", "SaleStart", 1, count, fields);
        let mut list = vec![0x81];
        list.extend([7; 16]);
        stream.labels(1, &[list]);
        stream.events((1..=20).map(|sequence| Row { metadata: 1, sequence, labels: 1, payload, ..Row::default() }));
        stream.end()
    };
    // Each element of the whole payload is an array of the whole payload, recursively.
    let mut payload = Vec::new();
    (0..4000_u32).for_each(|_| payload.put_u32(16_000 << 16));
    let deep = far(&object(&far(&object(&far(&object(&far(&[BYTE])))))));
    let ordinary = stream(1, &field("", &far(&[BYTE])), &payload);
    compare_streams("arrays in arrays", &ordinary, &stream(1, &field("", &deep), &payload));
    // Many fields, each of which is the whole payload.
    let ordinary = stream(1, &field("", &far(&object(&[BYTE]))), &payload);
    let flat: Vec<u8> = (0..4000).flat_map(|_| field("", &far(&object(&[BYTE])))).collect();
    compare_streams("arrays side by side", &ordinary, &stream(4000, &flat, &payload));
}

fn sample(encoder: &mut Encoder, metadata: u32, stack: u32, number: i64) {
    encoder.event(&NewEvent { metadata, stack, timestamp: number, thread: 1, payload: &[2, 0, 0, 0], ..NewEvent::default() });
}

fn sampler(encoder: &mut Encoder) -> u32 {
    encoder.metadata(&Metadata { provider: SAMPLER.into(), ..Metadata::default() })
}

/// A deep stack with a high stack ID, in sample after sample.
#[test]
fn high_stack_ids_cost_no_more() {
    let stream = |before: u64| {
        let mut encoder = encoder();
        let metadata = sampler(&mut encoder);
        (0..70_000 - before).for_each(|frame| _ = encoder.stack(&[frame + 1]));
        let stack = encoder.stack(&(0..250).map(|frame| frame * 16 + 16).collect::<Vec<_>>());
        (0..before).for_each(|frame| _ = encoder.stack(&[1 << 32 | frame]));
        (0..200_000).for_each(|number| sample(&mut encoder, metadata, stack, number));
        whole(encoder)
    };
    compare_streams("a stack of number 70,000", &stream(70_000), &stream(0));
}

/// More stacks than are kept apart, round-robin.
#[test]
fn merged_stacks_cost_no_more() {
    let stream = |stacks: u64| {
        let mut encoder = encoder();
        let metadata = sampler(&mut encoder);
        let stacks: Vec<_> =
            (0..stacks).map(|stack| encoder.stack(&(0..100).map(|frame| (stack * 100 + frame + 1) * 16).collect::<Vec<_>>())).collect();
        (0..60_000).for_each(|number| sample(&mut encoder, metadata, stacks[number % stacks.len()], number as i64));
        whole(encoder)
    };
    compare_streams("2000 stacks of 100 frames", &stream(1000), &stream(2000));
}

/// Tables that once were large are cleared again and again.
#[test]
fn emptying_tables_costs_no_more() {
    let stream = |threads: u64| {
        let mut stream = V6::new();
        stream.threads((0..threads).map(|index| (index, 1, index)));
        stream.events((0..threads).map(|thread| Row { sequence: 1, thread, ..Row::default() }));
        // As many blocks as needed to make both streams the same size.
        (0..60_000 - threads).for_each(|_| stream.block(Kind::RemoveThread, &[0xff, 0xff, 3, 0]));
        for _ in 0..30_000 {
            stream.threads([(1, 1, 1)]);
            stream.events([Row { sequence: 1, thread: 1, ..Row::default() }]);
            stream.sequence_point(0, 3, &[]);
        }
        stream.end()
    };
    compare_streams("sequence points", &stream(10), &stream(60_000));
}

/// Counters, each in a group of its own.
#[test]
fn groups_of_counters_cost_no_more() {
    let counters = |count: u32| {
        let mut encoder = encoder();
        let field = |name: &str, kind| Field { name: name.into(), kind };
        let fields = vec![field("Name", FieldType::String), field("Mean", FieldType::Double)];
        for number in 0..count {
            let record =
                Metadata { provider: format!("{}{number:08}", "x".repeat(200)), fields: fields.clone(), ..activity("EventCounters") };
            let metadata = encoder.metadata(&record);
            let mut payload = Vec::new();
            payload.put_utf16z("sold");
            payload.put_f64(1.0);
            encoder.event(&NewEvent { metadata, payload: &payload, ..NewEvent::default() });
        }
        let mut live = Live::default();
        decode(&whole(encoder), &mut live);
        let counters = live.snapshot(0).counters.counters;
        assert_eq!(counters.len(), count as usize);
        counters
    };
    let (few, many) = (counters(20), counters(2000));
    let reported =
        |counters: &[CounterSnapshot], times| (0..times).for_each(|_| assert_eq!(without_duplicates(counters).count(), counters.len()));
    compare("reported once", || reported(&few, 2000), || reported(&many, 20));
}

/// Individually kept events take little memory, whatever their contents.
#[test]
fn recent_events_use_little_memory() {
    let mut encoder = encoder();
    let name = "x".repeat(1000);
    let nested = (0..4).fold(FieldType::Byte, |kind, _| FieldType::Object(vec![Field { name: name.clone(), kind }]));
    let fields: Vec<_> = (0..60).map(|_| Field { name: name.clone(), kind: nested.clone() }).collect();
    let metadata = encoder.metadata(&Metadata { fields, ..activity("Sold") });
    for number in 0..600 {
        encoder.event(&NewEvent { metadata, timestamp: number * 10_000_000, payload: &[1; 60], ..NewEvent::default() });
    }
    let stream = whole(encoder);
    let mut live = Live::default().with_recent_events();
    let info = allocation_counter::measure(|| decode(&stream, &mut live));
    assert_eq!(live.recent().events.len(), 500);
    assert!(info.bytes_max < 32 << 20, "{info:?}");
}

/// The findings do not depend on the seeds of the hash tables, which differ in each run.
#[test]
fn results_do_not_depend_on_hash_seeds() {
    for name in ["net31-heavy", "net9-heavy-drops", "v6-record-trace-oncpu-offcpu"] {
        let bytes = captures::capture(name);
        let findings = || {
            let mut live = Live::default().with_recent_events();
            decode(&bytes, &mut live);
            let snapshot = format!("{:?}", live.snapshot(live.newest()));
            let (methods, stacks) =
                (live.profile().methods(SampleFilter::ALL, usize::MAX), live.profile().count(SampleFilter::ALL).stacks(usize::MAX));
            [snapshot, format!("{methods:?}"), format!("{stacks:?}"), format!("{:?}", live.heap()), format!("{:?}", live.recent())]
        };
        let first = findings();
        for _ in 0..3 {
            assert!(findings() == first, "{name}: what is found depends on the order of a table");
        }
    }
}
