//! `dn-top cpu`: CPU time by method.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use dn_top::analysis::SampleFilter;
use dn_top::session::read_trace;
use serde_json::{Value, json};

use crate::support::runtimes;
use crate::support::{BusyProcessors, Invocation, Output, Program, Signal, TIMEOUT, folder, poll};

/// Returns the output of `cpu --json` for a program; `None` where the kernel denies it.
pub(crate) fn profile(program: &Program, arguments: &[&str]) -> Option<(Value, Output)> {
    let pid = program.pid().to_string();
    let output = Invocation::new([&["cpu", &pid, "--json", "-n", "10000"], arguments].concat()).run();
    if output.code == 4 {
        runtimes::skip(&output.stderr);
        return None;
    }
    assert_eq!(output.code, 0, "{}", output.stderr);
    Some((output.json(), output))
}

/// Returns whether the kernel permits sampling a program here.
pub(crate) fn can_sample(program: &Program) -> bool {
    let output = Invocation::new(["cpu", &program.pid().to_string(), "--duration", "100ms"]).run();
    assert!([0, 4].contains(&output.code), "{output:?}");
    output.code == 0
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Returns the total time of a method, in milliseconds.
pub(crate) fn total(profile: &Value, name: &str) -> f64 {
    sum(profile, name, "total_ms")
}

fn sum(profile: &Value, name: &str, key: &str) -> f64 {
    let methods = profile["methods"].as_array().unwrap().iter();
    methods.filter(|method| method["name"] == name).map(|method| number(&method[key])).sum()
}

/// CPU time for which 2 percentage points are four standard deviations of the largest share, if all samples are independent: 0.7 * 0.3 /
/// (0.02 / 4)^2 samples of 1 ms.
const MIN_CPU_MS: f64 = 8400.0;

#[test]
fn method_cpu_times_are_accurate() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        // Lets the methods reach their final tier.
        program.spend(1000);
        program.command("spend 600000");
        let (mut times, mut spend, began, mut windows) = ([0.0; 3], 0.0, Instant::now(), Vec::new());
        // The CPU time available per second depends on the machine.
        while spend < MIN_CPU_MS {
            let Some((profile, output)) = profile(&program, &["--duration", "5s"]) else { return };
            let of = ["Known.Seventy()", "Known.Twenty()", "Known.Ten()"].map(|name| total(&profile, name));
            times.iter_mut().zip(of).for_each(|(sum, time)| *sum += time);
            let caller = total(&profile, "Known.Main()");
            assert!(caller > 0.8 * of.iter().sum::<f64>(), "{runtime}: {caller} ms in the caller of {of:?} ms: {}", output.stdout);
            spend += caller;
            windows.push((began.elapsed(), caller));
            let main = profile["threads"].as_array().unwrap().iter().find(|thread| thread["id"] == program.pid()).unwrap();
            // A virtual machine that is descheduled for a while has CPU time without samples: shares are relative to the samples.
            let (sampled, managed) = (number(&main["samples"]) * number(&profile["period_ns"]) / 1e6, number(&profile["managed_ms"]));
            // If other processes compete for the CPU, the kernel spends part of the time on context switches.
            let explained = managed + number(&profile["kernel_ms"]);
            assert!(
                explained > sampled * 0.9 && managed > sampled * 0.7 && managed < sampled * 1.05,
                "{runtime}: {managed} ms managed, {explained} ms with the kernel, {sampled} ms of samples, {main}, after {windows:?}: {}",
                output.stderr
            );
            assert_eq!(
                (&profile["complete"], &profile["lost_samples"]),
                (&json!(true), &json!(0)),
                "{runtime}: {} of {main}",
                output.stderr
            );
            let kinds = profile["methods"].as_array().unwrap().iter().filter(|method| method["name"] == "Known.Burn(int)");
            assert!(kinds.map(|method| &method["kind"]).eq([&json!("managed")]), "{runtime}: {}", output.stdout);
        }
        let all: f64 = times.iter().sum();
        let shares = times.map(|time| time * 100.0 / all);
        eprintln!("{runtime}: {shares:.1?} % of {all:.0} ms; {spend:.0} ms in their caller");
        assert!(shares.iter().zip([70.0, 20.0, 10.0]).all(|(share, truth)| (share - truth).abs() < 2.0), "{runtime}: {shares:?}");
        assert!(spend >= all * 0.98 && spend < all * 1.15, "{runtime}: their caller has {spend} ms of {all} ms");
        assert!(program.is_alive(), "{runtime}");
    });
}

