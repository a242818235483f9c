//! Features that must work on each runtime, applied in turn to one process. After every step, the process is alive and responsive.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use dn_top::ipc::DumpKind;
use dn_top::net::discovery::{Scanner, Sources};
use serde_json::{Value, json};

use crate::fatal_requests::suspended;
use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Output, Program, Signal, TIMEOUT, folder, poll};
use crate::trace;

#[test]
fn net31_supports_its_commands() {
    runtimes::net31().iter().for_each(run_all_steps);
}

#[test]
fn net8_supports_all_commands() {
    runtimes::net8().iter().for_each(run_all_steps);
}

#[test]
fn net9_supports_all_commands() {
    runtimes::net9().iter().for_each(run_all_steps);
}

#[test]
fn net10_supports_all_commands() {
    runtimes::net10().iter().for_each(run_all_steps);
}

#[test]
fn single_files_support_all_commands() {
    runtimes::each(runtimes::single_files(), run_all_steps);
}

/// One process, and its runtime.
struct Subject<'a> {
    runtime: &'a Runtime,
    program: Program,
}

fn run_all_steps(runtime: &Runtime) {
    let program = runtime.any().env("GREETER_TOKEN", "hush").start();
    let mut subject = Subject { runtime, program };
    type Step = (&'static str, fn(&Subject<'_>));
    let steps: [Step; 7] = [
        ("list", listed),
        ("info", inspected),
        ("env", environment),
        ("trace", traced),
        ("dump", dumped),
        ("perf map", perf_mapped),
        ("kill -9 of dn-top", recorder_killed),
    ];
    for (name, step) in steps {
        step(&subject);
        assert!(subject.program.is_alive(), "{runtime} did not survive: {name}");
        assert!(subject.program.answers(), "{runtime} does not answer after: {name}");
    }
}

impl Subject<'_> {
    fn is(&self, major: u32) -> bool {
        self.runtime.major() == major
    }

    fn name(&self) -> &'static str {
        self.runtime.name_of("work")
    }

    fn pid(&self) -> String {
        self.program.pid().to_string()
    }

    /// Runs `dn-top COMMAND PID ARGUMENTS`.
    fn run(&self, command: &str, arguments: &[&str]) -> Output {
        Invocation::new([&[command, &self.pid()], arguments].concat()).run()
    }

    fn refused(&self, command: &str, arguments: &[&str], words: &str) {
        let output = self.run(command, arguments);
        output.assert_refused(1, words);
        output.assert_refused(1, &format!("process {}", self.pid()));
    }
}

fn listed(subject: &Subject<'_>) {
    let rows = Invocation::new(["ps", "--json"]).run().json();
    assert_eq!(rows["schema"], 1);
    let row =
        rows["processes"].as_array().unwrap().iter().find(|row| row["pid"] == subject.program.pid() && row["contact"] != "stale").unwrap();
    let socket = subject.program.socket();
    for (field, value) in [
        ("ns_pid", json!(subject.program.pid())),
        ("name", json!(subject.name())),
        ("runtime_version", json!(subject.runtime.version)),
        ("state", json!("running")),
        ("contact", json!("ok")),
        ("reason", Value::Null),
        ("container", Value::Null),
        ("socket", json!(socket.to_str().unwrap())),
        ("uid", json!(rustix::process::getuid().as_raw())),
    ] {
        assert_eq!(row[field], value, "{field}");
    }
    // 3.1 has no ProcessInfo, the only source of these facts.
    for (field, value) in [("os", json!("Linux")), ("arch", json!("x64")), ("rid", json!("linux-x64"))] {
        assert_eq!(row[field], if subject.is(3) { Value::Null } else { value }, "{field}");
    }
    assert_eq!(row["cookie"].is_null(), subject.is(3));
    assert!(row["command_line"].as_str().unwrap().starts_with(subject.runtime.host().to_str().unwrap()), "{row}");
    assert!(row["rss_bytes"].as_u64() > Some(1 << 20) && row["threads"].as_u64() > Some(2), "{row}");
    assert!(row["cpu_percent"].is_number() && row["start_time_unix_ms"].as_u64() > Some(1 << 40), "{row}");

    let text = Invocation::new(["ps"]).run();
    let words: Vec<_> = text.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    let row = words.iter().find(|row| row[0] == subject.pid()).unwrap();
    let command = row.iter().position(|word| *word == "running").unwrap() + 1;
    let host = subject.runtime.host();
    let host = host.file_name().unwrap().to_str().unwrap();
    assert_eq!((row[1], row[2], row[command]), (subject.name(), subject.runtime.version, host));
    let missing = Invocation::new(["stacks"]).run();
    let words: Vec<_> = missing.stderr.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    let row = words.iter().find(|row| row.first().is_some_and(|pid| *pid == subject.pid())).unwrap_or_else(|| panic!("{}", missing.stderr));
    assert_eq!((missing.code, row[1], row[2]), (2, subject.name(), host), "{}", missing.stderr);
}

