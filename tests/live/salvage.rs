//! Recordings truncated because dn-top was killed, and method names that can still be requested from their process.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use dn_top::analysis::{Live, SampleFilter};
use dn_top::nettrace::{Decoder, Limits};
use serde_json::json;

use crate::readers::assert_same;
use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Output, Program, Signal, TIMEOUT, folder, poll};
use crate::trace::{Recorded, stats, wait_for_data};

/// Offset of the process ID in the trace object of a runtime's stream.
const PID_AT: usize = 89;
/// UID of the unprivileged user, if the tests run as root.
const UID: u32 = 65533;

/// Returns the number of samples in a possibly truncated file, and the number of unresolved ones.
fn samples(file: &Path) -> (u64, u64) {
    let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default());
    // It can be decoded up to its end: it is only truncated.
    decoder.feed(&fs::read(file).unwrap(), &mut live).unwrap();
    decoder.finish(&mut live);
    let profile = live.profile().methods(SampleFilter::ALL, 0);
    (profile.samples.all(), profile.unresolved)
}

/// Records samples of methods compiled earlier, until dn-top is killed. Returns the remaining file.
fn killed(program: &mut Program, place: &Path) -> PathBuf {
    program.carry_out("slow 1 200");
    let words = ["trace", &program.pid().to_string(), "-o", "a.nettrace", "--profile", "dotnet-sampled-thread-time"];
    let running = Invocation::new(words).current_dir(place).start();
    let partial = wait_for_data(&running, place);
    program.carry_out("slow 1 500");
    poll(TIMEOUT, || (samples(&partial).0 > 100).then_some(())).unwrap();
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, 128 + 9);
    partial
}

fn salvage(file: &Path, out: &str, more: &[&str]) -> Output {
    Invocation::new([&["salvage", file.to_str().unwrap(), "-o", out], more].concat()).current_dir(file.parent().unwrap()).run()
}

fn report(file: &Path) -> String {
    Invocation::new(["report".as_ref(), file.as_os_str(), "--inclusive".as_ref(), "-n".as_ref(), "100".as_ref()]).run().stdout
}

#[test]
fn salvage_names_methods_from_running_process() {
    let contained = if runtimes::namespaces() { &[false, true][..] } else { &[false] };
    runtimes::each(runtimes::with("known"), |runtime| {
        contained.iter().for_each(|contained| {
            let program = runtime.program("known");
            named(runtime, &mut if *contained { program.contained().start() } else { program.start() });
        });
    });
}

fn named(runtime: &Runtime, program: &mut Program) {
    let place = folder();
    let partial = killed(program, place.path());
    let pid = program.pid();

    let output = salvage(&partial, "plain.nettrace", &[]);
    let offer =
        format!("process {pid} (known), which was recorded, is still running: `dn-top salvage {} -o OTHER --names`", partial.display());
    assert!(output.code == 0 && output.stderr.contains(&offer), "{runtime}: {}", output.stderr);
    let plain = place.path().join("plain.nettrace");
    assert!(!report(&plain).contains("Known.Alone(int)"), "{runtime}: it was named before");

    let output = salvage(&partial, "named.nettrace", &["--names"]);
    assert!(output.code == 0 && output.stderr.contains(" method names from process"), "{runtime}: {}", output.stderr);
    let named = place.path().join("named.nettrace");
    assert!(report(&named).contains("Known.Alone(int)"), "{runtime}: {}", report(&named));
    let (before, after) = (samples(&plain), samples(&named));
    assert!(before.0 == after.0 && after.1 * 20 < after.0, "{runtime}: {before:?} {after:?}");
    // A complete stream without losses or problems: the unchanged recording, followed by the rundown.
    let (recorded, salvaged) = (Recorded::of(&plain), Recorded::of(&named));
    assert_eq!((salvaged.process_id, salvaged.rundown_events("DCEndComplete")), (recorded.process_id, 1), "{runtime}");
    assert_eq!(json!([stats(&named)["dropped"], stats(&named)["complete"]]), json!([stats(&plain)["dropped"], true]), "{runtime}");
    assert_same(runtime, &[plain, named]);
    assert!(program.is_alive() && program.answers(), "{runtime}");
}

