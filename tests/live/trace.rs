//! `trace` with all its options, and the contents of the files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dn_top::analysis::{EventCount, Throughput};
use dn_top::nettrace::{Decoder, Limits};
use serde_json::{Value, json};

use crate::support::runtimes;
use crate::support::{Invocation, Output, Program, Running, Signal, TIMEOUT, folder, poll};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Contents of a file according to the library, without using a command.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) process_id: u32,
    pub(crate) stacks: u64,
    counts: Vec<EventCount>,
}

impl Recorded {
    pub(crate) fn of(file: &Path) -> Self {
        let (mut decoder, mut tally) = (Decoder::new(Limits::default()), Throughput::default());
        decoder.feed(&fs::read(file).unwrap(), &mut tally).unwrap();
        assert!(decoder.finish(&mut tally).is_complete(), "{} is cut off", file.display());
        assert_eq!(tally.problems(), []);
        Self { process_id: tally.trace().unwrap().process_id, stacks: tally.snapshot().stacks, counts: tally.counts() }
    }

    fn count(&self, is: impl Fn(&EventCount) -> bool) -> u64 {
        self.counts.iter().filter(|count| is(count)).map(|count| count.count).sum()
    }

    /// Returns the number of events with this name from the runtime's own provider.
    fn runtime_events(&self, name: &str) -> u64 {
        self.count(|count| count.provider == RUNTIME && count.name == name)
    }

    /// Returns the number of rundown events whose names have this prefix.
    pub(crate) fn rundown_events(&self, name: &str) -> u64 {
        self.count(|count| count.provider == format!("{RUNTIME}Rundown") && count.name.starts_with(name))
    }
}

/// Returns the output of `stats` for a file.
pub(crate) fn stats(file: &Path) -> Value {
    Invocation::new(["stats".as_ref(), file.as_os_str(), "--json".as_ref()]).run().json()
}

/// Panics unless the file is complete, and the output of `trace` and `stats` matches it.
pub(crate) fn assert_complete(file: &Path, result: &Value) -> Recorded {
    let recorded = Recorded::of(file);
    let events = recorded.count(|_| true);
    let expected = json!([true, fs::metadata(file).unwrap().len(), events, 0]);
    for said in [result, &stats(file)] {
        assert_eq!(json!([said["complete"], said["bytes"], said["events"], said["dropped"]]), expected, "{said}");
    }
    recorded
}

/// Waits until a recording started in `place` has written data, and returns its file.
pub(crate) fn wait_for_data(running: &Running, place: &Path) -> PathBuf {
    let partial = || {
        let files = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
        files.into_iter().find(|file| file.to_str().unwrap().ends_with(".partial") && file.metadata().is_ok_and(|file| file.len() > 0))
    };
    poll(TIMEOUT, partial).unwrap_or_else(|| panic!("nothing is recorded: {}", running.stderr()))
}

/// Waits until a recording receives every event: a runtime delivers the events of a session before it handles the next request.
pub(crate) fn wait_for_session(recording: &Running, program: &Program) {
    recording.wait_for_stderr("Ctrl-C stops it");
    assert!(program.answers());
}

fn trace(program: &Program, file: &Path, arguments: &[&str]) -> Invocation {
    let pid = program.pid().to_string();
    Invocation::new([&["trace", &pid, "-o", file.to_str().unwrap(), "--json"], arguments].concat())
}

/// Starts a recording, which receives every event from the return of this function.
pub(crate) fn start(program: &Program, file: &Path, arguments: &[&str]) -> Running {
    let recording = trace(program, file, arguments).start();
    wait_for_session(&recording, program);
    recording
}

/// Stops a recording, and checks its file.
pub(crate) fn stop(recording: Running, file: &Path) -> Recorded {
    assert_complete(file, &serde_json::from_str(&recording.interrupt().stdout).unwrap())
}

/// Records while `known` carries out a command, until Ctrl-C.
fn record(program: &mut Program, arguments: &[&str], command: &str) -> Recorded {
    let place = folder();
    let file = place.path().join("a.nettrace");
    let recording = start(program, &file, arguments);
    program.carry_out(command);
    stop(recording, &file)
}

