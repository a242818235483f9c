//! Output of the commands for running programs with known behavior.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cpu::number;
use crate::support::runtimes;
use crate::support::{Invocation, Program, Running, Signal, TIMEOUT, folder, gcdump, poll};
use crate::trace;

fn start(words: &[&str], program: &Program, more: &[&str]) -> Running {
    let pid = program.pid().to_string();
    Invocation::new([words, &[&pid], more].concat()).start()
}

#[test]
fn allocations_are_attributed_to_call_sites() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let recording = trace::start(&program, &file, &["--profile", "allocation"]);
        program.carry_out("churn 300");
        program.carry_out("hold 200000");
        recording.interrupt();
        let found = Invocation::new(["allocations", file.to_str().unwrap(), "-n", "100", "--json"]).run().json();
        assert_allocated_in(&found, "System.Byte[]", &["Known.Churn(int)"], &runtime.to_string());
        // The constructor is inlined into its caller.
        assert_allocated_in(&found, "Grain[]", &["Known.Hold(int)", "Held..ctor()"], &runtime.to_string());
        let text = Invocation::new(["allocations", file.to_str().unwrap()]).run().stdout;
        assert!(text.contains("CALL SITES") && text.contains("Known.Churn(int) "), "{runtime}: {text}");
        // Names of methods compiled earlier are resolved at the end.
        let running = start(&["allocations"], &program, &["--json"]);
        running.wait_for_stderr("recording ");
        program.carry_out("churn 1000");
        let output = running.interrupt();
        let found = serde_json::from_str(&output.stdout).unwrap();
        assert_allocated_in(&found, "System.Byte[]", &["Known.Churn(int)"], &runtime.to_string());
    });
}

/// Panics unless a type is mainly allocated in one of these methods, and its call sites account for all of its bytes.
fn assert_allocated_in(found: &Value, kind: &str, methods: &[&str], runtime: &str) {
    let row = found["rows"].as_array().unwrap().iter().find(|row| row["type"] == kind);
    let row = row.unwrap_or_else(|| panic!("{runtime}: no {kind} in {found:#}"));
    let sites = row["call_sites"].as_array().unwrap();
    assert!(methods.iter().any(|method| sites[0]["method"] == *method), "{runtime}: {row:#}");
    let bytes: f64 = sites.iter().map(|site| number(&site["bytes"])).sum();
    assert!(sites.len() == 10 || bytes == number(&row["bytes"]), "{runtime}: {row:#}");
}

#[test]
fn stacks_covers_every_thread() {
    runtimes::each(runtimes::all_and_single_files(), |runtime| {
        let mut program = if runtime.is_trimmed() { runtime.any() } else { runtime.program("known") }.start();
        // A program that has just started may not have reached its main method.
        if !runtime.is_trimmed() {
            program.carry_out("throw 1");
        }
        let found = || {
            let stacks = start(&["stacks", "--json"], &program, &[]).wait().json();
            let frames = stacks["stacks"].as_array().unwrap().iter().map(|group| group["frames"].as_array().unwrap().len());
            (frames.sum::<usize>() > 3).then_some(stacks)
        };
        let stacks = poll(TIMEOUT, found).unwrap();
        assert_eq!((&stacks["pid"], &stacks["complete"]), (&json!(program.pid()), &json!(true)), "{runtime}");
        let groups = stacks["stacks"].as_array().unwrap();
        let frames = || groups.iter().flat_map(|group| group["frames"].as_array().unwrap()).map(|frame| frame.as_str().unwrap());
        let unknown: Vec<_> = frames().filter_map(|frame| u64::from_str_radix(frame.strip_prefix("0x")?, 16).ok()).collect();
        // Where reflection calls a method, or a method calls into the runtime, there is a stub frame in the runtime's own files, which no
        // rundown names.
        let own = code(program.pid());
        let is_own = |address: &u64| own.iter().any(|range| range.contains(address));
        assert!(frames().count() > 3 && 2 * unknown.len() < frames().count() && unknown.iter().all(is_own), "{runtime}: {stacks:#}");
        let threads: Vec<_> = groups.iter().flat_map(|group| group["threads"].as_array().unwrap()).collect();
        let main = threads.iter().find(|thread| thread["id"] == program.pid()).unwrap_or_else(|| panic!("{runtime}: {stacks:#}"));
        assert!(main["name"].is_string(), "{runtime}: {stacks:#}");
        if !runtime.is_trimmed() {
            let has_main = |group: &Value| {
                let at = group["frames"].as_array().unwrap().iter().position(|frame| frame == "Known.Main");
                at.is_some_and(|at| group["modules"][at] == "known")
            };
            assert!(groups.iter().any(has_main), "{runtime}: {stacks:#}");
        }
        let mut ids: Vec<_> = threads.iter().map(|thread| thread["id"].as_u64()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), threads.len(), "{runtime}: a thread has one stack");
        let text = start(&["stacks"], &program, &[]).wait();
        assert!(text.code == 0 && text.stdout.contains("Waiting threads are included."), "{runtime}: {text:?}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
        eprintln!("{runtime}: {} threads in {} stacks", threads.len(), groups.len());
    });
}