#[test]
fn salvage_takes_names_only_from_recorded_process() {
    runtimes::each(runtimes::with("known"), |runtime| {
        // Neither of two programs, older and newer than the recording, may be mistaken for the recorded one.
        let older = runtime.program("known").start();
        assert_eq!(older.line(), "ready");
        let mut program = runtime.program("known").start();
        let place = folder();
        let partial = killed(&mut program, place.path());
        let younger = runtime.program("known").start();
        assert_eq!(younger.line(), "ready");
        let of = |other: &Program| {
            let mut bytes = fs::read(&partial).unwrap();
            assert_eq!(bytes[PID_AT..PID_AT + 4], program.pid().to_le_bytes());
            bytes[PID_AT..PID_AT + 4].copy_from_slice(&other.pid().to_le_bytes());
            let file = place.path().join(format!("{}.partial", other.pid()));
            fs::write(&file, bytes).unwrap();
            file
        };
        let (of_older, of_younger) = (of(&older), of(&younger));
        let refused = |file: &Path, words: &str| {
            let output = salvage(file, "out.nettrace", &["--names"]);
            output.assert_refused(3, words);
            assert!(output.stderr.contains("omit --names to write the file without method names"), "{runtime}: {}", output.stderr);
            assert!(!place.path().join("out.nettrace").exists() && !place.path().join("out.nettrace.partial").exists());
            let output = salvage(file, "out.nettrace", &[]);
            assert!(output.code == 0 && !output.stderr.contains("--names"), "{runtime}: {}", output.stderr);
            fs::remove_file(place.path().join("out.nettrace")).unwrap();
        };
        refused(&of_older, "(known) is not the process that was recorded, which has ended: it has no code where the recording has methods");
        refused(&of_younger, "which has ended: it was started after the recording began");
        program.signal(Signal::KILL);
        program.wait();
        refused(&partial, &format!("cannot resolve method names: process {}, which was recorded, has ended", program.pid()));
        assert!(older.answers() && younger.answers(), "{runtime}");
    });
}

#[test]
fn salvage_names_are_denied_to_other_users() {
    if !rustix::process::geteuid().is_root() {
        return runtimes::skip("only root can run programs as a second user");
    }
    // Readable by other users.
    let (tools, us) = (folder(), "dn-top");
    fs::copy(env!("CARGO_BIN_EXE_dn-top"), tools.path().join(us)).unwrap();
    std::os::unix::fs::chown(tools.path(), Some(UID), Some(UID)).unwrap();
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let place = folder();
        let partial = killed(&mut program, place.path());
        let theirs = place.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::copy(&partial, theirs.join("a.partial")).unwrap();
        for path in [place.path(), &theirs, &theirs.join("a.partial")] {
            std::os::unix::fs::chown(path, Some(UID), Some(UID)).unwrap();
        }
        let run = |more: &[&str]| {
            let words = [&["salvage", "a.partial", "-o", "out.nettrace"], more].concat();
            // A program that another test is just starting may briefly hold the copy open.
            let run = || Command::new(tools.path().join(us)).args(&words).current_dir(&theirs).uid(UID).gid(UID).output().ok();
            poll(TIMEOUT, run).unwrap()
        };
        let output = run(&["--names"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let words =
            format!("process {} is of user 0: only that user and root can see whether it is the one that was recorded", program.pid());
        assert!(output.status.code() == Some(4) && stderr.contains(&words), "{runtime}: {stderr}");
        assert!(!theirs.join("out.nettrace").exists());
        let output = run(&[]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !stderr.contains("--names"), "{runtime}: {stderr}");
        assert!(program.answers(), "{runtime}");
    });
}
