//! Processes that do not run: stopped by a signal or a debugger, or killed while the dashboard shows them.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::slowdown::config_without_cpu_wait;
use crate::support::runtimes::{self, Runtime};
use crate::support::screen::{ENTER, ESC, Screen};
use crate::support::{Invocation, Program, Signal};

/// Returns a program, the dashboard that shows it, and the folder of its configuration.
fn running(runtime: &Runtime) -> (Program, TempDir, Screen) {
    let (program, home) = (runtime.program("known").start(), config_without_cpu_wait());
    assert_eq!(program.line(), "ready");
    let words = ["--filter", &format!("pid:{}", program.pid())];
    let screen = Invocation::new(words).env("XDG_CONFIG_HOME", home.path()).screen(120, 40);
    screen.wait_for("● running");
    (program, home, screen)
}

#[test]
fn stopped_and_killed_processes_are_shown_as_such() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let (program, _home, mut screen) = running(runtime);
        program.signal(Signal::STOP);
        screen.wait_for("! stopped");
        let shown = screen.wait_for(&format!("kill -CONT {}", program.pid()));
        assert!(!shown.contains("no findings"), "{runtime}: {shown}");
        screen.keys("D");
        screen.wait_for(": Stopped by a signal: no thread runs");
        let words =
            format!("process {0} (known): it was stopped by a signal and does not answer: `kill -CONT {0}` continues it", program.pid());
        let run = |command: &str| Invocation::new([command, &program.pid().to_string()]).run();
        run("env").assert_refused(1, &words);
        // This shows what is known without an answer as well.
        let info = run("info");
        assert!(info.code == 1 && info.stderr.contains(&words) && info.stdout.contains("stopped"), "{runtime}: {info:?}");
        program.signal(Signal::CONT);
        screen.wait_for("● running");
        screen.keys(ENTER);
        screen.wait_for("Esc back");
        program.signal(Signal::KILL);
        screen.wait_for("The process has ended.");
        // Longer than the row would stay if its details were not open.
        let vanished = screen.try_wait_until(Duration::from_secs(5), |shown| !shown.contains("The process has ended."));
        assert!(vanished.is_err(), "{runtime}");
        screen.keys(ESC);
        screen.wait_for("No process matches");
        screen.quit();
    });
}

/// Attaches to all threads of the process in its arguments, as a debugger does, until its standard input is closed.
const DEBUGGER: &str = r#"
import ctypes, os, sys
pid, attach = sys.argv[1], 16
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
for thread in os.listdir(f"/proc/{pid}/task"):
    if ptrace(attach, int(thread), 0, 0) == 0:
        os.waitpid(int(thread), 0x40000000)
print("attached", flush=True)
sys.stdin.read()
"#;

#[test]
fn process_stopped_by_a_debugger_is_shown_as_such() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let (program, _home, mut screen) = running(runtime);
        let mut debugger = Command::new("python3");
        debugger.args(["-c", DEBUGGER, &program.pid().to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut debugger) = debugger.spawn() else { return runtimes::skip("there is no python3") };
        // Its output stays open: it writes the end of the line separately.
        let mut output = debugger.stdout.take().unwrap();
        output.read_exact(&mut [0; "attached".len()]).unwrap();
        let shown = screen.wait_for(&format!("Stopped by a debugger (PID {}): no thread runs", debugger.id()));
        assert!(shown.contains("! stopped") && !shown.contains("no findings"), "{runtime}: {shown}");
        let info = Invocation::new(["info", &program.pid().to_string()]).run();
        let words = format!("it was stopped by a debugger (PID {}) and does not answer", debugger.id());
        assert!(info.code == 1 && info.stderr.contains(&words), "{runtime}: {info:?}");
        drop(debugger.stdin.take());
        debugger.wait().unwrap();
        screen.wait_for("● running");
        screen.quit();
    });
}
