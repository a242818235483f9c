//! Commands whose target is `PATH,listen`: they wait for a program that connects to a diagnostic port, and is suspended at startup.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Launch, Output, Program, Running, TIMEOUT, folder};

/// Starts a command that waits for a program; `PORT` in its arguments is the path of the port.
fn waiting(words: &[&str], port: &Path) -> Running {
    let command = Invocation::new(words.iter().map(|word| word.replace("PORT", port.to_str().unwrap()))).start();
    command.wait_for_stderr(&format!("DOTNET_DiagnosticPorts={} ", port.display()));
    command
}

/// Runs a command that waits for a program, which then starts and reads `lines`. The program must run afterwards.
fn run_on(program: Launch, words: &[&str], lines: &[&str]) -> (Output, Program) {
    let place = folder();
    let port = place.path().join("port");
    let command = waiting(words, &port);
    let mut program = program.env("DOTNET_DiagnosticPorts", &port).spawn();
    if !lines.is_empty() {
        program.carry_out_at_once(lines);
    }
    let output = command.wait();
    assert!(!port.exists() && program.is_alive(), "{output:?}");
    (output, program)
}

fn known(runtime: &Runtime, words: &[&str], lines: &[&str]) -> Output {
    run_on(runtime.program("known"), words, lines).0
}

fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().unwrap()
}

#[test]
fn command_sees_a_program_from_its_start() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let analyze = |words: &[&str], lines: &[&str]| {
            let output = known(runtime, &[words, &["PORT,listen", "--duration", "1s", "--json"]].concat(), lines);
            assert_eq!(output.code, 0, "{runtime}: {output:?}");
            output.json()
        };
        // Sent before the first managed code runs.
        let events = analyze(&["events", "-n", "1000"], &[]);
        assert!(rows(&events).iter().any(|row| row["event"] == "RuntimeInformationStart"), "{runtime}: {events}");
        let compiled = analyze(&["jit", "-n", "1000"], &[]);
        assert!(rows(&compiled).iter().any(|row| row["method"] == "Known.Main"), "{runtime}: {compiled}");
        assert_eq!(analyze(&["exceptions"], &["throw 3"])["thrown"], 3, "{runtime}");
        assert_eq!(analyze(&["gc"], &["collect 2 1"])["gen1"], 2, "{runtime}");
        assert_eq!(analyze(&["contention"], &["contend 2"])["contentions"], 2, "{runtime}");
        assert!(analyze(&["allocations"], &[])["allocated_bytes"].as_u64() > Some(0), "{runtime}");
        assert!(analyze(&["slow"], &[])["complete"] == true, "{runtime}");

        let followed = known(runtime, &["exceptions", "PORT,listen", "--follow", "--duration", "1s"], &["throw 3"]);
        assert_eq!(followed.stdout.lines().count(), 3, "{runtime}: {followed:?}");
        let counters = known(runtime, &["counters", "monitor", "--diagnostic-port", "PORT", "--duration", "00:00:02"], &["throw 3"]);
        assert!(counters.code == 0 && counters.stdout.contains("[System.Runtime]"), "{runtime}: {counters:?}");
        // The same option on a command line of dn-top.
        let collections = known(runtime, &["gc", "--diagnostic-port", "PORT", "--duration", "1s", "--json"], &["collect 2 1"]);
        assert_eq!(collections.json()["gen1"], 2, "{runtime}: {collections:?}");
    });
}

#[test]
fn cpu_time_is_sampled_from_the_start_of_a_program() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        for live in [&[][..], &["--live"]] {
            let (output, program) = run_on(
                runtime.program("known"),
                &[&["cpu", "PORT,listen", "--duration", "2s", "--json", "-n", "10000"], live].concat(),
                &[],
            );
            if output.code == 4 {
                return runtimes::skip(&output.stderr);
            }
            let document =
                if live.is_empty() { output.json() } else { serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap() };
            assert!(output.code == 0 && document["pid"] == program.pid(), "{runtime}: {output:?}");
            // Main is compiled, and called, at the very beginning.
            let methods = document["methods"].as_array().unwrap();
            assert!(methods.iter().any(|method| method["name"] == "Known.Main()"), "{runtime}: {output:?}");
        }
    });
}

/// Also with a condition.
#[test]
fn program_is_resumed_before_a_command_that_needs_one_that_runs() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let stacks = known(runtime, &["stack", "report", "--diagnostic-port", "PORT"], &[]);
        assert!(stacks.code == 0 && stacks.stdout.contains("dotnet\n    "), "{runtime}: {stacks:?}");
        let heap = known(runtime, &["heap", "PORT,listen", "--yes", "--json"], &[]);
        assert!(heap.json()["objects"].as_u64() > Some(50), "{runtime}: {heap:?}");
        let (dump, program) = run_on(runtime.program("known"), &["dump", "PORT,listen", "--json"], &[]);
        let path = dump.json()["path_seen_here"].as_str().unwrap().to_owned();
        assert!(Path::new(&path).starts_with(program.folder()) && fs::metadata(&path).unwrap().len() > 0, "{runtime}: {dump:?}");
        let condition = known(runtime, &["stacks", "PORT,listen", "--when", "memory>1MB"], &["throw 1"]);
        assert!(condition.code == 0, "{runtime}: {condition:?}");
        for output in [stacks, heap, dump, condition] {
            assert!(output.stderr.contains(" (known) was suspended at startup, and was resumed first"), "{runtime}: {output:?}");
        }
    });
}

