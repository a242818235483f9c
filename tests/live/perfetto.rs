//! dn-top as a producer for the real Perfetto tracing service. The traces are checked with Perfetto's trace processor.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::runtimes;
use crate::support::screen::{ENTER, ESC};
use crate::support::{Program, Running, Signal, TIMEOUT, cpu_time, poll, send};
use crate::trace_processor::assert_known_fields;
use crate::tracing_service::{EXCEPTIONS, NAMED_SAMPLES, Traced, began, configuration, each, ended, sockets};

#[test]
fn kernel_and_runtime_are_in_one_trace() {
    each(|runtime, mut traced| {
        let with_kernel = traced.with_probes();
        let mut program = runtime.program("known").start();
        let pid = program.pid();
        let running = traced.serve(&[&pid.to_string()]);
        let state = traced.dn_top(&["perfetto", "--json"]).run().json();
        let producers = state["producers"].as_array().unwrap();
        let served = producers.iter().find(|producer| producer["name"] == "dn-top").unwrap();
        assert_eq!((&served["pid"], &served["data_sources"]), (&serde_json::json!(running.pid()), &serde_json::json!(["dotnet"])));
        assert!(state["version"].as_str().unwrap().contains("56"), "{state}");
        // Without samples, as sampling stops the thread each time.
        let mut config = configuration(65_536, "clr-events=gc+exception");
        if with_kernel {
            config += "buffers { size_kb: 65536 }\n";
            config += "data_sources { config { name: \"linux.ftrace\" target_buffer: 1 ftrace_config { ftrace_events: \"sched/sched_switch\" } } }\n";
            config += "data_sources { config { name: \"linux.process_stats\" target_buffer: 1 process_stats_config { scan_all_processes_on_start: true } } }\n";
        }
        let (recording, file) = traced.record("joint", &config);
        began(&running, 1);
        program.carry_out("collect 5 2");
        program.carry_out_at_once(&["throw 1", "spend 1000", "throw 1"]);
        traced.finish(recording, &file);
        traced.assert_pauses_and_exceptions(&file, pid, with_kernel);
        if !with_kernel {
            runtimes::skip("the kernel's tracing cannot be had here, so that its half of the trace is not looked at");
        }
        // Methods have names, although the names are written last.
        let (recording, file) = traced.record("samples", &configuration(65_536, ""));
        began(&running, 2);
        program.carry_out("spend 500");
        traced.finish(recording, &file);
        assert!(traced.number(&file, NAMED_SAMPLES) > 20.0, "methods have no names");
        assert_known_fields(&file, &[]);
        drop(running);
    });
}

