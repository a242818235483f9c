//! Requests that end a real runtime, or block its diagnostic server, or might: none of them is ever sent, whatever the user types. Each
//! attempt is made with dn-top itself on an expendable process, which must stay alive and responsive.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use dn_top::ipc::{Command, PerfMapKind, TargetPath};
use dn_top::net::Cause;
use dn_top::net::discovery::Sources;
use dn_top::net::port::Port;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use crate::fatal_hooks::bad_hooks;
use crate::support::runtimes::{self, Runtime};
use crate::support::screen::{DOWN, ENTER, ESC, TAB, ctrl};
use crate::support::{Invocation, Launch, Output, Program, TIMEOUT, folder, poll, send};

const CLASS: &str = "123e4567-e89b-12d3-a456-426614174000";

/// The words typed, with `PID` for the process.
pub(crate) struct Attempt {
    words: Vec<OsString>,
    /// Part of the error message, if it must be refused with a nonzero exit code. A NativeAOT program may be refused for being one.
    refusal: Option<&'static str>,
}

pub(crate) fn attempt<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Attempt {
    Attempt { words: words.into_iter().map(|word| word.as_ref().to_owned()).collect(), refusal: None }
}

impl Attempt {
    pub(crate) fn refused(self, words: &'static str) -> Self {
        Self { refusal: Some(words), ..self }
    }
}

/// Makes the attempts in turn, on one process.
pub(crate) fn assert_survives(runtime: &Runtime, program: &mut Program, attempts: Vec<Attempt>) {
    let pid = OsString::from(program.pid().to_string());
    for Attempt { words, refusal } in attempts {
        let shown: String = format!("{words:?}").chars().take(200).collect();
        let words = words.iter().map(|word| if word == "PID" { &pid } else { word });
        let output = Invocation::new(words).run();
        assert!(program.is_alive(), "{runtime} did not survive {shown}: {output:?} {}", program.stderr());
        assert!(program.answers(), "{runtime} does not answer after {shown}: {output:?}");
        if let Some(refusal) = refusal {
            let other = runtime.is_native_aot() && output.stderr.contains("a NativeAOT program cannot");
            assert!(output.code != 0 && (output.stderr.contains(refusal) || other), "{runtime} {shown}: {output:?}");
        }
    }
}

pub(crate) fn every_runtime_form() -> Vec<Runtime> {
    let mut runtimes = [runtimes::all(), runtimes::single_files(), runtimes::native_aot().into_iter().collect()].concat();
    // `all` contains a single-file program if nothing else of its version is installed.
    let mut seen = HashSet::new();
    runtimes.retain(|runtime| seen.insert(runtime.to_string()));
    runtimes
}

pub(crate) fn program_file(runtime: &Runtime) -> PathBuf {
    runtime.program("work").words()[1].clone()
}

