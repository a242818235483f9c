//! Allocations of the nettrace decoder: none per event, and never more than its limits.

#[path = "support/captures.rs"]
mod captures;

use allocation_counter::{AllocationInfo, measure};
use captures::{CAPTURES, capture};
use dn_top::analysis::{Live, LiveEventFilter, Occurrence, OccurrenceKind, Throughput};
use dn_top::export::{DumpInfo, Export, HeapGraph, Options, Overview, Part};
use dn_top::model::TraceFormat;
use dn_top::nettrace::{Decoder, Encoder, Limits, Metadata, NewEvent, TraceHeader};

const MB: u64 = 1 << 20;

/// Feeds in chunks, as a recorder does. Decoding errors are ignored.
fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Throughput, AllocationInfo) {
    let mut throughput = Throughput::default();
    let info = measure(|| {
        let mut decoder = Decoder::new(Limits::default());
        for piece in pieces {
            if decoder.feed(piece, &mut throughput).is_err() {
                break;
            }
        }
        decoder.finish(&mut throughput);
    });
    (throughput, info)
}

#[test]
fn decoding_an_event_allocates_nothing() {
    let mut encoder = Encoder::new(TraceHeader::default());
    let kinds = [1, 2, 3].map(|event_id| encoder.metadata(&Metadata { event_id, ..Metadata::default() }));
    let write = |encoder: &mut Encoder, events: u64| {
        for i in 0..events {
            let metadata = kinds[i as usize % 3];
            let stack = encoder.stack(&[i % 100 + 1; 20]);
            encoder.event(&NewEvent { metadata, stack, thread: i % 10, capture_thread: i % 10, payload: &[7; 50], ..NewEvent::default() });
            if i % 10_000 == 9_999 {
                encoder.sequence_point(0);
            }
        }
        encoder.flush();
        encoder.take()
    };
    // Tables and buffers first grow to their final size, and do not grow afterwards.
    let (warm_up, stream) = (write(&mut encoder, 50_000), write(&mut encoder, 100_000));
    let (mut decoder, mut throughput) = (Decoder::new(Limits::default()), Throughput::default());
    let mut feed =
        |bytes: &[u8]| bytes.chunks(64 * 1024).for_each(|piece| decoder.feed(piece, &mut throughput).expect("a readable stream"));
    feed(&warm_up);
    let info = measure(|| feed(&stream));
    assert_eq!(throughput.snapshot().events, 150_000);
    assert_eq!(info.count_total, 0, "{info:?}");
}

/// Kept events take memory, but other events allocate nothing.
#[test]
fn only_kept_events_allocate() {
    for (filter, most) in [("shop", 16 * 600), ("no such event", 200)] {
        let mut encoder = Encoder::new(TraceHeader::default());
        let record = Metadata { provider: "Shop".to_owned(), event_id: 1, name: "Sold".to_owned(), ..Metadata::default() };
        let metadata = encoder.metadata(&record);
        let mut live = Live::default().with_recent_events();
        live.set_event_filter(LiveEventFilter::new(filter));
        let mut decoder = Decoder::new(Limits::default());
        let mut write = |from: i64| {
            for i in 0..100_000 {
                let timestamp = from + i * 10_000;
                encoder.event(&NewEvent { metadata, timestamp, payload: &[7; 50], ..NewEvent::default() });
            }
            encoder.flush();
            encoder.take()
        };
        // One second each; in the first, tables and buffers grow to their final size.
        let (first, second) = (write(0), write(1_000_000_000));
        decoder.feed(&first, &mut live).expect("a readable stream");
        let info = measure(|| decoder.feed(&second, &mut live).expect("a readable stream"));
        assert_eq!(live.throughput().snapshot().events, 200_000);
        assert!(info.count_total < most, "{filter}: {info:?}");
        let recent = live.recent();
        assert_eq!(recent.events.is_empty(), filter != "shop");
        assert_eq!(recent.seen, if filter == "shop" { 200_000 } else { 0 });
    }
}

