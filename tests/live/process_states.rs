//! Processes that do not run: stopped by a signal, or killed while the dashboard shows them.

use std::time::Duration;

use crate::slowdown::config_without_cpu_wait;
use crate::support::runtimes;
use crate::support::screen::{ENTER, ESC};
use crate::support::{Invocation, Signal};

#[test]
fn stopped_and_killed_processes_are_shown_as_such() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let (program, home) = (runtime.program("known").start(), config_without_cpu_wait());
        assert_eq!(program.line(), "ready");
        let words = ["--filter", &format!("pid:{}", program.pid())];
        let mut screen = Invocation::new(words).env("XDG_CONFIG_HOME", home.path()).screen(120, 40);
        screen.wait_for("● running");
        program.signal(Signal::STOP);
        screen.wait_for("! stopped");
        let shown = screen.wait_for(&format!("kill -CONT {}", program.pid()));
        assert!(!shown.contains("no findings"), "{runtime}: {shown}");
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
