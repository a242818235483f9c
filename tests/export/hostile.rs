//! Exports of recordings that are damaged, or lie.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use dn_top::export::{Export, Options, Overview, Part};
use dn_top::model::TraceFormat;
use dn_top::nettrace::{Encoder, Metadata, NewEvent, TraceHeader};
use dn_top::wire::Put;

use crate::protobuf::{Value, all, field};
use crate::support::{Invocation, folder};
use crate::trace_processor::{Engine, read};
use crate::{FORMATS, capture};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Exports a stream as far as it makes sense.
fn export(bytes: &[u8], format: TraceFormat, number: u32) -> Vec<u8> {
    let mut overview = Overview::default();
    read(bytes, &mut overview);
    let mut out = Vec::new();
    let options = Options { format, part: Part::default(), calls: false, tasks: true, number };
    let mut export = Export::new(options, overview, Box::new(&mut out), Box::new(Cursor::new(Vec::new()))).unwrap();
    read(bytes, &mut export);
    export.finish().unwrap();
    out
}

/// Numbers that are always the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// As many as DN_TOP_MUTATIONS says, a few dozen otherwise; every other one is cut off.
#[test]
fn whatever_is_wrong_with_a_recording_the_trace_is_right() {
    let Some(engine) = Engine::newest() else { return };
    let count = std::env::var("DN_TOP_MUTATIONS").map_or(48, |count| count.parse().unwrap());
    let place = folder();
    let captures = ["net31-heavy", "net9-heavy-drops", "net9-heavy-norundown", "v6-record-trace-oncpu-offcpu"];
    // Less of each, and more of them.
    let captures = captures.map(|name| {
        let mut bytes = fs::read(capture(name, place.path())).unwrap();
        bytes.truncate(1 << 20);
        bytes
    });
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    for batch in 0..u32::div_ceil(count, 24) {
        // Recordings of one trace: each has a packet sequence of its own.
        let trace = place.path().join(format!("{batch}.perfetto-trace"));
        let mut file = fs::File::create(&trace).unwrap();
        let mut packets = 0;
        for number in 0..24 {
            let mut bytes = captures[dice.below(captures.len())].clone();
            if number % 2 == 0 {
                bytes.truncate(dice.below(bytes.len()));
            }
            for _ in 0..dice.below(40) {
                let at = dice.below(bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = dice.below(256) as u8;
                }
            }
            let exported = export(&bytes, TraceFormat::Perfetto, number);
            packets += all(&exported, 1).count();
            file.write_all(&exported).unwrap();
        }
        assert!(packets > 1000, "{packets}");
        engine.assert_right(&trace, "");
    }
}

/// UTF-16 with a zero behind it.
fn put_units(payload: &mut Vec<u8>, units: impl IntoIterator<Item = u16>) {
    units.into_iter().chain([0]).for_each(|unit| payload.put_u16(unit));
}

/// Exceptions of these names, in time that goes back, of a thread number that is given again.
fn thrown(names: &[Vec<u16>]) -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader { process_id: 7, ..TraceHeader::default() });
    let mut record = |event_id, version| encoder.metadata(&Metadata { provider: RUNTIME.into(), event_id, version, ..Metadata::default() });
    let [thrown, suspended, restarted, wait, waited] = [80, 9, 3, 81, 91].map(|id| record(id, 1));
    let allocated = record(10, 4);
    let stack = encoder.stack(&[0x1000]);
    let mut event = |metadata, timestamp, thread, payload: &[u8]| {
        encoder.event(&NewEvent { metadata, timestamp, thread, capture_thread: thread, stack, payload, ..NewEvent::default() });
    };
    // More than there is memory anywhere, again and again.
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
fn names_and_times_may_be_anything() {
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
        assert!(exported.len() < 1 << 17, "{format:?}: {} bytes", exported.len());
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
                    engine.assert_right(&path, "");
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
        if format != TraceFormat::Perfetto && format != TraceFormat::Pprof {
            let text = String::from_utf8(exported).unwrap();
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{format:?}");
        }
    }
}

/// A file system that is full: one sentence, what was written stays, and the rest of the recording is not read for nothing.
#[test]
fn a_full_disk_is_said_and_loses_nothing() {
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
    for format in ["perfetto", "chromium", "csv", "speedscope"] {
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
        let said = format!("{} could not be written to its end: ", out.display());
        assert!(output.stderr.contains(&said) && output.stderr.trim().lines().count() == 1, "{format}: {}", output.stderr);
        assert!(output.stdout.contains("out.partial"), "{format}: {}", output.stdout);
    }
    for format in FORMATS {
        let words = format!("{program} export {} --format {format} -o - >/dev/full", file.display());
        let output = Invocation::of("sh", ["-c", &words]).run();
        assert!(output.code == 1 && output.stderr.contains("cannot write to stdout"), "{format}: {} {}", output.code, output.stderr);
    }
}
