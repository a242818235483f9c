//! Features that runtimes lack: dn-top falls back where that is just as good, and otherwise refuses with a clear message. Also, how runtimes
//! are distinguished that do not report their version.

use std::fs;
use std::process::Command;
use std::time::Duration;

use dn_top::analysis::CountersSnapshot;
use dn_top::net::Directory;
use dn_top::net::discovery::Sources;
use dn_top::session::{WatchOptions, watch};
use serde_json::{Value, json};

use crate::fatal_requests::suspended;
use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Output, Program, TIMEOUT, folder, poll};

fn run(program: &Program, command: &str, arguments: &[&str]) -> Output {
    Invocation::new([&[command, &program.pid().to_string()], arguments].concat()).run()
}

/// Panics unless its counters are printed live, until Ctrl-C.
fn assert_counters(program: &Program) {
    let running = Invocation::new(["counters", &program.pid().to_string(), "--format", "csv"]).start();
    let printed = poll(TIMEOUT, || running.stdout().contains("System.Runtime").then_some(()));
    assert!(printed.is_some(), "{}", running.stderr());
    running.interrupt();
}

#[test]
fn counters_and_stackless_events_work_on_every_runtime() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        assert_counters(&program);

        let place = folder();
        let file = place.path().join("a.nettrace");
        // Samples are useless without stacks.
        let options = ["--no-stacks", "--clr-events", "exception", "--duration", "500ms", "-o", file.to_str().unwrap(), "--json"];
        let output = run(&program, "trace", &options);
        let lost = "events include stacks, which makes them larger and adds overhead: recording without stacks needs .NET 9";
        let notes = if runtime.major() < 9 { json!([lost]) } else { json!([]) };
        let result = output.json();
        assert_eq!((&result["notes"], &result["complete"]), (&notes, &json!(true)), "{result}");
        assert_eq!(output.stderr.contains(lost), runtime.major() < 9, "{}", output.stderr);
        let stats = Invocation::new(["stats", "--json", file.to_str().unwrap()]).run().json();
        assert!(stats["events"].as_u64() > Some(0), "{stats}");
        assert_eq!(stats["stacks"].as_u64() > Some(1), runtime.major() < 9, "{stats}");
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn watching_remembers_unsupported_commands() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
            let mut directory = Directory::new(Sources::machine()).unwrap();
            let process = directory.resolve(&program.pid().to_string(), TIMEOUT).await.unwrap();
            let client = directory.clients().of(&process).unwrap();
            let watched = WatchOptions { process, interval: Duration::from_secs(1), meters: false };
            for _ in 0..2 {
                let (stop, stopped) = tokio::sync::watch::channel(false);
                let publish = |counters: CountersSnapshot, _| {
                    stop.send_replace(counters.stats.heap.is_some());
                    std::future::ready(())
                };
                assert_eq!(watch(&client, &watched, stopped, publish).await, Ok(()));
                assert!(*stop.borrow(), "it ended before a figure came");
            }
            let process = directory.resolve(&program.pid().to_string(), TIMEOUT).await.unwrap();
            let known = process.capabilities().known().contains(&"collect_tracing");
            // Sessions without stacks need CollectTracing3, those with filters by event CollectTracing5, which .NET 10 has; the newest of
            // .NET 9 is CollectTracing4.
            assert_eq!(known, runtime.major() != 9, "{runtime}");
        });
    });
}

/// The reason is printed at once, and no request is sent to the program.
#[test]
fn native_aot_explains_unsupported_commands() {
    let Some(aot) = runtimes::native_aot() else { return };
    let mut program = aot.any().start();
    let pid = program.pid().to_string();
    let place = folder();
    let file = place.path().join("a").to_str().unwrap().to_owned();
    let class = "123e4567-e89b-12d3-a456-426614174000";
    let library = aot.profiler().to_str().unwrap().to_owned();
    for (command, arguments, words) in [
        ("dump", &["-o", &file][..], "cannot write a core dump itself; `gcore "),
        ("perfmap", &["on"], "has no perf map; `perf record"),
        ("perfmap", &["off"], "has no perf map"),
        ("startup-hook", &[aot.hook().to_str().unwrap()], "cannot load an assembly"),
        ("profiler", &["--guid", class, "--path", &library], "cannot load a CLR profiler"),
        ("stacks", &[], "sends no samples of its threads"),
        ("heap", &["--yes"], "has no heap walk"),
    ] {
        let words = format!("process {pid} (aot8): a NativeAOT program {words}");
        let all = match command {
            "profiler" => [&["profiler", "attach", &pid], arguments].concat(),
            command => [&[command, &pid], arguments].concat(),
        };
        Invocation::new(all).run().assert_refused(1, &words);
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);

    let mut screen = Invocation::new(["--filter", &pid]).screen(160, 40);
    screen.wait_until("its row", |shown| shown.contains("AOT 8.0") && shown.contains("● running"));
    for (key, words) in [("d", "cannot write a core dump itself"), ("p", "has no perf map")] {
        screen.keys(key);
        screen.wait_for(words);
    }
    screen.quit();
    assert!(program.is_alive() && program.answers());
}

