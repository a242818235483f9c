//! Streams with uncompressed event headers, and damaged streams, all made by our own encoder: the reported problems match the damage.

#![allow(clippy::unwrap_used, reason = "clippy knows tests by their attribute, and not what they call")]

#[path = "support/mod.rs"]
mod support;
#[path = "support/v6.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod v6;

use dn_top::analysis::{Live, ProblemCount, ThreadId, Throughput};
use dn_top::nettrace::{BlockKind, Decoder, Encoder, Event, Limits, Loss, LossKind, Metadata, ProblemKind, Sink, TraceHeader};
use dn_top::wire::Put;
use serde_json::{Value, json};
use support::{Invocation, folder};
use v6::{Kind, Row, V6, block_header, field};

/// Decoded events by name and number, with their sorted flag, threads, losses and problems.
#[derive(Debug, Default)]
struct Found {
    events: Vec<(String, u32, bool, String, usize)>,
    losses: Vec<(u32, LossKind, String)>,
    threads: Vec<String>,
}

impl Sink for Found {
    fn event(&mut self, event: &Event<'_>) {
        let name = format!("{}/{}", event.metadata.provider, event.metadata.name);
        self.events.push((name, event.sequence_number(), event.is_sorted(), event.thread().to_string(), event.payload.len()));
    }
    fn loss(&mut self, loss: &Loss) {
        self.losses.push((loss.count, loss.kind, loss.capture_thread.to_string()));
    }
    fn thread(&mut self, thread: &dn_top::nettrace::Thread) {
        self.threads.push(format!("{} {}", thread.id, thread.name));
    }
}

/// Decodes a stream, and returns its contents and problems.
fn decode(bytes: &[u8]) -> (Found, Throughput) {
    let mut sink = (Found::default(), Throughput::default());
    let mut decoder = Decoder::new(Limits::default());
    decoder.feed(bytes, &mut sink).unwrap();
    assert!(decoder.finish(&mut sink).is_complete());
    sink
}

/// Returns a V4 stream of these blocks.
fn v4(blocks: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = Encoder::new(TraceHeader { process_id: 7, ..TraceHeader::default() }).take();
    for (name, body) in blocks {
        out.put(&[5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0]);
        out.put_u32(name.len() as u32);
        out.put(name.as_bytes());
        out.put_u8(6);
        out.put_u32(body.len() as u32);
        out.resize(out.len().next_multiple_of(4), 0);
        out.put(body);
        out.put_u8(6);
    }
    out.put_u8(1);
    out
}

/// How the padding to a multiple of four is written after an event with an uncompressed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Space {
    /// Counted as part of the event, as runtimes do.
    Counted,
    /// Not counted, a possible reading of the specification.
    Uncounted,
    /// No padding, as TraceEvent expects.
    None,
}

/// Returns a V4 block with uncompressed headers, given the metadata ID, sequence number, sorted flag and payload of each event.
fn uncompressed_headers(rows: &[(u32, u32, bool, Vec<u8>)], space: Space) -> Vec<u8> {
    let mut body = block_header(0);
    for (metadata, sequence, sorted, payload) in rows {
        let size = 76 + payload.len();
        let padded = size.next_multiple_of(4);
        body.put_u32(if space == Space::Counted { padded } else { size } as u32);
        body.put_u32(metadata | if *sorted { 0 } else { 1 << 31 });
        body.put_u32(*sequence);
        [70, 70].into_iter().for_each(|thread| body.put_u64(thread));
        [0, 0].into_iter().for_each(|number| body.put_u32(number));
        body.put_i64(i64::from(*sequence));
        body.put(&[0; 32]);
        body.put_u32(payload.len() as u32);
        body.put(payload);
        if space != Space::None {
            body.resize(body.len() + padded - size, 0);
        }
    }
    body
}

/// Returns the payload of a V4 metadata blob, with tags of unknown kinds, whose sizes allow any length.
fn metadata(id: u32, name: &str, tags: &[(u8, usize)]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(id);
    out.put_utf16z("Shop");
    out.put_u32(id);
    out.put_utf16z(name);
    out.put_u64(0);
    [1, 4, 0].into_iter().for_each(|number| out.put_u32(number));
    for (kind, size) in tags {
        out.put_u32(*size as u32);
        out.put_u8(*kind);
        out.resize(out.len() + size, 0xcc);
    }
    out
}

