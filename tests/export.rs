//! `export` over real captures: the exported files are checked by independent readers.

#![allow(clippy::unwrap_used, reason = "clippy knows tests by their attribute, and not what they call")]

#[path = "support/captures.rs"]
mod captures;
#[path = "export/hostile.rs"]
mod hostile;
#[path = "support/protobuf.rs"]
mod protobuf;
#[path = "export/readers.rs"]
mod readers;
#[path = "support/mod.rs"]
mod support;
#[path = "support/trace_contents.rs"]
mod trace_contents;
#[path = "support/trace_processor.rs"]
mod trace_processor;
#[path = "support/v6.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod v6;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use captures::CAPTURES;
use protobuf::{Value, all, field, varint};
use support::{Invocation, Output, folder};
use trace_contents::{assert_calls, assert_contents};
use trace_processor::{Engine, assert_matches_recording};

const FORMATS: [&str; 7] = ["perfetto", "speedscope", "chromium", "folded", "html", "pprof", "csv"];

/// Unpacks a capture into a folder.
fn capture(name: &str, place: &Path) -> PathBuf {
    unpack(&captures::in_repository().join(format!("{name}.nettrace.xz")), place)
}

fn unpack(packed: &Path, place: &Path) -> PathBuf {
    let path = place.join(packed.file_stem().unwrap());
    fs::write(&path, captures::unpack(packed)).unwrap();
    path
}

fn run(words: &[&str]) -> Output {
    Invocation::new(words).run()
}