#[test]
fn only_requested_events_are_recorded() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let exceptions = format!("{RUNTIME}:0x8000:2");
        for arguments in [&["--provider", exceptions.as_str()][..], &["--clr-events", "exception"]] {
            let recorded = record(&mut program, arguments, "throw 7");
            assert_eq!((recorded.runtime_events("ExceptionThrown"), recorded.runtime_events("GCStart")), (7, 0), "{runtime} {arguments:?}");
            assert!(recorded.stacks > 0 && recorded.rundown_events("MethodDCEnd") > 0, "{runtime} {arguments:?}: {recorded:#?}");
        }
        let recorded = record(&mut program, &["--profile", "gc-collect"], "collect 3 2");
        assert_eq!((recorded.runtime_events("GCStart"), recorded.runtime_events("ExceptionThrown")), (3, 0), "{runtime}");
        // Both at once, with a small buffer.
        let both = ["--profile", "gc-collect", "--provider", &exceptions, "--buffer-mb", "1"];
        assert_eq!(record(&mut program, &both, "throw 2").runtime_events("ExceptionThrown"), 2, "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn stacks_and_rundown_are_optional() {
    runtimes::each(runtimes::since(9, runtimes::with("known")), |runtime| {
        let mut program = runtime.program("known").start();
        let mut with = |arguments: &[&str]| record(&mut program, &[&["--clr-events", "exception"], arguments].concat(), "throw 5");
        let plain = with(&["--rundown", "full"]);
        assert!(plain.stacks > 0 && plain.rundown_events("MethodDCEnd") > 0 && plain.rundown_events("ModuleDCEnd") > 0, "{plain:#?}");
        let bare = with(&["--no-stacks", "--rundown", "none"]);
        assert_eq!((bare.runtime_events("ExceptionThrown"), bare.rundown_events("")), (5, 0));
        assert!(bare.stacks <= 1, "{bare:#?} has more than the empty stack");
        let methods = with(&["--rundown", "0x38"]);
        assert!(methods.rundown_events("MethodDCEnd") > 0, "{methods:#?}");
    });
}

#[test]
fn old_runtime_explains_unsupported_options() {
    runtimes::each(runtimes::before(9, runtimes::with("known")), |runtime| {
        let mut program = runtime.program("known").start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        trace(&program, &file, &["--rundown", "0x38"]).run().assert_refused(1, "selecting the rundown needs .NET 9");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "a file is left behind");
        // Options that a recording can do without are dropped, with a note.
        let output = trace(&program, &file, &["--no-stacks", "--duration", "200ms"]).run();
        let note = "events include stacks, which makes them larger and adds overhead: recording without stacks needs .NET 9";
        assert!(output.stderr.contains(note), "{}", output.stderr);
        assert_eq!(output.json()["notes"], serde_json::json!([note]));
        fs::remove_file(&file).unwrap();
        let bare = record(&mut program, &["--clr-events", "exception", "--rundown", "none"], "throw 5");
        assert_eq!((bare.runtime_events("ExceptionThrown"), bare.rundown_events("")), (5, 0));
    });
}

#[test]
fn max_size_stops_recording() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let result = trace(&program, &file, &["--max-size", "100kB"]).run().json();
        assert_eq!(result["stopped_by"], "size");
        assert!(result["bytes"].as_u64() >= Some(100_000), "{result}");
        assert_complete(&file, &result);
    });
}

#[test]
fn concurrent_recordings_of_one_process_are_independent() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let place = folder();
        let files = ["a", "b", "c"].map(|name| place.path().join(name).with_extension("nettrace"));
        let provider = format!("{RUNTIME}:0x8000:2");
        let recordings = files.each_ref().map(|file| trace(&program, file, &["--provider", &provider]).start());
        recordings.iter().for_each(|recording| wait_for_session(recording, &program));
        // Each continues after the earlier ones have ended.
        for ((file, recording), thrown) in files.iter().zip(recordings).zip([3, 6, 9]) {
            program.carry_out("throw 3");
            assert_eq!(stop(recording, file).runtime_events("ExceptionThrown"), thrown);
        }
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn exited_target_is_recorded_up_to_its_exit() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let (output, place) = recorded_until(&mut program, |program| {
            program.signal(Signal::KILL);
            assert!(!program.wait().success());
        });
        // The exit of the target is a regular end of the recording.
        let result = output.json();
        assert_eq!((&result["stopped_by"], &result["complete"]), (&json!("target-exit"), &json!(false)), "{runtime}");
        let words = "the target exited or closed the stream, before the recording was complete; every complete block is kept";
        assert!(output.stderr.contains(words), "{runtime}: {}", output.stderr);
        let file = place.path().join(result["file"].as_str().unwrap());
        assert!(file.to_str().unwrap().ends_with(".nettrace.partial"), "{}", file.display());
        let stats = stats(&file);
        let said = |of: &Value| json!([of["complete"], of["bytes"], of["events"]]);
        assert_eq!((said(&stats), stats["bytes"].as_u64()), (said(&result), Some(fs::metadata(&file).unwrap().len())), "{runtime}");
    });
}

