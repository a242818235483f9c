//! `--when` and `--stop-when`: dn-top acts once a figure of a process has reached a value, or an event has occurred; `--times` and `--wait`.

use std::time::Duration;

use serde_json::json;

use crate::support::runtimes;
use crate::support::{Invocation, Launch, Program, Running, folder};

/// Starts a command that waits, and waits until it does.
fn waiting(arguments: &[&str], folder: &std::path::Path) -> Running {
    let running = Invocation::new(arguments).current_dir(folder).start();
    running.wait_for_stderr("waiting for");
    running
}

/// Checks that a command still waits after some readings.
fn assert_waits(running: &mut Running) {
    std::thread::sleep(Duration::from_millis(2500));
    assert!(running.is_alive() && !running.stderr().contains("is true") && !running.stderr().contains("occurred:"), "{}", running.stderr());
}

#[test]
fn stacks_are_read_once_there_are_many_threads() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let (pid, place) = (program.pid().to_string(), folder());
        let mut running = waiting(&["stacks", &pid, "--json", "--when", "threads>150 for 1s"], place.path());
        assert_waits(&mut running);
        program.carry_out("threads 150 0");
        let output = running.wait();
        assert!(output.json()["threads"].as_u64().unwrap() >= 150, "{runtime}: {}", output.stdout);
        assert!(output.stderr.contains("threads>150 for 1s is true: 1"), "{runtime}: {}", output.stderr);
    });
}

#[test]
fn heap_is_dumped_once_it_is_large() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let (pid, place) = (program.pid().to_string(), folder());
        let file = place.path().join("a.dmp");
        let dump = ["dump", &pid, "--type", "mini", "--json", "-o", file.to_str().unwrap(), "--when", "gc-heap-size>30MB"];
        let mut running = waiting(&dump, place.path());
        assert_waits(&mut running);
        assert!(!file.exists(), "{runtime}");
        program.carry_out("hold 2000000");
        assert_eq!(running.wait().json()["path"], json!(file), "{runtime}");
        assert!(file.exists() && program.is_alive(), "{runtime}");
    });
}

/// The flight recorder has what was before.
#[test]
fn flight_recording_stops_at_exceptions_or_cpu_use() {
    for (condition, command, unit) in [("exception-count>50", "throw 3000", "/s"), ("cpu>5 for 1s", "spend 6000", " %")] {
        runtimes::each_in_turn(runtimes::with("known"), |runtime| {
            let mut program = runtime.program("known").start();
            let (pid, place) = (program.pid().to_string(), folder());
            let trace = ["trace", &pid, "--clr-events", "exception", "--flight", "1m", "--json", "--stop-when", condition];
            let mut running = Invocation::new(trace).current_dir(place.path()).start();
            running.wait_for_stderr("recording");
            assert_waits(&mut running);
            if runtime.major() < 9 && condition.starts_with("exception-count") {
                // Counters of a process that has just started are not read.
                std::thread::sleep(Duration::from_secs(9));
            }
            program.carry_out(command);
            let output = running.wait();
            let document = output.json();
            assert_eq!((&document["stopped_by"], &document["complete"]), (&json!("condition"), &json!(true)), "{runtime}: {document}");
            let value = output.stderr.lines().find_map(|line| line.strip_prefix(&format!("dn-top: {condition} is true: ")));
            assert!(value.is_some_and(|value| value.ends_with(unit)), "{runtime}: {}", output.stderr);
            assert!(program.is_alive(), "{runtime}");
        });
    }
}

/// Only the exception that is asked for counts.
#[test]
fn dump_is_taken_when_an_exception_is_thrown() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let (pid, place) = (program.pid().to_string(), folder());
        let wait = |text: &str| {
            let condition = format!("memory>1000GB or exception:{text}");
            waiting(&["dump", &pid, "--type", "mini", "--json", "--when", &condition], place.path())
        };
        let (mut other, mut thrown) = (wait("NoSuchException"), wait("InvalidOperationException"));
        assert_waits(&mut thrown);
        program.carry_out("throw 1");
        let output = thrown.wait();
        let path = output.json()["path"].as_str().map(std::path::PathBuf::from);
        assert!(path.unwrap().exists(), "{runtime}");
        assert!(output.stderr.contains("exception:InvalidOperationException occurred: "), "{runtime}: {}", output.stderr);
        assert_waits(&mut other);
        assert!(program.is_alive(), "{runtime}");
    });
}

#[test]
fn events_are_waited_for_until_there_are_several_in_a_time() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let (pid, place) = (program.pid().to_string(), folder());
        let burst = "exception:InvalidOperationException 3 times in 1s";
        let mut running = waiting(&["stacks", &pid, "--json", "--when", burst], place.path());
        for _ in 0..2 {
            program.carry_out("throw 2");
            assert_waits(&mut running);
        }
        program.carry_out("throw 3");
        let output = running.wait();
        assert!(output.stderr.contains(&format!("{burst} is true; the last event: ")), "{runtime}: {}", output.stderr);
        assert!(output.json()["threads"].as_u64().unwrap() > 0, "{runtime}");
    });
}

#[test]
fn events_are_waited_for_by_their_fields() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let (pid, place) = (program.pid().to_string(), folder());
        let second = "Microsoft-Windows-DotNETRuntime/GCStart[Depth=2]";
        let mut running = waiting(&["stacks", &pid, "--json", "--when", second], place.path());
        assert_waits(&mut running);
        program.carry_out("collect 2 0");
        assert_waits(&mut running);
        program.carry_out("collect 2 2");
        let output = running.wait();
        assert!(output.stderr.contains(&format!("{second} occurred: ")), "{runtime}: {}", output.stderr);
        assert!(output.json()["threads"].as_u64().unwrap() > 0, "{runtime}");
    });
}