#[test]
fn no_request_crashes_runtime() {
    runtimes::each(every_runtime_form(), |runtime| {
        let place = folder();
        let pipe = place.path().join("pipe.so");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let text = place.path().join("text.so");
        fs::write(&text, "no library").unwrap();
        // Its perf maps are removed with this folder.
        let mut program = runtime.any().env("DOTNET_PerfMapJitDumpPath", place.path()).start();
        let long = "x".repeat(40_000);
        let files = Cell::new(0);
        let trace = |words: &[&str]| {
            files.set(files.get() + 1);
            let file = place.path().join(format!("{}.nettrace", files.get()));
            let common = ["trace", "PID", "--duration", "200ms", "-o", file.to_str().unwrap()];
            attempt(common.iter().chain(words))
        };
        let provider = |spec: &str| trace(&["--provider", spec]);
        let profiler = |kind: &str, path: &str| attempt(["profiler", kind, "PID", "--guid", CLASS, "--path", path]);
        let many: Vec<_> = (0..1001).flat_map(|i| ["--provider".to_owned(), format!("P{i}")]).collect();
        let full: Vec<_> = many[..2000].iter().map(String::as_str).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let attempts = vec![
            // Sessions.
            trace(&["--buffer-mb", "0"]).refused("a buffer of at least 1 MB"),
            trace(&["--buffer-mb", "4294967295", "--clr-events", "gc"]),
            trace(&many).refused("1 to 1000 providers"),
            trace(&full),
            provider("A:1:6"),
            provider(" :1:5").refused("name"),
            provider(&format!("{long}:1:5")).refused(""),
            provider(&format!("A:1:5:a={long}")).refused(""),
            provider("A:0xffffffffffffffff:5:\"'=;;=\\"),
            provider("Microsoft-Windows-DotNETRuntime:0xffffffffffffffff:5"),
            provider("System.Runtime:0xff:5:EventCounterIntervalSec=NaN"),
            provider("System.Runtime:0xff:5:EventCounterIntervalSec=1e30"),
            provider("System.Diagnostics.Metrics:0xff:5:SessionId=SHARED;Metrics=*;RefreshInterval=-1;MaxTimeSeries=-1"),
            provider("Microsoft-Diagnostics-DiagnosticSource:3:5:FilterAndPayloadSpecs=\"[AS]*/:-x.y.*Enumerate\""),
            trace(&["--rundown", "0xffffffffffffffff", "--clr-events", "gc"]),
            trace(&["--no-stacks", "--clr-events", "gc"]),
            trace(&["--block", "--clr-events", "gc"]),
            trace(&["--legacy"]).refused("omit --legacy"),
            trace(&["--legacy", "--buffer-mb", "0"]).refused("a buffer of at least 1 MB"),
            trace(&[&["--legacy"], &many[..]].concat()).refused("1 to 1000 providers"),
            attempt(["trace", "PID", "--user-events", "dn_top_test", "--duration", "200ms"]),
            attempt(["counters", "PID", "--counters", "System.Runtime[,],,Meter", "--duration", "200ms"]),
            attempt(["stacks", "PID"]),
            // Dumps.
            attempt(["dump", "PID", "-o", ""]).refused(""),
            attempt(["dump", "PID", "-o", "/no/such/folder/core"]).refused("the folder /no/such/folder does not exist"),
            attempt(["dump", "PID", "--type", "mini", "-o", place.path().to_str().unwrap()]),
            attempt(["dump", "PID", "-o", pipe.to_str().unwrap()]).refused("exists already"),
            attempt(["dump", "PID", "-o", &format!("/tmp/{long}")]).refused(""),
            // Perf maps.
            attempt(["perfmap", "PID", "on", "--kind", "all"]),
            attempt(["perfmap", "PID", "on", "--kind", "jitdump"]),
            attempt(["perfmap", "PID", "off"]),
            attempt(["perfmap", "PID", "off"]),
            // Environment variables.
            attempt(["set-env", "PID", "=x"]).refused("must not be empty"),
            attempt(["set-env", "PID", &format!("A={long}")]).refused(""),
            attempt(["set-env", "PID", "A="]),
            attempt(["set-env", "PID", "--unset", "NO_SUCH_VARIABLE"]).refused(""),
            attempt(["set-env", "PID", "--unset", "A"]),
            attempt(["set-env", "PID", "--unset", "PATH"]),
            // Profilers.
            profiler("attach", "/no/such.so").refused(""),
            profiler("attach", "missing.so").refused(""),
            profiler("attach", text.to_str().unwrap()).refused(""),
            profiler("attach", pipe.to_str().unwrap()).refused("is not a regular file"),
            profiler("attach", place.path().to_str().unwrap()).refused("is not a regular file"),
            profiler("attach", "").refused(""),
            profiler("startup", "/no/such.so").refused("is not suspended"),
            // A second resume.
            attempt(["resume", "PID"]),
            attempt(["info", "PID"]),
        ];
        assert_survives(runtime, &mut program, attempts);
    });
}

