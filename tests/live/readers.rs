//! Recordings of programs with known behavior, as read by three readers: the library, a second reader of this project, and Microsoft's
//! TraceEvent where available.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::requests::serve;
use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Program, Running, TIMEOUT, folder, poll};
use crate::trace;
use crate::{figures, reader};

/// Environment variable with the folder of `teoracle.dll`, a program that prints TraceEvent's results as JSON.
const TRACE_EVENT: &str = "DN_TOP_TRACEEVENT";
/// Environment variable with the folder of dotnet-trace, which contains the reader of dotnet-gcdump.
const DOTNET_TRACE: &str = "DN_TOP_DOTNET_TRACE";

fn record(program: &Program, place: &Path, name: &str, arguments: &[&str]) -> (Running, PathBuf) {
    let file = place.join(name).with_extension("nettrace");
    (trace::start(program, &file, arguments), file)
}

/// Locks, collections, exceptions, the thread pool, deep stacks, and threads that exit.
fn known(runtime: &Runtime, place: &Path) -> PathBuf {
    let mut program = runtime.program("known").start();
    // GC, Loader, Jit, Contention, Exception, Threading, at the level of single allocations and compilations.
    let events = ["Microsoft-Windows-DotNETRuntime:0x1c019:5", "Microsoft-DotNETCore-SampleProfiler:0:5", "DnTop-Known:ffffffffffffffff:4"];
    let arguments: Vec<_> = events.iter().flat_map(|provider| ["--provider", provider]).collect();
    let (recording, file) = record(&program, place, "known", &arguments);
    for command in [
        "throw 7",
        "collect 3 2",
        "collect 2 0",
        "contend 5",
        "convoy 3 100",
        "occupy 20 5",
        "await 5",
        "deep 150 200",
        "slow 3 200",
        "flood 500",
    ] {
        program.carry_out(command);
    }
    recording.interrupt();
    file
}

/// Requests that succeed, fail, and find no server, recorded in the server and in the client.
fn web(runtime: &Runtime, place: &Path) -> Vec<PathBuf> {
    let (server, url) = serve(runtime);
    let mut client = runtime.program("fetch").start();
    let recordings = [("server", &server), ("client", &client)].map(|(name, program)| record(program, place, name, &["--profile", "http"]));
    for path in [format!("{url}/a"), format!("{url}/throw"), "http://127.0.0.1:1/none".to_owned()] {
        client.carry_out(&format!("get 5 {path}"));
    }
    let stopped = |(recording, file): (Running, PathBuf)| {
        recording.interrupt();
        file
    };
    recordings.map(stopped).into()
}

/// Counters and meters.
fn meters(runtime: &Runtime, place: &Path) -> PathBuf {
    let program = runtime.program("meters").start();
    let meters =
        "System.Diagnostics.Metrics:0x3:4:SessionId=readers;Metrics=DnTop.Meter;RefreshInterval=0.2;MaxTimeSeries=10;MaxHistograms=5";
    let (recording, file) =
        record(&program, place, "meters", &["--provider", "System.Runtime:0:4:EventCounterIntervalSec=1", "--provider", meters]);
    let partial = file.with_extension("nettrace.partial");
    poll(TIMEOUT, || (fs::metadata(&partial).ok()?.len() > 20_000).then_some(())).unwrap();
    recording.interrupt();
    file
}

/// Returns the TraceEvent program; `None` if not available.
fn trace_event_program() -> Option<Command> {
    let program = std::env::var_os(TRACE_EVENT).map(|folder| PathBuf::from(folder).join("teoracle.dll"))?;
    let mut command = Command::new(runtimes::net10()?.host());
    command.arg(program);
    Some(command)
}

/// Returns TraceEvent's results by file; `None` if not available.
fn trace_event(files: &[PathBuf]) -> Option<BTreeMap<PathBuf, Value>> {
    let output = trace_event_program()?.args(["--raw", "--log", "--ndjson"]).args(files).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let found = |line: &str| {
        let found: Value = serde_json::from_str(line).unwrap();
        (PathBuf::from(found["file"].as_str().unwrap()), figures_of(&found))
    };
    Some(lines.lines().map(found).collect())
}

