//! Recordings stopped by users, by signals, and by lost connections.

use dn_top::ipc::{Level, Provider, SessionConfig};
use dn_top::model::{Process, ProcessKey};
use dn_top::net::client::Client;
use dn_top::net::endpoint::Endpoint;
use serde_json::{Value, json};

use crate::support::runtimes;
use crate::support::{Invocation, Program, Running, Signal, TIMEOUT, folder, poll};
use crate::trace;

#[test]
fn signals_stop_recording_and_keep_file() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let place = folder();
            let running = Invocation::new(["trace", &program.pid().to_string(), "--json"]).current_dir(place.path()).start();
            trace::wait_for_data(&running, place.path());
            running.signal(signal);
            let output = running.wait();
            assert_eq!(output.code, 130, "{runtime} {signal:?}: {}", output.stderr);
            let result: Value = serde_json::from_str(&output.stdout).unwrap();
            assert_eq!(result["stopped_by"], "interrupt");
            let recorded = trace::assert_complete(&place.path().join(result["file"].as_str().unwrap()), &result);
            assert!(recorded.rundown_events("MethodDCEnd") > 0, "{runtime} {signal:?}");
        }
        assert!(program.is_alive() && program.answers(), "{runtime}");
        assert_eq!(count_available_sessions(&program), 64, "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

/// Returns the number of sessions that the runtime opens before it refuses. A session without events is never freed without a stop, so the
/// program is unusable afterwards.
fn count_available_sessions(program: &Program) -> usize {
    let process = Process { socket: Some(program.socket()), ..Process::new(ProcessKey { pid: program.pid(), started: 0 }) };
    let client = Client::new(Endpoint::of(&process).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let config = SessionConfig::new(Provider::new("DnTop-Unused", 1, Level::Critical).unwrap().into());
        let mut sessions = Vec::new();
        while let Ok(session) = client.start_session(&config).await {
            sessions.push(session);
        }
        sessions.len()
    })
}

#[test]
fn second_signal_skips_rundown() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let place = folder();
        let running = Invocation::new(["trace", &program.pid().to_string(), "--json"]).current_dir(place.path()).start();
        trace::wait_for_data(&running, place.path());
        // A stopped process does not respond, and sends no rundown.
        program.signal(Signal::STOP);
        running.signal(Signal::INT);
        running.wait_for_stderr("stopping");
        running.signal(Signal::INT);
        let output = running.wait();
        program.signal(Signal::CONT);
        assert_eq!(output.code, 130, "{}", output.stderr);
        assert!(output.stderr.contains("stopped before the rundown was complete"), "{}", output.stderr);
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(result["complete"], json!(false));
        let file = place.path().join(result["file"].as_str().unwrap());
        let stats = trace::stats(&file);
        assert_eq!((&stats["complete"], &stats["events"]), (&json!(false), &result["events"]));
        assert!(program.is_alive() && program.answers());
    });
}

/// `timeout` signals its command and then its process group, which contains the command.
#[test]
fn signals_at_the_same_time_are_one_request() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let place = folder();
        let running = Invocation::new(["trace", &program.pid().to_string(), "--json"]).current_dir(place.path()).start();
        trace::wait_for_data(&running, place.path());
        running.signal(Signal::TERM);
        running.signal(Signal::INT);
        running.signal(Signal::HUP);
        let output = running.wait();
        assert_eq!(output.code, 130, "{}", output.stderr);
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(result["complete"], json!(true), "{runtime}: {}", output.stderr);
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn terminal_hangup_stops_recording_and_keeps_file() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let pid = program.pid().to_string();
        let trace = Invocation::new(["trace", &pid, "-o", file.to_str().unwrap()]);
        // This text is in the line that is constantly rewritten.
        assert_eq!(trace.close_terminal_at(" events").exit_code(), 130);
        let stats = trace::stats(&file);
        assert_eq!(stats["complete"], true);
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn blocked_terminal_does_not_block_recording() {
    let Some(net9) = runtimes::net9() else { return };
    let mut program = net9.any().start();
    let place = folder();
    let file = place.path().join("a.nettrace");
    let pid = program.pid().to_string();
    let mut trace = Invocation::new(["trace", &pid, "-o", file.to_str().unwrap()]).screen(120, 40);
    trace.wait_for(" events");
    // The terminal echoes its input.
    trace.block_output(&"x".repeat(500));
    trace.signal(Signal::TERM);
    poll(TIMEOUT, || file.exists().then_some(())).expect("a finished recording");
    trace.unblock_output();
    assert_eq!(trace.wait_exit().exit_code(), 130);
    let stats = trace::stats(&file);
    assert_eq!(stats["complete"], true);
    assert!(program.is_alive() && program.answers());
}

#[test]
fn interrupted_heap_walk_leaves_no_file() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold 300000");
        let place = folder();
        let [file, partial] = ["a.gcdump", "a.gcdump.partial"].map(|name| place.path().join(name));
        let heap = ["heap", &program.pid().to_string(), "--yes", "-o", file.to_str().unwrap()].map(str::to_owned);
        let mut running = Invocation::new(heap).start();
        poll(TIMEOUT, || partial.exists().then_some(())).expect("an unfinished file");
        // A stopped process does not end its session.
        program.signal(Signal::STOP);
        running.signal(Signal::INT);
        running.wait_for_stderr("stopping the heap walk; press Ctrl-C again");
        running.signal(Signal::INT);
        // 3.1 would crash if its session started without a client: if it has not started yet, dn-top waits.
        let waits = |running: &Running| runtime.major() == 3 && running.stderr().contains("waiting until a process has answered");
        poll(TIMEOUT, || (!running.is_alive() || waits(&running)).then_some(())).expect("the end, or the reason to wait");
        program.signal(Signal::CONT);
        let output = running.wait();
        assert!(output.code == 130 && output.stderr.ends_with("the heap walk was canceled\n"), "{runtime}: {}", output.stderr);
        assert!(!partial.exists() && !file.exists(), "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}
