//! CPU time in parts of the runtime that have no symbols: garbage collections on a thread that also does other work (workstation GC), and exceptions.

use serde_json::Value;

use crate::cpu::{number, profile};
use crate::support::runtimes;
use crate::support::{Invocation, folder};

/// Self and total samples of the frame for collections, and what kind it is; none if there is no such frame.
fn collections(methods: &Value, own: &str, total: &str) -> Option<(f64, f64, String)> {
    let of = methods.as_array().unwrap().iter().find(|method| method["name"] == "garbage collection")?;
    Some((number(&of[own]), number(&of[total]), of["module"].as_str().unwrap().to_owned()))
}

#[test]
fn collections_are_told_apart_from_other_code() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").env("DOTNET_gcServer", "0").start();
        // Makes the collections take some time.
        program.carry_out("hold 300000");
        program.command("induce 1000000 2");
        let (folder, pid) = (folder(), program.pid());
        let file = folder.path().join("cpu.nettrace");
        let path = file.to_str().unwrap();
        let Some((shown, output)) = profile(&program, &["--duration", "4s", "-o", path]) else { return };
        let main = shown["threads"].as_array().unwrap().iter().find(|thread| thread["id"] == pid).unwrap();
        let (own, total, module) = collections(&shown["methods"], "self_samples", "total_samples").unwrap();
        let samples = number(&main["samples"]);
        eprintln!("{runtime}: {total} of {samples} samples of the thread, {own} of them without a function");
        // The rest is a sleep, and the call.
        assert!(samples > 100.0 && total > 0.8 * samples && total <= samples, "{runtime}: {total} of {samples}: {}", output.stdout);
        // Only this version has symbols, and thus the collector's own functions.
        let has_symbols = runtime.major() == 3;
        assert!(module == "libcoreclr.so" && (own < 0.1 * total) == has_symbols, "{runtime}: {own} {module}");
        assert!(number(&shown["gc_ms"]) > 0.8 * samples * number(&shown["period_ns"]) / 1e6, "{runtime}: {}", shown["gc_ms"]);
        let stored = Invocation::new(["report", path, "--json", "-n", "10000"]).run().json();
        assert_eq!(collections(&stored["methods"], "self", "total"), Some((own, total, module)), "{runtime}");
        drop(program);

        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let Some((working, _)) = profile(&program, &["--duration", "2s"]) else { return };
        let total = collections(&working["methods"], "self_samples", "total_samples").map_or(0.0, |(_, total, _)| total);
        assert!(total < 0.02 * number(&working["samples"]), "{runtime}: {total} of {}", working["samples"]);
    });
}

#[test]
fn exceptions_are_told_apart_from_other_code() {
    // Older runtimes find handlers in native code only.
    runtimes::each_in_turn(runtimes::since(9, runtimes::with("known")), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("throw 100000000");
        let Some((shown, output)) = profile(&program, &["--duration", "3s"]) else { return };
        let found = shown["methods"].as_array().unwrap().iter().find(|method| method["name"] == "exception dispatch");
        let found = found.unwrap_or_else(|| panic!("{runtime}: {}", output.stdout));
        let (own, caller) =
            (number(&found["self_ms"]), crate::cpu::total(&shown, "System.Runtime.EH.DispatchEx(StackFrameIterator&, ExInfo&)"));
        eprintln!("{runtime}: {own} ms, called by a method with {caller} ms");
        assert!(own > 0.5 * caller && caller > 300.0 && found["kind"] == "exception", "{runtime}: {own} of {caller}: {}", output.stdout);
    });
}

#[test]
fn threads_of_the_collector_only_collect() {
    // Their threads have had names since .NET 6.
    runtimes::each_in_turn(runtimes::since(6, runtimes::with("known")), |runtime| {
        let mut program = runtime.program("known").env("DOTNET_gcServer", "1").start();
        program.carry_out("hold 300000");
        program.command("induce 1000000 2");
        let Some((shown, output)) = profile(&program, &["--duration", "4s"]) else { return };
        let of_gc = shown["threads"].as_array().unwrap().iter().filter(|thread| thread["name"] == ".NET Server GC");
        let samples: f64 = of_gc.map(|thread| number(&thread["samples"])).sum();
        let (_, total, _) = collections(&shown["methods"], "self_samples", "total_samples").unwrap();
        eprintln!("{runtime}: {total} samples of collections, {samples} of the threads");
        if std::thread::available_parallelism().unwrap().get() < 2 {
            return runtimes::skip("a server GC needs two processors");
        }
        // In the others, the stack ends in the C library.
        assert!(samples > 200.0 && total > 0.8 * samples, "{runtime}: {total} of {samples}: {}", output.stdout);
    });
}
