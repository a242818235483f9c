//! Waits of threads, by their stacks and by runtime events.

use serde_json::{Value, json};

use crate::cpu::{can_sample, number, profile};
use crate::cpu_refusals::{start_bare, without_capabilities};
use crate::support::runtimes;
use crate::support::{Invocation, TIMEOUT, folder, poll};

const DN_TOP: &str = env!("CARGO_BIN_EXE_dn-top");

/// Returns whether a process has open perf events.
fn has_perf_event(pid: u32) -> bool {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok()).any(|file| file.as_os_str() == "anon_inode:[perf_event]")
}

/// Threads that contend for a lock while they are sampled: one holds it and sleeps, the others wait for it.
#[test]
fn stacks_show_what_threads_wait_for() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let pid = program.pid().to_string();
        let folder = folder();
        let file = folder.path().join("cpu.nettrace");
        let path = file.to_str().unwrap();
        if !can_sample(&program) {
            return runtimes::skip("the kernel does not sample");
        }
        let sampling = Invocation::new(["cpu", &pid, "--duration", "1h", "--json", "-n", "10000", "-o", path]).start();
        // A wait that began before the sampling has no stack.
        poll(TIMEOUT, || has_perf_event(sampling.pid()).then_some(())).unwrap_or_else(|| panic!("{}", sampling.stderr()));
        program.carry_out("convoy 5 4000");
        let output = sampling.interrupt();
        let profile: Value = serde_json::from_str(&output.stdout).unwrap();
        if profile["kernel_visible"] == false {
            return runtimes::skip("the kernel shows no stacks of its own");
        }
        assert_eq!((&profile["lost_waits"], &profile["unfollowed_threads"]), (&json!(0), &json!(0)), "{runtime}");
        // Before .NET 10, a helper of the runtime acquires the lock, and is in no stack; in .NET Core 3.1, the sleep is in a helper too, and
        // has no event.
        let sleeps = if runtime.major() == 3 { "runtime" } else { "sleep" };
        let threads = profile["threads"].as_array().unwrap();
        let share = |thread: &Value, wait: &str| thread["waits_percent"][wait].as_f64().unwrap_or_default();
        // The main thread waits for them.
        let others = threads.iter().filter(|thread| thread["id"] != program.pid());
        let fighting: Vec<_> = others.filter(|thread| share(thread, "lock") > 50.0 && share(thread, "futex") < 20.0).collect();
        assert_eq!(fighting.len(), 5, "{runtime}: {threads:#?}");
        let slept: f64 = fighting.iter().map(|thread| share(thread, sleeps)).sum();
        assert!(slept > 40.0, "{runtime}: {slept}");
        let methods = profile["waiting_methods"].as_array().unwrap();
        let convoy = methods.iter().filter(|method| method["name"].as_str().is_some_and(|name| name.contains("Convoy")));
        let waited: f64 = convoy.map(|method| number(&method["total_ms"])).fold(0.0, f64::max);
        assert!(waited > 5.0 * 4000.0 * 0.7, "{runtime}: {waited} ms in {methods:#?}");
        // The file has the same contents.
        for hidden in [&[][..], &["--native", "hide", "--kernel", "hide"]] {
            let report = Invocation::new([&["report", path, "--off-cpu", "--json", "-n", "10000"], hidden].concat()).run().json();
            let stored = report["off_cpu"]["methods"].as_array().unwrap();
            assert_eq!(stored.len(), methods.len(), "{runtime}: {stored:#?}");
            for method in methods {
                let same = stored.iter().find(|stored| stored["name"] == method["name"] && stored["module"] == method["module"]);
                let same = same.unwrap_or_else(|| panic!("{runtime}: no {method} in {stored:#?}"));
                assert!((number(&same["total_ns"]) / 1e6 - number(&method["total_ms"])).abs() < 0.01, "{runtime}: {same} {method}");
            }
        }
        assert!(program.is_alive(), "{runtime}");
    });
}

