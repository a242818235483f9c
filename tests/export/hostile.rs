//! Exports of damaged or deliberately wrong recordings.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use dn_top::export::{Export, Options, Overview, Part};
use dn_top::model::TraceFormat;
use dn_top::nettrace::{Encoder, Event, Metadata, NewEvent, Sink, TraceHeader};
use dn_top::wire::Put;

use crate::protobuf::{Value, all, field};
use crate::support::{Invocation, folder};
use crate::trace_processor::{Engine, read};
use crate::v6::{Kind, Row, V6};
use crate::{CAPTURES, FORMATS, capture};

/// Recordings per trace: loading a trace takes the trace processor at least a second.
const RECORDINGS_PER_TRACE: u32 = 48;
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Exports a stream as far as it can be decoded.
fn export(bytes: &[u8], format: TraceFormat, number: u32) -> Vec<u8> {
    let mut overview = Overview::default();
    read(bytes, &mut overview);
    let mut out = Vec::new();
    let options = Options { tasks: true, number, ..Options::new(format, Part::default()) };
    let mut export = Export::new(options, overview, Box::new(&mut out), Box::new(Cursor::new(Vec::new()))).unwrap();
    read(bytes, &mut export);
    export.finish().unwrap();
    out
}

/// A deterministic pseudorandom generator.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Counts the events decoded from a stream.
#[derive(Default)]
struct StreamSummary {
    has_header: bool,
    events: u64,
}

impl Sink for StreamSummary {
    fn trace(&mut self, _header: &TraceHeader) {
        self.has_header = true;
    }

    fn event(&mut self, _event: &Event<'_>) {
        self.events += 1;
    }
}

/// Number of mutations: `DN_TOP_MUTATIONS`; by default a few dozen, and 1000 in CI; every other one is truncated. Mutations that `export`
/// rejects, which end before the header or have a broken one, are not counted.
#[test]
fn damaged_recordings_export_to_valid_traces() {
    let Some(engine) = Engine::newest() else { return };
    let usual = if std::env::var("CI").is_ok_and(|ci| ci == "true") { 1000 } else { 48 };
    let count: u32 = std::env::var("DN_TOP_MUTATIONS").map_or(usual, |count| count.parse().unwrap());
    let place = folder();
    // Shortened captures allow more mutations.
    let captures = CAPTURES.map(|name| {
        let mut bytes = fs::read(capture(name, place.path())).unwrap();
        bytes.truncate(1 << 20);
        bytes
    });
    let mut rng = Rng(0x2545_f491_4f6c_dd1d);
    let (mut exported, mut refused, mut without_events) = (0, 0, 0);
    for batch in 0.. {
        if exported == count {
            break;
        }
        // Recordings in one trace; each has a packet sequence of its own.
        let trace = place.path().join(format!("{batch}.perfetto-trace"));
        let mut file = fs::File::create(&trace).unwrap();
        let (mut packets, mut number) = (0, 0);
        while number < RECORDINGS_PER_TRACE && exported < count {
            let mut bytes = captures[rng.below(captures.len())].clone();
            if rng.below(2) == 0 {
                bytes.truncate(rng.below(bytes.len()));
            }
            for _ in 0..rng.below(40) {
                let at = rng.below(bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = rng.below(256) as u8;
                }
            }
            let mut summary = StreamSummary::default();
            read(&bytes, &mut summary);
            if !summary.has_header {
                refused += 1;
                continue;
            }
            without_events += u32::from(summary.events == 0);
            let written = export(&bytes, TraceFormat::Perfetto, number);
            packets += all(&written, 1).count();
            file.write_all(&written).unwrap();
            (number, exported) = (number + 1, exported + 1);
        }
        assert!(packets > 20 * number as usize, "{packets} of {number}");
        engine.assert_no_errors(&trace, "");
    }
    println!("{exported} damaged recordings exported, {without_events} of them without events; {refused} more refused");
    assert!(exported == count && without_events < count / 4, "{exported} exported, {without_events} of them without events");
}

