//! Dashboard options before a command: honored, or rejected before anything is done, but never ignored.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::json;

use crate::support::runtimes;
use crate::support::{Invocation, Output, folder};

/// Effect of a command.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    /// Reads from processes.
    Looks,
    /// Changes a process.
    Changes,
    /// Starts a program.
    Starts,
    /// Opens the dashboard on files.
    Opens,
    /// Accesses no processes.
    Files,
}

/// Every command, with `TARGET` for the process.
const COMMANDS: &[(Subject, &[&str])] = &[
    (Subject::Looks, &["ps"]),
    (Subject::Looks, &["doctor"]),
    (Subject::Looks, &["info", "TARGET"]),
    (Subject::Looks, &["env", "TARGET"]),
    (Subject::Changes, &["trace", "TARGET", "-o", "readonly.nettrace", "--duration", "1s"]),
    (Subject::Changes, &["trace", "TARGET", "-o", "legacy.nettrace", "--legacy", "--duration", "1s"]),
    (Subject::Changes, &["trace", "TARGET", "--user-events", "all", "--duration", "1s"]),
    (Subject::Starts, &["run", "--", "touch", "started"]),
    (Subject::Changes, &["cpu", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["slow", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["gc", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["exceptions", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["allocations", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["contention", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["jit", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["http", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["logs", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["events", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["resume", "TARGET"]),
    (Subject::Changes, &["set-env", "TARGET", "READONLY=1"]),
    (Subject::Changes, &["set-env", "TARGET", "--unset", "HOME"]),
    (Subject::Changes, &["startup-hook", "TARGET", "/hook.dll"]),
    (Subject::Changes, &["profiler", "attach", "TARGET", "--guid", "123e4567-e89b-12d3-a456-426614174000", "--path", "/p.so"]),
    (Subject::Changes, &["profiler", "startup", "TARGET", "--guid", "123e4567-e89b-12d3-a456-426614174000", "--path", "/p.so"]),
    (Subject::Changes, &["counters", "TARGET", "--duration", "1s"]),
    (Subject::Changes, &["stacks", "TARGET"]),
    (Subject::Changes, &["heap", "TARGET", "--yes"]),
    (Subject::Changes, &["heap", "TARGET", "--yes", "--retained", "--paths", "App.Cache"]),
    (Subject::Changes, &["dump", "TARGET", "-o", "/tmp/dn-top-readonly.dmp"]),
    (Subject::Changes, &["perfmap", "TARGET", "on"]),
    (Subject::Changes, &["perfmap", "TARGET", "off"]),
    (Subject::Changes, &["perfetto", "serve", "TARGET", "--duration", "1s"]),
    (Subject::Files, &["perfetto"]),
    (Subject::Files, &["profiles"]),
    (Subject::Files, &["stats", "missing.nettrace"]),
    (Subject::Files, &["report", "missing.nettrace"]),
    (Subject::Files, &["heap", "missing.gcdump"]),
    (Subject::Files, &["heap", "missing.gcdump", "--retained", "--paths", "App.Cache"]),
    (Subject::Files, &["diff", "missing.gcdump", "missing.gcdump"]),
    (Subject::Files, &["diff", "missing.nettrace", "missing.nettrace"]),
    (Subject::Files, &["export", "missing.nettrace", "--format", "csv"]),
    (Subject::Files, &["salvage", "missing.nettrace", "-o", "out.nettrace"]),
    (Subject::Changes, &["salvage", "missing.nettrace", "-o", "out.nettrace", "--names"]),
    (Subject::Opens, &["open", "missing.nettrace"]),
    (Subject::Files, &["config"]),
    (Subject::Files, &["completions", "bash"]),
    (Subject::Files, &["man"]),
];

/// Every option, with the kinds of commands that accept it.
const OPTIONS: &[(&[&str], &[Subject])] = &[
    (&["--readonly"], &[Subject::Looks, Subject::Opens, Subject::Files]),
    (&["--demo"], &[Subject::Looks, Subject::Changes]),
    (&["--port", "port"], &[]),
    (&["--log", "requests.log"], &[Subject::Looks, Subject::Changes, Subject::Starts]),
    (&["--refresh", "2s"], &[Subject::Opens]),
    (&["--watch", "all"], &[]),
    (&["--filter", "x"], &[Subject::Opens]),
    (&["--columns", "pid,name"], &[Subject::Opens]),
    (&["--sort", "name"], &[Subject::Opens]),
    (&["--theme", "light"], &[Subject::Opens]),
    (&["--color", "never"], &[Subject::Opens]),
    (&["--ascii"], &[Subject::Opens]),
    (&["--no-mouse"], &[Subject::Opens]),
    (&["--no-title"], &[Subject::Opens]),
    (&["--bell"], &[Subject::Opens]),
];

fn run(words: &[&str]) -> Output {
    Invocation::new(words).run()
}

/// Returns the first words of the lines below a heading of `--help`, up to the next heading.
fn listed(heading: &str) -> BTreeSet<String> {
    let help = run(&["--help"]).stdout;
    let lines = help.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.is_empty());
    // Continuation lines are indented further.
    let first = |line: &str| line.strip_prefix("  ").filter(|rest| !rest.starts_with("         ")).and_then(first_name);
    lines.filter_map(first).filter(|word| !["help", "--help", "--version"].contains(&word.as_str())).collect()
}

fn first_name(line: &str) -> Option<String> {
    line.split_whitespace().find(|word| !word.starts_with('-') || word.starts_with("--")).map(str::to_owned)
}

#[test]
fn the_table_has_every_command_and_option() {
    let commands: BTreeSet<_> = COMMANDS.iter().map(|(_, words)| words[0].to_owned()).collect();
    assert_eq!(commands, listed("Commands:"));
    let options: BTreeSet<_> = OPTIONS.iter().map(|(words, _)| words[0].to_owned()).collect();
    assert_eq!(options, listed("Options:"));
}

#[test]
fn options_not_allowed_before_command_are_rejected() {
    let place = folder();
    let path = place.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    for_each_pair(false, path.to_str().unwrap(), Some(place.path()), |option, command, output| {
        output.assert_refused(2, &format!("{option} cannot be given before `{command}`: "));
    });
    assert!(listener.accept().is_err(), "a connection came");
    let left: Vec<_> = place.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["socket"], "a file was made");
}

#[test]
fn options_allowed_before_command_are_accepted() {
    for_each_pair(true, "/no/such/socket", None, |option, command, output| {
        assert!(!output.stderr.contains("cannot be given before"), "{option} {command}: {output:?}");
    });
}

/// Runs each command behind each option that is allowed there, or that is not; all options of a command at once, as most of the runs wait.
/// Without a folder, each run has one of its own.
fn for_each_pair(is_allowed: bool, target: &str, place: Option<&Path>, check: impl Fn(&str, &str, Output)) {
    for (subject, command) in COMMANDS {
        let command: Vec<_> = command.iter().map(|word| if *word == "TARGET" { target } else { word }).collect();
        let options = OPTIONS.iter().filter(|(_, before)| before.contains(subject) == is_allowed);
        let start = |(option, _): &(&[&'static str], _)| {
            let invocation = Invocation::new(option.iter().chain(&command));
            let invocation = if let Some(place) = place { invocation.current_dir(place) } else { invocation };
            (option[0], invocation.start())
        };
        let running: Vec<_> = options.map(start).collect();
        running.into_iter().for_each(|(option, running)| check(option, command[0], running.wait()));
    }
}

#[test]
fn commands_work_on_demo() {
    let demo = |words: &[&str]| run(&[&["--demo"], words].concat());
    let rows = demo(&["ps", "--json"]).json();
    // One has the long version of a preview.
    let listed = demo(&["ps"]).stdout;
    let column = listed.find("STATE").unwrap();
    assert!(listed.lines().all(|row| row.get(column - 2..column) == Some("  ") && row.get(column..=column) != Some(" ")), "{listed}");
    let names: BTreeSet<_> = rows["processes"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect();
    assert!(names.contains("OrderService"), "{names:?}");
    // Real processes of this machine are not listed.
    let program = runtimes::net9().map(|runtime| runtime.any().start());
    let known = program.as_ref().map(|program| demo(&["info", &program.pid().to_string()]));
    assert!(known.is_none_or(|output| output.code == 3), "a process of this machine is in the demo");
    assert_eq!(demo(&["info", "OrderService", "--json"]).json()["contact"], "ok");
    assert!(!demo(&["env", "OrderService", "--json"]).json()["variables"].as_array().unwrap().is_empty());
    assert_eq!(demo(&["trace", "OrderService", "-o", "a.nettrace", "--duration", "200ms", "--json"]).json()["complete"], true);
    assert_eq!(
        run(&["--demo", "--readonly", "ps", "--json"]).json()["processes"].as_array().unwrap().len(),
        rows["processes"].as_array().unwrap().len()
    );
}

#[test]
fn readonly_commands_do_not_change_process() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let pid = program.pid().to_string();
        let info = run(&["--readonly", "info", &pid, "--json"]).json();
        assert_eq!(json!([info["pid"], info["contact"]]), json!([program.pid(), "ok"]), "{runtime}");
        let rows = run(&["--readonly", "ps", "--json"]).json();
        assert!(rows["processes"].as_array().unwrap().iter().any(|row| row["pid"] == program.pid()), "{runtime}");
        run(&["--readonly", "set-env", &pid, "READONLY=1"]).assert_refused(2, "which --readonly does not allow");
        if runtime.major() >= 5 {
            let variables = run(&["--readonly", "env", &pid, "--json"]).json();
            assert!(variables["variables"].as_array().unwrap().iter().all(|variable| variable["name"] != "READONLY"), "{runtime}");
        }
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn config_file_sets_defaults_and_errors_are_one_line() {
    let place = folder();
    let file = place.path().join("dn-top/config.toml");
    fs::create_dir(file.parent().unwrap()).unwrap();
    let run = |words: &[&str]| Invocation::new(words).env("XDG_CONFIG_HOME", place.path()).run();
    assert_eq!(run(&["profiles", "--json"]).code, 0, "no file is no mistake");

    fs::write(&file, "demo = true\n[profiles]\njson = true\n").unwrap();
    assert!(run(&["profiles"]).json()["profiles"].is_array());
    assert!(run(&["ps"]).stdout.contains("OrderService"), "options before a command have defaults as well");
    fs::write(&file, "readonly = true\n").unwrap();
    run(&["--demo", "set-env", "OrderService", "A=1"]).assert_refused(1, "which --readonly does not allow");
    run(&["run", "--", "touch", "started"]).assert_refused(1, "which readonly in the configuration file does not allow");
    // The printed file has no effect as configuration.
    fs::write(&file, run(&["config"]).stdout).unwrap();
    assert_eq!(run(&["--help"]).stdout, Invocation::new(["--help"]).run().stdout);

    let cannot = |why: &str| run(&["ps"]).assert_refused(2, &format!("cannot read {}{why}", file.display()));
    let refused = |why: &str| run(&["ps"]).assert_refused(2, &format!("{}{why}", file.display()));
    fs::write(&file, "# mine\nrefrsh = '2s'\n").unwrap();
    refused(":2: unknown option 'refrsh'; did you mean 'refresh'?");
    fs::write(&file, "[trace]\nflight = '64MB'\nmax-size = '1MB'\n").unwrap();
    let words = format!("{}: [trace] flight and max-size exclude each other: remove one of them", file.display());
    run(&["--demo", "trace", "OrderService"]).assert_refused(2, &words);
    fs::write(&file, [0xff, 0xfe]).unwrap();
    cannot(": stream did not contain valid UTF-8");
    fs::write(&file, " ".repeat(70_000)).unwrap();
    cannot(": it is larger than 64 KiB");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    cannot(": others can write to it: `chmod go-w` it");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&file, Some(65_533), Some(65_533)).unwrap();
        cannot(": it belongs to another user");
    }
    // Has no writer: reading it would block forever.
    fs::remove_file(&file).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR).unwrap();
    cannot(": it is not a regular file");
}

#[test]
fn doctor_reports_environment_checks() {
    let programs: Vec<_> = runtimes::all().iter().map(|runtime| runtime.any().start()).collect();
    let checks = run(&["doctor", "--json"]).json();
    let of = |subject: &str| checks["checks"].as_array().unwrap().iter().find(|check| check["subject"] == subject).unwrap().clone();
    for subject in
        ["sockets", "user", "/proc", "namespace", "CPU samples", "core dumps", "user_events", "Perfetto", "terminal", "clipboard"]
    {
        assert!(of(subject)["finding"].as_str().unwrap().len() > 5, "{checks}");
    }
    let attachable = of("processes")["finding"].as_str().unwrap().split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(attachable >= programs.len(), "{checks}");
    assert_eq!(of("terminal")["state"], "optional", "this is no terminal");
    // Without Perfetto, socket folder and UTF-8.
    let bare = Invocation::new(["doctor"]).env("TMPDIR", "/no/such/folder").env("LANG", "C").run().stdout;
    for part in ["!  sockets      /no/such/folder cannot be listed", "!  locale       has no UTF-8", "-  Perfetto     "] {
        assert!(bare.contains(part), "{bare}");
    }
}
