//! The commands that read a recorded file, over real captures.

#![allow(clippy::unwrap_used, reason = "clippy knows tests by their attribute, and not what they call")]

#[path = "support/mod.rs"]
mod support;

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dn_top::analysis::Throughput;
use dn_top::nettrace::{Decoder, Ending, Limits};
use serde_json::json;
use support::{Invocation, Output, folder};

const CAPTURES: [&str; 2] = ["net9-heavy-norundown", "v6-record-trace-oncpu-offcpu"];

fn capture(name: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "captures", name].iter().collect();
    let mut bytes = Vec::new();
    xz2::read::XzDecoder::new(fs::File::open(path.with_extension("nettrace.xz")).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn run<A: AsRef<OsStr>>(words: &[A]) -> Output {
    Invocation::new(words).run()
}

fn salvage(file: &Path, out: &Path) -> Output {
    run(&["salvage".as_ref(), file.as_os_str(), "-o".as_ref(), out.as_os_str()])
}

/// How a stream ends, and how many events are in it.
fn read(bytes: &[u8]) -> (Ending, u64) {
    let (mut decoder, mut tally) = (Decoder::new(Limits::default()), Throughput::default());
    let _ = decoder.feed(bytes, &mut tally);
    (decoder.finish(&mut tally), tally.snapshot().events)
}

#[test]
fn a_file_that_was_cut_off_becomes_whole() {
    let place = folder();
    let (cut, whole) = (place.path().join("cut"), place.path().join("whole.nettrace"));
    for name in CAPTURES {
        let bytes = capture(name);
        for part in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&cut, &bytes[..part]).unwrap();
            let (ending, events) = read(&bytes[..part]);
            assert!(matches!(ending, Ending::Truncated { .. }) && events > 100, "{name} at {part}: {ending:?}, {events}");
            let output = salvage(&cut, &whole);
            assert_eq!((output.code, &output.stdout), (0, &format!("{}\n", whole.display())), "{}", output.stderr);
            assert!(output.stderr.contains(" events are kept; the last "), "{}", output.stderr);
            assert!(output.stderr.contains("the rundown is missing"), "{}", output.stderr);
            let kept = fs::read(&whole).unwrap();
            assert_eq!(read(&kept), (Ending::Complete, events), "{name} at {part}");
            assert!(kept.len() <= part + 4);
            assert_eq!(fs::read(&cut).unwrap(), &bytes[..part], "the file was changed");
            assert_eq!(whole.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            fs::remove_file(&whole).unwrap();
        }
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "something is left behind");
}

#[test]
fn a_file_that_is_whole_is_copied() {
    let place = folder();
    let (file, copy) = (place.path().join("a"), place.path().join("b"));
    let bytes = capture(CAPTURES[0]);
    fs::write(&file, &bytes).unwrap();
    let output = salvage(&file, &copy);
    assert!(output.code == 0 && output.stderr.contains("is complete: the copy is the same"), "{}", output.stderr);
    assert!(fs::read(&copy).unwrap() == bytes);
}

#[test]
fn a_file_that_stops_making_sense_is_kept_up_to_there() {
    let place = folder();
    let (file, out) = (place.path().join("a"), place.path().join("b"));
    let bytes = capture(CAPTURES[0]);
    let mut broken = bytes[..bytes.len() / 2].to_vec();
    let Ending::Truncated { whole_bytes, .. } = read(&broken).0 else { panic!("not cut off") };
    broken.truncate(whole_bytes as usize);
    broken.extend([0x55; 1000]);
    fs::write(&file, &broken).unwrap();
    let output = salvage(&file, &out);
    let words = format!("the last 1000 bytes of {}", dn_top::model::Bytes(broken.len() as u64));
    assert!(output.code == 0 && output.stderr.contains(&words), "{}", output.stderr);
    assert!(output.stderr.contains("it stopped making sense there"), "{}", output.stderr);
    let kept = fs::read(out).unwrap();
    assert_eq!(read(&kept), (Ending::Complete, read(&broken).1));
    assert_eq!(kept.len() as u64, whole_bytes + 1);
}

#[test]
fn nothing_is_salvaged_over_another_file_or_from_none() {
    let place = folder();
    let (file, out) = (place.path().join("a"), place.path().join("b"));
    fs::write(&file, &capture(CAPTURES[0])[..100_000]).unwrap();
    fs::write(&out, "mine").unwrap();
    salvage(&file, &out).assert_refused(1, "exists already and is not overwritten");
    salvage(&file, &file).assert_refused(1, "exists already and is not overwritten");
    assert_eq!(fs::read(&out).unwrap(), b"mine");
    fs::write(&file, "What is the time, please?").unwrap();
    salvage(&file, &place.path().join("c")).assert_refused(1, "cannot be read");
    fs::write(&file, "").unwrap();
    salvage(&file, &place.path().join("c")).assert_refused(1, "it holds no events");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2, "something is left behind");
}

#[test]
fn a_report_adds_up() {
    let place = folder();
    let file = place.path().join("a");
    fs::write(&file, capture("net31-heavy")).unwrap();
    let report = |more: &[&str]| run(&[&["report", file.to_str().unwrap(), "--json"], more].concat()).json();
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
fn a_report_says_what_the_file_lacks() {
    let place = folder();
    let file = place.path().join("a");
    fs::write(&file, capture(CAPTURES[1])).unwrap();
    let output = run(&["report", file.to_str().unwrap()]);
    assert!(output.code == 0 && output.stderr.contains("holds no samples: record with --profile"), "{output:?}");
    fs::write(&file, &capture(CAPTURES[0])[..1_000_000]).unwrap();
    let output = run(&["report", file.to_str().unwrap()]);
    assert!(output.code == 0 && output.stderr.contains("was cut off"), "{output:?}");
    assert!(output.stdout.starts_with("thread time, not processor time: "), "{}", output.stdout);
    assert_eq!(run(&["report", file.to_str().unwrap(), "-n", "0", "--json"]).json()["methods"], json!([]));
}