/// More requests are fatal to a suspended runtime than to a running one, some of them only once it is resumed.
#[test]
fn no_request_crashes_suspended_runtime() {
    let runtimes = every_runtime_form().into_iter().filter(|runtime| runtime.major() >= 8 && !runtime.is_native_aot()).collect();
    runtimes::each(runtimes, |runtime| {
        let place = folder();
        let mut program = suspended(runtime.any());
        let by_path = program.socket().into_os_string();
        let mut attempts = Vec::new();
        let waits = "not sent, because the process is suspended";
        for kind in ["all", "jitdump", "perfmap"] {
            attempts.push(attempt(["perfmap", "PID", "on", "--kind", kind]).refused(waits));
        }
        attempts.push(attempt(["perfmap".into(), by_path, "on".into()]).refused(waits));
        for (path, why) in bad_hooks(runtime, place.path()) {
            attempts.push(attempt(["startup-hook".as_ref(), "PID".as_ref(), path.as_os_str()]).refused(why));
        }
        let pipe = place.path().join("pipe.dll");
        for path in ["/no/such.so", pipe.to_str().unwrap(), ""] {
            attempts.push(attempt(["profiler", "startup", "PID", "--guid", CLASS, "--path", path]).refused(""));
            attempts.push(attempt(["profiler", "attach", "PID", "--guid", CLASS, "--path", path]).refused(""));
        }
        attempts.push(attempt(["perfmap", "PID", "off"]));
        attempts.push(attempt(["set-env", "PID", "A=B"]));
        attempts.push(attempt(["env", "PID"]));
        let full = place.path().join("full.core");
        attempts.push(attempt(["dump".as_ref(), "PID".as_ref(), "-o".as_ref(), full.as_os_str()]));
        attempts.push(attempt(["resume", "PID"]));
        assert_survives(runtime, &mut program, attempts);
        let running = || (info(&program)["state"] == "running").then_some(());
        assert!(poll(TIMEOUT, running).is_some(), "{runtime} does not run: {}", program.stderr());
        assert!(program.is_alive() && program.answers(), "{runtime}: {}", program.stderr());
    });
}

/// A single-file program on .NET 8 forks to write a dump, and the child continues as a second diagnostic server, while the program's own
/// server waits for the child to exit.
#[test]
fn dump_leaves_no_forked_process() {
    runtimes::each([runtimes::all(), runtimes::single_files()].concat(), |runtime| {
        let place = folder();
        let mut program = if runtime.is_single_file() { runtime.any().start() } else { start_settled(runtime) };
        let file = place.path().join("core");
        // A single-file program lacks the library that determines the contents of a small dump.
        let kind = if runtime.is_single_file() { "full" } else { "mini" };
        let dump = || Invocation::new(["dump", &program.pid().to_string(), "--type", kind, "-o", file.to_str().unwrap()]).run();
        // On a busy machine, createdump itself crashes at times: a segmentation fault in libmscordaccore.
        let outputs: Vec<_> = std::iter::repeat_with(dump).take(3).take_while(|_| !file.is_file()).collect();
        assert!(file.is_file() && program.is_alive(), "{runtime} wrote no dump: {outputs:?}");
        let nowhere = attempt(["dump", "PID", "--type", kind, "-o", "/proc/core"]);
        assert_survives(runtime, &mut program, vec![nowhere.refused("")]);
        assert_eq!(children(program.pid()), "", "{runtime}");
    });
}

/// A dump program that never ends keeps the process stopped: a remedy is printed, and it works.
#[test]
fn stuck_dump_program_can_be_killed() {
    runtimes::each(runtimes::with("work"), |runtime| {
        let place = folder();
        let mut program = start_settled(runtime);
        let path = place.path().join("core");
        let dump = Invocation::new(["dump", &program.pid().to_string(), "-o", path.to_str().unwrap()]).start();
        let writer = poll(TIMEOUT, || children(program.pid()).trim().parse::<u32>().ok()).expect("no dump program");
        send(writer, Signal::STOP);
        let advice = format!("`kill -9 {writer}; kill -CONT {}` ends it, and work continues", program.pid());
        dump.wait_for_stderr(&advice);
        send(writer, Signal::KILL);
        let stat = format!("/proc/{writer}/stat");
        let has_ended = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")).then_some(());
        poll(TIMEOUT, has_ended).expect("the dump program goes on");
        send(program.pid(), Signal::CONT);
        let output = dump.wait();
        assert_eq!(output.code, 1, "{runtime}: {output:?}");
        assert!(program.is_alive() && program.answers(), "{runtime}: {output:?}");
    });
}

