//! Commands that read a recorded file, over real captures.

#![allow(clippy::unwrap_used, reason = "clippy knows tests by their attribute, and not what they call")]

#[path = "support/captures.rs"]
mod captures;
#[path = "recorded/salvage.rs"]
mod salvage;
#[path = "support/mod.rs"]
mod support;
#[path = "support/v6.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod v6;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use captures::{CAPTURES, capture, captures, unpack};
use dn_top::analysis::Totals;
use dn_top::nettrace::{Encoder, Metadata, NewEvent, TraceHeader};
use dn_top::wire::Put;
use serde_json::{Value, json};
use support::{Invocation, Output, folder};
use tempfile::TempDir;
use v6::{Kind, Row, V6, sized};

/// A capture without a rundown, and one of the whole machine.
/// Captures without a rundown.
const WITHOUT_RUNDOWN: [&str; 2] = ["net9-heavy-norundown", "v6-record-trace-oncpu-offcpu"];

/// Writes a file of this name into a folder of its own. Returns the folder, which is removed when it is dropped, and the path of the file.
fn written(name: &str, bytes: &[u8]) -> (TempDir, String) {
    let place = folder();
    let file = place.path().join(name);
    fs::write(&file, bytes).unwrap();
    (place, file.to_str().unwrap().to_owned())
}

fn run<A: AsRef<OsStr>>(words: &[A]) -> Output {
    Invocation::new(words).run()
}

/// The results match those of an independent reader. More captures can be checked: `DN_TOP_CAPTURES` is a folder with `expected.json` and
/// the `.xz` files.
#[test]
fn stats_match_independent_reader() {
    let expected: serde_json::Map<String, Value> =
        serde_json::from_str(&fs::read_to_string(captures().join("expected.json")).unwrap()).unwrap();
    for (name, expected) in &expected {
        let bytes = unpack(&captures().join(format!("{name}.xz")));
        let (_place, file) = written("a", &bytes);
        let stats = run(&["stats", &file, "--json"]).json();
        assert_eq!(stats["bytes"], bytes.len(), "{name}");
        for (field, expected) in expected.as_object().unwrap().iter().filter(|(field, _)| *field != "counts") {
            assert_eq!(&stats[field], expected, "{name}: {field}");
        }
        // The reader had only the names in the stream, which omits those of the runtime's own events.
        let count = |of: &Value| json!([of["provider"], of["id"], of["count"]]);
        let [reported, expected] = [&stats, expected].map(|of| of["counts"].as_array().unwrap());
        assert_eq!(reported.iter().map(count).collect::<Vec<_>>(), expected.iter().map(count).collect::<Vec<_>>(), "{name}");
        let named =
            reported.iter().zip(expected).all(|(reported, expected)| expected["name"] == "" || reported["name"] == expected["name"]);
        assert!(named && reported.iter().all(|reported| reported["name"] != ""), "{name}: {reported:#?}");
    }
}