/// Exports a capture and returns the written bytes.
fn export(capture: &Path, format: &str, more: &[&str]) -> Vec<u8> {
    let out = capture.with_extension(format);
    let words = ["export", capture.to_str().unwrap(), "--format", format, "-o", out.to_str().unwrap()];
    let output = run(&[&words[..], more].concat());
    assert_eq!((output.code, output.stdout), (0, format!("{}\n", out.display())), "{}", output.stderr);
    assert_eq!(out.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let bytes = fs::read(&out).unwrap();
    fs::remove_file(out).unwrap();
    bytes
}

/// Event counts of a capture, from `stats`.
struct Stats(serde_json::Value);

impl Stats {
    fn of(capture: &Path) -> Self {
        Self(run(&["stats", capture.to_str().unwrap(), "--json"]).json())
    }

    fn count(&self, provider: &str, id: u64) -> u64 {
        let is_it = |count: &&serde_json::Value| count["provider"] == provider && count["id"] == id;
        self.0["counts"].as_array().unwrap().iter().find(is_it).map_or(0, |count| count["count"].as_u64().unwrap())
    }

    fn samples(&self) -> u64 {
        self.count("Microsoft-DotNETCore-SampleProfiler", 0) + self.count("Universal.Events", 1)
    }

    fn runtime(&self, id: u64) -> u64 {
        self.count("Microsoft-Windows-DotNETRuntime", id)
    }
}

/// Field numbers and names are from the messages in `protos/perfetto/trace`.
#[test]
fn perfetto_trace_references_are_defined() {
    let place = folder();
    for name in CAPTURES {
        let file = capture(name, place.path());
        let stats = Stats::of(&file);
        let trace = export(&file, "perfetto", &[]);
        let (mut tracks, mut used_tracks) = (HashSet::new(), HashSet::new());
        let mut interned = HashMap::<u64, HashSet<u64>>::new();
        let (mut samples, mut exceptions, mut depth) = (0, 0, HashMap::<u64, i64>::new());
        for (index, packet) in all(&trace, 1).map(Value::bytes).enumerate() {
            let flags = field(packet, 13).map_or(0, Value::number);
            assert_eq!(index == 0, field(packet, 87).is_some(), "{name}: the first packet of the sequence is the first");
            assert!(index > 0 || flags == 1, "{name}: the first packet needs no state");
            if flags & 1 != 0 {
                interned.clear();
                let defaults = field(packet, 59).unwrap().bytes();
                assert_eq!(field(defaults, 58), Some(Value::Number(3)), "{name}: times are those of CLOCK_MONOTONIC");
            }
            for (kind, entry) in field(packet, 12).map(|data| protobuf::fields(data.bytes())).unwrap_or_default() {
                let iid = field(entry.bytes(), 1).unwrap().number();
                assert!(interned.entry(kind).or_default().insert(iid), "{name}: {iid} of {kind} is defined twice");
                let is_there = |kind: u64, iid: Value<'_>| assert!(interned[&kind].contains(&iid.number()), "{name}: {kind} {iid:?}");
                match kind {
                    6 => {
                        is_there(5, field(entry.bytes(), 2).unwrap());
                        is_there(19, field(entry.bytes(), 3).unwrap());
                    }
                    7 => all(entry.bytes(), 2).for_each(|frame| is_there(6, frame)),
                    19 => is_there(17, field(entry.bytes(), 7).unwrap()),
                    _ => {}
                }
            }
            let is_there = |kind: u64, iid: Value<'_>| assert!(interned[&kind].contains(&iid.number()), "{name}: {kind} {iid:?}");
            if let Some(track) = field(packet, 60) {
                let track = track.bytes();
                if let Some(parent) = field(track, 5) {
                    assert!(tracks.contains(&parent.number()), "{name}: what is in a track that nothing describes is not shown");
                }
                assert!(tracks.insert(field(track, 1).unwrap().number()));
            }
            if let Some(event) = field(packet, 11) {
                let event = event.bytes();
                let (kind, track) = (field(event, 9).unwrap().number(), field(event, 11).unwrap().number());
                used_tracks.insert(track);
                *depth.entry(track).or_default() += match kind {
                    1 => 1,
                    2 => -1,
                    _ => 0,
                };
                for (number, kind) in [(10, 2), (3, 1), (56, 7)] {
                    all(event, number).for_each(|iid| is_there(kind, iid));
                }
                all(event, 4).for_each(|fact| is_there(3, field(fact.bytes(), 1).unwrap()));
                exceptions += u64::from(kind == 3 && field(event, 56).is_some());
            }
            if let Some(sample) = field(packet, 66) {
                samples += 1;
                let size = packet.len() + 2;
                assert!(size <= 32 || field(packet, 12).is_some(), "{name}: {size} bytes for a sample whose stack is known");
                all(sample.bytes(), 4).for_each(|stack| is_there(7, stack));
            }
        }
        assert!(used_tracks.is_subset(&tracks), "{name}");
        assert!(depth.values().all(|open| *open == 0), "{name}: what begins ends");
        assert_eq!(samples, stats.samples(), "{name}");
        assert!(exceptions >= stats.runtime(80), "{name}: {exceptions}");
    }
}

/// Uses the trace processor of Perfetto's current UI, and that of the oldest supported UI.
#[test]
fn trace_processor_results_match_recording() {
    let Some(engine) = Engine::newest() else { return };
    let oldest = Engine::oldest();
    let place = folder();
    let mut captures: Vec<PathBuf> = CAPTURES.iter().map(|name| capture(name, place.path())).collect();
    // More captures than are in the repository.
    if let Some(more) = captures::more_captures() {
        let packed =
            fs::read_dir(more).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.to_string_lossy().ends_with(".nettrace.xz"));
        captures.extend(packed.map(|packed| unpack(&packed, place.path())));
        captures.sort();
        captures.dedup();
    }
    // Loading a trace takes most of the time.
    let compare = |file: PathBuf| {
        let written = |format: &str, more: &[&str]| {
            let path = file.with_extension(format!("{format}{}.trace", more.concat()));
            fs::write(&path, export(&file, format, more)).unwrap();
            path
        };
        let trace = written("perfetto", &[]);
        assert_matches_recording(&engine, &trace, &file);
        let background = assert_contents(&engine, &trace, &file)["background GC"];
        let calls = assert_calls(&engine, &written("perfetto", &["--slices"]), &file);
        // Some have no samples; those of the last capture include native code.
        let has_samples = ["net31-heavy.nettrace", "v6-record-trace-oncpu-offcpu.nettrace"].iter().any(|name| file.ends_with(name));
        assert!(calls == 10 || !has_samples, "{}: {calls}", file.display());
        for trace in [written("chromium", &[]), written("perfetto", &["--slices", "--flows"])] {
            engine.assert_no_errors(&trace, "");
        }
        if let Some(oldest) = &oldest {
            // The source location of an event is newer than this version.
            oldest.assert_no_errors(&trace, "unknown_extension_fields");
        }
        background
    };
    let compare = &compare;
    let background: u64 = std::thread::scope(|scope| {
        let running: Vec<_> = captures
            .chunks(captures.len().div_ceil(4))
            .map(|lane| scope.spawn(move || lane.iter().cloned().map(compare).sum::<u64>()))
            .collect();
        running.into_iter().map(|running| running.join().unwrap()).sum()
    });
    assert!(background > 0, "no capture has a background collection");
}