/// The runtime enters the optimized code of a running loop so that the return address into the caller is not on the chain of frame pointers.
#[test]
fn callers_are_complete_during_on_stack_replacement() {
    runtimes::each_in_turn(runtimes::since(8, runtimes::with("known")), |runtime| {
        // Methods never reach their final tier, in which there is no replacement any more.
        let mut program = runtime.program("known").env("DOTNET_TC_CallCountThreshold", "10000000").start();
        program.command("spend 600000");
        // Methods are recognized by events, which arrive after some tenths of a second.
        std::thread::sleep(Duration::from_secs(1));
        let folder = folder();
        let file = folder.path().join("a.nettrace");
        let Some((profile, output)) = profile(&program, &["--duration", "2s", "-o", file.to_str().unwrap()]) else { return };
        let recorded = Invocation::new(["report", file.to_str().unwrap(), "--json", "-n", "1000"]).run().json();
        for (methods, key, unit) in [(&profile, "total_ms", 1.0), (&recorded, "total_ns", 1e-6)] {
            let [callees, callers, outer] =
                [["Known.Burn(int)"].as_slice(), &["Known.Seventy()", "Known.Twenty()", "Known.Ten()"], &["Known.Spend(int)"]]
                    .map(|names| names.iter().map(|name| sum(methods, name, key) * unit).sum::<f64>());
            // In some samples of a method's first and last instructions, the caller is missing.
            assert!(
                callees > 500.0 && callers > callees * 0.97 && callers < callees * 1.03 && outer > callees * 0.97,
                "{runtime}: {outer} ms in Spend, {callers} ms in its callees, {callees} ms in theirs: {}",
                output.stdout
            );
        }
        assert!(program.is_alive(), "{runtime}");
    });
}

/// Returns name, module and samples of the methods with the most samples.
fn hottest<'a>(methods: &'a Value, own: &str, total: &str) -> Vec<(&'a str, &'a str, u64, u64)> {
    let text = |value: &'a Value| value.as_str().unwrap();
    let of = |method: &'a Value| {
        (text(&method["name"]), text(&method["module"]), method[own].as_u64().unwrap(), method[total].as_u64().unwrap())
    };
    let mut methods: Vec<_> = methods.as_array().unwrap().iter().map(of).collect();
    // Methods with the same number of samples may be in any order.
    methods.sort_unstable_by_key(|(name, module, own, total)| (std::cmp::Reverse((*own, *total)), *name, *module));
    methods.truncate(20);
    methods
}

