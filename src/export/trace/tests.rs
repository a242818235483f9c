//! Exports of generated and damaged streams.

mod allocations;
mod format_6;
mod own_events;
mod samples;

use std::io::{self, Cursor, Write};

use proptest::prelude::*;

use super::*;
use crate::nettrace::{CollectorEncoder, Decoder, Encoder, Field, FieldType, Limits, Metadata, NewEvent, TraceHeader, UtcTime};
use crate::perfetto::field::packet;
use crate::perfetto::producer::packets;
use crate::perfetto::read::{Value, fields};
use crate::wire::Put;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const SAMPLE_PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// Exports a stream, and returns the output.
fn export(bytes: &[u8], format: TraceFormat) -> Vec<u8> {
    export_part(bytes, format, Part::default())
}

fn export_part(bytes: &[u8], format: TraceFormat, part: Part) -> Vec<u8> {
    let mut overview = Overview::default();
    read(bytes, &mut overview);
    let mut out = Vec::new();
    let options = Options { calls: true, tasks: true, ..Options::new(format, part) };
    let mut export = Export::new(options, overview, Box::new(&mut out), Box::new(Cursor::new(Vec::new()))).unwrap();
    read(bytes, &mut export);
    export.finish().unwrap();
    out
}

fn read(bytes: &[u8], sink: &mut dyn Sink) {
    let (mut decoder, mut sink) = (Decoder::new(Limits::default()), sink);
    let _ = decoder.feed(bytes, &mut sink);
    decoder.finish(&mut sink);
}

/// Exports a stream, and returns the events with this value of a property.
fn chromium(bytes: &[u8], property: &str, value: &str) -> Vec<serde_json::Value> {
    let json: serde_json::Value = serde_json::from_slice(&export(bytes, TraceFormat::Chromium)).unwrap();
    json["traceEvents"].as_array().unwrap().iter().filter(|event| event[property] == value).cloned().collect()
}

fn kind(provider: &str, event_id: u32, version: u32) -> Metadata {
    Metadata { provider: provider.to_owned(), event_id, version, ..Metadata::default() }
}

/// Encodes a stream of one thread: each event has a time in milliseconds, its kind and its payload.
fn stream(events: &[(i64, Metadata, Vec<u8>)]) -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader { process_id: 7, ..TraceHeader::default() });
    for (at, kind, payload) in events {
        let metadata = encoder.metadata(kind);
        encoder.event(&NewEvent { metadata, timestamp: at * 1_000_000, thread: 70, capture_thread: 70, payload, ..NewEvent::default() });
    }
    encoder.end();
    encoder.take()
}

/// A capture with samples.
fn capture() -> Vec<u8> {
    captured("net31-heavy")
}

fn captured(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/captures/{name}.nettrace.xz", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut xz2::read::XzDecoder::new(std::fs::File::open(path).unwrap()), &mut bytes).unwrap();
    bytes
}

#[test]
fn an_empty_recording_gives_an_empty_export() {
    for format in TraceFormat::ALL {
        let out = export(b"", format);
        match format {
            TraceFormat::Speedscope | TraceFormat::Chromium => {
                let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
                assert!(json.is_object(), "{format:?}");
            }
            TraceFormat::Folded => assert_eq!(out, b""),
            TraceFormat::Csv => assert_eq!(out, b"seconds,process,thread,provider,event,stack_depth,payload\n"),
            TraceFormat::Html | TraceFormat::Perfetto | TraceFormat::Pprof | TraceFormat::Nettrace => assert!(!out.is_empty()),
        }
    }
}