/// Returns the offsets of the blocks of a recording, except the first.
fn blocks(bytes: &[u8]) -> Vec<usize> {
    if bytes.starts_with(b"Nettrace\0\0\0\0") {
        // Each block has its size and kind in four bytes; the header has 20 bytes.
        let next = |at: &usize| Some(at + 4 + (u32::from_le_bytes(*bytes.get(*at..)?.first_chunk()?) & 0xff_ffff) as usize);
        return std::iter::successors(next(&20), next).filter(|at| *at < bytes.len()).collect();
    }
    // An object begins with two tags, one for its type, two versions, and the length of the type's name.
    let names = [&b"EventBlock"[..], b"MetadataBlock", b"StackBlock", b"SPBlock"];
    let is_block = |at: &usize| {
        let rest = &bytes[*at..];
        names.iter().any(|name| rest.starts_with(&[5, 5, 1]) && rest.get(15..).is_some_and(|rest| rest.starts_with(name)))
    };
    (0..bytes.len()).filter(is_block).collect()
}

/// A recording truncated between any two blocks is exported as far as it goes, in a form that readers accept.
#[test]
fn recordings_cut_at_any_block_are_exported() {
    let (engine, place) = (Engine::newest(), folder());
    for name in CAPTURES {
        let mut bytes = fs::read(capture(name, place.path())).unwrap();
        bytes.truncate(1 << 20);
        let cuts = blocks(&bytes);
        assert!(cuts.len() > 4, "{name}: {} blocks", cuts.len());
        let mut together = Vec::new();
        for (number, cut) in cuts.into_iter().enumerate() {
            let part = &bytes[..cut];
            let mut events = Events(0);
            read(part, &mut events);
            for format in TraceFormat::ALL {
                let exported = export(part, format, number as u32);
                let text = || std::str::from_utf8(&exported).unwrap();
                match format {
                    TraceFormat::Perfetto => together.extend(exported),
                    TraceFormat::Speedscope | TraceFormat::Chromium => {
                        assert!(serde_json::from_str::<serde_json::Value>(text()).unwrap().is_object())
                    }
                    TraceFormat::Folded => {
                        assert!(text().lines().all(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().is_ok()), "{name} {cut}")
                    }
                    TraceFormat::Html => assert!(text().ends_with("</html>\n"), "{name} {cut}"),
                    TraceFormat::Pprof => assert_eq!(all(&exported, 1).count(), 2, "{name} {cut}"),
                    TraceFormat::Csv => assert_eq!(text().lines().count() as u64, events.0 + 1, "{name} {cut}"),
                    TraceFormat::Nettrace => {
                        let mut written = Events(0);
                        read(&exported, &mut written);
                        assert_eq!(written.0, events.0, "{name} {cut}");
                    }
                }
            }
        }
        let path = place.path().join("cuts.perfetto-trace");
        fs::write(&path, together).unwrap();
        engine.iter().for_each(|engine| engine.assert_no_errors(&path, ""));
    }
}

struct Events(u64);

impl Sink for Events {
    fn event(&mut self, _event: &Event<'_>) {
        self.0 += 1;
    }
}

/// Two threads with the same ID: the second started after the first had exited.
fn reused() -> Vec<u8> {
    let mut stream = V6::new();
    stream.metadata(80, RUNTIME, "", 0, 0, &[]);
    stream.metadata(1, "Universal.Events", "cpu", 0, 0, &[]);
    let mut stacks = Vec::new();
    stacks.put_u32(1);
    stacks.put_u32(1);
    stacks.put_u32(8);
    stacks.put_u64(0x1000);
    stream.block(Kind::Stack, &stacks);
    let mut thrown = Vec::new();
    put_units(&mut thrown, "E".encode_utf16());
    put_units(&mut thrown, []);
    thrown.put(&[0; 16]);
    for (index, at) in [(1, 1_000_000), (2, 50_000_000)] {
        stream.threads([(index, 7, 70)]);
        let row = |sequence, metadata, payload| Row {
            metadata,
            sequence,
            thread: index,
            stack: 1,
            timestamp: at + i64::from(sequence),
            payload,
            ..Row::default()
        };
        stream.events([row(1, 80, &thrown[..]), row(2, 1, &[1]), row(3, 1, &[1])]);
        stream.remove(&[(index, 3)]);
    }
    stream.end()
}