#[test]
fn serving_survives_stopped_and_restarted_service() {
    each(|runtime, mut traced| {
        let mut program = runtime.program("known").start();
        let running = traced.serve(&[&program.pid().to_string()]);
        let config = configuration(65_536, "");
        // A stopped service reads nothing, does not block the program, and afterwards receives the buffered data.
        let (recording, file) = traced.record("stopped", &config);
        began(&running, 1);
        send(traced.service.id(), Signal::STOP);
        program.carry_out("spend 1000");
        send(traced.service.id(), Signal::CONT);
        program.carry_out("throw 5");
        traced.finish(recording, &file);
        assert_eq!(traced.number(&file, EXCEPTIONS), 5.0);
        // Killed and restarted.
        let (mut recording, _) = traced.record("killed", &config);
        began(&running, 2);
        traced.restart();
        recording.wait().unwrap();
        poll(TIMEOUT, || traced.query().contains("dotnet ").then_some(())).unwrap_or_else(|| panic!("{}", running.stderr()));
        let (recording, file) = traced.record("again", &config);
        began(&running, 3);
        program.carry_out("throw 7");
        traced.finish(recording, &file);
        assert_eq!(traced.number(&file, EXCEPTIONS), 7.0);
        assert!(running.stderr().contains("the connection was closed; trying again"), "{}", running.stderr());
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn killed_target_is_reported_in_trace() {
    each(|runtime, traced| {
        let mut program: Program = runtime.program("known").start();
        let running = traced.serve(&[&program.pid().to_string()]);
        let (recording, file) = traced.record("killed", &configuration(65_536, ""));
        began(&running, 1);
        program.carry_out("throw 3");
        // Its exceptions are sent ten times a second.
        program.carry_out("spend 500");
        program.signal(Signal::KILL);
        program.wait();
        traced.finish(recording, &file);
        assert_eq!(traced.number(&file, EXCEPTIONS), 3.0);
        let said = traced.number(&file, "select count(*) n from slice where name like 'The process exited%'");
        assert_eq!(said, 1.0, "the trace does not say that the process ended");
    });
}

#[test]
fn concurrent_recordings_have_separate_configurations() {
    each(|runtime, traced| {
        let mut program = runtime.program("known").start();
        let running = traced.serve(&[&program.pid().to_string()]);
        let config = |text: &str| configuration(65_536, text);
        let (first, with) = traced.record("exceptions", &config("clr-events=exception provider=DnTop-Known"));
        let (second, without) = traced.record("collections", &config("clr-events=gc"));
        began(&running, 2);
        let state = traced.dn_top(&["perfetto"]).run().stdout;
        assert_eq!(state.matches(": STARTED, ").count(), 2, "{state}");
        assert!(state.contains("lost data: the service reports it only to the consumer that started a session"), "{state}");
        program.carry_out("throw 4");
        program.carry_out("collect 2 2");
        program.carry_out("flood 3");
        for recording in [first, second] {
            send(recording.id(), Signal::INT);
            ended(recording);
        }
        let count =
            |file: &Path, category: &str| traced.number(file, &format!("select count(*) n from slice where category = '{category}'"));
        assert_eq!(["exception", "event", "gc"].map(|category| count(&with, category)), [4.0, 3.0, 0.0]);
        assert_eq!(["exception", "event"].map(|category| count(&without, category)), [0.0, 0.0]);
        assert!(count(&without, "gc") >= 2.0);
        [with, without].iter().for_each(|file| traced.assert_no_errors(file));
    });
}

/// S8, M8: a ring buffer that holds only part of the recording, and the minimum of shared memory.
#[test]
fn overwritten_ring_buffer_is_readable() {
    each(|runtime, traced| {
        let mut program = runtime.program("known").start();
        let running = traced.serve(&[&program.pid().to_string()]);
        let small = "producers { producer_name: \"dn-top\" shm_size_kb: 64 page_size_kb: 4 }\n";
        let config = configuration(256, "") + small + "incremental_state_config { clear_period_ms: 200 }\n";
        let (recording, file) = traced.record("ring", &config);
        began(&running, 1);
        program.carry_out("spend 1000");
        program.carry_out("throw 10000");
        program.carry_out("spend 1000");
        traced.finish(recording, &file);
        let overwritten = "select sum(value) n from stats where name = 'traced_buf_bytes_overwritten'";
        assert!(traced.number(&file, overwritten) > 0.0, "the ring was not full");
        assert!(traced.number(&file, "select count(*) n from perf_sample where callsite_id is not null") > 0.0);
        let named = "select count(*) n from stack_profile_symbol where name like 'Known.%'";
        assert!(traced.number(&file, named) > 0.0);
    });
}

/// M8: the event stream is still read while the service reads nothing: packets that do not fit are dropped, counted, and reported at their
/// place in the trace.
#[test]
fn unaccepted_packets_are_dropped_and_counted() {
    each(|runtime, traced| {
        let mut program = runtime.program("known").start();
        let running = traced.serve(&[&program.pid().to_string()]);
        let small = "producers { producer_name: \"dn-top\" shm_size_kb: 64 page_size_kb: 4 }\n";
        let config = configuration(131_072, "clr-events=exception") + small;
        let (recording, file) = traced.record("lost", &config);
        began(&running, 1);
        program.carry_out("throw 5");
        send(traced.service.id(), Signal::STOP);
        for _ in 0..4 {
            program.carry_out("throw 50000");
        }
        wait_until_idle(&running);
        send(traced.service.id(), Signal::CONT);
        program.carry_out("throw 7");
        send(recording.id(), Signal::INT);
        ended(recording);
        let words = poll(TIMEOUT, || running.stderr().lines().find(|line| line.contains(" ended: ")).map(str::to_owned)).unwrap();
        assert!(words.contains(" more DROPPED: the service did not accept them in time"), "{words}");
        let wrong = traced.tools.1.query(&file, "select name, value from stats where severity = 'error' and value > 0");
        assert_eq!(wrong, [] as [Value; 0]);
        let kept = traced.number(&file, EXCEPTIONS);
        let lost = "select sum(cast(substr(name, 1, instr(name, ' ') - 1) as int)) n from slice where name like '% packets lost: %'";
        let lost = traced.number(&file, lost);
        assert!(kept >= 5.0 && lost > 0.0 && kept + lost >= 200_012.0, "{kept} exceptions, {lost} packets");
        assert!(program.is_alive() && program.answers());
    });
}

/// Waits until a dn-top has processed all data from its targets: it uses no CPU time for a while.
fn wait_until_idle(running: &Running) {
    let (mut before, mut since) = (Duration::ZERO, Instant::now());
    let idle = || {
        let now = cpu_time(running.pid());
        if now.abs_diff(std::mem::replace(&mut before, now)) > Duration::from_millis(1) {
            since = Instant::now();
        }
        (since.elapsed() > Duration::from_secs(1)).then_some(())
    };
    poll(TIMEOUT, idle).expect("dn-top is busy all the time");
}

/// Nothing is left behind when dn-top is killed: neither its data source in the service nor its session in the target.
#[test]
fn killed_dn_top_leaves_nothing_behind() {
    each(|runtime, traced| {
        let mut program = runtime.program("known").start();
        let mut running = traced.serve(&[&program.pid().to_string()]);
        let sockets_of = |pid: u32| {
            let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
            let is_socket = |file: &fs::DirEntry| fs::read_link(file.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
            files.filter(|file| file.as_ref().is_ok_and(is_socket)).count()
        };
        let before = sockets_of(program.pid());
        let (recording, file) = traced.record("killed", &configuration(65_536, "clr-events=exception"));
        began(&running, 1);
        assert!(sockets_of(program.pid()) > before);
        program.carry_out("throw 3");
        program.carry_out("spend 500");
        running.signal(Signal::KILL);
        poll(TIMEOUT, || (!running.is_alive()).then_some(())).unwrap();
        // The runtime detects the closed connection the next time it writes.
        let ends = || {
            program.carry_out("throw 100");
            (sockets_of(program.pid()) == before).then_some(())
        };
        poll(TIMEOUT, ends).expect("the target still has a session");
        assert!(!traced.query().contains("dotnet "));
        traced.finish(recording, &file);
        // The last exceptions may not have been sent yet.
        assert!(traced.number(&file, EXCEPTIONS) >= 1.0);
        let state = traced.dn_top(&["perfetto", "--json"]).run().json();
        assert_eq!(state["sessions"], serde_json::json!([]));
        assert!(program.is_alive() && program.answers());
    });
}

/// The dashboard serves as `perfetto serve` does, and shows the state in its first line.
#[test]
fn dashboard_serves_perfetto_sessions() {
    each(|runtime, traced| {
        let mut program = runtime.program("known").start();
        let start = |arguments: &[&str]| traced.dn_top(arguments).screen(120, 40);
        let refused = start(&["--readonly"]);
        refused.wait_for("COMMAND");
        refused.keys("K");
        refused.wait_for("dn-top was started with --readonly");
        let mut screen = start(&["--watch", "never"]);
        screen.wait_for("COMMAND");
        screen.keys(&format!("K{}\t\t\x1b[C", program.pid()));
        screen.keys(ENTER);
        screen.wait_for("Perfetto: 0 sessions");
        let config = configuration(65_536, "clr-events=exception");
        let (recording, file) = traced.record("served", &config);
        screen.wait_for("Perfetto: 1 session");
        program.carry_out("throw 3");
        screen.keys("K");
        screen.wait_for(&format!(" records known ({})", program.pid()));
        screen.keys(ESC);
        send(recording.id(), Signal::INT);
        ended(recording);
        screen.wait_for("Perfetto: 0 sessions");
        traced.assert_no_errors(&file);
        assert_eq!(traced.number(&file, EXCEPTIONS), 3.0);
        // If dn-top quits during a session, the session is finished properly: methods have names.
        let (recording, file) = traced.record("left", &configuration(65_536, ""));
        screen.wait_for("Perfetto: 1 session");
        program.carry_out("spend 500");
        screen.quit();
        assert!(!traced.query().contains("dotnet "));
        traced.finish(recording, &file);
        let named = "select count(*) n from stack_profile_symbol where name like 'Known.%'";
        assert!(traced.number(&file, named) > 0.0);
    });
}

/// P14: sockets and files of the service are accessible to their owner only.
#[test]
fn p14_inaccessible_socket_is_reported() {
    if !rustix::process::geteuid().is_root() {
        return runtimes::skip("only root can run programs as a second user");
    }
    let Some(traced) = Traced::start() else { return };
    // Makes the sockets and dn-top accessible to that user.
    let program = traced.place().join("dn-top");
    fs::copy(env!("CARGO_BIN_EXE_dn-top"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(traced.place(), fs::Permissions::from_mode(0o755)).unwrap();
    for (command, (_, socket)) in [&["perfetto", "serve", "--duration", "1s"][..], &["perfetto"]].into_iter().zip(sockets(traced.place())) {
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
        let mut denied = Command::new(&program);
        denied.args(command).envs(sockets(traced.place())).env("HOME", "/").current_dir("/").uid(65_533).gid(65_533);
        let output = denied.output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        let why = format!("{}: permission denied; root and the members of the socket's group", socket.display());
        assert!(words.contains(&why), "{words}");
    }
}