fn inspected(subject: &Subject<'_>) {
    let info = subject.run("info", &["--json"]).json();
    let generations = match subject.runtime.major() {
        3 => (0, false, 1, 2, false),
        8 => (3, true, 3, 2, true),
        9 => (3, true, 3, 4, true),
        _ => (3, true, 3, 5, true),
    };
    let (process_info, environment, dump, collect_tracing, perf_map) = generations;
    let capabilities = json!({
        "process_info": process_info, "environment": environment, "set_environment": environment, "dump": dump,
        "collect_tracing": collect_tracing, "trace_without_stacks": collect_tracing >= 3, "trace_rundown": collect_tracing >= 4,
        "trace_event_filter": collect_tracing >= 5, "dump_errors": dump >= 3, "perf_map": perf_map, "startup_hook": perf_map, "profiler": true,
    });
    assert_eq!(info["capabilities"], capabilities);
    assert_eq!(info["runtime_version"], subject.runtime.version);
    // Only this one was queried; the others are derived from the version.
    assert_eq!(info["capabilities_known"], json!(["process_info"]));
    assert!(info["cpu_percent"].as_f64() >= Some(0.0), "{info}");
    let text = subject.run("info", &[]).stdout;
    let row = |name: &str| text.lines().find_map(|line| line.trim_start().strip_prefix(name)).unwrap_or_else(|| panic!("{text}")).trim();
    assert_eq!((row("Name"), row("Runtime"), row("Contact")), (subject.name(), subject.runtime.version, "ok"));
    assert!(row("CPU").ends_with(" % of a core"), "{text}");
    assert_eq!(row("perf map"), if subject.is(3) { "no: needs .NET 8, expected" } else { "yes, expected" });
}

