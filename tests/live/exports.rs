//! Exports of what real runtimes tell, read by Perfetto's own trace processor.

use std::collections::BTreeMap;

use crate::support::{Invocation, folder, runtimes};
use crate::trace_processor::{Engine, assert_agrees};

/// Everything that is drawn: samples, collections, allocations, exceptions, waits, compilation, loading.
const RECORD: [&str; 8] =
    ["--profile", "dotnet-common", "--profile", "dotnet-sampled-thread-time", "--profile", "gc-verbose", "--profile", "contention"];

fn done(words: &[&str]) {
    let output = Invocation::new(words).run();
    assert_eq!(output.code, 0, "{words:?}: {}", output.stderr);
}

#[test]
fn a_trace_holds_what_its_recording_holds() {
    let Some(engine) = Engine::newest() else { return };
    let place = folder();
    runtimes::each_in_turn(runtimes::with("work"), |runtime| {
        let program = runtime.program("work").start();
        let pid = program.pid().to_string();
        let file = place.path().join(format!("{}.nettrace", runtime.version));
        let words = ["trace", &pid, "--duration", "2s", "-o", file.to_str().unwrap()];
        done(&[&words[..], &RECORD].concat());
        let trace = file.with_extension("perfetto-trace");
        done(&["export", file.to_str().unwrap(), "--format", "perfetto", "--flows"]);
        assert_agrees(&engine, &trace, &file);
        let main =
            engine.query(&trace, "select thread.name as name, pid from thread join process using (upid) where tid = pid and pid > 0");
        assert_eq!((main[0]["name"].as_str(), main[0]["pid"].as_u64()), (Some(".NET Main"), Some(program.pid().into())), "{runtime}");
    });
}

#[test]
fn a_heap_in_perfetto_is_that_of_the_walk() {
    let Some(engine) = Engine::newest() else { return };
    let place = folder();
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold 1000");
        let file = place.path().join(format!("{}.perfetto-trace", runtime.version));
        let (pid, path) = (program.pid().to_string(), file.to_str().unwrap());
        let heap = Invocation::new(["heap", &pid, "--yes", "--json", "-n", "1000", "-o", path]).run().json();
        engine.assert_right(&file, "");
        let all = engine.query(&file, "select count(*) as objects, sum(self_size) as bytes from heap_graph_object");
        assert_eq!((&all[0]["objects"], &all[0]["bytes"]), (&heap["objects"], &heap["bytes"]), "{runtime}");
        let types = "select c.name as name, count(*) as objects, sum(o.self_size) as bytes
            from heap_graph_object o join heap_graph_class c on o.type_id = c.id group by 1";
        let mut found = BTreeMap::<String, (u64, u64)>::new();
        for row in engine.query(&file, types) {
            let number = |column: &str| row[column].as_u64().unwrap();
            found.insert(row["name"].as_str().unwrap().to_owned(), (number("objects"), number("bytes")));
        }
        for (kind, objects, bytes) in [("Held", 1000, 24_000), ("Grain[]", 1000, 124_000), ("Held[]", 1, 8024)] {
            assert_eq!(found.get(kind), Some(&(objects, bytes)), "{runtime}: {kind}");
        }
        let held = "select count(*) as n from heap_graph_reference r join heap_graph_object o on r.owner_id = o.id
            join heap_graph_class c on o.type_id = c.id where c.name = 'Held[]'";
        assert_eq!(engine.query(&file, held)[0]["n"], 1000, "{runtime}: references of the array");
        let alive = "select count(*) as n from heap_graph_object o join heap_graph_class c on o.type_id = c.id where c.name = 'Grain[]' and reachable";
        assert_eq!(engine.query(&file, alive)[0]["n"], 1000, "{runtime}: something keeps them alive");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}
