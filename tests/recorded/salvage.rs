//! Repair of files with `salvage`, and commands that are interrupted while they write a file.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dn_top::analysis::Throughput;
use dn_top::nettrace::{Decoder, Encoder, Ending, Limits, Metadata, NewEvent, TraceHeader};

use crate::captures::capture;
use crate::support::{Invocation, Output, Running, Signal, TIMEOUT, folder, poll};
use crate::{WITHOUT_RUNDOWN, run};

fn salvage(file: &Path, out: &Path) -> Output {
    run(&["salvage".as_ref(), file.as_os_str(), "-o".as_ref(), out.as_os_str()])
}

/// Returns how a stream ends, and its number of events.
fn read(bytes: &[u8]) -> (Ending, u64) {
    let (mut decoder, mut tally) = (Decoder::new(Limits::default()), Throughput::default());
    let _ = decoder.feed(bytes, &mut tally);
    (decoder.finish(&mut tally), tally.snapshot().events)
}

#[test]
fn truncated_file_is_salvaged() {
    let place = folder();
    let (cut, whole) = (place.path().join("cut"), place.path().join("whole.nettrace"));
    for name in WITHOUT_RUNDOWN {
        let bytes = capture(name);
        for part in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&cut, &bytes[..part]).unwrap();
            let (ending, events) = read(&bytes[..part]);
            assert!(matches!(ending, Ending::Truncated { .. }) && events > 100, "{name} at {part}: {ending:?}, {events}");
            let output = salvage(&cut, &whole);
            assert_eq!((output.code, &output.stdout), (0, &format!("{}\n", whole.display())), "{}", output.stderr);
            assert!(output.stderr.contains(" events; the last ") || output.stderr.contains(" events, all of "), "{}", output.stderr);
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
fn complete_file_is_copied() {
    let place = folder();
    let (file, copy) = (place.path().join("a"), place.path().join("b"));
    let bytes = capture(WITHOUT_RUNDOWN[0]);
    fs::write(&file, &bytes).unwrap();
    let output = salvage(&file, &copy);
    assert!(output.code == 0 && output.stderr.contains("is complete: the copy is identical"), "{}", output.stderr);
    assert!(fs::read(&copy).unwrap() == bytes);
}

#[test]
fn salvage_keeps_data_before_corruption() {
    let place = folder();
    let (file, out) = (place.path().join("a"), place.path().join("b"));
    let bytes = capture(WITHOUT_RUNDOWN[0]);
    let mut broken = bytes[..bytes.len() / 2].to_vec();
    let Ending::Truncated { complete_bytes, .. } = read(&broken).0 else { panic!("not cut off") };
    broken.truncate(complete_bytes as usize);
    broken.extend([0x55; 1000]);
    fs::write(&file, &broken).unwrap();
    let output = salvage(&file, &out);
    let words = format!("the last 1000 bytes of {}", dn_top::model::Bytes(broken.len() as u64));
    assert!(output.code == 0 && output.stderr.contains(&words), "{}", output.stderr);
    assert!(output.stderr.contains("it cannot be decoded beyond that"), "{}", output.stderr);
    let kept = fs::read(out).unwrap();
    assert_eq!(read(&kept), (Ending::Complete, read(&broken).1));
    assert_eq!(kept.len() as u64, complete_bytes + 1);
}

#[test]
fn salvage_does_not_overwrite_and_rejects_invalid_input() {
    let place = folder();
    let (file, out) = (place.path().join("a"), place.path().join("b"));
    fs::write(&file, &capture(WITHOUT_RUNDOWN[0])[..100_000]).unwrap();
    fs::write(&out, "mine").unwrap();
    salvage(&file, &out).assert_refused(1, "exists already and is not overwritten");
    salvage(&file, &file).assert_refused(1, "exists already and is not overwritten");
    assert_eq!(fs::read(&out).unwrap(), b"mine");
    fs::write(&file, "What is the time, please?").unwrap();
    salvage(&file, &place.path().join("c")).assert_refused(1, "is not a nettrace file");
    fs::write(&file, "").unwrap();
    salvage(&file, &place.path().join("c")).assert_refused(1, "a is empty");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2, "something is left behind");
}

