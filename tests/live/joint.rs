//! Recordings with kernel scheduling by the real tracing service, on real programs, checked with Perfetto's trace processor.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::runtimes;
use crate::support::screen::{BACK_TAB, CTRL_ENTER, RIGHT};
use crate::support::{Invocation, Program, Running, Signal, TIMEOUT, folder, poll};
use crate::trace_processor::assert_known_fields;
use crate::tracing_service::{EXCEPTIONS, NAMED_SAMPLES, Traced, each, on_sockets};

fn trace(traced: &Traced, program: &Program, file: &Path, arguments: &[&str]) -> Running {
    let (pid, file) = (program.pid().to_string(), file.to_str().unwrap());
    traced.dn_top(&[&["trace", &pid, "--kernel", "-o", file, "--json"], arguments].concat()).start()
}

/// Waits until both runtime and kernel are recorded, and data has been written to the file.
fn wait_for_both(running: &Running, file: &Path, says: &str) {
    let partial = partial(file);
    let begun = || (running.stderr().contains(says) && partial.metadata().is_ok_and(|file| file.len() > 0)).then_some(());
    poll(TIMEOUT, begun).unwrap_or_else(|| panic!("{}", running.stderr()));
}

fn partial(file: &Path) -> PathBuf {
    format!("{}.partial", file.display()).into()
}

/// Stops the recording, and returns its result.
fn stop(running: Running) -> Value {
    serde_json::from_str(&running.interrupt().stdout).unwrap()
}

fn sessions(traced: &Traced) -> usize {
    traced.dn_top(&["perfetto", "--json"]).run().json()["sessions"].as_array().unwrap().len()
}

const RECORDED: &str = "Kernel: scheduling is recorded";