/// A program that currently creates no threads.
pub(crate) fn start_settled(runtime: &Runtime) -> Program {
    let program = runtime.program("work").arg("1").arg("10").start();
    program.settle();
    program
}

/// Returns the child processes of all threads of this process.
fn children(pid: u32) -> String {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok()).collect()
}

/// From another PID namespace, as in a container that has the socket's folder mounted, it is not visible whether the runtime is suspended.
#[test]
fn perf_map_does_not_crash_suspended_runtime_in_namespace() {
    if !runtimes::namespaces() {
        return;
    }
    runtimes::each(runtimes::since(8, runtimes::with("work")), |runtime| {
        let mut program = suspended(runtime.any());
        let socket = program.socket();
        let elsewhere = |command: &str, words: &[&str]| -> Output {
            let dn_top = ["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_dn-top"), command, socket.to_str().unwrap()];
            Invocation::of("unshare", dn_top.iter().chain(words)).run()
        };
        for words in [&["on"][..], &["on", "--kind", "all"], &["on", "--kind", "jitdump"]] {
            let output = elsewhere("perfmap", words);
            assert!(output.code != 0 && program.is_alive() && program.answers(), "{runtime} {output:?}");
        }
        let output = elsewhere("startup-hook", &[program_file(runtime).to_str().unwrap()]);
        assert!(output.code != 0 && program.is_alive() && program.answers(), "{runtime} {output:?}");
    });
}

/// A startup hook that fails to load, from the dashboard's form.
#[test]
fn dashboard_form_does_not_crash_runtime() {
    runtimes::each(runtimes::since(8, runtimes::with("work")), |runtime| {
        let mut program = runtime.program("work").arg("1").arg("10").start();
        let pid = program.pid().to_string();
        let screen = Invocation::new(["--filter", &pid]).screen(140, 40);
        screen.wait_for(&format!("{} {pid}", runtime.name_of("work")));
        screen.wait_for(&format!("Runtime .NET {}", runtime.version));
        screen.keys("a");
        screen.wait_for("startup hook");
        screen.keys(&DOWN.repeat(6));
        screen.keys(ENTER);
        screen.wait_for("Startup hook · ");
        screen.keys(&format!("{}{TAB}y{ENTER}", program_file(runtime).display()));
        screen.wait_for("startup hook failed");
        assert!(program.is_alive() && program.answers(), "{runtime} {}", program.stderr());
    });
}

