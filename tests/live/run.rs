//! `run`: programs recorded from their first instruction.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Launch, Output, Signal, TIMEOUT, folder, poll};

/// Returns `dn-top run` with options and a program.
fn run(options: &[&str], program: &Launch) -> Invocation {
    let words = program.words().iter().map(|word| word.to_str().unwrap().to_owned());
    let all = ["run"].into_iter().chain(options.iter().copied()).chain(["--"]).map(str::to_owned).chain(words);
    program.variables().iter().fold(Invocation::new(all), |invocation, (name, value)| invocation.env(name, value))
}

/// A standard input that stays open and empty: the test programs exit when theirs is closed.
struct OpenStdin(Child);

impl OpenStdin {
    fn open() -> (Self, ChildStdout) {
        let mut sleep = Command::new("sleep").arg("600").stdout(Stdio::piped()).spawn().unwrap();
        let stdout = sleep.stdout.take().unwrap();
        (Self(sleep), stdout)
    }
}

impl Drop for OpenStdin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills a program whose parent has exited, and which may be suspended.
struct KillAtEnd(u32);

impl Drop for KillAtEnd {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(self.0 as i32).unwrap(), Signal::KILL);
    }
}

fn document(output: &Output) -> serde_json::Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Returns the number of these runtime events in the file.
fn count(folder: &tempfile::TempDir, file: &str, event: &str) -> u64 {
    let stats = Invocation::new(["stats", "--json", folder.path().join(file).to_str().unwrap()]).run();
    let stats = document(&stats);
    let counts = stats["counts"].as_array().unwrap().iter().filter(|count| count["name"] == event);
    counts.map(|count| count["count"].as_u64().unwrap()).sum()
}

#[test]
fn program_is_recorded_from_startup_with_its_exit_code() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let folder = folder();
        // Its standard input is empty, so that it exits at once: it only starts up.
        let output =
            run(&["--profile", "dotnet-common", "--clr-events", "loader", "-o", "a.nettrace", "--json"], &runtime.program("known"))
                .current_dir(folder.path())
                .run();
        assert_eq!(output.code, 0, "{output:?}");
        let document = document(&output);
        assert_eq!((document["complete"].as_bool(), document["stopped_by"].as_str()), (Some(true), Some("target-exit")), "{output:?}");
        // The application's own assembly is loaded before any of its code runs.
        assert!(count(&folder, "a.nettrace", "LoaderAssemblyLoad") > 0 || count(&folder, "a.nettrace", "AssemblyLoad") > 0, "{output:?}");
        assert!(output.stderr.contains("(known) from its start"), "{output:?}");
    });
}

#[test]
fn program_is_terminated_with_its_recording() {
    runtimes::each(runtimes::since(5, runtimes::all()), |runtime| {
        let folder = folder();
        let (_held, stdin) = OpenStdin::open();
        let output = run(&["--duration", "1s", "-o", "a.nettrace", "--json"], &runtime.any()).current_dir(folder.path()).stdin(stdin).run();
        assert_eq!(output.code, 0, "{runtime} {output:?}");
        let document = document(&output);
        assert_eq!(
            (document["complete"].as_bool(), document["stopped_by"].as_str()),
            (Some(true), Some("duration")),
            "{runtime} {output:?}"
        );
        let pid = pid(&output.stderr);
        assert!(!is_alive(pid), "{runtime}");
    });
}

#[test]
fn ctrl_c_stops_recording_and_program() {
    runtimes::each(runtimes::since(5, runtimes::all()), |runtime| {
        let folder = folder();
        let (_held, stdin) = OpenStdin::open();
        let running = run(&["-o", "a.nettrace"], &runtime.any()).current_dir(folder.path()).stdin(stdin).start();
        running.wait_for_stderr("from its start");
        let partial = folder.path().join("a.nettrace.partial");
        poll(TIMEOUT, || partial.metadata().is_ok_and(|file| file.len() > 1000).then_some(())).unwrap();
        running.signal(Signal::INT);
        let output = running.wait();
        assert_eq!(output.code, 0, "{output:?}");
        assert!(folder.path().join("a.nettrace").exists() && !is_alive(pid(&output.stderr)), "{output:?}");
    });
}

