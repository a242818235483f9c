//! Malformed input: one clear sentence, the right exit code, and no process is harmed. Needs no .NET.

#![allow(clippy::unwrap_used, reason = "clippy knows tests by their attribute, and not what they call")]

#[path = "support/mod.rs"]
mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use dn_top::sim::{Fault, Rates, Script, Simulated, Spec};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use support::{Invocation, Output, Running, Signal, folder, runtimes};

/// Commands that connect to a process.
const COMMANDS: [&[&str]; 4] = [&["env"], &["trace"], &["dump"], &["perfmap", "on"]];

/// A simulated runtime, and an empty working directory for commands.
struct TestBed {
    _home: tempfile::TempDir,
    place: tempfile::TempDir,
    runtime: Simulated,
}

impl TestBed {
    fn new(spec: Spec) -> Self {
        let home = folder();
        let runtime = Simulated::start(home.path().join("socket"), spec).unwrap();
        Self { _home: home, place: folder(), runtime }
    }

    fn faulty(fault: Fault) -> Self {
        Self::new(Spec { fault: Some(fault), ..healthy() })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Starts a command with the runtime's socket as its target.
    fn start(&self, words: &[&str]) -> Running {
        let socket = self.runtime.socket().to_str().unwrap();
        Invocation::new([&words[..1], &[socket], &words[1..]].concat()).current_dir(self.place.path()).start()
    }

    fn run(&self, words: &[&str]) -> Output {
        self.start(words).wait()
    }

    fn trace_into(&self, file: &Path) -> Output {
        self.run(&["trace", "--duration", "300ms", "-o", file.to_str().unwrap()])
    }

    #[track_caller]
    fn assert_untouched(&self) {
        assert!(self.runtime.is_alive(), "the runtime was killed");
        let left: Vec<_> = fs::read_dir(self.place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

fn healthy() -> Spec {
    // dn-top checks that the listening process has this PID.
    Spec::new("Web", "9.0.7", std::process::id())
}

/// Returns a diagnostic IPC message whose header claims this length.
fn message(magic: &[u8; 14], length: u16) -> Vec<u8> {
    let mut bytes = [&magic[..], &length.to_le_bytes(), &[0xff, 0, 0, 0]].concat();
    bytes.resize(length.into(), 0x41);
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn faulty_diagnostic_servers_are_reported() {
    let this = std::env::current_exe().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    for (fault, contact, words) in [
        (Fault::Silent, "timeout", "no answer within 5 s"),
        (Fault::HangUp, "refused", "the connection was closed without an answer"),
        (Fault::Garbage(vec![0x55; 300]), "unsupported", "the peer is not a .NET diagnostic server"),
        (Fault::Garbage(message(b"DOTNET_IPC_V9\0", 200)), "unsupported", "the peer is not a .NET diagnostic server"),
        (Fault::CutReply(7), "unsupported", "the answer was cut off after 7 bytes"),
        (Fault::CutReply(40), "unsupported", "the answer was cut off after 40 bytes"),
        (Fault::Garbage(message(b"DOTNET_IPC_V1\0", 65_535)), "unsupported", "the runtime's answer to ProcessInfo3 cannot be read"),
    ] {
        let summary = format!("{fault:?}");
        let test_bed = TestBed::faulty(fault);
        // Started together: each has to wait for the timeout of its own connection.
        let running = COMMANDS.map(|words| test_bed.start(words));
        let info = test_bed.start(&["info", "--json"]);
        for running in running {
            running.wait().assert_refused(1, &format!("process {} ({this}): {words}", std::process::id()));
        }
        // Facts from /proc are printed all the same.
        let output = info.wait();
        assert!(output.code == 1 && output.stderr.contains(words), "{output:?}");
        let info: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        let facts = json!([info["contact"], info["name"], info["start_time_unix_ms"], info["capabilities"]]);
        assert_eq!(facts, json!([contact, this, null, null]), "{summary:.50}");
        assert!(info["reason"].as_str().unwrap().starts_with(words), "{info}");
        test_bed.assert_untouched();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn target_text_is_sanitized_in_output() {
    let environment = vec!["A\u{1b}]0;owned\u{7}=\u{9b}2J\u{1b}[2J".to_owned(), "LINES=a\r\nb".to_owned()];
    let test_bed = TestBed::new(Spec { fault: Some(Fault::HostileText), environment, ..healthy() });
    let commands = [&["info"], COMMANDS[0], &["trace", "--duration", "300ms"], COMMANDS[2], &["perfmap", "off"]];
    for words in commands {
        let output = test_bed.run(words);
        assert_eq!(output.code, 0, "{words:?}: {}", output.stderr);
        let raw = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
        assert!(!raw(&output.stdout) && !raw(&output.stderr), "{words:?}: {output:?}");
        assert!(!output.stdout.contains('\u{202e}'), "{words:?} turns the text around");
    }
    // JSON escapes control characters.
    let name = test_bed.run(&["env", "--json"]).json()["variables"][0]["name"].clone();
    assert_eq!(name, "A\u{1b}]0;owned\u{7}");
    let files: Vec<_> =
        fs::read_dir(test_bed.place.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(files.len() == 1 && files[0].starts_with(&format!("Web0owned31m_{}_2", std::process::id())), "{files:?}");
}

#[test]
fn invalid_arguments_are_rejected_before_connecting() {
    for (arguments, words) in [
        (&["--provider", ""][..], "'', character 1: expected a provider name"),
        (&["--provider", "A:xyz"], "'A:xyz', character 3: expected keywords"),
        (&["--provider", "A:1:loud"], "'A:1:loud', character 5: expected a level"),
        (&["--provider", "A:1:5:key"], "expected an argument of the form key=value"),
        (&["--provider", "A:1,B:2"], "repeat --provider instead"),
        (&["--provider", "A\u{1b}[2J:x"], "expected keywords"),
        (&["--profile", "no-such-profile"], "no-such-profile"),
        (&["--clr-events", "gc+nonsense"], "nonsense"),
        (&["--rundown", "some"], "rundown is full, none or a keyword such as 0x38"),
        (&["--buffer-mb", "0"], "buffer"),
    ] {
        // The target does not exist; it is not even looked up.
        Invocation::new([&["trace", "4194305"], arguments].concat()).run().assert_refused(2, words);
    }
    for arguments in [
        &["trace"][..],
        &["trace", "1", "--max-size", "big"],
        &["trace", "1", "--duration", "soon"],
        &["dump", "1", "--type", "huge"],
        // It selects what --follow shows, which has no number of rows.
        &["events", "1", "--filter", "x"],
        &["events", "1", "--filter", "x", "-n", "3"],
        &["events", "1", "--filter", "x", "--range", "..1s"],
    ] {
        let output = Invocation::new(arguments).run();
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(output.stderr.starts_with("dn-top: "), "{}", output.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_not_overwritten_and_links_not_followed() {
    let test_bed = TestBed::new(healthy());
    let elsewhere = folder();
    for name in ["file", "link", "busy"] {
        let path = test_bed.file(name);
        let taken = match name {
            "busy" => test_bed.file("busy.partial"),
            _ => path.clone(),
        };
        match name {
            "link" => symlink(elsewhere.path().join("nothing"), &taken).unwrap(),
            _ => fs::write(&taken, "mine").unwrap(),
        }
        let words = format!("{} exists already and is not overwritten", taken.display());
        let output = test_bed.trace_into(&path);
        output.assert_refused(1, &words);
        let salvage = format!("`dn-top salvage {} -o OUT` repairs", taken.display());
        assert_eq!(output.stderr.contains(&salvage), name == "busy", "{}", output.stderr);
        if name != "busy" {
            let output = test_bed.run(&["dump", "-o", path.to_str().unwrap()]);
            assert_eq!(output.code, 1);
            assert!(
                output.stderr.contains(&format!("{} exists already and a dump would overwrite it", path.display())),
                "{}",
                output.stderr
            );
        }
        assert!(name == "link" || fs::read(&taken).unwrap() == b"mine");
        fs::remove_file(taken).unwrap();
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "written through a link");
    test_bed.assert_untouched();
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_output_folder_is_reported() {
    let test_bed = TestBed::new(healthy());
    let file = test_bed.file("no/such.nettrace");
    let missing = format!("the folder {} does not exist", file.parent().unwrap().display());
    test_bed.trace_into(&file).assert_refused(1, &missing);
    test_bed.run(&["dump", "-o", file.with_extension("dmp").to_str().unwrap()]).assert_refused(1, &missing);
    // A folder in which nothing can be created.
    let output = test_bed.run(&["dump", "-o", "/proc/such.dmp"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    assert!(output.stderr.contains("[createdump] ") && output.stderr.contains("E_FAIL (0x80004005)"), "{}", output.stderr);
    test_bed.assert_untouched();
}

/// Runs dn-top with a file system mounted over a folder with these options, then `stats` for each recording left there. The mount is visible only
/// in a mount namespace of its own. After two seconds, another program writes this many bytes. `None` where such a namespace cannot be created.
fn mounted(options: &str, written: &str, place: &Path, words: &[&str]) -> Option<Output> {
    if !runtimes::namespaces() {
        return None;
    }
    let user: &[&str] = if rustix::process::geteuid().is_root() { &[] } else { &["--user", "--map-root-user"] };
    let script = r#"mount -t tmpfs -o "$1" tmpfs "$2"; written=$3; place=$2; shift 3
        if [ "$written" != 0 ]; then (sleep 2; head -c "$written" /dev/zero >"$place/other") & fi
        code=0; "$@" || code=$?
        for file in "$place"/*.nettrace*; do if [ -e "$file" ]; then "$1" stats --json "$file"; fi; done
        exit $code"#;
    let words =
        [&["--mount", "sh", "-euc", script, "sh", options, place.to_str().unwrap(), written, env!("CARGO_BIN_EXE_dn-top")], words].concat();
    Some(Invocation::of("unshare", [user, &words].concat()).run())
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_file_system_is_reported() {
    let test_bed = TestBed::new(healthy());
    let (socket, file) = (test_bed.runtime.socket().to_str().unwrap(), test_bed.file("a.nettrace"));
    if let Some(output) = mounted("ro", "0", test_bed.place.path(), &["trace", socket, "-o", file.to_str().unwrap()]) {
        output.assert_refused(4, &format!("{}.partial is not writable by this user", file.display()));
        test_bed.assert_untouched();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn written_data_is_kept_when_disk_is_full() {
    let rates = Rates { custom: 20_000.0, sample: 5_000.0, ..Rates::default() };
    let test_bed = TestBed::new(Spec { script: Script::Program(rates), ..healthy() });
    let (socket, file) = (test_bed.runtime.socket().to_str().unwrap(), test_bed.file("a.nettrace"));
    let everything = ["--provider", "Demo-Web:ffffffff:5", "--profile", "dotnet-sampled-thread-time"];
    let words = [&["trace", socket, "-o", file.to_str().unwrap(), "--json"], &everything[..]].concat();
    let Some(output) = mounted("size=256k", "0", test_bed.place.path(), &words) else { return };
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("the disk is full") && output.stderr.contains("cut off"), "{}", output.stderr);
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&output.stdout).into_iter().map(Result::unwrap).collect();
    let [result, stats] = documents.as_slice() else { panic!("{}", output.stdout) };
    assert_eq!(
        json!([result["stopped_by"], result["complete"], result["file"]]),
        json!(["error", false, format!("{}.partial", file.display())])
    );
    let summary = |of: &Value| json!([of["complete"], of["bytes"], of["events"]]);
    assert_eq!(summary(stats), summary(result));
    assert!(stats["events"].as_u64() > Some(100), "{stats}");
    // The runtime's session has been closed.
    assert!(test_bed.trace_into(&test_bed.file("next.nettrace")).code == 0 && test_bed.runtime.is_alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn recording_ends_before_the_disk_is_full() {
    let test_bed = TestBed::new(healthy());
    let (socket, file) = (test_bed.runtime.socket().to_str().unwrap(), test_bed.file("a.nettrace"));
    let words = ["trace", socket, "-o", file.to_str().unwrap(), "--json"];
    let Some(output) = mounted("size=8m", "7m", test_bed.place.path(), &words) else { return };
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("stopped before the disk is full"), "{}", output.stderr);
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&output.stdout).into_iter().map(Result::unwrap).collect();
    let [result, stats] = documents.as_slice() else { panic!("{}", output.stdout) };
    assert_eq!(json!([result["stopped_by"], result["complete"], stats["complete"]]), json!(["disk-space", true, true]));
    test_bed.assert_untouched();
}

/// A flight recorder deletes its oldest data instead.
#[tokio::test(flavor = "multi_thread")]
async fn flight_recording_goes_on_while_the_disk_is_nearly_full() {
    let test_bed = TestBed::new(healthy());
    let (socket, file) = (test_bed.runtime.socket().to_str().unwrap(), test_bed.file("a.nettrace"));
    let words = ["trace", socket, "-o", file.to_str().unwrap(), "--json", "--flight", "1m", "--duration", "5s"];
    let Some(output) = mounted("size=8m", "7m", test_bed.place.path(), &words) else { return };
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&output.stdout).into_iter().map(Result::unwrap).collect();
    let [result, stats] = documents.as_slice() else { panic!("{output:?}") };
    let found = json!([output.code, result["stopped_by"], result["complete"], stats["complete"]]);
    assert_eq!(found, json!([0, "duration", true, true]), "{}", output.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn undecodable_stream_is_kept_and_reported() {
    let test_bed = TestBed::new(Spec { script: Script::Canned(vec![0x55; 50_000].into()), ..healthy() });
    let output = test_bed.trace_into(&test_bed.file("a.nettrace"));
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("cannot decode the event stream: this is not a nettrace stream"), "{}", output.stderr);
    assert_eq!(output.stdout, format!("{}.partial\n", test_bed.file("a.nettrace").display()));
    assert!(fs::metadata(test_bed.file("a.nettrace.partial")).unwrap().len() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn second_signal_abandons_unanswered_stop() {
    let test_bed = TestBed::faulty(Fault::NeverStop);
    let running = test_bed.start(&["trace", "--json"]);
    let says = |words: &str| support::poll(support::TIMEOUT, || running.stderr().contains(words).then_some(()));
    says("recording").unwrap();
    running.signal(Signal::TERM);
    says("stopping").unwrap();
    running.signal(Signal::TERM);
    let output = running.wait();
    assert_eq!(output.code, 130);
    assert!(output.stderr.contains("stopped before the rundown was complete"), "{}", output.stderr);
}

#[test]
fn stats_rejects_invalid_files_with_specific_errors() {
    let place = folder();
    let file = |name: &str, content: &[u8]| {
        let path = place.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let stats = |path: &Path| Invocation::new(["stats".as_ref(), path.as_os_str()]).run();
    stats(&place.path().join("nothing")).assert_refused(1, "No such file");
    stats(place.path()).assert_refused(1, "Is a directory");
    stats(&file("empty", b"")).assert_refused(1, "empty is empty");
    stats(&file("cut", b"Nettr")).assert_refused(1, "cut ends within its header: it contains no events");
    stats(&file("short", b"hello")).assert_refused(1, "short is not a nettrace file: it begins with the bytes [68, 65, 6c, 6c, 6f]");
    stats(&file("text", b"What is the time, please?")).assert_refused(1, "is not a nettrace file: it begins with the bytes");
    stats(&file("escape\u{1b}[2J", b"")).assert_refused(1, "escape\u{fffd}[2J is empty");
}

#[test]
fn heap_rejects_pipes_and_devices() {
    let place = folder();
    let (pipe, zeros) = (place.path().join("pipe.gcdump"), place.path().join("zeros.gcdump"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    symlink("/dev/zero", &zeros).unwrap();
    for path in [pipe, zeros] {
        Invocation::new([OsStr::new("heap"), path.as_os_str()]).run().assert_refused(1, "it is not a .gcdump file");
    }
}

/// Commands that print a valid configuration file work although the current one is invalid.
#[test]
fn config_command_works_with_invalid_config_file() {
    let place = folder();
    let folder = place.path().join("dn-top");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("config.toml"), "theme = 'drak'").unwrap();
    let run = |words: &[&str]| Invocation::new(words).env("XDG_CONFIG_HOME", place.path()).run();
    run(&["profiles"]).assert_refused(2, "config.toml:1: invalid value 'drak'");
    let config = run(&["config"]);
    assert!(config.stdout.contains("# theme = \"auto\"\n"), "{}", config.stderr);
}

/// A missing file has the same exit code in every command, and messages have the same prefix.
#[test]
fn errors_are_consistent_across_commands() {
    let place = folder();
    let run = |words: &[&str]| Invocation::new(words).current_dir(place.path()).run();
    for words in [
        &["stats", "no"][..],
        &["report", "no"],
        &["diff", "no", "no"],
        &["export", "no", "--format", "csv"],
        &["open", "no"],
        &["salvage", "no", "-o", "new"],
    ] {
        run(words).assert_refused(1, "no cannot be opened: No such file");
    }
    for (words, message) in [
        (&["trace", "1", "--profile", "gc-colect"][..], "there is no profile 'gc-colect': did you mean 'gc-collect'?"),
        (&["trace", "1", "--profile", "what"], "there is no profile 'what': expected one of slow, dotnet-common, "),
        (&["stack", "symbolicate", "a.txt"], "stack symbolicate: this command is not supported: "),
        (&["heap", "no.gcdump", "--times", "2"], "--when, --wait and --times are for a process; this is a file"),
        (&["heap", "no.gcdump", "--yes"], "--timeout and --yes are for the heap walk of a process; this is a file"),
        (&["heap", "no.gcdump", "--timeout", "5s"], "--timeout and --yes are for the heap walk of a process; this is a file"),
        (&["heap", "no.gcdump", "--wait"], "--when, --wait and --times are for a process; this is a file"),
        (&["slow", "no.nettrace", "--duration", "5s"], "--duration is the time to record a process, and no.nettrace is a file; --range"),
        (&["gc", "no.nettrace", "--duration", "5s"], "--duration is the time to record a process, and no.nettrace is a file; --range"),
        (&["slow", "no.nettrace", "--wait"], "--when, --wait and --times are for a process; this is a file"),
    ] {
        run(words).assert_refused(2, message);
    }
    for words in [["trace", "--no-such-option"], ["cpu", "--no-such-option"], ["run", "--no-such-option"]] {
        let Output { code, stderr, .. } = run(&words);
        assert!(code == 2 && stderr.starts_with("dn-top: unexpected argument") && !stderr.contains("tip:"), "{stderr}");
    }
    run(&["--demo", "heap", "OrderService"]).assert_refused(2, "confirm with --yes");
    let missing = run(&["--demo", "trace"]);
    assert!(missing.code == 2 && missing.stderr.contains("  OrderService             dotnet OrderService.dll "), "{}", missing.stderr);
}

#[test]
fn dashboard_requires_terminal() {
    for arguments in [&[][..], &["--demo"], &["--readonly", "--filter", "x"]] {
        Invocation::new(arguments).run().assert_refused(2, "the dashboard needs a terminal; in scripts use `dn-top ps --json`");
    }
}

#[test]
fn closed_output_pipe_is_not_an_error() {
    let script = format!("'{}' profiles | head -n 1; exit \"${{PIPESTATUS[0]}}\"", env!("CARGO_BIN_EXE_dn-top"));
    let output = Invocation::of("bash", ["-c", &script].map(OsStr::new)).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(output.stdout.lines().count(), 1);
}