/// Dashboard actions on a suspended runtime, over the runtime's own socket, and over a port served by the dashboard.
#[test]
fn dashboard_keys_do_not_crash_suspended_runtime() {
    runtimes::each(runtimes::since(8, runtimes::with("work")), |runtime| {
        for serves_port in [false, true] {
            let place = folder();
            let port = place.path().join("port");
            let launch = runtime.program("work").arg("1").arg("10");
            let (mut options, mut program) = (Vec::new(), None);
            if serves_port {
                options = vec!["--port".to_owned(), port.to_str().unwrap().to_owned()];
            } else {
                program = Some(suspended(runtime.any()));
            }
            let screen =
                Invocation::new(options.iter().map(String::as_str).chain(["--watch", "never", "--filter", "work"])).screen(140, 40);
            screen.wait_for("Processes");
            let mut program = program.unwrap_or_else(|| {
                assert!(poll(TIMEOUT, || port.exists().then_some(())).is_some(), "no port is served");
                launch.env("DOTNET_DiagnosticPorts", format!("{},suspend", port.display())).start()
            });
            let pid = program.pid().to_string();
            let row = |shown: &str, state: &str| shown.lines().any(|line| line.contains(&format!(" {pid} ")) && line.contains(state));
            screen.wait_until("the program waits", |shown| row(shown, "◐ suspended"));
            screen.keys(&format!(":work {pid}"));
            screen.wait_until("the palette finds it", |shown| shown.contains(&format!("work {pid}")));
            screen.keys(ENTER);
            screen.wait_for(&format!("Runtime .NET {}", runtime.version));
            screen.keys("p");
            screen.wait_for("a perf map now would crash it");
            screen.keys("a");
            screen.wait_for("startup hook");
            screen.keys(&format!("{}{ENTER}", DOWN.repeat(6)));
            screen.wait_for("Startup hook · ");
            screen.keys(&format!("{}{TAB}y{ENTER}", program_file(runtime).display()));
            screen.wait_for("startup hook failed");
            assert!(program.is_alive(), "{runtime} {}", program.stderr());
            screen.keys("R");
            screen.wait_for("runs its first instructions");
            screen.keys(&format!("y{ENTER}"));
            screen.wait_until("the program runs", |shown| row(shown, "● running"));
            // A dump without a path.
            screen.keys("d");
            screen.wait_for("Dump · ");
            screen.keys(&format!("{TAB}{TAB}{}{TAB}y{ENTER}", ctrl('u')));
            screen.wait_for("Enter an absolute path");
            screen.keys(ESC);
            screen.wait_gone("Enter an absolute path");
            assert!(program.is_alive() && program.answers(), "{runtime} {}", program.stderr());
        }
    });
}

/// The same over a port that the runtime connects to, suspended and running.
#[test]
fn no_request_over_port_crashes_runtime() {
    let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtimes::each(runtimes::since(8, runtimes::with("work")), |runtime| {
        let place = folder();
        let path = place.path().join("port");
        tasks.block_on(async {
            let port = Port::serve(&path, &Sources::machine()).unwrap();
            let launch = runtime.program("work").arg("1").arg("10");
            let mut program = launch.env("DOTNET_DiagnosticPorts", format!("{},suspend", path.display())).start();
            let mut changes = port.changes();
            let connected = tokio::time::timeout(TIMEOUT, async {
                while port.runtimes().is_empty() {
                    changes.changed().await.unwrap();
                }
            });
            connected.await.unwrap();
            let client = port.runtimes().remove(0).client;
            let text = |path: &Path| TargetPath::new(path.to_str().unwrap()).unwrap();
            let attempts = [
                Command::EnablePerfMap { kind: PerfMapKind::All },
                Command::ApplyStartupHook { path: text(&program_file(runtime)) },
                Command::ApplyStartupHook { path: text(Path::new("/no/such.dll")) },
            ];
            for attempt in &attempts {
                let error = client.run(attempt).await.unwrap_err();
                assert!(matches!(error.cause, Cause::Suspended | Cause::BadHook { .. }), "{runtime} {error}");
            }
            client.run(&Command::ResumeRuntime).await.unwrap();
            for attempt in &attempts[1..] {
                let error = client.run(attempt).await.unwrap_err();
                assert!(matches!(error.cause, Cause::BadHook { .. }), "{runtime} {error}");
            }
            assert!(program.is_alive() && program.answers(), "{runtime} {}", program.stderr());
        });
    });
}

/// Starts a program that is suspended at startup until it is resumed over its own socket.
pub(crate) fn suspended(launch: Launch) -> Program {
    let program = launch.env("DOTNET_DefaultDiagnosticPortSuspend", "1").start();
    let waits = || (info(&program)["state"] == "suspended").then_some(());
    assert!(poll(TIMEOUT, waits).is_some(), "{program:?} is not suspended");
    program
}

fn info(program: &Program) -> serde_json::Value {
    Invocation::new(["info", &program.pid().to_string(), "--json"]).run().json()
}