#[test]
fn uncompressed_headers_are_read_in_every_form() {
    for space in [Space::Counted, Space::Uncounted, Space::None] {
        for tag in 0..4 {
            // A tag of an unknown kind, followed by the opcode.
            let record = |id, name| (0, 0, true, metadata(id, name, &[(9, tag), (1, 1)]));
            let records = uncompressed_headers(&[record(1, "Opened"), record(2, "Sold"), record(3, "Closed")], space);
            let row = |metadata, sequence: u32, length| (metadata, sequence, sequence % 2 == 1, vec![0xee; length]);
            let rows = uncompressed_headers(&[row(1, 1, 0), row(2, 2, 1), row(3, 3, 2), row(1, 4, 3), row(2, 5, 4), row(3, 6, 5)], space);
            let (found, tally) = decode(&v4(&[("MetadataBlock", records), ("EventBlock", rows)]));
            let names = ["Opened", "Sold", "Closed"].map(|name| format!("Shop/{name}"));
            let expected: Vec<_> = (0..6).map(|i| (names[i % 3].clone(), i as u32 + 1, i % 2 == 0, "70".to_owned(), i)).collect();
            assert_eq!(found.events, expected, "{space:?}, a tag of {tag} bytes");
            assert_eq!((tally.problems(), found.losses), (vec![], vec![]), "{space:?}, a tag of {tag} bytes");
        }
    }
}

/// Three kinds of events of three threads; indexes are reused for other threads once they are dropped or removed.
#[test]
fn threads_are_distinguished_by_ids_and_reuse() {
    let mut stream = V6::new();
    stream.metadata(1, "Shop", "Sold", 0, 0, &[]);
    let row = |thread, sequence, timestamp| Row { metadata: 1, thread, sequence, timestamp, ..Row::default() };
    stream.threads([(1, 7, 70), (2, 7, 71)]);
    stream.events([row(1, 1, 10), row(2, 1, 11), row(1, 2, 12)]);
    stream.sequence_point(20, 1, &[(1, 2), (2, 1)]);
    // The same index for another thread, and another index for the same thread.
    stream.threads([(1, 8, 80), (3, 7, 70)]);
    stream.events([row(1, 1, 21), row(3, 1, 22)]);
    stream.remove(&[(3, 1)]);
    // A thread that exited, and another with the same IDs.
    stream.threads([(3, 7, 70)]);
    stream.events([row(3, 1, 30)]);
    stream.sequence_point(40, 0, &[]);
    let bytes = stream.end();
    let (found, tally) = decode(&bytes);
    let threads: Vec<_> = found.events.iter().map(|(.., thread, _)| thread.as_str()).collect();
    assert_eq!(threads, ["7/70", "7/71", "7/70", "8/80", "7/70", "7/70#2"]);
    assert_eq!((tally.snapshot().threads, tally.problems(), found.losses), (4, vec![], vec![]));
    // The live event list names them the same way.
    let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default().with_recent_events());
    decoder.feed(&bytes, &mut live).unwrap();
    decoder.finish(&mut live);
    let shown = live.recent().events.iter().map(|(event, _)| event.thread).rev().collect::<Vec<_>>();
    assert_eq!(shown[3..5], [ThreadId { process: 8, thread: 80, reuse_count: 0 }, ThreadId { process: 7, thread: 70, reuse_count: 0 }]);
}

/// In V6, a thread's sequence numbers begin at 1: a gap before its first event is a loss. In V4, those events may precede the stream.
#[test]
fn losses_before_the_first_event_count_in_v6() {
    let mut stream = V6::new();
    stream.metadata(1, "Shop", "Sold", 0, 0, &[]);
    stream.threads([(1, 7, 70), (2, 7, 71)]);
    let row = |thread, sequence| Row { metadata: 1, thread, sequence, ..Row::default() };
    stream.events([row(1, 4), row(1, 5), row(2, 1), row(2, 3)]);
    stream.sequence_point(20, 0, &[(1, 7), (2, 3)]);
    let (found, tally) = decode(&stream.end());
    let expected = [(3, LossKind::Gap, "7/70"), (1, LossKind::Gap, "7/71"), (2, LossKind::Tail, "7/70")];
    assert_eq!(found.losses, expected.map(|(count, kind, thread)| (count, kind, thread.to_owned())));
    assert_eq!((tally.snapshot().dropped, tally.snapshot().dropped_at_start), (6, 0));

    let mut encoder = Encoder::new(TraceHeader::default());
    let metadata = encoder.metadata(&Metadata::default());
    encoder.add_loss(1, 3);
    encoder.event(&dn_top::nettrace::NewEvent { metadata, ..Default::default() });
    encoder.add_loss(0, 3);
    encoder.event(&dn_top::nettrace::NewEvent { metadata, ..Default::default() });
    encoder.end();
    let (_, tally) = decode(&encoder.take());
    assert_eq!((tally.snapshot().dropped, tally.snapshot().dropped_at_start), (3, 0));
}