#[test]
fn sample_counts_match_in_every_format() {
    let place = folder();
    for name in CAPTURES {
        let file = capture(name, place.path());
        let samples = Stats::of(&file).samples();
        let folded = String::from_utf8(export(&file, "folded", &[])).unwrap();
        let counts = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        assert_eq!(counts.sum::<u64>(), samples, "{name}");

        let pprof = export(&file, "pprof", &[]);
        let strings: Vec<_> = all(&pprof, 6).map(|text| String::from_utf8(text.bytes().to_vec()).unwrap()).collect();
        let types: Vec<_> = all(&pprof, 1).map(|kind| strings[field(kind.bytes(), 1).unwrap().number() as usize].clone()).collect();
        let time = if name.starts_with("v6") { "cpu" } else { "thread_time" };
        assert_eq!((strings[0].as_str(), types), ("", vec!["samples".to_owned(), time.to_owned()]), "{name}");
        let locations: HashSet<_> = all(&pprof, 4).map(|location| field(location.bytes(), 1).unwrap().number()).collect();
        let mut count = 0;
        for sample in all(&pprof, 2).map(Value::bytes) {
            let mut ids = field(sample, 1).map(Value::bytes).unwrap_or_default();
            while !ids.is_empty() {
                assert!(locations.contains(&varint(&mut ids)), "{name}");
            }
            count += varint(&mut field(sample, 2).unwrap().bytes());
        }
        assert_eq!(count, samples, "{name}");

        let events = Stats::of(&file).0["events"].as_u64().unwrap();
        assert_eq!(export(&file, "csv", &[]).iter().filter(|byte| **byte == b'\n').count() as u64, events + 1, "{name}");
    }
}

#[test]
fn equal_exports_are_identical() {
    let place = folder();
    for name in ["net31-heavy", "v6-record-trace-oncpu-offcpu"] {
        let file = capture(name, place.path());
        for format in FORMATS {
            let more: &[&str] = if format == "perfetto" { &["--slices", "--flows"] } else { &[] };
            // Each process has its own hash seed.
            assert!(export(&file, format, more) == export(&file, format, more), "{name}: {format}");
        }
    }
}

#[test]
fn speedscope_events_are_nested_and_ordered() {
    let place = folder();
    for name in CAPTURES {
        let file = capture(name, place.path());
        let json: serde_json::Value = serde_json::from_slice(&export(&file, "speedscope", &[])).unwrap();
        let frames = json["shared"]["frames"].as_array().unwrap().len() as u64;
        let profiles = json["profiles"].as_array().unwrap();
        assert!(!profiles.is_empty(), "{name}");
        for profile in profiles {
            let (mut open, mut at) = (Vec::new(), profile["startValue"].as_i64().unwrap());
            for event in profile["events"].as_array().unwrap() {
                let (frame, moment) = (event["frame"].as_u64().unwrap(), event["at"].as_i64().unwrap());
                assert!(frame < frames && moment >= at, "{name} {event}");
                at = moment;
                match event["type"].as_str().unwrap() {
                    "O" => open.push(frame),
                    _ => assert_eq!(open.pop(), Some(frame), "{name} {event}"),
                }
            }
            assert!(open.is_empty() && at == profile["endValue"].as_i64().unwrap(), "{name}");
        }
    }
}

#[test]
fn export_honors_time_range_and_thread() {
    let place = folder();
    let file = capture("net31-heavy", place.path());
    let lines = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let all = lines(export(&file, "csv", &[]));
    let at = |line: &String| line.split(',').next().unwrap().parse::<f64>().unwrap();
    let thread = |line: &String| line.split(',').nth(2).unwrap().to_owned();
    let part = lines(export(&file, "csv", &["--from", "1s", "--to", "1500ms"]));
    assert_eq!(part, all.iter().filter(|line| (1.0..=1.5).contains(&at(line))).cloned().collect::<Vec<_>>());
    let one = thread(&all[0]);
    let of_one = lines(export(&file, "csv", &["--thread", &one]));
    assert_eq!(of_one, all.iter().filter(|line| thread(line) == one).cloned().collect::<Vec<_>>());
    assert!(!part.is_empty() && part.len() < all.len() && !of_one.is_empty() && of_one.len() < all.len());
}

