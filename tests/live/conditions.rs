//! `--when` and `--stop-when`: dn-top acts once a figure of a process has reached a value.

use std::time::Duration;

use serde_json::json;

use crate::support::runtimes;
use crate::support::{Invocation, Program, Running, folder};

/// Starts a command that waits, and waits until it does.
fn waiting(arguments: &[&str], folder: &std::path::Path) -> Running {
    let running = Invocation::new(arguments).current_dir(folder).start();
    running.wait_for_stderr("waiting until");
    running
}

/// Checks that a command still waits after some readings.
fn assert_waits(running: &mut Running) {
    std::thread::sleep(Duration::from_millis(2500));
    assert!(running.is_alive() && !running.stderr().contains("is true:"), "{}", running.stderr());
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
    for (condition, command) in [("exception-count>50", "throw 3000"), ("cpu>20 for 1s", "spend 6000")] {
        runtimes::each_in_turn(runtimes::with("known"), |runtime| {
            let mut program = runtime.program("known").start();
            let (pid, place) = (program.pid().to_string(), folder());
            let trace = ["trace", &pid, "--clr-events", "exception", "--flight", "1m", "--json", "--stop-when", condition];
            let mut running = Invocation::new(trace).current_dir(place.path()).start();
            running.wait_for_stderr("recording");
            assert_waits(&mut running);
            program.carry_out(command);
            let output = running.wait();
            let document = output.json();
            assert_eq!((&document["stopped_by"], &document["complete"]), (&json!("condition"), &json!(true)), "{runtime}: {document}");
            assert!(output.stderr.contains(&format!("{condition} is true: ")), "{runtime}: {}", output.stderr);
            assert!(program.is_alive(), "{runtime}");
        });
    }
}

#[test]
fn waiting_ends_with_the_process() {
    runtimes::each(runtimes::all(), |runtime| {
        for condition in ["cpu>100000", "gc-heap-size>1000GB"] {
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
