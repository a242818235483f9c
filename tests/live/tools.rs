//! Command lines of .NET's diagnostic tools, with `dotnet-` replaced by `dn-top `.

use std::fs;
use std::path::Path;

use crate::support::runtimes;
use crate::support::{Invocation, Output, folder};

/// Runs a documented command line in this folder.
fn run(place: &Path, line: &str) -> Output {
    Invocation::new(line.split(' ')).current_dir(place).run()
}

fn files(place: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn documented_command_lines_work() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let (program, place) = (runtime.program("known").start(), folder());
        let (pid, place) = (program.pid(), place.path());
        let ok = |line: String| {
            let output = run(place, &line);
            assert_eq!(output.code, 0, "{runtime}: {line}: {}", output.stderr);
            output.stdout
        };
        let providers = "Microsoft-Windows-DotNETRuntime:0x1:4,Microsoft-DotNETCore-SampleProfiler";
        ok(format!("trace collect -p {pid} --providers {providers} --duration 00:00:01 --format Speedscope -o a.nettrace"));
        assert_eq!(files(place), ["a.nettrace", "a.speedscope.json"], "{runtime}");
        ok("trace convert a.nettrace --format Chromium".to_owned());
        ok("trace report a.nettrace topN -n 3 --inclusive".to_owned());
        let csv = "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment";
        ok(format!("counters collect -p {pid} --refresh-interval 1 --duration 00:00:02 --maxHistograms 5"));
        assert!(fs::read_to_string(place.join("counter.csv")).unwrap().starts_with(csv), "{runtime}");
        assert!(ok(format!("counters monitor -p {pid} --counters System.Runtime --duration 00:00:02")).contains("[System.Runtime]"));
        assert!(ok(format!("stack report -p {pid}")).contains("thread"), "{runtime}");
        ok(format!("gcdump collect -p {pid} -t 30"));
        assert_eq!(files(place).iter().filter(|file| file.ends_with(".gcdump")).count(), 1, "{runtime}");
        program.settle();
        ok(format!("dump collect -p {pid} --type Mini -o {}", place.join("core").display()));
        assert!(place.join("core").exists() && program.answers(), "{runtime}");
        let written = ok(format!("dump collect -p {pid} --type Mini -o {}", place.display()));
        let written = Path::new(written.trim_end());
        assert!(
            written.exists() && written.parent() == Some(place) && written.extension() == Some("dmp".as_ref()),
            "{runtime}: {written:?}"
        );
        let refused = run(place, &format!("trace -p {pid} --providers A,B --duration 00:00:30"));
        let expected = format!("dn-top: try `dn-top trace --provider A --provider B --duration 30s {pid}`\n");
        assert!(refused.code == 2 && refused.stderr.ends_with(&expected), "{runtime}: {}", refused.stderr);
    });
}

/// A name that is misspelled is not noticed by the runtime.
#[test]
fn providers_without_events_are_reported() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let (mut program, place) = (runtime.program("known").start(), folder());
        let line = format!("trace {} --provider DnTop-Known --provider DnTop-Unknown:0x1:5 -o a.nettrace --json", program.pid());
        let running = Invocation::new(line.split(' ')).current_dir(place.path()).start();
        running.wait_for_stderr("recording ");
        program.carry_out("flood 10");
        let output = running.interrupt();
        let notes = serde_json::from_str::<serde_json::Value>(&output.stdout).unwrap()["notes"].clone();
        let notes: Vec<_> =
            notes.as_array().unwrap().iter().filter_map(|note| note.as_str().filter(|note| note.starts_with("no event of "))).collect();
        assert!(notes.len() == 1 && notes[0].starts_with("no event of DnTop-Unknown was recorded"), "{runtime}: {notes:?}");
        assert!(output.stderr.contains(notes[0]), "{runtime}: {}", output.stderr);
    });
}

#[test]
fn stopping_event_ends_the_recording() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let (mut program, place) = (runtime.program("known").start(), folder());
        let filter = "--stopping-event-provider-name Microsoft-Windows-DotNETRuntime --stopping-event-event-name GC/Start \
                      --stopping-event-payload-filter Depth:2";
        let line = format!("trace collect -p {} --clrevents gc {filter} -o a.nettrace --duration 01:00:00", program.pid());
        let running = Invocation::new(line.split_whitespace()).current_dir(place.path()).start();
        running.wait_for_stderr("recording ");
        program.carry_out("collect 1 2");
        let output = running.wait();
        assert!(output.code == 0 && output.stderr.ends_with("complete; stop event received\n"), "{runtime}: {}", output.stderr);
    });
}

#[test]
fn suspended_process_is_resumed_once_session_is_open() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let (program, place) = (runtime.program("known").env("DOTNET_DefaultDiagnosticPortSuspend", "1").start(), folder());
        let line = format!("trace collect -p {} --clrevents loader --duration 00:00:02 -o a.nettrace", program.pid());
        let output = run(place.path(), &line);
        assert_eq!(output.code, 0, "{runtime}: {}", output.stderr);
        let stats = run(place.path(), "stats a.nettrace --json").json();
        assert_eq!(stats["schema"], 1, "{stats}");
        assert!(stats["events"].as_u64() > Some(10), "{runtime}: {stats}");
    });
}
