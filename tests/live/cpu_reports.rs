//! Reports of CPU samples in files.

use serde_json::Value;

use crate::cpu::{number, profile};
use crate::support::runtimes;
use crate::support::{Invocation, folder};

#[test]
fn a_report_hides_frames_and_shows_waits() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("throw 10000000");
        let folder = folder();
        let file = folder.path().join("cpu.nettrace");
        let path = file.to_str().unwrap();
        let Some((profile, _)) = profile(&program, &["--duration", "2s", "-o", path]) else { return };
        assert!(program.is_alive(), "{runtime}");
        // It has worked enough.
        drop(program);
        let report = |options: &[&str]| Invocation::new([&["report", path, "--json", "-n", "10000"], options].concat()).run();
        let all = report(&[]).json();
        let modules = |report: &Value, is: fn(&str) -> bool| {
            let methods = report["methods"].as_array().unwrap().iter();
            methods.filter(|method| is(method["module"].as_str().unwrap())).map(|method| method["self_ns"].as_u64().unwrap()).sum::<u64>()
        };
        let is_kernel = |module: &str| module == "kernel";
        let is_native = |module: &str| module.contains(".so");
        assert!(modules(&all, is_native) > 0 && all["hidden_ns"] == 0 && all.get("off_cpu").is_none(), "{runtime}: {all:#}");
        let includes_kernel = modules(&all, is_kernel) > 0;
        assert_eq!(includes_kernel, profile["kernel_visible"] == true, "{runtime}");
        let without_kernel = report(&["--kernel", "hide"]).json();
        assert!(modules(&without_kernel, is_kernel) == 0 && modules(&without_kernel, is_native) >= modules(&all, is_native), "{runtime}");
        let output = report(&["--kernel", "hide", "--native", "hide"]);
        let managed = output.json();
        assert_eq!(modules(&managed, is_kernel) + modules(&managed, is_native), 0, "{runtime}: {managed:#}");
        // The total time is unchanged: hidden time is attributed to the callers.
        let sum = |report: &Value| modules(report, |_| true) + report["hidden_ns"].as_u64().unwrap();
        assert_eq!((sum(&managed), sum(&without_kernel)), (sum(&all), sum(&all)), "{runtime}: {}", output.stderr);
        assert_eq!((&managed["time_ns"], &managed["samples"]), (&all["time_ns"], &all["samples"]), "{runtime}");
        let own = |report: &Value| modules(report, |module| module == "known");
        assert!(own(&managed) > own(&all), "{runtime}: {} {}", own(&managed), own(&all));
        assert_eq!(output.stderr.contains("hidden functions"), managed["hidden_ns"].as_u64() > Some(0), "{runtime}: {}", output.stderr);

        // Waits of the runtime's own threads are not listed: they have no methods.
        let waiting = profile["waiting_methods"].as_array().unwrap();
        assert!(waiting.iter().all(|method| !is_native(method["module"].as_str().unwrap())), "{runtime}: {waiting:#?}");
        // The off-CPU time is that of the profile.
        let off_cpu = report(&["--off-cpu"]).json()["off_cpu"].clone();
        assert_eq!(off_cpu["source"], "states", "{runtime}");
        let live = profile["threads"].as_array().unwrap();
        let stored = off_cpu["threads"].as_array().unwrap();
        assert_eq!(stored.len(), live.len(), "{runtime}: {off_cpu:#}");
        for thread in stored {
            let same = live.iter().find(|live| live["id"] == thread["id"]).unwrap();
            assert!((number(&thread["wall_ns"]) / 1e6 - number(&same["wall_ms"])).abs() < 0.01, "{runtime}: {thread} {same}");
            for wait in thread["off_cpu"].as_array().unwrap() {
                let name = wait["reason"].as_str().unwrap();
                let shown = if name == "runnable" { &same["runnable_percent"] } else { &same["waits_percent"][name] };
                assert!((number(&wait["percent"]) - number(shown)).abs() < 0.01, "{runtime}: {wait} {same}");
            }
        }
        let reasons = off_cpu["reasons"].as_array().unwrap();
        let shares = reasons.iter().map(|reason| number(&reason["percent"])).sum::<f64>();
        assert!((shares - 100.0).abs() < 0.01 && reasons[0]["reason"] == "futex", "{runtime}: {off_cpu:#}");
        let text = Invocation::new(["report", path, "--off-cpu"]).run();
        // Callers are missing in libraries without frame pointers.
        let is_known = text.stderr.lines().all(|line| line.contains(" call chains"));
        let is_shown = text.stdout.contains("THREAD STATE") && text.stdout.contains("  futex\n");
        assert!(is_shown && is_known, "{runtime}: {}\n{}", text.stdout, text.stderr);
    });
}

#[test]
fn report_of_an_idle_process_shows_waits() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let program = runtime.program("known").start();
        let folder = folder();
        let file = folder.path().join("a.nettrace");
        let path = file.to_str().unwrap();
        if profile(&program, &["--duration", "1s", "-o", path]).is_none() {
            return;
        }
        let output = Invocation::new(["report", path, "--off-cpu", "--waiting", "--json"]).run();
        let report = output.json();
        assert_eq!((&report["source"], &report["off_cpu"]["source"]), (&"cpu".into(), &"states".into()), "{runtime}: {report:#}");
        assert!(!output.stderr.contains("not analyzed"), "{runtime}: {}", output.stderr);
        assert_eq!(output.stderr.contains("contains no CPU samples"), report["samples"] == 0, "{runtime}: {}", output.stderr);
        assert!(output.stderr.contains("--waiting has no effect"), "{runtime}: {}", output.stderr);
    });
}

#[test]
fn report_of_thread_samples_shows_waits() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold-lock 60000");
        let folder = folder();
        let file = folder.path().join("a.nettrace");
        let (path, pid) = (file.to_str().unwrap(), program.pid().to_string());
        let recorded =
            Invocation::new(["trace", &pid, "--profile", "dotnet-sampled-thread-time", "--duration", "1s", "-o", path, "--json"]).run();
        assert_eq!(recorded.code, 0, "{}", recorded.stderr);
        let output = Invocation::new(["report", path, "--json", "--off-cpu", "--native", "hide"]).run();
        assert!(output.stderr.contains("all samples are of managed code"), "{runtime}: {}", output.stderr);
        let off_cpu = &output.json()["off_cpu"];
        let reasons = off_cpu["reasons"].as_array().unwrap();
        let waits = reasons.iter().map(|reason| reason["reason"].as_str().unwrap()).collect::<Vec<_>>();
        let shares = reasons.iter().map(|reason| number(&reason["percent"])).sum::<f64>();
        eprintln!("{runtime}: {shares:.0} % in {waits:?}");
        assert!(off_cpu["source"] == "methods" && shares > 50.0 && shares < 100.01, "{runtime}: {off_cpu:#}");
        assert!(waits.iter().any(|wait| wait.contains("Sleep")), "{runtime}: {off_cpu:#}");
        let only_waiting = output.stderr.contains("all samples are of waiting threads");
        assert_eq!(only_waiting, output.json()["samples"] == 0, "{runtime}: {}", output.stderr);
    });
}