#[test]
fn child_process_is_resumed_immediately() {
    runtimes::each(runtimes::since(5, runtimes::with("parent")), |runtime| {
        let folder = folder();
        let child = runtime.any();
        let parent = child.words()[1..].iter().fold(runtime.program("parent"), |parent, word| parent.arg(word));
        let (_held, stdin) = OpenStdin::open();
        let running = run(&["--show-output", "-o", "a.nettrace"], &parent).current_dir(folder.path()).stdin(stdin).start();
        let line = poll(TIMEOUT, || running.stdout().lines().find_map(|line| line.strip_prefix("child ")?.parse::<u32>().ok())).unwrap();
        // A thread that exists only once managed code runs.
        let runs = || threads(line).iter().any(|name| name.starts_with(".NET Finalizer")).then_some(());
        assert!(poll(TIMEOUT, runs).is_some(), "{:?}", threads(line));
        running.signal(Signal::INT);
        let output = running.wait();
        assert!(output.stderr.contains("(parent) from its start"), "{output:?}");
        assert!(!is_alive(pid(&output.stderr)), "{output:?}");
        // It is configured to exit with its parent, and grandchildren are not waited for.
        assert!(poll(TIMEOUT, || (!is_alive(line)).then_some(())).is_some(), "{output:?}");
    });
}

/// Records the start of a program that keeps running, ends it, and returns the output of dn-top.
fn keep_running(runtime: &Runtime, folder: &Path, options: &[&str]) -> Output {
    let (held, stdin) = OpenStdin::open();
    let options = [&["--keep-running", "--duration", "500ms", "-o", "a.nettrace"], options].concat();
    let mut running = run(&options, &runtime.any()).current_dir(folder).stdin(stdin).start();
    running.wait_for_stderr("keeps running; dn-top exits with it");
    assert!(running.is_alive() && is_alive(pid(&running.stderr())), "{runtime}");
    // The program exits when its standard input ends.
    drop(held);
    running.wait()
}

#[test]
fn keep_running_exits_with_program_exit_code() {
    runtimes::each(runtimes::since(5, runtimes::all()), |runtime| {
        let output = keep_running(runtime, folder().path(), &[]);
        assert_eq!(output.code, 0, "{output:?}");
    });
}

#[test]
fn keep_running_keeps_program_whose_recording_cannot_be_exported() {
    runtimes::each(runtimes::since(5, runtimes::all()), |runtime| {
        let folder = folder();
        std::fs::write(folder.path().join("a.folded"), "mine").unwrap();
        let output = keep_running(runtime, folder.path(), &["--export", "folded"]);
        assert!(output.code == 1 && output.stderr.contains("a.folded exists already"), "{output:?}");
    });
}