/// Returns the address ranges of machine code in the runtime's own files, or in the executable, which contains them all in a single-file program.
fn code(pid: u32) -> Vec<std::ops::Range<u64>> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let is_own =
        |line: &&str| line.contains(" r-xp ") && (line.contains("/Microsoft.NETCore.App/") || line.ends_with(program.to_str().unwrap()));
    let number = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
    maps.lines()
        .filter(is_own)
        .filter_map(|line| line.split(' ').next()?.split_once('-'))
        .map(|(start, end)| number(start)..number(end))
        .collect()
}

/// Parses the lines of `counters --format json`.
fn lines(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn meters_report_published_values() {
    runtimes::each(runtimes::with("meters"), |runtime| {
        let program = runtime.program("meters").start();
        let output = start(&["counters"], &program, &["--counters", "DnTop.Meter", "--format", "json", "--duration", "6s"]).wait();
        assert_eq!(output.code, 0, "{}", output.stderr);
        let lines = lines(&output.stdout);
        let named = |name: &str| lines.iter().filter(move |line| line["name"] == name).collect::<Vec<_>>();
        assert!(lines.iter().all(|line| line["provider"] == "DnTop.Meter" && line["source"] == "meter"), "{}", output.stdout);
        let gauges = named("g");
        assert!(gauges.len() >= 3 && gauges.iter().all(|line| line["value"] == 42.0 && line["kind"] == "gauge"), "{gauges:?}");
        // Every hit counted in an interval is also recorded in it, alternating between both routes.
        let mut deltas = BTreeMap::<&str, f64>::new();
        for line in named("hits").iter().filter(|line| line["delta"].is_number()) {
            *deltas.entry(line["tags"].as_str().unwrap()).or_default() += number(&line["delta"]);
        }
        let [a, b] = ["route=/a", "route=/b"].map(|route| deltas[route]);
        assert!(a > 100.0 && (a - b).abs() <= 5.0, "{deltas:?}");
        let histograms: Vec<_> = named("lat").into_iter().filter(|line| line["histogram"]["count"].as_u64() > Some(0)).collect();
        let recorded: f64 = histograms.iter().map(|line| number(&line["histogram"]["count"])).sum();
        assert!((recorded - a - b).abs() <= 0.25 * recorded, "{recorded} recorded, {deltas:?}");
        for line in &histograms {
            // Values from 0 to 99 in turn; an interval has about two rounds of them.
            let reported = &line["histogram"];
            let mean = number(&reported["sum"]) / number(&reported["count"]);
            assert!((30.0..70.0).contains(&mean), "{line}");
            let quantiles = reported["quantiles"].as_array().unwrap();
            assert!(
                quantiles.len() >= 3 && number(&quantiles[0][1]) <= number(&quantiles[2][1]) && number(&quantiles[2][1]) <= 100.0,
                "{line}"
            );
        }
        eprintln!("{} lines; hits {deltas:?}; lat {recorded}; last {}", lines.len(), histograms.last().unwrap()["histogram"]);
    });
}

#[test]
fn runtime_counters_work_on_every_runtime() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let csv = start(&["counters"], &program, &["--format", "csv", "--duration", "4s"]);
        let output = start(&["counters"], &program, &["--format", "json", "--duration", "4s"]).wait();
        assert_eq!(output.code, 0, "{runtime}: {}", output.stderr);
        let lines = lines(&output.stdout);
        // Older versions have no meter of that name.
        let (source, name) =
            if runtime.major() >= 9 { ("meter", "dotnet.process.memory.working_set") } else { ("event-counter", "working-set") };
        let memory: Vec<_> = lines.iter().filter(|line| line["name"] == name && line["source"] == source).collect();
        assert!(memory.len() >= 2 && memory.iter().all(|line| number(&line["value"]) > 1.0), "{runtime}: {}", output.stdout);
        assert!(lines.iter().all(|line| line["source"] == source && line["provider"] == "System.Runtime"), "{runtime}: {}", output.stdout);
        // Both sessions request the same counters, so that both get them.
        let output = csv.wait();
        let mut rows = output.stdout.lines();
        assert_eq!(rows.next(), Some("Timestamp,Provider,Counter Name,Counter Type,Mean/Increment"), "{runtime}: {}", output.stderr);
        assert!(rows.clone().count() > 10 && rows.all(|row| row.contains(",System.Runtime,")), "{runtime}: {}", output.stdout);
        assert!(program.is_alive() && program.answers(), "{runtime}");
        let names: std::collections::BTreeSet<_> = lines.iter().map(|line| line["name"].to_string()).collect();
        eprintln!("{runtime}: {} lines of {} counters", lines.len(), names.len());
    });
}