/// Meters have a series for each generation since .NET 9.
#[test]
fn series_of_a_meter_are_told_apart_by_their_tags() {
    runtimes::each(runtimes::since(9, runtimes::with("known")), |runtime| {
        let mut program = runtime.program("known").start();
        let (pid, place) = (program.pid().to_string(), folder());
        let when = |generation: &str| {
            let condition = format!("dotnet.gc.last_collection.heap.size[gc.heap.generation={generation}]>=20MB");
            waiting(&["stacks", &pid, "--json", "--when", &condition], place.path())
        };
        let (mut large, held) = (when("loh"), when("gen2"));
        // Small objects.
        program.carry_out("hold 2000000");
        program.carry_out("collect 1 2");
        held.wait().json();
        assert_waits(&mut large);
    });
}

#[test]
fn dumps_are_repeated() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let (pid, place) = (program.pid().to_string(), folder());
        let dump = ["dump", &pid, "--type", "mini", "--times", "2", "--pause", "1s", "--when", "threads>0"];
        let output = Invocation::new(dump).current_dir(place.path()).run();
        assert_eq!(output.code, 0, "{runtime}: {}", output.stderr);
        let dumps: std::collections::BTreeSet<_> = output.stdout.lines().filter(|path| std::path::Path::new(path).exists()).collect();
        assert_eq!(dumps.len(), 2, "{runtime}: {}", output.stdout);
        assert!(output.stderr.contains("1 of 2; pausing for 1s"), "{runtime}: {}", output.stderr);
        assert_eq!(output.stderr.matches("pausing").count(), 1, "{runtime}: {}", output.stderr);
        assert!(program.is_alive());
    });
}

/// After a recording, a signal no longer has its default effect.
#[test]
fn signal_ends_waiting_in_every_round() {
    let Some(runtime) = runtimes::net9() else { return };
    let program = runtime.program("known").start();
    let (pid, place) = (program.pid().to_string(), folder());
    let record = ["trace", &pid, "--clr-events", "gc", "--duration", "200ms", "--times", "2"];
    for (more, waits, expected) in [
        (&["--pause", "60s"][..], "pausing for 1m", "interrupted in the pause"),
        (&["--pause", "100ms", "--when", "threads>0 for 1s"], "pausing for 100ms", "interrupted before the condition was met"),
    ] {
        let running = Invocation::new([&record, more].concat()).current_dir(place.path()).start();
        running.wait_for_stderr(waits);
        std::thread::sleep(Duration::from_millis(400));
        let output = running.interrupt();
        assert!(output.code == 130 && output.stderr.contains(expected), "{}: {}", output.code, output.stderr);
    }
    let output = waiting(&["dump", &pid, "--when", "threads>1000"], place.path()).interrupt();
    assert!(output.code == 130 && output.stderr.contains("interrupted before the condition was met"), "{}", output.stderr);
}

#[test]
fn process_that_does_not_exist_yet_is_waited_for() {
    let Some(runtime) = runtimes::native_aot() else { return };
    let place = folder();
    // A name that no other process has at the same time.
    let host = place.path().join("awaited");
    std::fs::copy(runtime.host(), &host).unwrap();
    let trace = ["trace", "awaited", "--wait", "--duration", "1s", "--clr-events", "gc", "--json"];
    let running = Invocation::new(trace).current_dir(place.path()).start();
    running.wait_for_stderr("waiting for awaited");
    let program = Launch::new(&host).start();
    let document = running.wait().json();
    assert_eq!((&document["stopped_by"], &document["complete"]), (&json!("duration"), &json!(true)), "{document}");
    assert!(document["file"].as_str().unwrap().contains(&format!("awaited_{}_", program.pid())), "{document}");
}

#[test]
fn waiting_ends_with_the_process() {
    runtimes::each(runtimes::all(), |runtime| {
        for condition in ["cpu>100000", "gc-heap-size>1000GB", "exception:None.Such"] {
            let program: Program = runtime.any().start();
            let (pid, place) = (program.pid().to_string(), folder());
            let mut running = waiting(&["trace", &pid, "--when", condition], place.path());
            assert_waits(&mut running);
            drop(program);
            let output = running.wait();
            assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{runtime}: {}", output.stderr);
            assert!(output.stderr.contains("the process exited before the condition was met"), "{runtime}: {}", output.stderr);
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{runtime}: a file is left");
        }
    });
}

#[test]
fn condition_that_cannot_be_checked_is_explained() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let program = runtime.program("known").start();
        let (pid, place) = (program.pid().to_string(), folder());
        let output = waiting(&["trace", &pid, "--when", "threadpool-thread-count>2GB"], place.path()).wait();
        assert_eq!(output.code, 1, "{runtime}: {}", output.stderr);
        assert!(output.stderr.contains("cannot be compared with a size: use a number"), "{runtime}: {}", output.stderr);
        for wrong in ["no-such-counter>1", "No.Such.Provider/counter>1"] {
            let running = waiting(&["trace", &pid, "--when", wrong], place.path());
            running.wait_for_stderr(&format!("has not published {} yet; `dn-top counters` lists", wrong.trim_end_matches(">1")));
            let running = Invocation::new(["trace", &pid, "--stop-when", wrong]).current_dir(place.path()).start();
            running.wait_for_stderr(&format!("the process has not published {} yet", wrong.trim_end_matches(">1")));
        }
    });
}