/// Returns TraceEvent's figures, named like ours. Its compilation time is omitted, as nested compilations count twice.
fn figures_of(found: &Value) -> Value {
    let (raw, log) = (&found["raw"], &found["log"]);
    assert!(raw["error"].is_null() && log["error"].is_null(), "{} {}", raw["error"], log["error"]);
    let mut counts = BTreeMap::<_, (u64, u64)>::new();
    for count in raw["counts"].as_array().unwrap() {
        // TraceEvent assigns this ID to events that have their name in the payload. In the stream's metadata it is 39.
        let id = Some(count["id"].as_u64().unwrap()).filter(|id| *id != 65_524).unwrap_or(39);
        let sum = counts.entry((count["provider"].as_str().unwrap(), id)).or_default();
        *sum = (sum.0 + count["count"].as_u64().unwrap(), sum.1 + count["bytes"].as_u64().unwrap());
    }
    let mut samples = BTreeMap::<_, u64>::new();
    for row in raw["samplesByThread"].as_array().unwrap() {
        *samples.entry(row["thread"].to_string()).or_default() += row["count"].as_u64().unwrap();
    }
    let ticks = raw["allocTicks"].as_object().unwrap().iter();
    let runtime = &log["processes"][0];
    let or = |value: &Value, nothing: Value| if value.is_null() { nothing } else { value.clone() };
    json!({
        "events": raw["events"],
        "counts": counts.iter().map(|((provider, id), sum)| (format!("{provider}/{id}"), *sum)).collect::<BTreeMap<_, _>>(),
        "lost": raw["eventsLost"],
        "threads": raw["threads"],
        "samples": samples,
        "exceptions": raw["exceptions"],
        "allocations": ticks.map(|(name, ticks)| (name.clone(), json!([ticks, raw["allocBytes"][name]]))).collect::<Map<_, _>>(),
        "collections": or(&runtime["gcsByGen"], json!({})),
        "collection_kinds": or(&runtime["gcsByType"], json!({})),
        "pauses_ms": or(&runtime["pauseTotalMs"], json!(0)),
        "waits": [raw["contentionStarts"], raw["contentionStops"]],
        "wait_ms": raw["contentionMs"],
        "jit": [or(&runtime["jitMethods"], json!(0)), or(&runtime["jitIL"], json!(0))],
    })
}

/// Merges the allocations of generic types, which the library names as C# does, and the other readers as in the stream.
fn without_generic_names(mut figures: Value) -> Value {
    let Some(allocations) = figures["allocations"].as_object_mut() else { return figures };
    // A nested generic type has only its arguments in the stream: `Entry[System.Int32,System.String][]`.
    let has_arguments = |name: &str| name.split('[').skip(1).any(|rest| !rest.starts_with([']', ',', '*']));
    let is_generic = |name: &String| name.contains(['`', '<']) || has_arguments(name);
    let generic: Vec<_> = allocations.iter().filter(|(name, _)| is_generic(name)).map(|(_, sum)| sum.clone()).collect();
    allocations.retain(|name, _| !is_generic(name));
    let sum = |at: usize| generic.iter().map(|sum| sum[at].as_u64().unwrap()).sum::<u64>();
    allocations.insert("generic types".to_owned(), json!([sum(0), sum(1)]));
    figures
}

/// Panics unless all readers have the same results for these files.
pub(crate) fn assert_same(runtime: &Runtime, files: &[PathBuf]) {
    let theirs = trace_event(files);
    let mut differ = Vec::new();
    for file in files {
        let bytes = fs::read(file).unwrap();
        let ours = without_generic_names(figures::of(&bytes));
        let second = ("the second reader", reader::figures(&bytes));
        let theirs = theirs.iter().map(|theirs| ("TraceEvent", theirs[file].clone()));
        let all = [second].into_iter().chain(theirs).map(|(reader, theirs)| (reader, without_generic_names(theirs)));
        let differences = all.flat_map(|(reader, theirs)| figures::differences(&ours, reader, &theirs));
        differ.extend(differences.map(|words| format!("{}: {words}", file.display())));
    }
    assert!(differ.is_empty(), "{runtime}:\n{}", differ.join("\n"));
}

#[test]
fn three_readers_agree_on_recordings() {
    if trace_event(&[]).is_none() {
        runtimes::skip(&format!(
            "TraceEvent is left out, and the second reader is not: {TRACE_EVENT} names no folder with teoracle.dll, or there is no .NET 10"
        ));
    }
    runtimes::each(runtimes::with("known"), |runtime| {
        let place = folder();
        let mut files = vec![known(runtime, place.path())];
        if runtime.major() > 3 {
            files.extend(web(runtime, place.path()));
            files.push(meters(runtime, place.path()));
        }
        assert_same(runtime, &files);
        // The results also match what the program did.
        let ours = figures::of(&fs::read(&files[0]).unwrap());
        let collections = json!([ours["collections"]["gen0"], ours["collections"]["gen2"]]);
        let expected = json!([{"System.InvalidOperationException": 7}, 0, [2, 3]]);
        assert_eq!(json!([ours["exceptions"], ours["lost"], collections]), expected, "{runtime}");
        assert!(ours["waits"][0].as_u64() >= Some(5) && ours["samples"].as_object().unwrap().len() >= 5, "{runtime}: {ours:#}");
    });
}