#[test]
fn recordings_are_compared() {
    let (place, file) = written("a", &capture("net31-heavy"));
    let file = file.as_str();
    let diff = |words: &[&str]| run(&[&["diff", file], words].concat());
    let sections = |output: &Output| output.json()["sections"].as_array().unwrap().clone();
    let of = |sections: &[serde_json::Value], subject: &str| {
        let section = sections.iter().find(|section| section["subject"] == subject).unwrap();
        section["figures"].as_array().unwrap().clone()
    };
    // Compared to itself, a recording has not changed, and its figures match those of the other commands.
    let same = diff(&[file, "-n", "100000", "--json"]);
    let all = sections(&same);
    let report = run(&["report", file, "-n", "100000", "--json"]).json();
    let seconds = same.json()["before"]["duration_ms"].as_f64().unwrap() / 1e3;
    assert!(all.iter().flat_map(|section| section["figures"].as_array().unwrap()).all(|figure| figure["change"] == 0.0), "{}", same.stdout);
    let hottest = &report["methods"][0];
    let methods = of(&all, "methods");
    let found = methods.iter().find(|method| method["name"] == hottest["name"]).unwrap();
    let share = hottest["self_ns"].as_f64().unwrap() / 1e9 / seconds;
    assert!((found["before"].as_f64().unwrap() - share).abs() < 0.001, "{found} and {hottest}");
    // Two ranges of one recording.
    let parts = diff(&["--before-range", "..500ms", "--after-range", "500ms..1s", "--json"]);
    assert_eq!((&parts.json()["before"]["duration_ms"], &parts.json()["after"]["duration_ms"]), (&json!(500), &json!(500)));
    assert!(sections(&parts).iter().any(|section| section["subject"] == "exceptions"), "{}", parts.stdout);
    let text = diff(&[file]).stdout;
    assert!(text.contains("GC\n      BEFORE        AFTER       CHANGE\n") && text.contains("  gen 0 collections\n"), "{text}");
    diff(&[]).assert_refused(2, "give a second file");
    let late = diff(&["--after-range", "1h.."]);
    assert!(late.stderr.ends_with("a: the range is after the end of the recording\n"), "{late:?}");
    // One that was cut off ends with its newest event.
    let cut = place.path().join("cut");
    let bytes = fs::read(file).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let cut = cut.to_str().unwrap();
    let long = run(&["diff", cut, cut, "--before-range", "..1h", "--json"]).json();
    assert_eq!(long["before"]["duration_ms"], long["after"]["duration_ms"]);
    assert!(long["before"]["duration_ms"].as_u64().unwrap() > 0, "{long:#}");
    let refused = diff(&[file, "--before-range", "2s..1s"]);
    assert!(refused.stderr.contains("the range is empty"), "{}", refused.stderr);
}

/// The parts of a recording add up to the whole.
#[test]
fn analyses_of_a_range_contain_only_that_part() {
    let (_place, file) = written("a", &capture("net31-heavy"));
    let analyze = |command: &str, more: &[&str]| run(&[&[command, &file, "--json"], more].concat());
    let ranges = [&["--range", "..1s"][..], &["--range", "1s.."], &[]];
    let samples = ranges.map(|range| analyze("report", range).json()).map(|report| {
        let number = |name: &str| report[name].as_u64().unwrap();
        number("samples") + number("waiting")
    });
    assert!(samples[0] > 100 && samples[1] > 100 && samples[0] + samples[1] == samples[2], "{samples:?}");
    for (command, name, has_second) in [("gc", "pauses", false), ("exceptions", "thrown", true)] {
        let counts = ranges.map(|range| analyze(command, range).json()[name].as_u64().unwrap());
        assert!(counts[0] > 0 && (counts[1] > 0) == has_second && counts[0] + counts[1] == counts[2], "{command}: {counts:?}");
    }
    let causes = ranges.map(|range| analyze("slow", range).json()["causes"].clone());
    assert_ne!(causes[0], causes[2]);
    for command in ["gc", "slow"] {
        let late = analyze(command, &["--range", "1h.."]);
        assert!(
            late.code == 0
                && late.stderr.matches("dn-top: ").count() == 1
                && late.stderr.ends_with("a: the range is after the end of the recording\n"),
            "{late:?}"
        );
    }
    let none = analyze("gc", &["--range", "1s.."]);
    assert!(none.stderr.ends_with("a: the range contains no such events\n"), "{none:?}");
    // The range ends during the second collection.
    let begun = analyze("gc", &["--range", "904ms..906ms"]);
    assert!(begun.stderr == "dn-top: no garbage collection ended: those that began are counted\n", "{begun:?}");
    assert_eq!((&begun.json()["gen0"], &begun.json()["rows"]), (&json!(1), &json!([])), "{begun:?}");
    let late = analyze("report", &["--range", "1h.."]);
    assert!(late.code == 0 && late.stderr.ends_with("a contains no samples\n") && late.stderr.contains("the range of "), "{late:?}");
    let late = analyze("stats", &["--range", "1h.."]);
    assert!(late.code == 0 && late.stderr.ends_with("a: the range contains no events\n"), "{late:?}");
    assert_eq!(analyze("stats", &["--range", "1s.."]).stderr, "");
    run(&["gc", "4242", "--range", "..1s"]).assert_refused(2, "--range selects a part of a file");
    let both = analyze("report", &["--range", "..1s", "--off-cpu"]);
    assert!(both.code == 2 && both.stderr.contains("cannot be used with '--off-cpu'"), "{both:?}");
}