/// After SIGKILL, the program is not left suspended, whenever the signal arrives: before the runtime has connected, while it waits for its
/// session, or later.
#[test]
fn killed_dn_top_does_not_leave_program_suspended() {
    let runtimes = [runtimes::since(8, runtimes::all()), runtimes::single_files()].concat();
    runtimes::each(runtimes, |runtime| {
        // As soon as the program has started, and at other times after dn-top's start.
        let moments = [None].into_iter().chain([50, 100, 150, 250].map(|ms| Some(Duration::from_millis(ms))));
        for moment in moments {
            let folder = folder();
            let (_held, stdin) = OpenStdin::open();
            let started = folder.path().join("started");
            let shell = Launch::new(&PathBuf::from("sh")).arg("-c").arg(r#"echo $$ > started; exec "$@""#).arg("sh");
            let any = runtime.any();
            let program = any.words().iter().fold(shell, |shell, word| shell.arg(word));
            let program = any.variables().iter().fold(program, |program, (name, value)| program.env(name, value));
            let running = run(&["-o", "a.nettrace"], &program).env("TMPDIR", folder.path()).current_dir(folder.path()).stdin(stdin).start();
            let pid = || std::fs::read_to_string(&started).ok()?.trim_end().parse::<u32>().ok();
            match moment {
                None => drop(poll(TIMEOUT, pid).unwrap_or_else(|| panic!("{runtime}: {}", running.stderr()))),
                Some(moment) => std::thread::sleep(moment),
            }
            running.signal(Signal::KILL);
            assert_eq!(running.wait().code, 137);
            let of_us = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("dn-top-");
            let is_over = || !std::fs::read_dir(folder.path()).unwrap().any(|entry| of_us(entry.unwrap()));
            // It may not have started, or be about to start.
            let found = poll(TIMEOUT, || pid().map(Some).or_else(|| is_over().then_some(None)));
            let Some(pid) = found.unwrap_or_else(|| panic!("{runtime} {moment:?}: a folder is left")) else { continue };
            let _end = KillAtEnd(pid);
            let info = || Invocation::new(["info", &pid.to_string(), "--json"]).run();
            let runs = || is_alive(pid).then(|| info().json()).is_none_or(|info| info["state"] == "running" && info["contact"] == "ok");
            let finalizer = || (!is_alive(pid) || threads(pid).iter().any(|name| name.starts_with(".NET Finalizer"))).then_some(());
            assert!(poll(TIMEOUT, finalizer).is_some() && runs(), "{runtime} {moment:?}: {:?}", threads(pid));
            // Nothing of dn-top is left once the program has exited.
            drop(_held);
            assert!(poll(TIMEOUT, || (!is_alive(pid) && is_over()).then_some(())).is_some(), "{runtime} {moment:?} leaves a folder");
        }
    });
}

#[test]
fn non_dotnet_program_runs_unrecorded() {
    let shell = |script: &str| Launch::new(&PathBuf::from("sh")).arg("-c").arg(script);
    let output = run(&["--show-output"], &shell("echo hello; exit 7")).run();
    assert_eq!((output.code, output.stdout.as_str()), (7, "hello\n"), "{output:?}");
    assert!(output.stderr.contains("nothing was recorded: no .NET runtime connected"), "{output:?}");
    let output = run(&["--show-output", "--json"], &shell("echo hello")).run();
    assert!(output.stderr.contains("hello"), "standard output is for the document: {output:?}");
    let nothing = document(&output);
    let fields = ["file", "events", "complete", "stopped_by"].map(|name| nothing[name].clone());
    assert_eq!(json!(fields), json!([null, 0, false, "target-exit"]), "{output:?}");
    assert!(nothing["notes"][0].as_str().unwrap().ends_with("nothing was recorded: no .NET runtime connected"), "{output:?}");
    let output = run(&[], &Launch::new(&PathBuf::from("/no/such/program"))).run();
    assert!(output.code == 1 && output.stderr.contains("/no/such/program cannot be started: No such file"), "{output:?}");

    let folder = folder();
    let running = run(&[], &shell("touch started; exec sleep 100")).current_dir(folder.path()).start();
    poll(TIMEOUT, || folder.path().join("started").exists().then_some(())).unwrap();
    running.signal(Signal::INT);
    let output = running.wait();
    assert!(output.code == 130 && output.stderr.contains("was terminated, and nothing was recorded"), "{output:?}");
}

/// .NET Core 3.1 does not support diagnostic ports.
#[test]
fn runtime_without_port_support_is_attached_after_startup() {
    let Some(net31) = runtimes::net31() else { return };
    let folder = folder();
    let (_held, stdin) = OpenStdin::open();
    let running = run(&["-o", "a.nettrace", "--json"], &net31.any()).current_dir(folder.path()).stdin(stdin).start();
    running.wait_for_stderr("recording process ");
    let pid = pid(&running.stderr());
    // Waits until the file has contents.
    poll(TIMEOUT, || {
        let partial = folder.path().join("a.nettrace.partial");
        (std::fs::metadata(partial).ok()?.len() > 20_000).then_some(())
    })
    .unwrap();
    let process = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(process, Signal::TERM).unwrap();
    let output = running.wait();
    assert_eq!(output.code, 143, "its exit code is ours: {output:?}");
    let document = document(&output);
    assert_eq!(document["stopped_by"], "target-exit", "{output:?}");
    let note = document["notes"][0].as_str().unwrap_or_default().to_owned();
    assert!(note.starts_with("the first ") && note.contains(" ms are not recorded: .NET Core 3 has no diagnostic ports"), "{note}");
    assert!(output.stderr.contains(&note) && output.stderr.contains("(work): "), "{output:?}");
    let kept = document["file"].as_str().unwrap();
    assert!(count(&folder, kept, "ExceptionThrown") > 0, "{output:?}");
}

/// Returns the PID in "recording process PID (".
fn pid(stderr: &str) -> u32 {
    let rest = stderr.split("recording process ").nth(1).unwrap_or_else(|| panic!("{stderr}"));
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// Returns whether the process is running; a zombie is not.
fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

pub(crate) fn threads(pid: u32) -> Vec<String> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok()).collect()
}