/// Returns the build ID of the runtime's own library: the note that the linker has written.
fn runtime_build_id(program: &Program) -> String {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.pid())).unwrap();
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.ends_with("/libcoreclr.so")).unwrap();
    let bytes = std::fs::read(path).unwrap();
    // Lengths of the owner and the ID, kind of the note, and owner.
    let note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = bytes.windows(note.len()).position(|window| window == note).unwrap() + note.len();
    bytes[at..at + 20].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn sample_file_matches_live_profile() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let folder = folder();
        let file = folder.path().join("cpu.nettrace");
        let path = file.to_str().unwrap();
        let Some((profile, output)) = profile(&program, &["--duration", "2s", "-o", path]) else { return };
        assert!(output.stderr.contains(path), "{}", output.stderr);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
        let bytes = std::fs::read(&file).unwrap();
        let again = Invocation::new(["cpu", &program.pid().to_string(), "--duration", "100ms", "-o", path]).run();
        assert!(again.code != 0 && again.stderr.contains("exists already"), "{}", again.stderr);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
        let pid = program.pid();
        let identity = format!(r#"{{"type": "ELF","build_id": "{}","p_vaddr": "0x"#, runtime_build_id(&program));
        assert!(bytes.windows(identity.len()).any(|window| window == identity.as_bytes()), "{runtime}: no {identity}");
        // It has worked enough.
        drop(program);

        let report = Invocation::new(["report", path, "--json", "-n", "10000"]).run().json();
        assert_eq!((&report["source"], &report["samples"]), (&json!("cpu"), &profile["samples"]), "{runtime}");
        for losses in ["kernel_visible", "lost_samples", "unreadable_samples", "throttled", "missed_threads", "short_threads"] {
            assert!(!report[losses].is_null() && report[losses] == profile[losses], "{runtime}: {losses}: {report:#}");
        }
        assert_eq!(
            hottest(&report["methods"], "self", "total"),
            hottest(&profile["methods"], "self_samples", "total_samples"),
            "{runtime}"
        );
        assert!(hottest(&report["methods"], "self", "total")[0].0 == "Known.Burn(int)", "{runtime}: {report:#}");
        let contents = read_trace(&file, None, |_| true).unwrap().unwrap();
        let cpu = contents.analysis.cpu.as_ref().unwrap();
        let main = cpu.threads.iter().find(|thread| thread.thread == u64::from(pid)).unwrap();
        let shown = profile["threads"].as_array().unwrap().iter().find(|thread| thread["id"] == pid).unwrap();
        // Milliseconds, from integer nanoseconds.
        assert!((main.cpu.as_secs_f64() * 1e3 - number(&shown["cpu_ms"])).abs() < 1e-6, "{runtime}: {main:?} {shown}");
        assert_eq!(json!(cpu.losses.includes_kernel), profile["kernel_visible"], "{runtime}");
        let burnt = cpu.profile.methods(SampleFilter::ALL, 1);
        assert_eq!(
            (burnt.methods[0].name.as_str(), json!(burnt.samples.all())),
            ("Known.Burn(int)", profile["samples"].clone()),
            "{runtime}"
        );
        let folded = Invocation::new(["export", path, "--format", "folded", "-o", "-"]).run();
        let samples = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        assert_eq!(folded.stdout.lines().map(samples).sum::<u64>(), profile["samples"].as_u64().unwrap(), "{runtime}: {}", folded.stderr);
        let burnt = |line: &&str| line.contains("Known.Main();") && line.contains(";Known.Burn(int)");
        assert!(folded.stdout.lines().filter(burnt).map(samples).sum::<u64>() > 10, "{runtime}: {}", folded.stdout);
    });
}

#[test]
fn waiting_threads_have_no_cpu_time() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        // One thread waits for a lock, one sleeps, the main thread reads, and the threads of the runtime wait.
        program.carry_out("hold-lock 60000");
        let Some((profile, _)) = profile(&program, &["--duration", "3s"]) else { return };
        let threads = profile["threads"].as_array().unwrap();
        eprintln!("{runtime}: {} threads, {} ms in {} ms", threads.len(), profile["cpu_ms"], profile["duration_ms"]);
        assert!(threads.len() > 7, "{runtime}: {profile:#}");
        // One runtime thread sends method events, and another recompiles methods that were called often.
        let works = |thread: &&Value| {
            let name = thread["name"].as_str().unwrap();
            name == ".NET EventPipe" || name.starts_with(".NET Tiered") || runtime.major() == 3 && thread["id"] != program.pid()
        };
        for thread in threads.iter().filter(|thread| !works(thread)) {
            assert!(number(&thread["cpu_percent"]) <= 0.5, "{runtime}: {thread}");
        }
        assert!(total(&profile, "Known.Main()") < 15.0, "{runtime}: {profile:#}");
        // The states add up to the wall time, and contain the expected waits: for the lock, and for the next command.
        for thread in threads {
            let waits = thread["waits_percent"].as_object().unwrap().values().map(number).sum::<f64>();
            let sum = number(&thread["on_cpu_percent"]) + number(&thread["runnable_percent"]) + waits;
            assert!(
                (sum - 100.0).abs() < 0.01 && number(&thread["wall_ms"]) <= number(&profile["duration_ms"]) + 500.0,
                "{runtime}: {thread}"
            );
        }
        let in_wait =
            |wait: &str| threads.iter().filter(|thread| thread["waits_percent"][wait].as_f64().is_some_and(|share| share > 95.0)).count();
        assert!(in_wait("futex") >= 2, "{runtime}: {profile:#}");
        let main = threads.iter().find(|thread| thread["id"] == program.pid()).unwrap();
        assert!(number(&main["waits_percent"]["io"]) > 95.0, "{runtime}: {main}");
        assert!(program.is_alive(), "{runtime}");
    });
}