#[test]
fn second_counters_session_shares_limits_of_first() {
    runtimes::each(runtimes::with("meters"), |runtime| {
        let program = runtime.program("meters").start();
        let first = start(&["counters"], &program, &["--counters", "DnTop.Meter", "--format", "json"]);
        let came = |running: &Running| poll(TIMEOUT, || running.stdout().contains("\"g\"").then_some(()));
        came(&first).unwrap();
        let second = start(&["counters"], &program, &["--counters", "DnTop.Meter[g]", "--interval", "500ms"]);
        assert!(poll(TIMEOUT, || second.stdout().contains(" 42  g").then_some(())).is_some(), "{}", second.stderr());
        let before = lines(&first.stdout()).len();
        assert!(poll(TIMEOUT, || (first.stdout().lines().count() > before).then_some(())).is_some(), "{}", first.stderr());
        // Ctrl-C keeps the counters received so far.
        for running in [first, second] {
            let output = running.interrupt();
            assert!(output.stdout.contains("42"));
            eprintln!("{}", output.stderr);
        }
    });
}

#[test]
fn unpublished_counter_is_reported() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let running = start(&["counters"], &program, &["--counters", "No.Such", "--format", "json"]);
        running.wait_for_stderr("has published no such counter yet");
        running.signal(Signal::INT);
        let output = running.wait();
        assert_eq!((output.code, output.stdout.as_str()), (130, ""));
        let output = start(&["counters"], &program, &["--counters", "No.Such", "--duration", "1s"]).wait();
        output.assert_refused(1, "published no counters within 1s that match \"No.Such\"");
        start(&["counters"], &program, &["--counters", "A[x"]).wait().assert_refused(2, "the '[' has no ']'");
    });
}

