//! `--log`: a line for each request, session and recording.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::support::screen::ENTER;
use crate::support::{Invocation, Output, Signal, folder, runtimes, send};

fn run(log: &Path, words: &[&str]) -> Output {
    Invocation::new(["--log", log.to_str().unwrap()].iter().chain(words)).run()
}

/// Returns the lines of a log, without their times.
fn lines(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap();
    let words = |line: &str| {
        let (time, words) = line.split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z') && time.len() == 24, "{line}");
        words.to_owned()
    };
    text.lines().map(words).collect()
}

#[test]
fn answered_refused_and_unanswered_requests_are_logged() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().env("SECRET_TOKEN", "hunter2").start();
        let (folder, pid) = (folder(), program.pid().to_string());
        let log = |name: &str| folder.path().join(name);
        let has = |name: &str, words: &[&str]| {
            let lines = lines(&log(name));
            assert!(lines.iter().any(|line| words.iter().all(|word| line.contains(word))), "{runtime} {words:?}: {lines:#?}");
            assert!(!lines.iter().any(|line| line.contains("hunter2")), "{runtime}: {lines:#?}");
        };
        let to = format!(" to process {pid}, ");

        run(&log("answered"), &["env", &pid, "--reveal"]);
        run(&log("recorded"), &["trace", &pid, "--duration", "200ms", "-o", log("a.nettrace").to_str().unwrap()]);
        has("recorded", &["CollectTracing", &to, " ms: answered"]);
        // The stream may end before the response arrives.
        has("recorded", &["StopTracing", &to, " ms: "]);
        for end in ["session ", "recording "] {
            has("recorded", &[end, &format!("of process {pid} has begun")]);
        }
        has("recorded", &["session ", &format!("of process {pid} has ended after "), " bytes"]);
        has("recorded", &[&format!("recording of process {pid} is complete, "), "a.nettrace"]);

        let refused = run(&log("refused"), &["dump", &pid, "-o", "/proc/a.dmp"]);
        assert_ne!(refused.code, 0, "{runtime}");
        has("refused", &["Dump", &to, " ms: "]);

        send(program.pid(), Signal::STOP);
        run(&log("silent"), &["info", &pid]);
        send(program.pid(), Signal::CONT);
        has("silent", &["ProcessInfo", &format!("{to}5"), " ms: no answer within 5 s"]);
        if runtime.major() >= 5 {
            has("answered", &["ProcessEnvironment", &to, " ms: answered"]);
        }
    });
}

#[test]
fn dashboard_shows_log_without_file() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().env("SECRET_TOKEN", "hunter2").start();
        let mut screen = Invocation::new(["--watch", "never"]).screen(160, 40);
        screen.wait_for("COMMAND");
        screen.keys("l");
        screen.wait_for("Log of dn-top");
        screen.keys(&format!("/{}{ENTER}", program.pid()));
        screen.wait_for(&format!(" to process {}, ", program.pid()));
        assert!(!screen.contents().contains("hunter2"), "{runtime}");
        screen.keys("q");
        screen.wait_until("the log closed", |shown| !shown.contains("Log of dn-top"));
        screen.quit();
    });
}

#[test]
fn log_is_new_file_readable_only_by_owner() {
    let folder = folder();
    let (log, link) = (folder.path().join("log"), folder.path().join("link"));
    assert_eq!(run(&log, &["--demo", "info", "OrderService"]).code, 0);
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    let before = lines(&log);
    assert!(before.iter().any(|line| line.ends_with(" ms: answered")), "{before:?}");
    symlink(folder.path().join("elsewhere"), &link).unwrap();
    for path in [&log, &link] {
        run(path, &["ps"]).assert_refused(1, &format!("the log cannot be written to {}: File exists", path.display()));
    }
    assert_eq!(lines(&log), before);
    assert!(!folder.path().join("elsewhere").exists());
}

/// As on a full disk, no line can be written.
#[test]
fn incomplete_log_is_reported() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let (folder, pid) = (folder(), program.pid().to_string());
        let log = folder.path().join("log");
        // The limit must not apply to the file with the messages.
        let script = r#"(ulimit -f 0; exec "$@") 2>&1 >/dev/null | cat"#;
        let words = ["-c", script, "sh", env!("CARGO_BIN_EXE_dn-top"), "--log", log.to_str().unwrap(), "info", &pid];
        let output = Invocation::of("sh", words).run();
        let expected = format!("dn-top: the log {} is incomplete: File too large (os error 27)\n", log.display());
        assert_eq!(output.stdout, expected, "{runtime}: {output:?}");
    });
}

/// Runs a command with a configuration file.
fn configured(home: &Path, text: &str) -> Output {
    fs::create_dir_all(home.join("dn-top")).unwrap();
    fs::write(home.join("dn-top/config.toml"), text).unwrap();
    Invocation::new(["--demo", "info", "OrderService"]).env("XDG_CONFIG_HOME", home.to_str().unwrap()).run()
}

#[test]
fn configured_log_is_new_file_at_every_start() {
    let folder = folder();
    let (home, logs) = (folder.path().join("home"), folder.path().join("logs"));
    fs::create_dir(&logs).unwrap();
    let files = || {
        let mut all: Vec<_> = fs::read_dir(&logs).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        all.sort();
        all
    };
    let file = logs.join("dn-top.log");
    symlink(folder.path().join("elsewhere"), logs.join("dn-top_2.log")).unwrap();
    for _ in 0..2 {
        assert_eq!(configured(&home, &format!("log = '{}'", file.display())).code, 0);
    }
    assert_eq!(files(), ["dn-top.log", "dn-top_2.log", "dn-top_3.log"]);
    assert!(!folder.path().join("elsewhere").exists());
    for name in ["dn-top.log", "dn-top_3.log"] {
        assert!(lines(&logs.join(name)).iter().any(|line| line.ends_with(" ms: answered")), "{name}");
        assert_eq!(fs::metadata(logs.join(name)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // With a folder, every start creates a new file, except for commands that access no process.
    for _ in 0..2 {
        assert_eq!(configured(&home, &format!("log = '{}'", logs.display())).code, 0);
    }
    assert_eq!(files().len(), 5, "{:?}", files());
    let man = Invocation::new(["man"]).env("XDG_CONFIG_HOME", home.to_str().unwrap()).run();
    assert_eq!((man.code, files().len()), (0, 5));
}