/// A process chooses the names of its events.
#[test]
fn long_names_are_not_kept_with_each_event() {
    let mut encoder = Encoder::new(TraceHeader::default());
    let long = "N".repeat(400_000);
    let [start, stop] = [(1, "Start"), (2, "Stop")].map(|(event_id, end)| {
        encoder.metadata(&Metadata { provider: long.clone(), event_id, name: format!("{long}{end}"), ..Metadata::default() })
    });
    for number in 0..1000_u64 {
        let mut activity_id = [0; 16];
        activity_id[..8].copy_from_slice(&(number + 1).to_le_bytes());
        for metadata in [start, stop] {
            encoder.event(&NewEvent { metadata, timestamp: number as i64 * 10_000_000, activity_id, ..NewEvent::default() });
        }
    }
    encoder.end();
    let stream = encoder.take();
    let mut live = Live::default().with_recent_events();
    let mut found = Vec::new();
    let info = measure(|| {
        feed(&stream, &mut live);
        for kind in [OccurrenceKind::Activities, OccurrenceKind::Events] {
            found.extend(live.occurrences(kind, false, &mut 0, true).occurrences);
        }
    });
    assert_eq!(found.len(), 1000);
    for occurrence in found {
        let length = match occurrence {
            Occurrence::Activity(activity) => activity.operation.len(),
            Occurrence::Event(event, _) => event.kind.provider.len() + event.title().len(),
            other => panic!("{other:?}"),
        };
        assert!((1..1000).contains(&length), "{length}");
    }
    assert!(info.bytes_max < 16 * MB, "{info:?}");
}

#[test]
fn decoding_captures_uses_little_memory() {
    for name in CAPTURES {
        let bytes = capture(name);
        let (throughput, info) = decode(bytes.chunks(64 * 1024));
        let events = throughput.snapshot().events;
        assert!(info.count_total * 10 < events, "{name}: {} allocations for {events} events", info.count_total);
        assert!(info.bytes_max < 8 * MB, "{name}: {info:?}");
    }
}

#[test]
fn block_memory_is_allocated_as_data_arrives() {
    let mut encoder = Encoder::new(TraceHeader::default());
    let mut stream = encoder.take();
    stream.extend(b"\x05\x05\x01\x02\0\0\0\x02\0\0\0\x0a\0\0\0EventBlock\x06");
    stream.extend((60_u32 << 20).to_le_bytes());
    stream.extend([0; 100]);
    let (_, info) = decode(stream.chunks(10));
    assert!(info.bytes_max < MB, "{info:?}");
    // Nor much more than its size when the block is received: growing copies it once more at most.
    let block = vec![0; 48 << 20];
    let (_, info) = decode(stream.chunks(64).chain(block.chunks(1 << 16)));
    assert!(info.bytes_max < 128 * MB, "{info:?}");
}

#[test]
fn decoder_memory_is_bounded() {
    let mut encoder = Encoder::new(TraceHeader::default());
    let long = "x".repeat(3000);
    let mut streams = vec![Vec::new(); 3];
    // A million kinds of events and as many threads; very long names; stacks without a sequence point.
    for i in 0..1_000_000_u32 {
        let metadata = encoder.metadata(&Metadata { event_id: i, ..Metadata::default() });
        encoder.event(&NewEvent { metadata, thread: i.into(), capture_thread: i.into(), ..NewEvent::default() });
    }
    encoder.end();
    streams[0] = encoder.take();
    let mut encoder = Encoder::new(TraceHeader::default());
    for event_id in 0..20_000 {
        encoder.metadata(&Metadata { event_id, provider: long.clone(), ..Metadata::default() });
        encoder.event(&NewEvent { metadata: event_id, ..NewEvent::default() });
    }
    encoder.end();
    streams[1] = encoder.take();
    let mut encoder = Encoder::new(TraceHeader::default());
    for i in 0..2_200_000_u64 {
        let stack = encoder.stack(&[i + 1]);
        encoder.event(&NewEvent { stack, ..NewEvent::default() });
    }
    encoder.end();
    streams[2] = encoder.take();
    for (stream, what) in streams.iter().zip(["kinds", "names", "stacks"]) {
        let (throughput, info) = decode(stream.chunks(1 << 16));
        assert!(!throughput.problems().is_empty(), "{what}: said");
        println!("{what}: {} events, {} MB", throughput.snapshot().events, info.bytes_max / MB);
        assert!(info.bytes_max < 100 * MB, "{what}: {info:?}");
    }
}

#[test]
fn damaged_captures_use_bounded_memory() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut rng = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for name in ["net31-heavy", "v6-record-trace-oncpu-offcpu"] {
        let whole = capture(name);
        for round in 0..12 {
            let mut bytes = whole.clone();
            // Few changes in some rounds, so that decoding gets far; many in others.
            for _ in 0..1 << round {
                let at = rng(bytes.len());
                bytes[at] = rng(256) as u8;
            }
            let (_, info) = decode(bytes.chunks(1 << 16));
            assert!(info.bytes_max < 160 * MB, "{name} round {round}: {info:?}");
        }
    }
}