#[test]
fn files_that_are_not_segments_of_one_recording_are_refused() {
    let place = folder();
    let segment = |name: &str, process_id| {
        let mut encoder = Encoder::new(TraceHeader { process_id, ..TraceHeader::default() });
        let metadata = encoder.metadata(&Metadata { provider: "Orders".to_owned(), event_id: 1, ..Metadata::default() });
        encoder.event(&NewEvent { metadata, ..NewEvent::default() });
        encoder.flush();
        let path = place.path().join(name);
        fs::write(&path, encoder.take()).unwrap();
        path
    };
    let out = place.path().join("out");
    let join = |segments: [&Path; 2]| {
        let words = ["salvage".as_ref(), "-o".as_ref(), out.as_os_str()];
        run(&words.into_iter().chain(segments.map(Path::as_os_str)).collect::<Vec<_>>())
    };
    let [first, second, other] = [("a.0001", 7), ("a.0002", 7), ("b.0001", 8)].map(|(name, process)| segment(name, process));
    join([&first, &other]).assert_refused(2, "belong to different recordings");
    join([&first, &first]).assert_refused(2, "is given twice");
    assert!(!out.exists());
    let output = join([&first, &second]);
    assert!(output.code == 0 && read(&fs::read(&out).unwrap()) == (Ending::Complete, 2), "{}", output.stderr);
}

/// Starts a command that writes `out`, and interrupts it once its unfinished file exists. `wake` is called then.
fn interrupt(words: &[&OsStr], out: &Path, wake: impl FnOnce(&Running)) -> Output {
    let running = Invocation::new(words).start();
    let partial = PathBuf::from(format!("{}.partial", out.display()));
    poll(TIMEOUT, || partial.exists().then_some(())).expect("an unfinished file");
    running.signal(Signal::INT);
    wake(&running);
    let output = running.wait();
    assert!(!partial.exists() && !out.exists(), "{}", output.stderr);
    output
}

#[test]
fn interrupted_salvage_leaves_no_file() {
    let place = folder();
    let [pipe, out] = ["pipe", "out.nettrace"].map(|name| place.path().join(name));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut recording = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let bytes = capture(WITHOUT_RUNDOWN[0]);
    recording.write_all(&bytes[..4096]).unwrap();
    let output = interrupt(&["salvage".as_ref(), pipe.as_os_str(), "-o".as_ref(), out.as_os_str()], &out, |running| {
        // The signal is only noticed between two reads.
        running.wait_for_stderr("canceling; press Ctrl-C again");
        recording.write_all(&bytes[4096..8192]).unwrap();
        drop(recording);
    });
    assert!(
        output.code == 130 && output.stderr.ends_with("the repair was canceled; the incomplete file is removed\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn interrupted_export_leaves_no_file() {
    let place = folder();
    let [file, out] = ["a.nettrace", "a.csv"].map(|name| place.path().join(name));
    let mut encoder = Encoder::new(TraceHeader::default());
    let metadata = encoder.metadata(&Metadata { provider: "Orders".to_owned(), event_id: 1, ..Metadata::default() });
    for at in 0..2_000_000 {
        encoder.event(&NewEvent { metadata, timestamp: at, ..NewEvent::default() });
    }
    encoder.end();
    fs::write(&file, encoder.take()).unwrap();
    let words = ["export".as_ref(), file.as_os_str(), "--format".as_ref(), "csv".as_ref(), "-o".as_ref(), out.as_os_str()];
    let output = interrupt(&words, &out, |_| {});
    // If it takes a while, it says before that it is being canceled.
    assert!(output.code == 130 && output.stderr.ends_with("the export was canceled\n"), "{}", output.stderr);
}