#[test]
fn native_aot_is_identified_and_supported_commands_work() {
    let Some(aot) = runtimes::native_aot() else { return };
    let mut program = aot.any().start();
    let info = run(&program, "info", &["--json"]).json();
    assert_eq!(json!([info["native_aot"], info["runtime_version"], info["name"]]), json!([true, aot.version, "aot8"]));
    let can = &info["capabilities"];
    let fields = ["process_info", "environment", "set_environment", "dump", "collect_tracing", "perf_map", "startup_hook", "profiler"];
    assert_eq!(
        fields.map(|field| can[field].clone()),
        [json!(3), json!(true), json!(true), json!(0), json!(2), json!(false), json!(false), json!(false)]
    );
    assert!(run(&program, "info", &[]).stdout.contains("8.0.33 (NativeAOT)"));
    let listed = Invocation::new(["ps"]).run().stdout;
    assert!(listed.lines().any(|line| line.contains("8.0.33 AOT")), "{listed}");

    assert_counters(&program);
    assert_eq!(run(&program, "set-env", &["A=1"]).code, 0);
    let environment = run(&program, "env", &["--json"]).json();
    assert!(environment["variables"].as_array().unwrap().contains(&json!({"name": "A", "value": "1", "masked": false})));
    let place = folder();
    let file = place.path().join("a.nettrace").to_str().unwrap().to_owned();
    assert_eq!(run(&program, "trace", &["--duration", "1s", "-o", &file, "--json"]).json()["complete"], true);
    let stats = Invocation::new(["stats", &file, "--json"]).run().json();
    assert_eq!(stats["processors"], Value::Null, "it does not say");
    assert!(!Invocation::new(["stats", &file]).run().stdout.contains("processors"));
    assert!(program.is_alive() && program.answers());
}

/// Its threads have no names.
#[test]
fn native_aot_that_is_suspended_is_listed_as_such_until_it_is_resumed() {
    let Some(aot) = runtimes::native_aot() else { return };
    let program = suspended(aot.any());
    let state = || run(&program, "info", &["--json"]).json()["state"].clone();
    let place = folder();
    let file = place.path().join("a.nettrace").to_str().unwrap().to_owned();
    let trace = Invocation::new(["trace", &program.pid().to_string(), "--profile", "gc-collect", "-o", &file]).start();
    trace.wait_for_stderr("recording ");
    assert_eq!(state(), "suspended", "with a session, too");
    let resumed = run(&program, "resume", &[]);
    assert!(resumed.code == 0 && !resumed.stderr.contains("not suspended"), "{resumed:?}");
    assert_eq!(poll(TIMEOUT, || (state() == "running").then_some(())), Some(()));
    assert_eq!(trace.interrupt().code, 130);
}

/// Locks are contended for and objects are allocated all the time, but the runtime does not report it.
#[test]
fn native_aot_without_events_is_not_reported_as_without_contention() {
    let Some(aot) = runtimes::native_aot() else { return };
    let program = aot.any().start();
    for (command, words) in [
        ("contention", "NativeAOT before .NET 9 only counts lock contention: counter monitor-lock-contention-count"),
        ("allocations", "NativeAOT before .NET 9 does not report allocated types"),
        ("jit", "a NativeAOT program compiles no methods"),
    ] {
        let found = run(&program, command, &["--duration", "2s"]);
        assert!(found.code == 0 && found.stderr.contains(words), "{command}: {}", found.stderr);
    }
    let totals = |command| run(&program, command, &["--duration", "1s", "--json"]).json();
    let (contention, compiled) = (totals("contention"), totals("jit"));
    for unknown in ["contentions", "waiting", "wait_ns", "max_wait_ns"] {
        assert_eq!(contention.get(unknown), Some(&Value::Null), "{contention}");
    }
    assert_eq!(compiled["compiled"], 0, "{compiled}");
}

/// The path of the library contains the version, unless an application brings its own.
#[test]
fn version_is_read_from_library_if_path_has_none() {
    let Some(net31) = runtimes::net31() else { return };
    let place = folder();
    let own = place.path().join("own");
    copy(&net31, &own);
    let words =
        net31.program("known").words()[1..].iter().fold(crate::support::Launch::new(&own.join("dotnet")), |launch, word| launch.arg(word));
    let mut program = words.start();
    assert_eq!(run(&program, "info", &["--json"]).json()["runtime_version"], net31.version);
    // From here on, it uses only assemblies that are already loaded.
    program.carry_out("throw 1");
    let framework = own.join("shared/Microsoft.NETCore.App");
    fs::rename(&framework, framework.with_file_name("own")).unwrap();
    assert_eq!(run(&program, "info", &["--json"]).json()["runtime_version"], "3.1");
    assert!(program.is_alive() && program.answers());
}

/// Copies a runtime to another place; with hard links, where possible.
fn copy(runtime: &Runtime, to: &std::path::Path) {
    let from = runtime.host().parent().unwrap().to_owned();
    let copied = ["-al", "-a"].into_iter().any(|how| {
        let _ = fs::remove_dir_all(to);
        Command::new("cp").arg(how).args([&from, to]).status().unwrap().success()
    });
    assert!(copied);
}