/// Returns samples of a million stacks, as a hundred methods call each other in every order, with an exception per thousand.
fn a_million_stacks() -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader::default());
    let mut record =
        |provider: &str, event_id| encoder.metadata(&Metadata { provider: provider.into(), event_id, version: 1, ..Metadata::default() });
    let (sample, thrown) = (record("Microsoft-DotNETCore-SampleProfiler", 0), record("Microsoft-Windows-DotNETRuntime", 80));
    for number in 0..1_000_000_u64 {
        let [one, two, three] = [number % 100, number / 100 % 100, number / 10_000].map(|method| 0x10_0000 + method * 0x100);
        let (stack, timestamp) = (encoder.stack(&[one, two, three]), number as i64 * 1000);
        let new = NewEvent { timestamp, thread: 7, capture_thread: 7, stack, ..NewEvent::default() };
        encoder.event(&NewEvent { metadata: sample, payload: &2_u32.to_le_bytes(), ..new });
        if number % 1000 == 0 {
            // Two strings, two numbers and a flag; the rest is zero.
            encoder.event(&NewEvent { metadata: thrown, payload: &[0; 64], ..new });
        }
        if number % 20_000 == 19_999 {
            encoder.sequence_point(timestamp);
        }
    }
    encoder.end();
    encoder.take()
}

/// Feeds in chunks, as when reading a file.
fn feed(bytes: &[u8], sink: &mut dyn dn_top::nettrace::Sink) {
    let (mut decoder, mut sink) = (Decoder::new(Limits::default()), sink);
    bytes.chunks(256 * 1024).for_each(|chunk| decoder.feed(chunk, &mut sink).expect("a stream of ours"));
    decoder.finish(&mut sink);
}

#[test]
fn export_memory_is_bounded_for_a_million_stacks() {
    let bytes = a_million_stacks();
    for format in TraceFormat::ALL {
        let info = measure(|| {
            let mut overview = Overview::default();
            feed(&bytes, &mut overview);
            let options = Options::new(format, Part::default());
            let scratch = tempfile::tempfile().expect("a temporary file");
            let mut export = Export::new(options, overview, Box::new(std::io::sink()), Box::new(scratch)).expect("a sink");
            feed(&bytes, &mut export);
            export.finish().expect("a sink");
        });
        let most = info.bytes_max;
        eprintln!("{}: {most} bytes", format.name());
        // Formats that count by stack keep more stacks before they are written.
        let limit = if matches!(format, TraceFormat::Pprof | TraceFormat::Folded | TraceFormat::Html) { 32 * MB } else { 16 * MB };
        assert!(most <= limit, "{}: {most} bytes", format.name());
    }
}

/// Objects of 24 bytes, each with a reference to the previous one.
#[test]
fn heap_graph_memory_is_compact() {
    const OBJECTS: u64 = 1 << 17;
    const OBJECTS_PER_EVENT: u64 = 1 << 10;
    let mut encoder = Encoder::new(TraceHeader::default());
    let [node, edge] = [18, 19].map(|event_id| {
        encoder.metadata(&Metadata { provider: "Microsoft-Windows-DotNETRuntime".into(), event_id, ..Metadata::default() })
    });
    let address = |object: u64| 0x7f00_0000_0000 + object * 24;
    for index in 0..OBJECTS / OBJECTS_PER_EVENT {
        let objects = index * OBJECTS_PER_EVENT..(index + 1) * OBJECTS_PER_EVENT;
        let mut payload = [(index as u32).to_le_bytes(), (OBJECTS_PER_EVENT as u32).to_le_bytes()].concat();
        payload.extend([0; 2]);
        let (mut nodes, mut edges) = (payload.clone(), payload);
        for object in objects {
            [address(object), 24, 1, 1].iter().for_each(|word| nodes.extend(word.to_le_bytes()));
            edges.extend(address(object.saturating_sub(1)).to_le_bytes());
            edges.extend([0; 4]);
        }
        encoder.event(&NewEvent { metadata: node, payload: &nodes, ..NewEvent::default() });
        encoder.event(&NewEvent { metadata: edge, payload: &edges, ..NewEvent::default() });
    }
    encoder.end();
    let stream = encoder.take();
    let mut written = Count(0);
    let info = measure(|| {
        let mut graph = HeapGraph::new(1 << 30);
        Decoder::new(Limits::default()).feed(&stream, &mut graph).expect("a readable stream");
        graph.write(&DumpInfo::default(), &mut written).expect("a graph");
    });
    // An offset, an address, a type, a size and the target of the reference, in a byte each except the first two.
    assert!(written.0 > OBJECTS * 15, "{} bytes", written.0);
    assert!(info.bytes_max < OBJECTS * 44, "{} bytes an object", info.bytes_max / OBJECTS);
}

struct Count(u64);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