/// The order of hash tables is random.
#[test]
fn exports_of_the_same_stream_are_identical() {
    let mut encoder = Encoder::new(TraceHeader { process_id: 7, ..TraceHeader::default() });
    let start = encoder.metadata(&Metadata { name: "WorkStart".to_owned(), ..kind("Shop", 1, 0) });
    let wait = encoder.metadata(&kind(RUNTIME, 81, 1));
    for thread in 1..=30 {
        let event = NewEvent { timestamp: 5, thread, capture_thread: thread, activity_id: [thread as u8; 16], ..NewEvent::default() };
        encoder.event(&NewEvent { metadata: start, ..event });
        encoder.event(&NewEvent { metadata: wait, payload: &[0; 3], ..event });
    }
    encoder.end();
    let bytes = encoder.take();
    for format in TraceFormat::ALL {
        assert!(export(&bytes, format) == export(&bytes, format), "{format:?}");
    }
    assert!(!chromium(&bytes, "cat", "activity").is_empty());
}

/// Encodes the payload of an event of a method: its id, the module, these numbers and its names.
fn method_payload(id: u64, numbers: &[u32], namespace: &str, name: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    [id, 1].iter().for_each(|number| payload.put_u64(*number));
    numbers.iter().for_each(|number| payload.put_u32(*number));
    [namespace, name, "void  ()"].iter().for_each(|text| payload.put_utf16z(text));
    payload.put_u16(0);
    payload
}

/// A method of 16 bytes at `id` times 0x1000 is loaded.
fn method(id: u32, namespace: &str, name: &str) -> Vec<u8> {
    method_payload(id.into(), &[0x1000 * id, 0, 16, 1, 1], namespace, name)
}

/// Encodes the compilation of a method from 1000 to 5000 ns, and that of another inside it, from 2000 to 3000 ns.
fn nested_compilations() -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader { process_id: 7, ..TraceHeader::default() });
    let (begin, end) = (encoder.metadata(&kind(RUNTIME, 145, 1)), encoder.metadata(&kind(RUNTIME, 143, 1)));
    let name = |id| if id == 1 { "Outer" } else { "Inner" };
    let (began, ended) = (|id| method_payload(id, &[1, 10], "T", name(id)), |id: u32| method(id, "T", name(id.into())));
    // The third never ends.
    for (timestamp, (metadata, payload)) in
        (1000..).step_by(1000).zip([(begin, began(1)), (begin, began(2)), (end, ended(2)), (begin, began(3)), (end, ended(1))])
    {
        encoder.event(&NewEvent { metadata, timestamp, thread: 70, capture_thread: 70, payload: &payload, ..NewEvent::default() });
    }
    encoder.end();
    encoder.take()
}

/// Compiling a method can trigger the compilation of another: both are shown, nested.
#[test]
fn nested_compilations_are_both_shown() {
    let edges = chromium(&nested_compilations(), "cat", "jit");
    let edges: Vec<_> = edges.iter().map(|edge| (edge["name"].as_str().unwrap(), edge["ts"].as_f64().unwrap())).collect();
    assert_eq!(edges, [("JIT T.Inner", 2.0), ("JIT T.Inner", 3.0), ("JIT T.Outer", 1.0), ("JIT T.Outer", 5.0)]);
}

/// Readers nest slices of one track by their start times.
#[test]
fn slices_cut_by_the_start_of_the_part_stay_nested() {
    let part = Part { window: 2_500..=10_000, ..Part::default() };
    let trace = export_part(&nested_compilations(), TraceFormat::Perfetto, part);
    let all = |bytes, of| fields(bytes).map(Result::unwrap).filter(move |(number, _)| *number == of).map(|(_, value)| value);
    let mut edges: Vec<_> = packets(&trace)
        .filter_map(|packet| {
            let event = all(packet, 11).next()?.bytes().unwrap();
            let kind = all(event, 9).next()?.number().unwrap();
            Some((all(packet, 8).next()?.number().unwrap(), kind, all(event, 10).next().map(|name| name.number().unwrap())))
        })
        .collect();
    edges.sort_by_key(|(at, ..)| *at);
    let [outer, inner, end, last] = edges[..] else { panic!("{edges:?}") };
    assert_eq!([outer, inner, end, last].map(|(at, kind, _)| (at, kind)), [(2_499, 1), (2_500, 1), (3_000, 2), (5_000, 2)]);
    assert!(inner.2 < outer.2, "the name of the inner one is interned first: {edges:?}");
}