#[test]
fn methods_are_named_as_in_the_source() {
    runtimes::each_in_turn(runtimes::with_and_musl("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("shapes 600000");
        let shapes = ["Box<int>.Work(int)", "Box<__Canon>.Work(int)", "Known.InnerAsync", "Known.Recursive(int, int)", "lambda"];
        // The CPU time available per second depends on the machine.
        let names = || {
            let Some((profile, _)) = profile(&program, &["--duration", "2s"]) else { return Some(None) };
            let methods = profile["methods"].as_array().unwrap().iter().filter(|method| method["module"] == "known");
            let names: Vec<_> = methods.map(|method| method["name"].as_str().unwrap().to_owned()).collect();
            eprintln!("{runtime}: {names:?}");
            shapes.iter().all(|shape| names.iter().any(|name| name.contains(shape))).then_some(Some(names))
        };
        let Some(names) = poll(TIMEOUT, names).unwrap_or_else(|| panic!("{runtime}: a shape of {shapes:?} has no method")) else { return };
        let made_up = names.iter().find(|name| ["MoveNext", "g__", "b__", "`", "DisplayClass"].iter().any(|part| name.contains(part)));
        assert_eq!(made_up, None, "{runtime}");
    });
}

#[test]
fn native_cpu_time_is_attributed_to_library() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("native 600000");
        let Some((profile, _)) = profile(&program, &["--duration", "3s"]) else { return };
        let of = |modules: &[&str]| {
            let module = |method: &&Value| modules.iter().any(|of| method["module"].as_str().unwrap().contains(of));
            let methods = profile["methods"].as_array().unwrap().iter().filter(module);
            methods.map(|method| number(&method["self_ms"])).sum::<f64>()
        };
        // Which of the two libraries compresses depends on the version. The GC is in the runtime's own library, for which not all versions
        // have symbols.
        let found = [of(&["libz.so", "IO.Compression.Native"]), of(&["libcoreclr.so"]), of(&["libclrjit.so"])];
        let native = number(&profile["native_ms"]);
        eprintln!("{runtime}: {found:.0?} ms of {native:.0} ms");
        assert!(found.iter().all(|time| *time > 0.05 * native), "{runtime}: {found:.0?} of {native:.0}: {}", profile["methods"]);
        assert!(number(&profile["jit_ms"]) >= found[2], "{runtime}: {}", profile["jit_ms"]);
        assert!(number(&profile["unknown_ms"]) < 0.02 * native, "{runtime}: {}", profile["unknown_ms"]);
    });
}

#[test]
fn thread_without_cpu_is_runnable() {
    // All runtimes at once: the machine is of little use to other tests while it is this busy.
    let _busy = BusyProcessors::start();
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let Some((profile, _)) = profile(&program, &["--duration", "2s"]) else { return };
        let main = profile["threads"].as_array().unwrap().iter().find(|thread| thread["id"] == program.pid()).unwrap();
        let (on, runnable) = (number(&main["on_cpu_percent"]), number(&main["runnable_percent"]));
        eprintln!("{runtime}: {on:.1} % on a processor, {runnable:.1} % runnable");
        assert!(runnable > 30.0 && on + runnable > 90.0, "{runtime}: {main}");
    });
}