#[test]
fn heap_has_exact_object_counts() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        start(&["heap"], &program, &[]).wait().assert_refused(2, "confirm with --yes");
        program.carry_out("hold 12345");
        // The second time, the runtime has already reported the names.
        for _ in 0..2 {
            let heap = start(&["heap", "--yes", "--json", "-n", "1000"], &program, &[]).wait().json();
            assert_eq!((&heap["complete"], &heap["problems"]), (&json!(true), &json!([])), "{runtime}");
            let types = heap["types"].as_array().unwrap();
            let of = |name: &str| types.iter().find(|named| named["name"] == name).unwrap_or_else(|| panic!("{runtime}: {heap:#}"));
            // A header, the method table pointer and a field; a length and 25 numbers. The reported sizes exclude alignment padding.
            assert_eq!(json!([of("Held")["objects"], of("Held")["bytes"]]), json!([12_345, 24 * 12_345]), "{runtime}");
            assert_eq!(
                json!([of("Held")["module"], of("System.String")["module"]]),
                json!(["known", "System.Private.CoreLib"]),
                "{runtime}"
            );
            assert_eq!(json!([of("Grain[]")["objects"], of("Grain[]")["bytes"]]), json!([12_345, 124 * 12_345]), "{runtime}");
            assert_eq!(json!([of("Held[]")["objects"], of("Held[]")["bytes"]]), json!([1, 24 + 8 * 12_345]), "{runtime}");
            let sum = |of: &str| types.iter().map(|named| named[of].as_u64().unwrap()).sum::<u64>() + heap["others"][of].as_u64().unwrap();
            assert_eq!(json!([sum("objects"), sum("bytes")]), json!([heap["objects"], heap["bytes"]]), "{runtime}");
            eprintln!("{runtime}: {} objects, {} bytes, {} references", heap["objects"], heap["bytes"], heap["references"]);
        }
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn single_file_heap_is_sum_of_its_types() {
    let Some(net10) = runtimes::single_file_net10() else { return };
    let mut program = net10.any().start();
    // The program is still starting: it has few objects, and on a busy machine its runtime does not respond to a request within 5 s.
    let heap = || {
        let output = start(&["heap", "--yes", "--json", "-n", "100000"], &program, &[]).wait();
        if output.code == 1 && output.stderr.contains("no answer within 5 s") {
            return None;
        }
        let heap = output.json();
        assert_eq!((&heap["complete"], &heap["problems"]), (&json!(true), &json!([])), "{heap:#}");
        (heap["objects"].as_u64() > Some(10_000)).then_some(heap)
    };
    let heap = poll(TIMEOUT, heap).expect("ten thousand objects");
    assert!(program.is_alive() && program.answers());
    let types = heap["types"].as_array().unwrap();
    let sum = |of: &str| types.iter().map(|named| named[of].as_u64().unwrap()).sum::<u64>() + heap["others"][of].as_u64().unwrap();
    assert_eq!(json!([sum("objects"), sum("bytes")]), json!([heap["objects"], heap["bytes"]]));
    eprintln!("{net10}: {} objects, {} bytes, {} references", heap["objects"], heap["bytes"], heap["references"]);
}