/// The end of the first compilation may be among the lost events.
#[test]
fn slices_with_lost_events_are_not_shown() {
    let jitted = |lost| {
        let mut encoder = Encoder::new(TraceHeader { process_id: 7, ..TraceHeader::default() });
        let [begin, end] = [145, 143].map(|id| encoder.metadata(&kind(RUNTIME, id, 1)));
        let began = method_payload(1, &[1, 10], "T", "Outer");
        for (metadata, payload) in [(begin, began), (end, method(1, "T", "Outer"))] {
            encoder.event(&NewEvent {
                metadata,
                timestamp: 1000,
                thread: 70,
                capture_thread: 70,
                payload: &payload,
                ..NewEvent::default()
            });
            encoder.add_loss(70, lost);
        }
        encoder.end();
        chromium(&encoder.take(), "cat", "jit").len()
    };
    assert_eq!([jitted(0), jitted(1)], [2, 0]);
}

#[test]
fn only_suspensions_for_a_gc_are_pauses() {
    let pauses = |reason: u32| {
        let begin = [&reason.to_le_bytes()[..], &[1, 0, 0, 0, 0, 0]].concat();
        let bytes = stream(&[(1, kind(RUNTIME, 9, 1), begin), (2, kind(RUNTIME, 3, 1), vec![0; 2])]);
        chromium(&bytes, "cat", "gc").len()
    };
    assert_eq!([pauses(1), pauses(5)], [1, 0]);
}

/// The two halves of an ID can cancel each other out.
#[test]
fn every_activity_has_a_flow() {
    assert_eq!(open_slices::flow_of([0; 16]), 0);
    assert_ne!(open_slices::flow_of([7; 16]), 0);
}

fn described(provider: &str, event_id: u32, name: &str, fields: &[(&str, FieldType)]) -> Metadata {
    let field = |(name, kind): &(&str, FieldType)| Field { name: (*name).to_owned(), kind: kind.clone() };
    Metadata { name: name.to_owned(), fields: fields.iter().map(field).collect(), ..kind(provider, event_id, 0) }
}

/// .NET Core 3.x writes nothing for a null event name, and misspells the id of the continued task.
#[test]
fn events_of_net_core_3_are_exported() {
    const FIELDS: [(&str, FieldType); 4] = [
        ("Level", FieldType::Int32),
        ("LoggerName", FieldType::String),
        ("EventName", FieldType::String),
        ("FormattedMessage", FieldType::String),
    ];
    let message = |texts: &[&str]| {
        let mut payload = 2_u32.to_le_bytes().to_vec();
        texts.iter().for_each(|text| payload.put_utf16z(text));
        (1, described("Microsoft-Extensions-Logging", 1, "FormattedMessage", &FIELDS), payload)
    };
    let task = |field: &str, id: u32| {
        let fields = ["OriginatingTaskSchedulerID", "OriginatingTaskID", field].map(|name| (name, FieldType::Int32));
        let payload = [1, 2, id].map(u32::to_le_bytes).concat();
        (2, described("System.Threading.Tasks.TplEventSource", 12, "AwaitTaskContinuationScheduled", &fields), payload)
    };
    let bytes = stream(&[
        message(&["Shop", "Paying", "paid"]),
        message(&["Shop", "shipped"]),
        task("ContinueWithTaskId", 5),
        task("ContinuwWithTaskId", 6),
    ]);
    let names: Vec<_> = chromium(&bytes, "cat", "log").iter().map(|event| event["name"].clone()).collect();
    assert_eq!(names, ["paid", "shipped"]);
    let tasks: Vec<_> = chromium(&bytes, "cat", "task").iter().map(|event| event["args"]["task"].clone()).collect();
    assert_eq!(tasks, [5, 6]);
}