/// The exception is thrown before anything else shows that the program has started.
#[test]
fn condition_counts_events_from_the_start_of_the_program() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let output = known(runtime, &["stacks", "PORT,listen", "--when", "memory>1000GB or exception:number 0"], &["throw 1"]);
        assert!(output.code == 0 && output.stderr.contains("exception:number 0 occurred: "), "{runtime}: {output:?}");
        assert!(output.stdout.contains("dotnet\n    "), "{runtime}: {output:?}");
    });
}

#[test]
fn program_is_resumed_after_a_change_or_a_failure() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let (set, program) = run_on(runtime.program("known"), &["set-env", "PORT,listen", "DN_TOP_SET=seen"], &["throw 1"]);
        assert_eq!(set.code, 0, "{runtime}: {set:?}");
        let environment = Invocation::new(["env", &program.pid().to_string()]).run();
        assert!(environment.stdout.contains("DN_TOP_SET=seen"), "{runtime}: {environment:?}");
        let environment = known(runtime, &["env", "PORT,listen"], &["throw 1"]);
        assert!(environment.stdout.contains("DOTNET_DiagnosticPorts="), "{runtime}: {environment:?}");
        let failed = known(runtime, &["startup-hook", "PORT,listen", "/missing.dll"], &["throw 1"]);
        assert!(failed.code == 1 && failed.stderr.contains("/missing.dll"), "{runtime}: {failed:?}");
    });
}

#[test]
fn command_sees_a_native_aot_program_from_its_start() {
    let Some(runtime) = runtimes::native_aot() else { return };
    let run = |words: &[&str]| run_on(runtime.any(), words, &[]).0;
    let exceptions = run(&["exceptions", "PORT,listen", "--follow", "--duration", "1s"]);
    assert!(exceptions.stdout.lines().next().is_some_and(|line| line.ends_with("order 0 failed")), "{exceptions:?}");
    let counters = run(&["counters", "PORT,listen", "--duration", "2s"]);
    assert!(counters.code == 0 && counters.stdout.contains("Exception Count"), "{counters:?}");
    let stacks = run(&["stacks", "PORT,listen"]);
    assert!(stacks.code == 1 && stacks.stderr.contains("sends no samples"), "{stacks:?}");
}

/// The runtime does not know ports.
#[test]
fn program_of_31_does_not_connect() {
    let Some(runtime) = runtimes::net31() else { return };
    let place = folder();
    let port = place.path().join("port");
    let command = waiting(&["gc", "PORT,listen"], &port);
    let mut program = runtime.program("known").env("DOTNET_DiagnosticPorts", &port).start();
    program.carry_out("throw 1");
    let output = command.interrupt();
    assert!(output.stderr.contains("a program of .NET 5 or later") && output.stderr.contains("no program has connected"), "{output:?}");
    assert!(!port.exists());
}

fn advertise(pid: u32) -> Vec<u8> {
    [b"ADVR_V1\0".as_slice(), &[7; 16], &u64::from(pid).to_le_bytes(), &[0; 2]].concat()
}

/// What is not the advertise message of the connecting process itself is not a program, and nothing is sent to it.
#[test]
fn other_connections_are_not_programs() {
    let Some(runtime) = runtimes::net9() else { return };
    let place = folder();
    let port = place.path().join("port");
    let command = waiting(&["exceptions", "PORT,listen", "--duration", "1s", "--json"], &port);
    assert_eq!(fs::metadata(&port).unwrap().permissions().mode() & 0o777, 0o600);
    let program = runtime.program("known").env("DOTNET_DiagnosticPorts", place.path().join("other"));
    let other = program.spawn();
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".repeat(9), advertise(other.pid()), advertise(u32::MAX)] {
        let mut stream = UnixStream::connect(&port).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(&bytes).unwrap();
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
    let mut program = runtime.program("known").env("DOTNET_DiagnosticPorts", &port).spawn();
    program.command("throw 2");
    let output = command.wait();
    assert_eq!(output.json()["thrown"], 2, "{output:?}");
}

/// A process that advertises itself, and then does not answer.
#[test]
fn silent_process_ends_the_command_and_a_wrong_answer_as_well() {
    let place = folder();
    for (at, (answer, expected)) in
        [(None, "no answer within 5 s"), (Some([b'x'; 64]), "is not a .NET diagnostic server")].iter().enumerate()
    {
        let port = place.path().join(at.to_string());
        let command = waiting(&["counters", "PORT,listen"], &port);
        let mut stream = UnixStream::connect(&port).unwrap();
        stream.write_all(&advertise(std::process::id())).unwrap();
        if let Some(answer) = answer {
            stream.read_exact(&mut [0; 20]).unwrap();
            stream.write_all(answer).unwrap();
            drop(stream);
        }
        let output = command.wait();
        assert!(output.code == 1 && output.stderr.contains(expected), "{output:?}");
        assert!(!port.exists());
    }
}

#[test]
fn port_is_not_served_without_need_or_permission() {
    let place = folder();
    let target = format!("{},listen", place.path().join("port").display());
    let run = |words: &[&str]| Invocation::new(words.iter().copied().chain([target.as_str()])).run();
    run(&["heap"]).assert_refused(2, "confirm with --yes");
    run(&["--readonly", "env"]).assert_refused(1, "is not served: --readonly");
    run(&["trace", "--legacy"]).assert_refused(2, "--legacy does not apply");
    fs::write(place.path().join("port"), "").unwrap();
    run(&["gc"]).assert_refused(1, "exists already");
}