/// The start time in the header is zero, or no valid date.
#[test]
fn duration_is_shown_without_start_time() {
    let mut encoder = Encoder::new(TraceHeader { sync_utc: None, ticks_per_second: 1_000, ..TraceHeader::default() });
    let metadata = encoder.metadata(&Metadata { provider: "Demo".into(), event_id: 7, name: "Tick".into(), ..Metadata::default() });
    for timestamp in [1_000, 3_500] {
        encoder.event(&NewEvent { metadata, timestamp, thread: 1, capture_thread: 1, ..NewEvent::default() });
    }
    encoder.end();
    let (_place, file) = written("a", &encoder.take());
    let stats = run(&["stats", &file]).stdout;
    assert!(stats.contains("\nstart time unknown, 2.500 s of events"), "{stats}");
}

#[test]
fn a_report_adds_up() {
    let (_place, file) = written("a", &capture("net31-heavy"));
    let report = |more: &[&str]| run(&[&["report", &file, "--json"], more].concat()).json();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();

    let all = report(&["-n", "100000", "--waiting"]);
    let methods = all["methods"].as_array().unwrap();
    let own: u64 = methods.iter().map(|method| number(&method["self"])).sum();
    assert!(number(&all["samples"]) > 1000 && methods.len() > 10, "{all:#}");
    assert_eq!(own + number(&all["without_stack"]), number(&all["samples"]));
    assert!(methods.iter().all(|method| number(&method["self"]) <= number(&method["total"])));
    assert!(methods.is_sorted_by_key(|method| std::cmp::Reverse(number(&method["self"]))));

    let busy = report(&[]);
    assert_eq!(number(&busy["samples"]) + number(&busy["waiting"]), number(&all["samples"]));
    assert!(busy["methods"].as_array().unwrap().len() <= 20);
    let inclusive = report(&["--inclusive", "-n", "3"]);
    let totals: Vec<_> = inclusive["methods"].as_array().unwrap().iter().map(|method| number(&method["total"])).collect();
    assert!(totals.len() == 3 && totals.is_sorted_by_key(std::cmp::Reverse), "{totals:?}");
    let most = report(&["-n", "100000"])["methods"].as_array().unwrap().iter().map(|method| number(&method["total"])).max();
    assert_eq!(Some(totals[0]), most);
}

#[test]
fn report_explains_missing_samples() {
    let mut empty = Encoder::new(TraceHeader::default());
    empty.end();
    let (_place, file) = written("a", &empty.take());
    let output = run(&["report", &file]);
    assert!(output.code == 0 && output.stderr.contains("contains no samples: record with --profile"), "{output:?}");
    let (_place, file) = written("a", &capture(WITHOUT_RUNDOWN[0])[..1_000_000]);
    let output = run(&["report", &file]);
    assert!(output.code == 0 && output.stderr.contains("cut off"), "{output:?}");
    assert!(output.stdout.starts_with("thread time, not CPU time: "), "{}", output.stdout);
    assert_eq!(run(&["report", &file, "-n", "0", "--json"]).json()["methods"], json!([]));
    let (_place, file) = written("a", &capture(WITHOUT_RUNDOWN[1]));
    let output = run(&["report", &file]);
    let held = "contains no samples of the runtime, but 16637 CPU samples and 84971 context switches of the kernel (Universal.Events)";
    assert!(output.code == 0 && output.stderr.contains(held) && !output.stderr.contains("--profile"), "{output:?}");
    let slow = run(&["slow", &file]).stdout;
    assert!(slow.contains("\nNothing was measured that shows a cause.\n"), "{slow}");
    // It is of the whole machine.
    let stats = run(&["stats", &file]).stdout;
    assert_eq!(stats.lines().next(), Some("nettrace 6 · complete · 2.8 MB"));
}