/// Every process numbers its tasks from 1.
#[test]
fn task_flows_do_not_connect_processes() {
    let mut encoder = CollectorEncoder::new(&TraceHeader::default());
    let started = described("System.Threading.Tasks.TplEventSource", 8, "TaskStarted", &[("TaskID", FieldType::Int32)]);
    let started = encoder.metadata(&started, true);
    for (process, task) in [(5_u32, 6_u32), (6, 5), (5, 5), (5, 6)] {
        encoder.event(started, (process, 70), 1, &[], None, &task.to_le_bytes());
    }
    let trace = export(&encoder.finish(), TraceFormat::Perfetto);
    let all = |bytes, of| fields(bytes).map(Result::unwrap).filter(move |(number, _)| *number == of).map(|(_, value)| value);
    let events = packets(&trace).flat_map(|packet| all(packet, 11));
    let flows: Vec<u64> = events.flat_map(|event| all(event.bytes().unwrap(), 47)).map(|flow| flow.number().unwrap()).collect();
    assert!(flows[0] == flows[3] && flows.iter().collect::<std::collections::HashSet<_>>().len() == 3, "{flows:x?}");
}

/// As in the dashboard: bytes of a gauge are a size, bytes of a counter are allocated per second.
#[test]
fn published_counters_have_the_unit_of_their_values() {
    let counter = |name: &str, unit: &str, field: &str, value: f64| {
        let fields = [("Name", FieldType::String), ("DisplayUnits", FieldType::String), (field, FieldType::Double)];
        let fields = [&fields[..], &[("IntervalSec", FieldType::Double), ("Count", FieldType::Int32)]].concat();
        let mut payload = Vec::new();
        [name, unit].iter().for_each(|text| payload.put_utf16z(text));
        [value, 2.0].iter().for_each(|number| payload.put_f64(*number));
        payload.put_u32(1);
        (1, described("System.Runtime", 1, "EventCounters", &fields), payload)
    };
    let bytes = stream(&[
        counter("alloc-rate", "B", "Increment", 500.0),
        counter("exception-count", "", "Increment", 6.0),
        counter("poh-size", "B", "Mean", 500.0),
    ]);
    let values: Vec<_> = chromium(&bytes, "ph", "C").iter().map(|event| (event["name"].clone(), event["args"]["value"].clone())).collect();
    let expected = [("alloc-rate (B/s)", 250), ("exception-count (1/s)", 3), ("poh-size (B)", 500)];
    assert_eq!(values, expected.map(|(name, value)| (format!("System.Runtime: {name}").into(), value.into())));
    let trace = export(&bytes, TraceFormat::Perfetto);
    for unit in ["B/s", "1/s"] {
        assert!(trace.windows(unit.len()).any(|part| part == unit.as_bytes()), "{unit}");
    }
}

/// The addresses are those that a process reports, which may be anything.
#[test]
fn any_address_can_be_named_at_the_end_of_a_live_trace() {
    let mut encoder = Encoder::new(TraceHeader::default());
    let (metadata, stack) = (encoder.metadata(&kind(SAMPLE_PROFILER, 0, 0)), encoder.stack(&[u64::MAX, 0x1001]));
    encoder.event(&NewEvent { metadata, timestamp: 1, stack, payload: &[2, 0, 0, 0], ..NewEvent::default() });
    encoder.end();
    let mut trace = LiveTrace::new(LiveProcess::default());
    read(&encoder.take(), &mut trace);
    trace.take();
    trace.restart(0);
    let last = trace.finish(None).bytes;
    let mut frames = Vec::new();
    for data in packets(&last).flat_map(fields).map(Result::unwrap).filter(|(number, _)| *number == 12) {
        for frame in fields(data.1.bytes().unwrap()).map(Result::unwrap).filter(|(number, _)| *number == 6) {
            let values: Vec<_> = fields(frame.1.bytes().unwrap()).map(|field| field.unwrap().1).collect();
            frames.push((values[0], values[2]));
        }
    }
    let expected = [(1 << 40, 0x1000), ((1 << 40) + 1, u64::MAX)];
    assert_eq!(frames, expected.map(|(id, address)| (Value::Number(id), Value::Number(address))));
}