#[test]
fn scheduling_and_events_are_in_one_file() {
    each(|runtime, mut traced| {
        if !traced.with_probes() {
            return runtimes::skip("the kernel's tracing cannot be had here");
        }
        let mut program = runtime.program("known").start();
        let (pid, file) = (program.pid(), traced.place().join("joint.perfetto-trace"));
        // Without samples, as sampling stops the thread each time.
        let running = trace(&traced, &program, &file, &["--clr-events", "gc+exception"]);
        wait_for_both(&running, &file, RECORDED);
        assert_eq!(sessions(&traced), 1);
        program.carry_out("collect 5 2");
        program.carry_out_at_once(&["throw 1", "spend 1000", "throw 1"]);
        let result = stop(running);
        assert_eq!(
            (&result["complete"], &result["kernel"]["recorded"], &result["dropped"]),
            (&true.into(), &true.into(), &0.into()),
            "{result}"
        );
        assert_eq!(result["bytes"].as_u64().unwrap(), file.metadata().unwrap().len());
        traced.assert_no_errors(&file);
        assert_known_fields(&file, &["ftrace_events"]);
        traced.assert_pauses_and_exceptions(&file, pid, true);
        assert!(traced.number(&file, "select count(*) n from sched") > 100.0);
        assert_eq!(sessions(&traced), 0);
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn end_of_kernel_tracing_is_reported() {
    each(|runtime, mut traced| {
        if !traced.with_probes() {
            return runtimes::skip("the kernel's tracing cannot be had here");
        }
        let mut program = runtime.program("known").start();
        let file = traced.place().join("half.perfetto-trace");
        let running = trace(&traced, &program, &file, &["--clr-events", "exception"]);
        wait_for_both(&running, &file, RECORDED);
        traced.end_kernel_tracing();
        running.wait_for_stderr("scheduling is recorded up to about 0:");
        program.carry_out("throw 3");
        let result = stop(running);
        assert_eq!((&result["complete"], &result["kernel"]["recorded"]), (&true.into(), &true.into()), "{result}");
        assert!(result["kernel"]["missing"].as_str().unwrap().contains("and no further"), "{result}");
        traced.assert_no_errors(&file);
        assert_eq!(traced.number(&file, EXCEPTIONS), 3.0);
        assert!(traced.number(&file, "select count(*) n from sched") > 0.0);
    });
}

#[test]
fn a_program_is_recorded_from_its_start() {
    each(|runtime, mut traced| {
        let with_kernel = traced.with_probes();
        let file = traced.place().join("run.perfetto-trace");
        let program = runtime.program("known");
        let words = program.words().iter().map(|word| word.to_str().unwrap());
        let options = ["run", "--kernel", "-o", file.to_str().unwrap(), "--json", "--clr-events", "loader", "--"];
        let run = program
            .variables()
            .iter()
            .fold(traced.dn_top(&options.into_iter().chain(words).collect::<Vec<_>>()), |run, (name, value)| run.env(name, value));
        // Its standard input is empty, so that it exits at once.
        let output = run.run();
        assert_eq!(output.code, 0, "{output:?}");
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((&result["complete"], &result["kernel"]["recorded"]), (&true.into(), &with_kernel.into()), "{result}");
        traced.assert_no_errors(&file);
        // The application's own assembly is loaded before any of its code runs.
        assert!(traced.number(&file, "select count(*) n from slice where name = 'Load known'") > 0.0);
        assert_eq!(sessions(&traced), 0);
    });
}

#[test]
fn samples_have_method_names_with_kernel_events() {
    each(|runtime, mut traced| {
        let with_kernel = traced.with_probes();
        let mut program = runtime.program("known").start();
        let file = traced.place().join("samples.perfetto-trace");
        let running = trace(&traced, &program, &file, &[]);
        wait_for_both(&running, &file, if with_kernel { RECORDED } else { "not recorded, only .NET events" });
        program.carry_out("spend 500");
        stop(running);
        traced.assert_no_errors(&file);
        assert!(traced.number(&file, NAMED_SAMPLES) > 20.0, "methods have no names");
    });
}

#[test]
fn killed_recording_is_readable_and_session_is_closed() {
    each(|runtime, mut traced| {
        let with_kernel = traced.with_probes();
        let mut program = runtime.program("known").start();
        let file = traced.place().join("killed.perfetto-trace");
        let running = trace(&traced, &program, &file, &["--clr-events", "exception"]);
        wait_for_both(&running, &file, if with_kernel { RECORDED } else { "not recorded, only .NET events" });
        program.carry_out("throw 20");
        // The file also grows from events of one source alone.
        const SWITCHES: &str = "select count(*) n from sched";
        let has = |events: &str| traced.number(&partial(&file), events) > 0.0;
        poll(TIMEOUT, || (has(EXCEPTIONS) && (!with_kernel || has(SWITCHES))).then_some(())).unwrap();
        running.signal(Signal::KILL);
        running.wait();
        poll(TIMEOUT, || (sessions(&traced) == 0).then_some(())).unwrap();
        assert!(!file.exists());
        traced.assert_no_errors(&partial(&file));
        assert!(traced.number(&partial(&file), EXCEPTIONS) > 0.0);
        assert!(!with_kernel || traced.number(&partial(&file), SWITCHES) > 0.0);
        // Neither another recording nor the process is affected.
        let again = traced.place().join("again.perfetto-trace");
        let running = trace(&traced, &program, &again, &["--clr-events", "exception", "--duration", "2s"]);
        assert_eq!(running.wait().code, 0);
        traced.assert_no_errors(&again);
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn missing_kernel_data_is_reported_and_runtime_recorded() {
    each(|runtime, traced| {
        let mut program = runtime.program("known").start();
        let file = traced.place().join("alone.perfetto-trace");
        let running = trace(&traced, &program, &file, &["--clr-events", "exception"]);
        wait_for_both(&running, &file, "not recorded, only .NET events");
        assert!(running.stderr().contains("start `traced_probes` as root"), "{}", running.stderr());
        program.carry_out("throw 3");
        let result = stop(running);
        assert_eq!((&result["complete"], &result["kernel"]["recorded"]), (&true.into(), &false.into()), "{result}");
        assert!(result["kernel"]["missing"].as_str().unwrap().contains("linux.ftrace"), "{result}");
        traced.assert_no_errors(&file);
        assert_eq!(traced.number(&file, EXCEPTIONS), 3.0);
    });
}

#[test]
fn recorded_data_survives_killed_target_or_service() {
    each(|runtime, mut traced| {
        let mut program = runtime.program("known").start();
        let file = traced.place().join("service.perfetto-trace");
        let running = trace(&traced, &program, &file, &["--clr-events", "exception"]);
        wait_for_both(&running, &file, "Kernel: ");
        traced.restart();
        let output = running.wait();
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert!(output.stderr.contains("the connection was closed; the data read so far is kept"), "{}", output.stderr);
        traced.assert_no_errors(&partial(&file));
        assert!(program.is_alive() && program.answers());

        let file = traced.place().join("target.perfetto-trace");
        let running = trace(&traced, &program, &file, &["--clr-events", "exception"]);
        wait_for_both(&running, &file, "Kernel: ");
        program.carry_out("throw 3");
        poll(TIMEOUT, || (traced.number(&partial(&file), EXCEPTIONS) == 3.0).then_some(())).expect("no exceptions in the file");
        program.signal(Signal::KILL);
        program.wait();
        let output = running.wait();
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((&result["stopped_by"], &result["complete"]), (&"target-exit".into(), &false.into()), "{result}");
        let file = PathBuf::from(result["file"].as_str().unwrap());
        traced.assert_no_errors(&file);
        assert_eq!(traced.number(&file, EXCEPTIONS), 3.0);
        assert_eq!(sessions(&traced), 0);
    });
}

#[test]
fn missing_service_is_reported_and_leaves_no_file() {
    let place = folder();
    runtimes::each(runtimes::since(9, runtimes::with("known")), |runtime| {
        let program = runtime.program("known").start();
        let pid = program.pid().to_string();
        let file = place.path().join(format!("{pid}.perfetto-trace"));
        let arguments = ["trace", &pid, "--kernel", "-o", file.to_str().unwrap()];
        let output = on_sockets(place.path(), &arguments).run();
        output.assert_refused(1, "no service listens there; install and start it");
        assert!(output.stderr.contains("Without kernel scheduling, the events of .NET can still be recorded"), "{}", output.stderr);
        let elsewhere = Invocation::new(arguments).env("PERFETTO_CONSUMER_SOCK_NAME", "host:1").run();
        elsewhere.assert_refused(1, "which is not a local socket");
        assert!(!file.exists() && !partial(&file).exists());
    });
}

#[test]
fn dashboard_form_records_kernel_and_runtime() {
    each(|runtime, mut traced| {
        let with_kernel = traced.with_probes();
        let mut program = runtime.program("known").start();
        let screen = traced.dn_top(&["--filter", &program.pid().to_string()]).screen(120, 40);
        screen.wait_for(&format!(".NET {}", runtime.version));
        screen.wait_for(&format!("{} {}", runtime.name_of("known"), program.pid()));
        screen.keys("O");
        screen.wait_for("Record · known");
        // From the first field, backwards over the buttons and the tracepoints.
        screen.keys(&BACK_TAB.repeat(3));
        screen.wait_for("events of .NET alone, in a .nettrace file");
        screen.keys(RIGHT);
        screen.wait_for("--kernel");
        screen.keys(CTRL_ENTER);
        screen.wait_for(if with_kernel { RECORDED } else { "not recorded, only .NET events" });
        program.carry_out("throw 3");
        program.carry_out("spend 500");
        screen.keys("t");
        let is_trace = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "perfetto-trace");
        let find = || fs::read_dir(screen.folder()).unwrap().map(|entry| entry.unwrap().path()).find(is_trace);
        let file = poll(TIMEOUT, find).unwrap_or_else(|| panic!("nothing was recorded:\n{}", screen.contents()));
        traced.assert_no_errors(&file);
        assert_eq!(traced.number(&file, EXCEPTIONS), 3.0);
        if with_kernel {
            assert!(traced.number(&file, "select count(*) n from sched") > 0.0);
        }
        assert!(program.is_alive() && program.answers());
    });
}