/// As with `dn-top gc <(xz -dc a.nettrace.xz)`.
#[test]
fn analyses_read_pipes() {
    let (place, file) = written("a.nettrace", &capture("net31-heavy"));
    let (file, pipe) = (PathBuf::from(file), place.path().join("pipe"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for command in ["gc", "exceptions", "slow"] {
        let of = |path: &Path| Invocation::new([command.as_ref(), path.as_os_str(), "--json".as_ref()]);
        let expected = of(&file).run();
        let running = of(&pipe).start();
        // On another thread: it blocks until the pipe is opened for reading.
        let [file, pipe] = [file.clone(), pipe.clone()];
        let copied = thread::spawn(move || fs::copy(file, pipe));
        let output = running.wait();
        assert_eq!((output.code, output.stdout), (0, expected.stdout), "{command}: {}", output.stderr);
        copied.join().unwrap().unwrap();
    }
}

#[test]
fn export_to_a_closed_pipe_is_not_an_error() {
    let (_place, file) = written("a.nettrace", &capture("net31-heavy"));
    let export = format!("'{}' export '{file}' --format csv -o -", env!("CARGO_BIN_EXE_dn-top"));
    let script = format!("{export} | head -n 1; exit \"${{PIPESTATUS[0]}}\"");
    let output = Invocation::of("bash", ["-c", &script].map(OsStr::new)).run();
    assert_eq!((output.code, output.stderr.as_str(), output.stdout.lines().count()), (0, "", 1));
}

#[test]
fn open_file_matches_stats_and_its_ranges_add_up() {
    for name in CAPTURES {
        let (_place, file) = written(name, &capture(name));
        let stats = run(&["stats", &file, "--json"]).json();
        let file = Path::new(&file);
        let read = |span| dn_top::session::read_trace(file, span, |_| true).unwrap().unwrap();
        let whole = read(None);
        let totals = whole.analysis.snapshot.totals;
        assert_eq!(
            json!([totals.events, totals.dropped, whole.bytes]),
            json!([stats["events"], stats["dropped"], stats["bytes"]]),
            "{name}"
        );
        assert_eq!((json!(whole.complete), whole.trouble), (stats["complete"].clone(), None), "{name}");
        let mut counts: Vec<_> = whole
            .analysis
            .events
            .iter()
            .map(|rate| json!({"provider": rate.event.provider, "id": rate.event.event_id, "name": rate.event.name, "count": rate.event.count, "bytes": rate.event.bytes}))
            .collect();
        let mut expected = stats["counts"].as_array().unwrap().clone();
        for list in [&mut counts, &mut expected] {
            list.sort_by_key(ToString::to_string);
        }
        assert_eq!(counts, expected, "{name}");
        // Split in two at any point, nothing is lost or counted twice.
        for part in [3, 2] {
            let middle = whole.end / part;
            let [before, after] = [(i64::MIN, middle), (middle + 1, i64::MAX)].map(|span| read(Some(span)).analysis.snapshot.totals);
            assert_eq!((before.events + after.events, before.dropped + after.dropped), (totals.events, totals.dropped), "{name}");
            assert!(before.events > 0 && after.events > 0, "{name}");
        }
        let [before, after] = ["..500ms", "500ms.."].map(|range| {
            let part = run(&["stats", file.to_str().unwrap(), "--json", "--range", range]).json();
            let (from, to) = if range.starts_with('.') { (0, 500_000_000) } else { (500_000_000, i64::MAX) };
            let Totals { events, dropped, .. } = read(Some((from, to))).analysis.snapshot.totals;
            assert_eq!(
                json!([part["events"], part["dropped"], part["bytes"]]),
                json!([events, dropped, stats["bytes"]]),
                "{name}: {range}"
            );
            assert_eq!(
                part["counts"].as_array().unwrap().iter().map(|kind| kind["count"].as_u64().unwrap()).sum::<u64>(),
                events,
                "{name}"
            );
            events
        });
        assert!(before > 0 && after > 0, "{name}: {before} and {after}");
        // Reading is canceled.
        assert!(dn_top::session::read_trace(file, None, |_| false).unwrap().is_none(), "{name}");
    }
}

#[test]
fn open_rejects_invalid_files() {
    let place = folder();
    let (missing, other, old, empty) =
        (place.path().join("missing"), place.path().join("other"), place.path().join("old"), place.path().join("empty"));
    fs::write(&other, b"#!/bin/sh and so on, for long enough").unwrap();
    fs::write(&old, b"\x14\0\0\0!FastSerialization.1 and so on").unwrap();
    fs::write(&empty, b"").unwrap();
    for (file, words) in [
        (missing.as_path(), "missing cannot be opened: No such file"),
        (&other, "other is not a nettrace file"),
        (&old, "this is a NetPerf stream"),
        (&empty, "empty is empty"),
        (place.path(), "cannot be read: Is a directory"),
    ] {
        run(&["open".as_ref(), file.as_os_str()]).assert_refused(1, words);
    }
    run(&["open"]).code.eq(&2).then_some(()).expect("a file is missing");
}

#[test]
fn dashboard_opens_files_and_selects_time_ranges() {
    let bytes = capture("net9-heavy-norundown");
    let (place, whole) = written("whole.nettrace", &bytes);
    let cut = place.path().join("cut.nettrace.partial");
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let mut screen = Invocation::new(["open", &whole, cut.to_str().unwrap()]).screen(120, 40);
    // The rows are sorted by name.
    screen.wait_until("both", |shown| shown.contains("2 files") && shown.contains("✓ complete") && shown.contains("! incomplete"));
    screen.wait_for("after the last complete block");
    screen.wait_for("`dn-top salvage`");
    screen.wait_for("whole file, 0:");
    screen.keys("2");
    screen.wait_for("No collections in this recording: none occurred, or they were not recorded");
    screen.keys("{");
    screen.wait_for("0:00.0 to 0:");
    screen.keys("B");
    screen.wait_for("whole file, 0:");
    screen.keys("t");
    screen.wait_for("A recorded file is open, not a process.");
    screen.keys("q");
    screen.wait_for("Enter details");
    screen.keys("j");
    screen.wait_until("the other file", |shown| shown.lines().last().is_some() && shown.contains("─ whole.nettrace"));
    screen.quit();
    screen.assert_restored();
}

/// Thread names in a V6 stream, one of them of another process and with terminal control sequences.
#[test]
fn thread_names_in_file_are_shown() {
    let text = |out: &mut Vec<u8>, text: &str| {
        out.put_varint(text.len() as u64);
        out.put(text.as_bytes());
    };
    let mut stream = V6::new();
    let mut sample = vec![1];
    text(&mut sample, "Microsoft-DotNETCore-SampleProfiler");
    sample.put_varint(0);
    text(&mut sample, "");
    sample.put(&[0; 4]);
    stream.block(Kind::Metadata, &[&[0, 0], &sized(&sample)[..]].concat());
    let mut threads = Vec::new();
    for (index, process, thread, name) in [(1, 7, 70, "Worker"), (2, 8, 70, "\u{1b}[31mOther"), (3, 7, 71, "")] {
        let mut row = vec![index, 1];
        text(&mut row, name);
        row.put(&[2, process, 3, thread]);
        threads.put(&sized(&row));
    }
    stream.block(Kind::Thread, &threads);
    let mut stacks = Vec::new();
    [1, 1, 8].into_iter().for_each(|number| stacks.put_u32(number));
    stacks.put_u64(0x1234);
    stream.block(Kind::Stack, &stacks);
    let rows = (1..=3).flat_map(|thread| (1..=5).map(move |sequence| (thread, sequence)));
    let rows = rows.map(|(thread, sequence)| Row {
        metadata: 1,
        thread,
        sequence,
        stack: 1,
        timestamp: i64::from(sequence) * 1_000_000,
        payload: &[2, 0, 0, 0],
        ..Row::default()
    });
    stream.events(rows);
    let (_place, file) = written("a.nettrace", &stream.end());
    let stats = |more: &[&str]| run(&[&["stats", &file], more].concat());
    let name = |process: Option<u32>, id: u32, name: &str| json!({"process_id": process, "id": id, "name": name});
    let expected = json!([name(Some(7), 70, "Worker"), name(Some(8), 70, "\u{fffd}[31mOther")]);
    assert_eq!(stats(&["--json"]).json()["thread_names"], expected);
    assert!(stats(&[]).stdout.contains("thread 7/70: Worker\nthread 8/70: \u{fffd}[31mOther\n"), "{}", stats(&[]).stdout);
    let screen = Invocation::new(["open", &file]).screen(120, 40);
    screen.wait_for("whole file, 0:");
    screen.keys("4");
    screen.wait_until("names", |shown| shown.contains("7/70  Worker") && shown.contains("8/70  ") && shown.contains("[31mOther"));
    screen.keys("q");
}