/// Environment variable with the path of a recording from another system.
const RECORDING: &str = "DN_TOP_RECORDING";

#[test]
#[ignore = "tests/windows.sh makes the recording, and runs it"]
fn readers_agree_on_given_recording() {
    let file = PathBuf::from(std::env::var_os(RECORDING).unwrap());
    let events = figures::of(&fs::read(&file).unwrap())["events"].as_u64().unwrap();
    assert!(events > 100, "{events} events");
    assert_same(&runtimes::net10().unwrap(), &[file]);
}

#[test]
fn dotnet_gcdump_agrees_on_heap_files() {
    let reader = std::env::var_os(DOTNET_TRACE).zip(runtimes::net10().and_then(|net10| Some((net10.host(), net10.compiled("gcdump")?))));
    let Some((library, (host, reader))) = reader else {
        return runtimes::skip(&format!("{DOTNET_TRACE} names no folder with dotnet-trace.dll, or there is no .NET 10"));
    };
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold 1000");
        let (place, pid) = (folder(), program.pid().to_string());
        let file = place.path().join("a.gcdump");
        let heap = Invocation::new(["heap", &pid, "--yes", "--json", "-n", "100000", "-o", file.to_str().unwrap()]).run().json();
        let output = Command::new(&host).arg(&reader).arg(&library).arg(&file).output().unwrap();
        assert!(output.status.success(), "{runtime}: {}", String::from_utf8_lossy(&output.stderr));
        let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(theirs["bytes"], heap["bytes"], "{runtime}");
        let mut sums = BTreeMap::<_, (u64, u64)>::new();
        for row in theirs["types"].as_array().unwrap() {
            // The file has large objects of a type in types of their own.
            let name = row[0].as_str().unwrap().split(" (Bytes > ").next().unwrap();
            let sum = sums.entry(name).or_default();
            *sum = (sum.0 + row[1].as_u64().unwrap(), sum.1 + row[2].as_u64().unwrap());
        }
        let mut ours = BTreeMap::<_, (u64, u64)>::new();
        for row in heap["types"].as_array().unwrap() {
            let sum = ours.entry(row["name"].as_str().unwrap()).or_default();
            *sum = (sum.0 + row["objects"].as_u64().unwrap(), sum.1 + row["bytes"].as_u64().unwrap());
        }
        assert_eq!(ours["Held"].0, 1000, "{runtime}");
        // What they have besides are the roots, which have no size.
        sums.retain(|name, (_, bytes)| ours.contains_key(name) || *bytes > 0);
        assert_eq!(sums, ours, "{runtime}");
    });
}

/// Returns the name of a function as in PerfView, which lowercases some module names.
fn named(module: &str, name: &str) -> String {
    format!("{}!{name}", module.to_lowercase())
}

/// Returns samples by `MODULE!FUNCTION`, from pairs of that and a count.
fn by_name(pairs: &Value) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for pair in pairs.as_array().unwrap() {
        let (module, name) = pair[0].as_str().unwrap().split_once('!').unwrap();
        *sums.entry(named(module, name)).or_default() += pair[1].as_u64().unwrap();
    }
    sums
}

/// Returns samples by process or thread.
fn counts(pairs: &Value) -> BTreeMap<String, u64> {
    pairs.as_array().unwrap().iter().map(|pair| (pair[0].as_str().unwrap().to_owned(), pair[1].as_u64().unwrap())).collect()
}

/// Returns the same for a report: unnamed functions are merged by file, and the kernel's file is `vmlinux`.
fn reported_by_name(report: &Value, samples: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for method in report["methods"].as_array().unwrap() {
        let (name, module) = (method["name"].as_str().unwrap(), method["module"].as_str().unwrap());
        let module = if module == "kernel" { "vmlinux" } else { module };
        let name = if name.starts_with('[') { "?" } else { name };
        *sums.entry(named(module, name)).or_default() += method[samples].as_u64().unwrap();
    }
    sums
}

/// Returns the twenty largest counts, and all names that are certainly among them.
fn twenty(sums: &BTreeMap<String, u64>) -> (Vec<u64>, BTreeMap<&str, u64>) {
    let mut counts: Vec<_> = sums.values().copied().filter(|count| *count > 0).collect();
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    let least = counts.get(20).copied().unwrap_or(0);
    counts.truncate(20);
    (counts, sums.iter().filter(|(_, count)| **count > least).map(|(name, count)| (name.as_str(), *count)).collect())
}