fn environment(subject: &Subject<'_>) {
    let value =
        |variables: &Value, name: &str| variables["variables"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    let masked = subject.run("env", &["--json"]);
    let words = "the values at its start; reading the current ones needs .NET 5";
    assert_eq!(masked.stderr.contains(words), subject.is(3), "{}", masked.stderr);
    let masked = masked.json();
    assert_eq!(masked["source"], if subject.is(3) { "startup" } else { "runtime" });
    let home = json!({"name": "TMPDIR", "value": subject.program.folder().to_str().unwrap(), "masked": false});
    assert_eq!(value(&masked, "TMPDIR"), home);
    assert_eq!(value(&masked, "GREETER_TOKEN"), json!({"name": "GREETER_TOKEN", "value": null, "masked": true}));
    let revealed = subject.run("env", &["--json", "--reveal"]).json();
    assert_eq!(value(&revealed, "GREETER_TOKEN")["value"], "hush");
    let text = subject.run("env", &[]).stdout;
    assert!(text.lines().any(|line| line.starts_with("GREETER_TOKEN=(masked")) && !text.contains("hush"), "{text}");
}

fn traced(subject: &Subject<'_>) {
    let place = folder();
    let file = place.path().join("a.nettrace");
    let result = subject.run("trace", &["-o", file.to_str().unwrap(), "--duration", "1s", "--json"]).json();
    assert_eq!((&result["file"], &result["stopped_by"]), (&json!(file.to_str().unwrap()), &json!("duration")));
    assert!(result["duration_ms"].as_u64() >= Some(1000), "{result}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let recorded = trace::assert_complete(&file, &result);
    assert!(recorded.rundown_events("MethodDCEnd") > 0, "no method names: {recorded:#?}");
    assert_eq!(recorded.process_id, subject.program.pid());

    // Until Ctrl-C, with the default file name.
    let running = Invocation::new(["trace", &subject.pid(), "--json"]).current_dir(place.path()).start();
    let partial = trace::wait_for_data(&running, place.path());
    let output = running.interrupt();
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    let file = place.path().join(result["file"].as_str().unwrap());
    assert_eq!(partial.to_str().unwrap(), format!("{}.partial", file.display()));
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(&format!("{}_{}_20", subject.name(), subject.pid())), "{name}");
    assert_eq!(result["stopped_by"], "interrupt");
    trace::assert_complete(&file, &result);
}

fn dumped(subject: &Subject<'_>) {
    // The process that writes the dump does not exit, but continues as a copy of the target and serves the same socket.
    if subject.is(8) && subject.runtime.is_single_file() {
        return;
    }
    let place = folder();
    for kind in ["mini", "heap", "triage", "full"] {
        let file = place.path().join(kind);
        // A crash report takes .NET 6, and some seconds.
        let with_report = kind == "mini" && !subject.is(3) && !subject.runtime.is_single_file();
        let report = if with_report { &["--crash-report"][..] } else { &[] };
        let output = subject.run("dump", &[&["--type", kind, "-o", file.to_str().unwrap(), "--json"], report].concat());
        if subject.runtime.is_single_file() && kind != "full" {
            let words = "[createdump] Only full dumps are supported by single file apps";
            assert!(output.code == 1 && output.stderr.contains(words), "{}", output.stderr);
            assert!(output.stdout.is_empty() && !file.exists());
            continue;
        }
        let result = output.json();
        let path = json!(file.to_str().unwrap());
        assert_eq!((&result["path"], &result["path_seen_here"], &result["type"]), (&path, &path, &json!(kind)));
        assert_core(&file, &result);
        let report = place.path().join("mini.crashreport.json");
        assert_eq!(result["crash_report"], if with_report { json!(report.to_str().unwrap()) } else { Value::Null });
        assert!(report.is_file() || !with_report);
        if kind == "heap" {
            let estimated = estimated_heap_dump_size(subject) as f64;
            let is = result["bytes"].as_f64().unwrap();
            assert!((0.75..=1.02).contains(&(is / estimated)), "{estimated} bytes estimated, {is} written");
        }
        let again = subject.run("dump", &["--type", kind, "-o", file.to_str().unwrap()]);
        assert!(again.code == 1 && again.stderr.contains("exists already") && !again.stderr.contains("paused"), "{}", again.stderr);
        // Some are hundreds of megabytes.
        fs::remove_file(file).unwrap();
    }
    let output = subject.run("dump", &["--type", "full", "-o", "/proc/core"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{}", output.stderr);
    assert!(output.stderr.contains("E_FAIL (0x80004005): the operation failed in the runtime"), "{}", output.stderr);
    let has_reason = output.stderr.contains("[createdump] ") && output.stderr.contains("/proc/core");
    assert!(has_reason || subject.is(3), "{}", output.stderr);
    assert_eq!(output.stderr.matches("E_FAIL").count(), 1, "{}", output.stderr);
}

#[test]
fn suspended_process_writes_only_full_dumps() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let mut program = suspended(runtime.program("known"));
        let (pid, place) = (program.pid().to_string(), folder());
        let dump = |kind: &str| Invocation::new(["dump", &pid, "--type", kind, "-o", place.path().join(kind).to_str().unwrap()]).run();
        let heap = dump("heap");
        assert!(heap.code == 1 && heap.stderr.contains("suspended at startup writes only full dumps"), "{runtime}: {}", heap.stderr);
        assert_eq!(dump("full").code, 0, "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

/// Returns the dashboard's estimate of the size of a heap dump.
fn estimated_heap_dump_size(subject: &Subject<'_>) -> u64 {
    let mut scanner = Scanner::new(Sources::machine()).unwrap();
    let rows = scanner.scan(std::time::Instant::now()).unwrap();
    rows.iter().find(|row| row.key.pid == subject.program.pid()).unwrap().usage.dump_bytes(DumpKind::Heap)
}

/// Panics unless the file is a core dump of the reported size.
pub(crate) fn assert_core(file: &Path, result: &Value) {
    let mut head = [0; 18];
    fs::File::open(file).unwrap().read_exact(&mut head).unwrap();
    // ELF magic, and type ET_CORE at offset 16.
    assert_eq!((&head[..4], &head[16..]), (&b"\x7fELF"[..], &[4, 0][..]), "{}", file.display());
    assert_eq!(result["bytes"], fs::metadata(file).unwrap().len());
}

fn perf_mapped(subject: &Subject<'_>) {
    if subject.is(3) {
        subject.refused("perfmap", &["on"], "enabling and disabling perf maps needs .NET 8");
        return subject.refused("perfmap", &["off"], "enabling and disabling perf maps needs .NET 8");
    }
    let (perf_map, jit_dump) = (perf_map_files(subject.runtime, subject.program.pid()), format!("jit-{}.dump", subject.pid()));
    let perf_map: Vec<_> = perf_map.collect();
    for (kind, names) in
        [("perfmap", perf_map.clone()), ("jitdump", vec![jit_dump.clone()]), ("all", [perf_map.clone(), vec![jit_dump.clone()]].concat())]
    {
        // A runtime writes them to /tmp, regardless of its TMPDIR.
        let files: Vec<_> = names.iter().map(|name| Path::new("/tmp").join(name)).collect();
        let result = subject.run("perfmap", &["on", "--kind", kind, "--json"]).json();
        assert_eq!(result, json!({"enabled": true, "kind": kind, "files": files, "schema": 1}));
        let off = subject.run("perfmap", &["off", "--json"]).json();
        assert_eq!(off["enabled"], false);
        for file in files {
            let bytes = fs::read(&file).unwrap();
            fs::remove_file(&file).unwrap();
            let line = String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_owned();
            if file.to_str().unwrap().contains("/perfinfo-") {
                assert!(line.starts_with("ImageLoad;"), "{}: {line:?}", file.display());
            } else if file.extension().unwrap() == "map" {
                let address = line.split(' ').next().map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16));
                assert!(matches!(address, Some(Ok(1..))), "{}: {line:?}", file.display());
            } else {
                assert!(bytes.starts_with(b"DTiJ"), "{} has no jitdump header", file.display());
            }
        }
    }
}

/// Returns the names of a runtime's perf map files. .NET 8 also writes a file of the loaded images.
pub(crate) fn perf_map_files(runtime: &Runtime, pid: u32) -> impl Iterator<Item = String> {
    let images = (runtime.major() == 8).then(|| format!("perfinfo-{pid}.map"));
    std::iter::once(format!("perf-{pid}.map")).chain(images)
}

fn recorder_killed(subject: &Subject<'_>) {
    let place = folder();
    let running = Invocation::new(["trace", &subject.pid()]).current_dir(place.path()).start();
    let partial = trace::wait_for_data(&running, place.path());
    // Its header, some hundred bytes, may arrive in pieces.
    poll(TIMEOUT, || (fs::metadata(&partial).unwrap().len() > 200).then_some(())).unwrap();
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, 128 + 9);
    // The received data is readable.
    let output = Invocation::new(["stats", partial.to_str().unwrap(), "--json"]).run();
    assert_eq!((&output.json()["complete"], output.stderr.contains("cut off")), (&json!(false), true), "{}", output.stderr);
    assert!(!partial.with_extension("").exists());
    // The abandoned session does not prevent another.
    let file = place.path().join("next.nettrace");
    let next = || {
        let output = subject.run("trace", &["-o", file.to_str().unwrap(), "--duration", "300ms", "--json"]);
        (output.code == 0).then(|| output.json())
    };
    trace::assert_complete(&file, &poll(TIMEOUT, next).unwrap());
}