#[test]
fn heap_graph_reaches_held_objects() {
    let place = folder();
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold 1000");
        let file = place.path().join(format!("{}.gcdump", runtime.version));
        let path = file.to_str().unwrap();
        let words = ["heap", "--yes", "--json", "-n", "1000", "--retained", "--paths", "Grain[]", "-o", path];
        let heap = start(&words, &program, &[]).wait().json();
        assert_eq!((&heap["complete"], &heap["problems"], &heap["file"]), (&json!(true), &json!([]), &json!(path)), "{runtime}");
        let dump = gcdump::read(&std::fs::read(&file).unwrap());
        assert_eq!((dump.process_id, dump.is_64_bit, dump.tool.as_str()), (program.pid() as i32, true, "dn-top"), "{runtime}");
        let objects: Vec<_> = dump.nodes.iter().filter(|node| node.address != 0 && node.kind != "UNDEFINED").collect();
        assert_eq!(json!([objects.len(), dump.total]), json!([heap["objects"], heap["bytes"]]), "{runtime}");
        let references = objects.iter().map(|node| node.children.len()).sum();
        assert_file_matches(&heap, references, path, &runtime.to_string());
        let of = |kind: &str| dump.nodes.iter().filter(|node| node.kind == kind).collect::<Vec<_>>();
        // An array of 8024 bytes. Types are split by size class, as a reader may show the size of one object for the whole type.
        let [array] = of("Held[] (Bytes > 1K)")[..] else { panic!("{runtime}: one array") };
        for (kind, file) in [("Held", "known.dll"), ("System.String", "System.Private.CoreLib.dll")] {
            let reported = of(kind).iter().all(|node| node.module.as_deref().is_some_and(|path| path.rsplit('/').next() == Some(file)));
            assert!(reported && !of(kind).is_empty(), "{runtime}: {kind} is of {file}: {:?}", of(kind).first());
        }
        assert_eq!((array.children.len(), of("Held").len(), of("Grain[]").len()), (1000, 1000, 1000), "{runtime}");
        let grains = |held: &usize| {
            let node = &dump.nodes[*held];
            assert_eq!((node.kind.as_str(), node.size, node.children.len()), ("Held", 24, 1), "{runtime}");
            node.children[0]
        };
        let mut below: Vec<_> = array.children.iter().map(grains).collect();
        assert!(below.iter().all(|grains| (dump.nodes[*grains].kind.as_str(), dump.nodes[*grains].size) == ("Grain[]", 124)), "{runtime}");
        below.sort_unstable();
        below.dedup();
        assert_eq!(below.len(), 1000, "{runtime}: each has its own");
        // A root keeps them alive.
        let (mut reached, mut walk) = (vec![false; dump.nodes.len()], vec![dump.root]);
        while let Some(node) = walk.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                walk.extend(&dump.nodes[node].children);
            }
        }
        let [reported, alive] = [dump.nodes.len(), reached.iter().filter(|reached| **reached).count()];
        assert!(below.iter().all(|grains| reached[*grains]), "{runtime}: {alive} of {reported} are reached");
        start(&["heap", "--yes", "-o", path], &program, &[]).wait().assert_refused(1, "exists already and is not overwritten");
        eprintln!("{runtime}: {reported} nodes, {alive} reached from the root, {} bytes of file", file.metadata().unwrap().len());
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

/// Panics unless the file reads back as the heap walk that it was written from.
fn assert_file_matches(walked: &Value, references: usize, path: &str, runtime: &str) {
    let read = |words: &[&str]| Invocation::new(words).run();
    let mut found = read(&["heap", path, "--json", "-n", "1000", "--retained", "--paths", "Grain[]"]).json();
    let mut walked = walked.clone();
    walked["file"] = Value::Null;
    // In the file, dependent handles are references.
    let [read_again, before] = [&mut found, &mut walked].map(|heap| heap.as_object_mut().unwrap().remove("references").unwrap());
    assert_eq!(read_again, references, "{runtime}");
    assert!(before.as_u64() > Some(0) && before.as_u64() <= read_again.as_u64(), "{runtime}: {before}, {read_again}");
    assert_eq!(found["paths"][0]["paths"][0]["root"], "static variable held (Held[])", "{runtime}");
    for (name, expected) in walked.as_object().unwrap() {
        assert_eq!(&found[name], expected, "{runtime}: {name}");
    }
    let report = read(&["gcdump", "report", path]);
    assert!(report.code == 0 && report.stdout.starts_with(&format!("{} objects", walked["objects"])), "{runtime}: {report:?}");
    let same = read(&["diff", path, path, "--json"]).json();
    assert_eq!(json!([same["types"], same["other_types"], same["after"]["bytes"]]), json!([[], 0, walked["bytes"]]), "{runtime}");
}

#[test]
fn suspended_process_is_rejected_without_waiting() {
    runtimes::each(runtimes::since(5, runtimes::all()), |runtime| {
        let program = runtime.any().env("DOTNET_DefaultDiagnosticPortSuspend", "1").start();
        for words in [&["stacks"][..], &["counters"], &["heap", "--yes"]] {
            start(words, &program, &[]).wait().assert_refused(1, "is suspended at startup");
        }
    });
}