/// Names of files and functions are strings that the collector describes as arrays of characters.
#[test]
fn strings_of_external_collectors_are_decoded() {
    let place = folder();
    let file = capture("v6-record-trace-oncpu-offcpu", place.path());
    let csv = String::from_utf8(export(&file, "csv", &[])).unwrap();
    let of = |event: &str| csv.lines().filter(|line| line.contains(event)).map(str::to_owned).collect::<Vec<_>>();
    for (event, part) in [
        (",ExistingProcess,", "Name=process_api NamespaceName=Unknown"),
        (",ProcessSymbol,", "Name=entry_SYSCALL_64_after_hwframe"),
        (",ProcessMapping,", "FileName=vmlinux MetadataId=0"),
        (",ProcessMappingMetadata,", "SymbolMetadata={\"\"type\"\": \"\"ELF\"\""),
    ] {
        let lines = of(event);
        assert!(lines.iter().any(|line| line.contains(part)), "{event} {:?}", lines.first());
    }
}

#[test]
fn selection_without_data_is_reported() {
    let place = folder();
    let file = capture("net31-heavy", place.path());
    for format in FORMATS {
        let export = |options: &[&str]| {
            let out = place.path().join("out");
            let words = ["export", file.to_str().unwrap(), "--format", format, "-o", out.to_str().unwrap(), "--json"];
            let output = run(&[&words[..], options].concat());
            fs::remove_file(out).unwrap();
            let records = output.json()["records"].as_u64().unwrap();
            (output.code, records, output.stderr)
        };
        let (code, all, stderr) = export(&[]);
        assert!(code == 0 && all > 100 && !stderr.contains("nothing"), "{format}: {stderr}");
        let (code, records, stderr) = export(&["--from", "1h"]);
        assert_eq!((code, records), (0, 0), "{format}");
        assert!(stderr.contains("nothing was exported: --from is after the end of the recording at "), "{format}: {stderr}");
        let (code, records, stderr) = export(&["--thread", "999999", "--thread", "999998"]);
        assert!(code == 0 && records < all, "{format}: {records}");
        assert!(stderr.contains("the recording has no events of thread 999999, 999998 (--thread)"), "{format}: {stderr}");
        let (.., stderr) = export(&["--to", "0s"]);
        assert!(format != "folded" || stderr.contains("nothing was exported: the selected range has no samples"), "{stderr}");
    }
}

#[test]
fn export_does_not_overwrite_and_rejects_invalid_input() {
    let place = folder();
    let file = capture("net9-heavy-norundown", place.path());
    let file = file.to_str().unwrap();
    for format in FORMATS {
        let out = place.path().join(format!("there.{format}"));
        fs::write(&out, "mine").unwrap();
        run(&["export", file, "--format", format, "-o", out.to_str().unwrap()]).assert_refused(1, "exists already and is not overwritten");
        assert_eq!(fs::read(&out).unwrap(), b"mine");
        fs::remove_file(&out).unwrap();
        symlink("/dev/null", &out).unwrap();
        run(&["export", file, "--format", format, "-o", out.to_str().unwrap()]).assert_refused(1, "exists already and is not overwritten");
        run(&["export", "/etc/passwd", "--format", format, "-o", "-"]).assert_refused(1, "/etc/passwd is not a nettrace file");
    }
    run(&["export", file, file, "--format", "pprof"]).assert_refused(2, "one trace of several files needs --format perfetto");
    for option in ["--slices", "--flows"] {
        let words = format!("{option} needs --format perfetto");
        run(&["export", file, option, "--format", "pprof"]).assert_refused(2, &words);
    }
    run(&["export", file, "--format", "csv", "--from", "2s", "--to", "1s"]).assert_refused(2, "--from is later than --to");
    run(&["export", file, "--format", "csv", "-o", "a.folded"]).assert_refused(2, "use the extension .csv");
    run(&["export", file, "--format", "folded", "-o", "/dev/full/x"]).assert_refused(1, "/dev/full/x");
    let output = run(&["export", file, "--format", "folded", "--json"]).json();
    assert_eq!(output["output"], file.replace(".nettrace", ".folded"));
    // A truncated recording is exported as far as it goes.
    let cut = place.path().join("cut.nettrace");
    let bytes = fs::read(file).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    for format in FORMATS {
        let out = cut.with_extension(format);
        let output = run(&["export", cut.to_str().unwrap(), "--format", format, "-o", out.to_str().unwrap()]);
        assert!(output.code == 0 && output.stderr.contains("cut off"), "{format}: {}", output.stderr);
        let written = fs::read(&out).unwrap();
        if let Ok(text) = String::from_utf8(written) {
            let output = run(&["export", cut.to_str().unwrap(), "--format", format, "-o", "-"]);
            assert_eq!((output.code, output.stdout), (0, text), "{format}");
        }
    }
}
