//! What threads wait for: by the stacks of their waits, and by events of the runtime.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::cpu::number;
use super::cpu_refusals::without_capabilities;
use crate::support::runtimes;
use crate::support::{Invocation, Launch, PATIENCE, folder, poll};

const DN_TOP: &str = env!("CARGO_BIN_EXE_dn-top");

/// Whether a process has perf events open.
fn has_perf_event(pid: u32) -> bool {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok()).any(|file| file.as_os_str() == "anon_inode:[perf_event]")
}

/// Threads that fight for a lock while they are sampled: those that want it wait for it, and the one that has it sleeps.
#[test]
fn stacks_show_what_threads_wait_for() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let pid = program.pid().to_string();
        let folder = folder();
        let file = folder.path().join("cpu.nettrace");
        let path = file.to_str().unwrap();
        let mut sampling = Invocation::new(["cpu", &pid, "--duration", "8s", "--json", "-n", "10000", "-o", path]).start();
        // A thread that waits before it is sampled has no stack of that wait.
        poll(PATIENCE, || (has_perf_event(sampling.pid()) || !sampling.is_alive()).then_some(())).unwrap();
        program.command("convoy 5 4000");
        let output = sampling.wait();
        if output.code != 0 {
            return runtimes::skip(&output.stderr);
        }
        let profile = output.json();
        if profile["kernel_visible"] == false {
            return runtimes::skip("the kernel shows no stacks of its own");
        }
        assert_eq!((&profile["lost_waits"], &profile["unfollowed_threads"]), (&json!(0), &json!(0)), "{runtime}");
        // A helper of the runtime itself takes the lock before .NET 10, which is in no stack, and sleeps in .NET Core 3.1, of which there is no event.
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
        // The file has the same.
        let report =
            Invocation::new(["report", path, "--off-cpu", "--json", "-n", "10000", "--native", "hide", "--kernel", "hide"]).run().json();
        let stored = report["off_cpu"]["methods"].as_array().unwrap();
        for method in methods {
            let same = stored.iter().find(|stored| stored["name"] == method["name"] && stored["module"] == method["module"]);
            let same = same.unwrap_or_else(|| panic!("{runtime}: no {method} in {stored:#?}"));
            assert!((number(&same["total_ns"]) / 1e6 - number(&method["total_ms"])).abs() < 0.01, "{runtime}: {same} {method}");
        }
        assert!(program.is_alive(), "{runtime}");
    });
}

/// Stacks of waits take rights, and events of the runtime do not.
#[test]
fn events_show_waits_for_locks_and_collections() {
    let Some(bare) = without_capabilities() else { return };
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        for sees_stacks in [false, true] {
            let known = runtime.program("known");
            let words: Vec<_> = bare[1..].iter().map(PathBuf::from).chain(known.words().iter().cloned()).collect();
            let launch = words.iter().fold(Launch::new(Path::new(bare[0])), Launch::arg);
            let bare_launch = known.variables().iter().fold(launch, |launch, (name, value)| launch.env(name, value));
            let mut program = if sees_stacks { known.start() } else { bare_launch.start() };
            let pid = program.pid().to_string();
            for (command, threads, wait) in [("convoy 4 4000", 4, "lock"), ("pause 3 4000", 3, "gc")] {
                let cpu = [DN_TOP, "cpu", &pid, "--duration", "8s", "--json"];
                let words = if sees_stacks { cpu.to_vec() } else { [&bare[..], &cpu].concat() };
                let mut sampling = Invocation::of(words[0], &words[1..]).start();
                poll(PATIENCE, || (has_perf_event(sampling.pid()) || !sampling.is_alive()).then_some(())).unwrap();
                program.command(command);
                let output = sampling.wait();
                if output.code != 0 {
                    return runtimes::skip(&output.stderr);
                }
                let profile = output.json();
                assert!(sees_stacks || profile["kernel_visible"] == false, "{runtime}: {profile:#}");
                let share = |thread: &Value, wait: &str| thread["waits_percent"][wait].as_f64().unwrap_or_default();
                let found = profile["threads"].as_array().unwrap();
                // Those that work wait for a processor, too. Threads of the runtime's own hardly work.
                let waits = |thread: &&Value| match wait {
                    "lock" => share(thread, wait) > 50.0,
                    _ => share(thread, wait) > 5.0 && number(&thread["on_cpu_percent"]) > 10.0,
                };
                let waiting: Vec<_> = found.iter().filter(|thread| thread["id"] != program.pid()).filter(waits).collect();
                eprintln!("{runtime}: {command}: {:?}", waiting.iter().map(|thread| &thread["waits_percent"]).collect::<Vec<_>>());
                assert_eq!(waiting.len(), threads, "{runtime}: {wait}: {found:#?}");
                let other = if wait == "lock" { "gc" } else { "lock" };
                assert!(waiting.iter().all(|thread| share(thread, other) < 2.0), "{runtime}: {found:#?}");
            }
            assert!(program.is_alive(), "{runtime}");
        }
    });
}