#[test]
fn reused_thread_ids_are_separate_threads() {
    let bytes = reused();
    let distinct = |mut values: Vec<String>| {
        values.sort_unstable();
        values.dedup();
        values
    };
    let json = |format| serde_json::from_slice::<serde_json::Value>(&export(&bytes, format, 0)).unwrap();
    let speedscope = json(TraceFormat::Speedscope);
    let profiles = speedscope["profiles"].as_array().unwrap();
    assert_eq!(distinct(profiles.iter().map(|profile| profile["name"].to_string()).collect()).len(), 2, "{speedscope}");
    let chromium = json(TraceFormat::Chromium);
    let calls = chromium["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "B");
    assert_eq!(distinct(calls.map(|event| event["tid"].to_string()).collect()).len(), 2, "{chromium}");
    let pprof = export(&bytes, TraceFormat::Pprof, 0);
    assert_eq!(all(&pprof, 2).count(), 2);
    if let Some(engine) = Engine::newest() {
        let place = folder();
        let path = place.path().join("reused.perfetto-trace");
        fs::write(&path, export(&bytes, TraceFormat::Perfetto, 0)).unwrap();
        engine.assert_no_errors(&path, "");
        let threads =
            "select count(distinct utid) n, count(*) c from slice s join thread_track t on s.track_id = t.id where category = 'exception'";
        let found = engine.query(&path, threads);
        assert_eq!((&found[0]["n"], &found[0]["c"]), (&2.into(), &2.into()));
        assert_eq!(engine.query(&path, "select count(distinct utid) n from perf_sample")[0]["n"], 2);
    }
}

/// Appends UTF-16 with a terminating zero.
fn put_units(payload: &mut Vec<u8>, units: impl IntoIterator<Item = u16>) {
    units.into_iter().chain([0]).for_each(|unit| payload.put_u16(unit));
}

/// Returns a stream of exceptions with these type names, with decreasing timestamps and a reused thread ID.
fn thrown(names: &[Vec<u16>]) -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader { process_id: 7, ..TraceHeader::default() });
    let mut record = |event_id, version| encoder.metadata(&Metadata { provider: RUNTIME.into(), event_id, version, ..Metadata::default() });
    let [thrown, suspended, restarted, wait, waited] = [80, 9, 3, 81, 91].map(|id| record(id, 1));
    let allocated = record(10, 4);
    let stack = encoder.stack(&[0x1000]);
    let mut event = |metadata, timestamp, thread, payload: &[u8]| {
        encoder.event(&NewEvent { metadata, timestamp, thread, capture_thread: thread, stack, payload, ..NewEvent::default() });
    };
    // Repeated allocations larger than any memory.
    let mut most = vec![0; 10];
    most.put_u64(u64::MAX);
    most.put(&[0; 40]);
    for second in 0..3 {
        event(allocated, second * 1_000_000_000, 5, &most);
        event(allocated, second * 1_000_000_000 + 1, 5, &most);
    }
    for (index, name) in names.iter().enumerate() {
        let mut payload = Vec::new();
        put_units(&mut payload, name.iter().copied());
        put_units(&mut payload, name.iter().copied());
        payload.put(&[0; 16]);
        event(thrown, 1_000_000 - index as i64 * 1000, [1, u64::MAX, 0][index % 3], &payload);
    }
    // Starts without ends, ends without starts, and an end before its start.
    let (collection, lock) = ([1, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0; 3]);
    for (metadata, timestamp, payload) in [
        (suspended, 900, &collection[..]),
        (suspended, 1000, &collection),
        (restarted, 500, &[0; 2]),
        (restarted, 2000, &[0; 2]),
        (waited, 3000, &lock),
        (wait, 4000, &lock),
        (wait, 5000, &lock),
        (suspended, 6000, &collection),
        (suspended, i64::MAX, &collection),
        (wait, i64::MIN, &lock),
    ] {
        event(metadata, timestamp, 9, payload);
    }
    encoder.end();
    encoder.take()
}