/// A process of two machine-wide recordings needs a track in each, whatever the first contains of it.
#[test]
fn every_parent_track_is_described() {
    let recording = |ticks: i64, events: u64| {
        let mut encoder = CollectorEncoder::new(&TraceHeader { sync_ticks: ticks, ..TraceHeader::default() });
        let name = encoder.metadata(&Metadata { name: "ExistingProcess".to_owned(), ..kind("Universal.System", 0, 0) }, true);
        encoder.event(name, (5, 5), ticks, &[], None, &[&[5, 4, 0][..], b"shop"].concat());
        let tick = encoder.metadata(&kind(RUNTIME, 10, 4), true);
        for _ in 0..events {
            encoder.event(tick, (5, 70), ticks + 1, &[], None, &allocations::allocation_tick(100));
        }
        encoder.finish()
    };
    let (mut processes, mut trace) = (Processes::default(), Vec::<u8>::new());
    for (number, bytes) in [recording(1000, 0), recording(2000, 1)].iter().enumerate() {
        let mut overview = Overview::default();
        read(bytes, &mut overview);
        processes.add(&mut overview);
        let options = Options { number: number as u32, ..Options::new(TraceFormat::Perfetto, Part::default()) };
        let mut export = Export::new(options, overview, Box::new(&mut trace), Box::new(Cursor::new(Vec::new()))).unwrap();
        read(bytes, &mut export);
        export.finish().unwrap();
    }
    let all = |bytes, of| fields(bytes).map(Result::unwrap).filter(move |(number, _)| *number == of).map(|(_, value)| value);
    let tracks: Vec<_> = packets(&trace).flat_map(|packet| all(packet, 60)).map(|track| track.bytes().unwrap()).collect();
    let uuids: Vec<_> = tracks.iter().flat_map(|track| all(track, 1)).collect();
    let parents: Vec<_> = tracks.iter().flat_map(|track| all(track, 5)).collect();
    assert!(parents.len() >= 3 && parents.iter().all(|parent| uuids.contains(parent)), "{parents:?} {uuids:?}");
}

#[test]
fn an_output_error_is_returned() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.0);
            self.0 -= count;
            if count == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(count) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let bytes = capture();
    for format in TraceFormat::ALL {
        for capacity in [0, 100] {
            let mut overview = Overview::default();
            read(&bytes, &mut overview);
            let options = Options::new(format, Part::default());
            let error = match Export::new(options, overview, Box::new(Full(capacity)), Box::new(Cursor::new(Vec::new()))) {
                Ok(mut export) => {
                    read(&bytes, &mut export);
                    export.finish().unwrap_err()
                }
                Err(error) => error,
            };
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{format:?} with capacity for {capacity} bytes");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// However damaged a recording is, JSON output is valid and nothing panics.
    #[test]
    fn damaged_recordings_are_exported_as_far_as_possible(flips in proptest::collection::vec((0.0..1.0, any::<u8>()), 1..60), end in 0.1..1.0) {
        let mut bytes = capture();
        bytes.truncate((bytes.len() as f64 * end * 0.2) as usize);
        for (place, value) in flips {
            let at = (bytes.len() as f64 * place) as usize;
            bytes[at] = value;
        }
        for format in TraceFormat::ALL {
            let out = export(&bytes, format);
            if matches!(format, TraceFormat::Speedscope | TraceFormat::Chromium) {
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok());
            }
        }
    }
}