#[test]
fn perfview_agrees_on_samples_in_cpu_files() {
    if trace_event_program().is_none() {
        return runtimes::skip(&format!("{TRACE_EVENT} names no folder with teoracle.dll, or there is no .NET 10"));
    }
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.spend(500);
        program.command("spend 600000");
        let (place, pid) = (folder(), program.pid().to_string());
        let file = place.path().join("cpu.nettrace");
        let path = file.to_str().unwrap();
        let output = Invocation::new(["cpu", &pid, "--json", "-n", "100000", "--duration", "3s", "-o", path]).run();
        if output.code == 4 {
            return runtimes::skip(&output.stderr);
        }
        let profile = output.json();
        let (theirs, report) = (theirs(&file), reported(&file));

        let samples = profile["samples"].as_u64().unwrap();
        assert!(samples > 50, "{runtime}: {samples} samples");
        assert_eq!((&theirs["samples"], &report["samples"]), (&json!(samples), &json!(samples)), "{runtime}");
        assert_eq!(counts(&theirs["byProcess"]), [(format!("{pid} {}", profile["name"].as_str().unwrap()), samples)].into(), "{runtime}");
        let threads = profile["threads"].as_array().unwrap().iter().filter(|thread| thread["samples"] != 0);
        let threads: BTreeMap<_, _> =
            threads.map(|thread| (format!("{pid}/{}", thread["id"]), thread["samples"].as_u64().unwrap())).collect();
        assert_eq!(counts(&theirs["byThread"]), threads, "{runtime}");
        assert_same_methods(&theirs, &report, runtime, |names| names);
        assert!(program.is_alive(), "{runtime}");
    });
}

#[test]
fn perfview_agrees_on_samples_in_recordings() {
    if trace_event_program().is_none() {
        return runtimes::skip(&format!("{TRACE_EVENT} names no folder with teoracle.dll, or there is no .NET 10"));
    }
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.spend(500);
        program.command("spend 600000");
        let (place, pid) = (folder(), program.pid().to_string());
        let file = place.path().join("a.nettrace");
        let path = file.to_str().unwrap();
        let words = ["trace", &pid, "--profile", "cpu", "--profile", "dotnet-common", "--duration", "3s", "--json", "-o", path];
        let document = Invocation::new(words).run().json();
        let Some(kept) = document["cpu_samples"].as_u64() else { return runtimes::skip("the kernel does not sample") };
        let (theirs, report) = (theirs(&file), reported(&file));
        let samples = report["samples"].as_u64().unwrap();
        assert!(samples > 50 && kept >= samples, "{runtime}: {kept} in the file, {samples} in the report");
        assert_eq!((&theirs["samples"], &report["source"]), (&json!(samples), &json!("cpu")), "{runtime}");
        assert_same_methods(&theirs, &report, runtime, without_types);
        // The runtime's events are included as well, each once.
        let counted = Invocation::new(["stats", path, "--json"]).run().json();
        let of_runtime = |row: &&Value| !["Universal.", "DnTop."].iter().any(|own| row["provider"].as_str().unwrap().starts_with(own));
        let counts = counted["counts"].as_array().unwrap().iter().filter(of_runtime);
        assert_eq!(counts.map(|row| row["count"].as_u64().unwrap()).sum::<u64>(), document["events"].as_u64().unwrap(), "{runtime}");
        assert!(program.is_alive(), "{runtime}");
    });
}

/// Returns TraceEvent's results for a file with samples.
fn theirs(file: &Path) -> Value {
    let output = trace_event_program().unwrap().env("TE_TOP", "100000").arg("--universal").arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn reported(file: &Path) -> Value {
    Invocation::new(["report", file.to_str().unwrap(), "--json", "-n", "100000"]).run().json()
}

fn assert_same_methods(theirs: &Value, report: &Value, runtime: &Runtime, named: impl Fn(BTreeMap<String, u64>) -> BTreeMap<String, u64>) {
    for samples in ["self", "total"] {
        let (theirs, ours) = (named(by_name(&theirs[samples])), named(reported_by_name(report, samples)));
        assert_eq!(twenty(&ours), twenty(&theirs), "{runtime}: {samples}");
    }
}

/// Drops the parameter types and type arguments, which the runtime and dn-top write differently.
fn without_types(sums: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut merged = BTreeMap::new();
    for (name, count) in sums {
        let name = name.split_once('(').map_or(name.as_str(), |(name, _)| name);
        // MemberInfoCache`1[System.__Canon].AddMethod and MemberInfoCache<__Canon>.AddMethod
        let mut depth = 0;
        let mut untyped: String = name
            .chars()
            .filter(|char| {
                depth += i32::from(matches!(char, '<' | '[')) - i32::from(matches!(char, '>' | ']'));
                depth == 0 && !matches!(char, '>' | ']')
            })
            .collect();
        if let Some(arity) = untyped.find('`') {
            let digits = untyped[arity + 1..].bytes().take_while(u8::is_ascii_digit).count();
            untyped.replace_range(arity..=arity + digits, "");
        }
        *merged.entry(untyped).or_default() += count;
    }
    merged
}