#[test]
fn arbitrary_names_and_timestamps_are_exported() {
    let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    let names = [
        units("\u{1b}[2Jesc;ape\r\n"),
        vec![0xd800, u16::from(b'x'), 0xdc00],
        units("\u{202e}drow"),
        units(&"long".repeat(1 << 18)),
        units("é".repeat(9000).as_str()),
        Vec::new(),
    ];
    let bytes = thrown(&names);
    for format in TraceFormat::ALL {
        let exported = export(&bytes, format, 0);
        // Nettrace keeps the events as they are.
        assert!(exported.len() < 1 << 17 || format == TraceFormat::Nettrace, "{format:?}: {} bytes", exported.len());
        match format {
            TraceFormat::Perfetto => {
                let trace = folder();
                let path = trace.path().join("names.perfetto-trace");
                fs::write(&path, &exported).unwrap();
                let interned = all(&exported, 1)
                    .filter_map(|packet| field(packet.bytes(), 12))
                    .flat_map(|data| all(data.bytes(), 2).collect::<Vec<_>>());
                let texts: Vec<_> = interned.map(|name| field(name.bytes(), 2).map(Value::bytes).unwrap_or_default().to_vec()).collect();
                assert!(texts.iter().all(|text| std::str::from_utf8(text).is_ok() && text.len() <= 4096));
                if let Some(engine) = Engine::newest() {
                    engine.assert_no_errors(&path, "");
                    let found = engine.query(&path, "select count(*) as n from slice where category = 'exception'");
                    assert_eq!(found[0]["n"], names.len());
                    let allocated = engine.query(&path, "select sum(count) as n from heap_profile_allocation");
                    assert_eq!(allocated[0]["n"], 6);
                }
            }
            TraceFormat::Speedscope | TraceFormat::Chromium => {
                let json: serde_json::Value = serde_json::from_slice(&exported).unwrap();
                assert!(json.is_object());
            }
            _ => {}
        }
        if !matches!(format, TraceFormat::Perfetto | TraceFormat::Pprof | TraceFormat::Nettrace) {
            let text = String::from_utf8(exported).unwrap();
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{format:?}");
        }
    }
}

/// A full file system: one sentence, written data is kept, and the rest of the recording is not read needlessly.
#[test]
fn full_disk_is_reported_and_written_data_kept() {
    let place = folder();
    let file = capture("v6-record-trace-oncpu-offcpu", place.path());
    let program = env!("CARGO_BIN_EXE_dn-top");
    let full = place.path().join("full");
    fs::create_dir(&full).unwrap();
    let mounts = |path: &Path| format!("mount -t tmpfs -o size=64k none {}", path.display());
    let can = Invocation::of("unshare", ["-m", "sh", "-c", &mounts(&full)]).run();
    if can.code != 0 {
        return crate::support::runtimes::skip("file systems cannot be mounted here");
    }
    for format in ["perfetto", "chromium", "csv", "speedscope", "nettrace"] {
        let out = full.join("out");
        let script = format!(
            "{} && {program} export {} --format {format} -o {}; echo $?; ls {}",
            mounts(&full),
            file.display(),
            out.display(),
            full.display()
        );
        let output = Invocation::of("unshare", ["-m", "sh", "-c", &script]).run();
        assert!(output.stdout.starts_with("1\n"), "{format}: {} {}", output.stdout, output.stderr);
        let said = format!("{} could not be written completely: ", out.display());
        assert!(output.stderr.contains(&said) && output.stderr.trim().lines().count() == 1, "{format}: {}", output.stderr);
        assert!(output.stdout.contains("out.partial"), "{format}: {}", output.stdout);
    }
    for format in FORMATS {
        let words = format!("{program} export {} --format {format} -o - >/dev/full", file.display());
        let output = Invocation::of("sh", ["-c", &words]).run();
        assert!(output.code == 1 && output.stderr.contains("cannot write to stdout"), "{format}: {} {}", output.code, output.stderr);
    }
}