/// Wait stacks require privileges, runtime events do not.
#[test]
fn events_show_lock_and_gc_waits_without_privileges() {
    let Some(bare) = without_capabilities() else { return };
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        for (command, threads, wait, rights) in [("convoy 4 600000", 4, "lock", &[false, true][..]), ("pause 2 600000", 2, "gc", &[false])]
        {
            let mut program = start_bare(runtime, bare);
            // Makes the collections take some time.
            program.carry_out("hold 100000");
            program.command(command);
            let pid = program.pid().to_string();
            for has_rights in rights {
                let cpu = [DN_TOP, "cpu", &pid, "--duration", "2s", "--json"];
                let words = if *has_rights { cpu.to_vec() } else { [&bare[..], &cpu].concat() };
                let output = Invocation::of(words[0], &words[1..]).run();
                if output.code == 4 {
                    return runtimes::skip(&output.stderr);
                }
                assert_eq!(output.code, 0, "{runtime}: {}", output.stderr);
                let profile = output.json();
                assert!(*has_rights || profile["kernel_visible"] == false, "{runtime}: {profile:#}");
                let all = profile["threads"].as_array().unwrap();
                // Working threads wait for little except collections, and threads that contend for the lock sleep while they hold it.
                let waits = |thread: &&Value| {
                    let waits = thread["waits_percent"].as_object().unwrap();
                    let share = |wait: &str| waits.get(wait).map_or(0.0, number);
                    let others = waits.values().map(number).sum::<f64>() - share(wait);
                    // They work less beside other programs, those of the runtime hardly at all.
                    let works = wait == "lock" || number(&thread["on_cpu_percent"]) > 2.0;
                    works && share(wait) > 1.0 && others < 1.5 * share(wait)
                };
                let waiting: Vec<_> = all.iter().filter(|thread| thread["id"] != program.pid()).filter(waits).collect();
                eprintln!("{runtime}: {command}: {:?}", waiting.iter().map(|thread| &thread["waits_percent"]).collect::<Vec<_>>());
                // Threads of the runtime wait for collections, too. One wait for the lock has no event, as it began before the sampling.
                let least = if wait == "lock" { threads - 1 } else { threads };
                assert!(waiting.len() >= least, "{runtime}: {command}: {} of {threads}: {all:#?}", waiting.len());
                assert!(program.is_alive(), "{runtime}");
            }
        }
    });
}

/// Threads that never run while they are sampled, in every kind of wait: the place of their waits is read from their stacks.
#[test]
fn threads_blocked_before_sampling_have_stacks_and_no_cpu_time() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("wait-in 2");
        let Some((profile, _)) = profile(&program, &["--duration", "4s"]) else { return };
        let waiting = |thread: &&Value| thread["waits_percent"].as_object().unwrap().values().map(number).sum::<f64>() > 99.0;
        let threads = profile["threads"].as_array().unwrap();
        // Ten ways of waiting, the threads that hold the locks, and the threads of the runtime.
        assert!(threads.iter().filter(waiting).count() >= 22, "{runtime}: {profile:#}");
        let mut shares: Vec<_> = threads.iter().map(|thread| number(&thread["cpu_percent"])).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        // The runtime sends method events, recompiles methods, and serves its timers and sockets.
        let idle = &shares[5..];
        eprintln!("{runtime}: {shares:.2?} % of a core");
        assert!(idle.len() >= 22 && idle.iter().all(|share| *share <= 0.5), "{runtime}: {shares:.2?}");

        if cfg!(not(target_arch = "x86_64")) {
            return;
        }
        if profile["kernel_visible"] == false || profile["unfollowed_threads"] != 0 {
            return runtimes::skip("the kernel shows no stacks of its own");
        }
        let found =
            |wait: &str| threads.iter().filter(|thread| thread["waits_percent"][wait].as_f64().is_some_and(|share| share > 90.0)).count();
        // At least three ways of waiting for a signal, with two threads each; two threads that sleep, and two that hold locks and sleep.
        assert!(found("signal") >= 6 && found("sleep") == 4, "{runtime}: {threads:#?}");
        // In these versions, a helper of the runtime acquires the lock.
        if ![8, 9].contains(&runtime.major()) {
            assert_eq!(found("lock"), 2, "{runtime}: {threads:#?}");
        }
        let methods = profile["waiting_methods"].as_array().unwrap();
        let waited =
            |name: &str| methods.iter().filter(|method| method["name"] == name).map(|method| number(&method["total_ms"])).sum::<f64>();
        let all_of_two = 2.0 * number(&profile["duration_ms"]);
        let share = waited("Known.WaitForLock()") / all_of_two;
        assert!((0.7..1.05).contains(&share), "{runtime}: {share}: {methods:#?}");
        assert!(program.is_alive(), "{runtime}");
    });
}