/// Records until `end` has ended the program.
fn recorded_until(program: &mut Program, end: impl Fn(&mut Program)) -> (Output, tempfile::TempDir) {
    let place = folder();
    let running = Invocation::new(["trace", &program.pid().to_string(), "--json"]).current_dir(place.path()).start();
    wait_for_session(&running, program);
    end(program);
    (running.wait(), place)
}

#[test]
fn suspended_process_is_listed_and_unchanged() {
    runtimes::each(runtimes::since(5, runtimes::all()), |runtime| {
        let mut program = runtime.any().env("DOTNET_DefaultDiagnosticPortSuspend", "1").start();
        let pid = program.pid().to_string();
        let place = folder();
        let info = Invocation::new(["info", &pid, "--json"]).run().json();
        let state = json!([info["state"], info["contact"], info["runtime_version"]]);
        assert_eq!(state, json!(["suspended", "ok", runtime.version]), "{runtime}");
        // A session can be opened, but does not even send a header.
        let output = trace(&program, &place.path().join("a.nettrace"), &["--duration", "300ms"]).run();
        assert!(output.code == 1 && output.stderr.contains("is suspended at startup"), "{runtime}: {}", output.stderr);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "an empty file is left behind");
        Invocation::new(["perfmap", &pid, "on"]).run().assert_refused(1, "is suspended at startup");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn only_requested_event_ids_are_recorded() {
    // An event ID that is sent twice makes the runtime lose the provider.
    let ids = format!("{RUNTIME}/1,2,1");
    // Enabling this keyword triggers a collection.
    let collect = format!("{RUNTIME}:0x800001:4");
    let arguments = ["--provider", collect.as_str(), "--event-ids", ids.as_str()];
    runtimes::each(runtimes::since(10, runtimes::all_and_single_files()), |runtime| {
        let program = runtime.any().start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let running = trace(&program, &file, &arguments).start();
        let partial = wait_for_data(&running, place.path());
        let collected = || {
            let (mut decoder, mut tally) = (Decoder::new(Limits::default()), Throughput::default());
            decoder.feed(&fs::read(&partial).unwrap(), &mut tally).ok()?;
            tally.counts().iter().any(|count| count.provider == RUNTIME && count.event_id == 2).then_some(())
        };
        // The collection triggered by a session may be over before that session delivers events. One triggered by another session is not.
        let forced = |attempt: usize| {
            let other = place.path().join(format!("{attempt}.other"));
            trace(&program, &other, &["--provider", collect.as_str(), "--duration", "200ms", "--rundown", "none"]).run();
            poll(Duration::from_secs(2), collected)
        };
        (0..15).find_map(forced).unwrap();
        let recorded = stop(running, &file);
        let ids: Vec<_> = recorded.counts.iter().filter(|count| count.provider == RUNTIME).map(|count| count.event_id).collect();
        assert!(ids.iter().all(|id| [1, 2].contains(id)) && ids.len() == 2, "{recorded:#?}");
    });
    runtimes::each(runtimes::before(10, runtimes::all()), |runtime| {
        let (program, place) = (runtime.any().start(), folder());
        let output = trace(&program, &place.path().join("a.nettrace"), &arguments).run();
        output.assert_refused(1, "filtering by event id, or recording into user_events, needs .NET 10");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    });
}

#[test]
fn selected_rundown_has_only_methods_and_modules() {
    runtimes::each(runtimes::since(9, runtimes::all()), |runtime| {
        let (program, place) = (runtime.any().start(), folder());
        let file = place.path().join("a.nettrace");
        let output = trace(&program, &file, &["--provider", "DnTop-Unused", "--rundown", "0x38", "--duration", "200ms"]).run();
        let recorded = assert_complete(&file, &output.json());
        let rundown = format!("{RUNTIME}Rundown");
        let names: Vec<_> = recorded.counts.iter().filter(|count| count.provider == rundown).map(|count| count.name.as_str()).collect();
        let expected =
            ["MethodDCEnd", "ModuleDCEnd", "DomainModuleDCEnd", "AssemblyDCEnd", "AppDomainDCEnd", "DCEnd", "RuntimeInformation"];
        assert!(names.iter().all(|name| expected.iter().any(|prefix| name.starts_with(prefix))), "{runtime}: {names:?}");
        assert!(recorded.rundown_events("MethodDCEnd") > 0 && recorded.rundown_events("ModuleDCEnd") > 0, "{runtime}: {names:?}");
    });
}