/// Description of the damage, the damaged bytes, the expected problems with count and first byte, and whether content may be missing.
type Damaged = (&'static str, Vec<u8>, Vec<(ProblemKind, u64, usize)>, bool);

/// Returns streams with every kind of damage.
fn damaged() -> Vec<Damaged> {
    let row = |thread, sequence| Row { metadata: 1, thread, sequence, ..Row::default() };
    let start = || {
        let mut stream = V6::new();
        stream.metadata(1, "Shop", "Sold", 0, 0, &[]);
        stream.threads([(1, 7, 70)]);
        stream
    };
    // Offset of the next block's content.
    let next = |stream: &V6| stream.len() + 4;
    let mut cases = Vec::new();

    let mut stream = start();
    let at = next(&stream) + 20;
    stream.events([row(5, 1), row(1, 1), row(6, 1)]);
    cases.push(("events of threads that no block described", stream.end(), vec![(ProblemKind::UndefinedThread, 2, at)], true));

    let mut stream = start();
    let at = next(&stream) + 2;
    stream.remove(&[(1, 0), (5, 0)]);
    cases.push(("a thread that is removed and was not there", stream.end(), vec![(ProblemKind::UndefinedThread, 1, at)], true));

    let mut stream = start();
    let at = next(&stream) + 16;
    stream.sequence_point(10, 0, &[(5, 1)]);
    cases.push(("a sequence point of a thread that was not there", stream.end(), vec![(ProblemKind::UndefinedThread, 1, at)], true));

    let mut stream = start();
    let at = next(&stream);
    stream.threads([(1, 7, 71), (1, 7, 71)]);
    cases.push(("a thread index that is defined twice", stream.end(), vec![(ProblemKind::RedefinedThread, 1, at)], false));

    let mut stream = start();
    let at = next(&stream) + 2;
    stream.metadata(1, "Shop", "Opened", 0, 0, &[]);
    stream.metadata(1, "Shop", "Opened", 0, 0, &[]);
    cases.push(("a metadata id that is defined twice", stream.end(), vec![(ProblemKind::RedefinedMetadata, 1, at)], false));

    let mut stream = start();
    let at = next(&stream) + 20;
    stream.events([Row { metadata: 9, ..row(1, 1) }, Row { metadata: 9, ..row(1, 2) }]);
    cases.push(("events of kinds that no block defined", stream.end(), vec![(ProblemKind::UndefinedMetadata, 2, at)], true));

    let mut stream = start();
    let at = next(&stream) + 20;
    stream.events([Row { stack: 3, ..row(1, 1) }]);
    cases.push(("an event with a stack that no block defined", stream.end(), vec![(ProblemKind::UndefinedStack, 1, at)], true));

    let mut stream = start();
    let at = next(&stream) + 2;
    // An out-of-line array, relative to its field, of strings.
    stream.metadata(2, "Shop", "Opened", 0, 1, &field("Names", &[24, 18]));
    cases.push(("elements elsewhere that differ in size", stream.end(), vec![(ProblemKind::VariableElements, 1, at)], false));

    let mut stream = start();
    let at = next(&stream) + 20;
    let mut body = block_header(1);
    body.put(&[0; 3]);
    stream.block(Kind::Event, &[&body[..20], &[0xff; 12]].concat());
    cases.push(("a block that makes no sense", stream.end(), vec![(ProblemKind::DamagedBlock(BlockKind::Event), 1, at)], true));

    let record = uncompressed_headers(&[(0, 0, true, metadata(1, "Sold", &[]))], Space::Counted);
    let other = uncompressed_headers(&[(0, 0, true, metadata(1, "Opened", &[]))], Space::Counted);
    let twice = v4(&[("MetadataBlock", record), ("MetadataBlock", other.clone())]);
    let at = twice.len() - 2 - other.len() + 20;
    cases.push(("a metadata id of V4 that is defined twice", twice, vec![(ProblemKind::RedefinedMetadata, 1, at)], false));

    let unknown = v4(&[("NewBlock", vec![1; 9])]);
    let at = v4(&[]).len() - 1;
    cases.push(("a block of an unknown kind", unknown, vec![(ProblemKind::UnknownBlock, 1, at)], true));
    cases
}

#[test]
fn damage_is_reported_with_count_and_offset() {
    for (what, bytes, expected, loses_content) in damaged() {
        let (_, tally) = decode(&bytes);
        let expected: Vec<_> = expected.into_iter().map(|(kind, count, first)| ProblemCount { kind, count, first: first as u64 }).collect();
        assert_eq!(tally.problems(), expected, "{what}");
        assert_eq!(tally.loses_content(), loses_content, "{what}");
    }
}

/// The same on the command line: `complete` is false where content may be missing, and the problems are in text and JSON.
#[test]
fn stats_reports_stream_problems() {
    let place = folder();
    let file = place.path().join("damaged.nettrace");
    for (what, bytes, expected, loses_content) in damaged() {
        std::fs::write(&file, &bytes).unwrap();
        let stats = |json: &[&str]| Invocation::new([&["stats", file.to_str().unwrap()], json].concat()).start().wait();
        let document = stats(&["--json"]).json();
        let problems: Vec<_> = document["problems"]
            .as_array()
            .unwrap()
            .iter()
            .map(|problem| [&problem["kind"], &problem["count"], &problem["first_byte"]])
            .collect();
        let expected: Vec<_> = expected.iter().map(|(kind, count, first)| [json!(kind.name()), json!(count), json!(first)]).collect();
        assert_eq!(problems, expected.iter().map(|row| row.each_ref()).collect::<Vec<_>>(), "{what}");
        assert_eq!(document["complete"], json!(!loses_content), "{what}");
        let text = stats(&[]).stdout;
        let [_, count, first] = &expected[0];
        assert!(text.contains(&format!(": {count}, first at byte {first}\n")), "{what}: {text}");
        assert_eq!(text.contains("INCOMPLETE"), loses_content, "{what}: {text}");
    }
    // An undamaged stream has no problems.
    std::fs::write(&file, V6::new().end()).unwrap();
    let whole = Invocation::new(["stats", file.to_str().unwrap(), "--json"]).start().wait().json();
    assert_eq!((&whole["complete"], &whole["problems"]), (&Value::Bool(true), &json!([])));
}

/// Out-of-line elements of different sizes are read sequentially, and the fields after them are found.
#[test]
fn variable_size_array_elements_are_read() {
    let mut stream = V6::new();
    let fields = [field("Names", &[25, 18]), field("Count", &[6])].concat();
    stream.metadata(1, "Shop", "Opened", 0, 2, &fields);
    stream.threads([(1, 7, 70)]);
    let mut payload = Vec::new();
    let names = ["Anna", "Bo"];
    payload.put_u32(((names.iter().map(|name| 2 * name.len() + 2).sum::<usize>() as u32) << 16) | 5);
    payload.put_u8(42);
    names.iter().for_each(|name| payload.put_utf16z(name));
    stream.events([Row { metadata: 1, thread: 1, sequence: 1, payload: &payload, ..Row::default() }]);
    let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default().with_recent_events());
    decoder.feed(&stream.end(), &mut live).unwrap();
    decoder.finish(&mut live);
    let (event, _) = &live.recent().events[0];
    let fields: Vec<_> = event.payload.fields().map(|(name, text)| format!("{name}={text}")).collect();
    assert_eq!((fields, event.payload.is_cut), (vec!["Names=[Anna, Bo]".to_owned(), "Count=42".to_owned()], false));
}

/// A damaged file is shown as incomplete, and every tab shows the number of problems.
#[test]
fn dashboard_shows_stream_problems() {
    let place = folder();
    let file = place.path().join("damaged.nettrace");
    let (_, bytes, problems, _) = damaged().swap_remove(0);
    assert_eq!(problems.iter().map(|(_, count, _)| count).sum::<u64>(), 2);
    std::fs::write(&file, bytes).unwrap();
    let screen = Invocation::new(["open".as_ref(), file.as_os_str()]).screen(120, 40);
    screen.wait_for("! incomplete");
    screen.wait_for("an undefined thread index: 2 times, first at byte ");
    for tab in ["4", "5", "6"] {
        screen.keys(tab);
        screen.wait_for("2 problems in the stream: tab Trace");
    }
    screen.keys("q");
}