#[test]
fn native_code_and_truncated_stacks_are_reported() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        // Stacks are unwound by the runtime's own library.
        program.command("throw 10000000");
        let Some((throwing, output)) = profile(&program, &["--duration", "1s"]) else { return };
        let of = |kind: &str| number(&throwing[kind]);
        let all = ["managed_ms", "native_ms", "kernel_ms", "stub_ms", "unknown_ms"].map(of).iter().sum::<f64>();
        eprintln!("{runtime}: {:.0} ms native, {:.0} ms managed, {all:.0} ms in all", of("native_ms"), of("managed_ms"));
        assert!(of("native_ms") > 0.2 * all && of("unknown_ms") == 0.0, "{runtime}: {}", output.stdout);
        let library = |method: &&Value| method["module"] == "libcoreclr.so" && method["kind"] == "native";
        assert!(throwing["methods"].as_array().unwrap().iter().filter(library).count() > 0, "{runtime}: {}", output.stdout);
        assert!(total(&throwing, "Known.Throw(int)") > 0.1 * all, "{runtime}: {}", output.stdout);
        drop(program);
        let mut program = runtime.program("known").start();
        program.command("deep 300 60000");
        let (folder, mut file) = (folder(), 0);
        let deep = || {
            file += 1;
            let path = folder.path().join(format!("{file}.nettrace"));
            let (deep, output) = profile(&program, &["--duration", "1s", "-o", path.to_str().unwrap()])?;
            (total(&deep, "Known.Deep(int, int)") > 100.0).then_some((deep, output.stderr, path))
        };
        let (deep, stderr, path) = poll(TIMEOUT, deep).unwrap();
        // A file of the samples shows the same.
        let of_file = Invocation::new(["report", path.to_str().unwrap(), "--json"]).run();
        let chains = |document: &Value| ["cut_chains", "broken_chains"].map(|chains| number(&document[chains]));
        assert_eq!(chains(&of_file.json()), chains(&deep), "{runtime}");
        let sentence = stderr.lines().find(|line| line.contains("call chains cut off")).unwrap();
        assert!(of_file.stderr.contains(sentence), "{runtime}: {}", of_file.stderr);
        let read = read_trace(&path, None, |_| true).unwrap().unwrap();
        assert_eq!(read.analysis.cpu.as_ref().map(|cpu| cpu.cut as f64), Some(number(&deep["cut_chains"])), "{runtime}");
        assert!(stderr.contains("call chains cut off by the kernel (kernel.perf_event_max_stack)"), "{runtime}: {stderr}");
        // The kernel keeps 127 of 300 frames.
        let (shown, above) = (total(&deep, "Known.Deep(int, int)"), total(&deep, "Known.Main()"));
        assert!(
            number(&deep["cut_chains"]) > 50.0 && above < 0.2 * shown,
            "{runtime}: {shown} ms, {above} ms above: {}",
            deep["cut_chains"]
        );
    });
}

#[test]
fn a_native_aot_program_is_sampled() {
    if let Some(runtime) = runtimes::native_aot() {
        let program = runtime.any().start();
        let Some((profile, output)) = profile(&program, &["--duration", "2s"]) else { return };
        assert_eq!(profile["complete"], true, "{}", output.stderr);
        let own = profile["methods"].as_array().unwrap().iter().find(|method| method["module"] == "aot8");
        assert!(own.is_some_and(|method| method["kind"] == "native"), "{profile:#}");
    }
}

#[test]
fn samples_are_shown_after_interrupt_or_target_exit() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        if profile(&program, &["--duration", "100ms"]).is_none() {
            return;
        }
        let pid = program.pid().to_string();
        let start = || Invocation::new(["cpu", &pid, "--duration", "60s", "--json"]).start();
        // Its open file descriptors include perf events.
        let samples = |dn_top: u32| {
            let files = std::fs::read_dir(format!("/proc/{dn_top}/fd")).unwrap();
            let targets = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
            targets.into_iter().any(|target| target.to_string_lossy().contains("perf_event")).then_some(())
        };
        program.command("spend 600000");
        // The first events only test whether the kernel permits them.
        let sampled = || {
            let running = start();
            poll(TIMEOUT, || samples(running.pid())).unwrap();
            let before = program.cpu_time();
            poll(TIMEOUT, || (program.cpu_time() - before > Duration::from_millis(1500)).then_some(())).unwrap();
            running
        };
        let output = sampled().interrupt();
        let shown: Value = serde_json::from_str(&output.stdout).unwrap();
        assert!(total(&shown, "Known.Main()") > 10.0 && shown["complete"] == true, "{runtime}: {}", output.stdout);
        let running = sampled();
        program.signal(Signal::KILL);
        program.wait();
        let output = running.wait();
        assert_eq!((output.code, output.json()["complete"].as_bool()), (0, Some(false)), "{runtime}: {}", output.stderr);
        assert!(output.stderr.contains("ended after") && number(&output.json()["samples"]) > 10.0, "{runtime}: {}", output.stderr);
    });
}
