//! Samples by the kernel, against programs that do what is known. Skipped where the kernel does not let us sample our own processes.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dn_top::analysis::{Origin, SampleFilter};
use dn_top::clr::{DASHBOARD_PROFILES, select};
use dn_top::model::{Outcome, OutputName, Phase, Recording, RecordingAnalysis, TraceOptions};
use dn_top::net::Directory;
use dn_top::net::client::Client;
use dn_top::net::discovery::Sources;
use dn_top::net::perf::{CpuSampler, CpuThread, Frequency, PerfError, SampleLoss};
use dn_top::session::{Plan, Recorder, read_trace};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::runtimes;
use crate::support::{Invocation, Output, PATIENCE, Program, Signal, folder, poll};
use crate::trace_processor::Engine;

async fn client(program: &Program) -> Client {
    let mut directory = Directory::new(Sources::machine()).unwrap();
    let process = directory.resolve(program.socket().to_str().unwrap(), PATIENCE).await.unwrap();
    directory.clients().of(&process).unwrap()
}

/// `None` where the kernel forbids it, as in most containers.
fn sampler(client: &Client) -> Option<CpuSampler> {
    match client.sample_cpu(Frequency::HIGHEST) {
        Ok(sampler) => Some(sampler),
        Err(error) if error.is_denied() => {
            runtimes::skip(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// What came of the samples of a thread.
#[derive(Debug, Default)]
struct Seen {
    samples: u64,
    frames: usize,
    first_ns: u64,
    last_ns: u64,
}

/// Samples while the program carries out a command.
fn sample(sampler: &mut CpuSampler, program: &mut Program, command: &str) -> BTreeMap<u64, Seen> {
    let mut seen = BTreeMap::<u64, Seen>::new();
    std::thread::scope(|scope| {
        let work = scope.spawn(|| program.carry_out(command));
        loop {
            let over = work.is_finished();
            sampler.drain(|sample| {
                let seen = seen.entry(sample.thread).or_default();
                seen.samples += 1;
                seen.frames += sample.user.len();
                seen.first_ns = if seen.first_ns == 0 { sample.time_ns } else { seen.first_ns };
                seen.last_ns = sample.time_ns;
            });
            if over {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    seen
}

fn sampled_ms(sampler: &CpuSampler, seen: Option<&Seen>) -> f64 {
    seen.map_or(0, |seen| seen.samples * sampler.period_ns()) as f64 / 1e6
}

#[test]
fn samples_are_the_processor_time_of_each_thread() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.spend(300);
        let client = client(&program).await;
        let Some(mut sampler) = sampler(&client) else { return };
        let seen = sample(&mut sampler, &mut program, "spend 1500");
        let threads = sampler.threads();
        let main = threads.iter().find(|thread| thread.thread == u64::from(program.pid())).unwrap();
        let (shown, truth) = (sampled_ms(&sampler, seen.get(&main.thread)), main.cpu.as_secs_f64() * 1e3);
        eprintln!("{runtime}: main thread {shown:.0} ms of {truth:.0} ms, {} threads, kernel {}", threads.len(), sampler.sees_kernel());
        // While a virtual machine is not run, its kernel counts processor time and takes no samples.
        let is_near = shown > truth * 0.95 && shown < truth * 1.02;
        assert!(truth > 50.0 && is_near, "{runtime}: {shown} ms sampled, {truth} ms by the kernel");
        let main = &seen[&main.thread];
        assert!(main.frames as u64 > main.samples * 5, "{runtime}: chains go up to main: {main:?}");
        assert!(main.last_ns - main.first_ns > 500_000_000, "{main:?}");
        // All others wait, but for a moment now and then.
        for thread in threads.iter().filter(|thread| thread.thread != u64::from(program.pid())) {
            let shown = sampled_ms(&sampler, seen.get(&thread.thread));
            assert!((shown - thread.cpu.as_secs_f64() * 1e3).abs() < 20.0, "{runtime}: {shown} ms of {thread:?}");
        }
        assert_eq!(sampler.loss(), SampleLoss::default(), "{runtime}");
        program.signal(Signal::KILL);
        program.wait();
        assert!(!sampler.is_alive());
        sampler.drain(|_| {});
    });
}

#[test]
fn threads_that_start_and_end_are_followed() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.spend(100);
        let client = client(&program).await;
        let Some(mut sampler) = sampler(&client) else { return };
        // A virtual machine that is not run for a while has processor time without samples: never more samples than time, and in one round nearly all.
        let exact = (0..4).any(|_| {
            let before: Vec<u64> = sampler.threads().iter().map(|thread| thread.thread).collect();
            // 64 threads that work together for 600 ms of the clock.
            let seen = sample(&mut sampler, &mut program, "slow 64 600");
            let ended = || {
                sampler.drain(|_| {});
                let new: Vec<CpuThread> = sampler.threads().into_iter().filter(|thread| !before.contains(&thread.thread)).collect();
                (new.iter().filter(|thread| thread.cpu > Duration::from_millis(1)).count() >= 64).then_some(new)
            };
            let new = poll(PATIENCE, ended).unwrap_or_else(|| panic!("{runtime}: {:?}", sampler.threads()));
            let truth: f64 = new.iter().map(|thread| thread.cpu.as_secs_f64() * 1e3).sum();
            let shown: f64 = new.iter().map(|thread| sampled_ms(&sampler, seen.get(&thread.thread))).sum();
            eprintln!("{runtime}: {} new threads, {shown:.0} ms of {truth:.0} ms", new.len());
            assert!(shown < truth * 1.1, "{runtime}: {shown} ms sampled, {truth} ms by the kernel");
            assert_eq!(sampler.loss(), SampleLoss::default(), "{runtime}");
            shown > truth * 0.9
        });
        assert!(exact, "{runtime}: more than a tenth of the time has no samples");
    });
}

#[test]
fn a_process_that_ended_is_not_sampled() {
    runtimes::each_async(runtimes::all(), async |runtime| {
        let mut program = runtime.any().start();
        let client = client(&program).await;
        program.signal(Signal::KILL);
        program.wait();
        assert!(matches!(client.sample_cpu(Frequency::HIGHEST), Err(PerfError::NotShown(_))), "{runtime}");
    });
}

/// `cpu --json` of a program; `None` where the kernel forbids it.
fn profile(program: &Program, arguments: &[&str]) -> Option<(Value, Output)> {
    let pid = program.pid().to_string();
    let output = Invocation::new([&["cpu", &pid, "--json", "-n", "10000"], arguments].concat()).run();
    if output.code == 4 {
        runtimes::skip(&output.stderr);
        return None;
    }
    assert_eq!(output.code, 0, "{}", output.stderr);
    Some((output.json(), output))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The time of a method and of all that it calls, milliseconds.
fn total(profile: &Value, name: &str) -> f64 {
    let methods = profile["methods"].as_array().unwrap().iter();
    methods.filter(|method| method["name"] == name).map(|method| number(&method["total_ms"])).sum()
}

/// Processor time after which 2 percentage points are four standard deviations of the largest share, were its samples independent of each other:
/// 0.7 * 0.3 / (0.02 / 4)^2 samples of 1 ms.
const EXACT_MS: f64 = 8400.0;

#[test]
fn methods_have_the_processor_time_that_they_took() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        // The methods get their last tier.
        program.spend(1000);
        program.command("spend 600000");
        let (mut times, mut spend) = ([0.0; 3], 0.0);
        // How much processor time there is in a second is the machine's affair.
        while spend < EXACT_MS {
            let Some((profile, output)) = profile(&program, &["--duration", "5s"]) else { return };
            let of = ["Known.Seventy()", "Known.Twenty()", "Known.Ten()"].map(|name| total(&profile, name));
            times.iter_mut().zip(of).for_each(|(sum, time)| *sum += time);
            spend += total(&profile, "Known.Main()");
            let main = profile["threads"].as_array().unwrap().iter().find(|thread| thread["id"] == program.pid()).unwrap();
            // A virtual machine that is not run for a while has processor time without samples: shares are those of samples.
            let (sampled, managed) = (number(&main["samples"]) * number(&profile["period_ns"]) / 1e6, number(&profile["managed_ms"]));
            // Where others want the processor too, the kernel takes a part of the time to switch between them.
            let explained = managed + number(&profile["kernel_ms"]);
            assert!(
                explained > sampled * 0.9 && managed > sampled * 0.7 && managed < sampled * 1.05,
                "{runtime}: {managed} ms managed, {explained} ms with the kernel, {sampled} ms of samples, {main}: {}",
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

/// Name, module and samples of methods.
fn hottest<'a>(methods: &'a Value, own: &str, total: &str) -> Vec<(&'a str, &'a str, u64, u64)> {
    let text = |value: &'a Value| value.as_str().unwrap();
    let of = |method: &'a Value| {
        (text(&method["name"]), text(&method["module"]), method[own].as_u64().unwrap(), method[total].as_u64().unwrap())
    };
    let mut methods: Vec<_> = methods.as_array().unwrap().iter().map(of).collect();
    // Those with equally many samples may be in any order.
    methods.sort_unstable_by_key(|(name, module, own, total)| (std::cmp::Reverse((*own, *total)), *name, *module));
    methods.truncate(20);
    methods
}

#[test]
fn a_file_of_samples_shows_the_same() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let folder = folder();
        let file = folder.path().join("cpu.nettrace");
        let path = file.to_str().unwrap();
        let Some((profile, output)) = profile(&program, &["--duration", "3s", "-o", path]) else { return };
        assert!(output.stderr.contains(path), "{}", output.stderr);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
        let bytes = std::fs::read(&file).unwrap();
        let again = Invocation::new(["cpu", &program.pid().to_string(), "--duration", "100ms", "-o", path]).run();
        assert!(again.code != 0 && again.stderr.contains("exists already"), "{}", again.stderr);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);

        let report = Invocation::new(["report", path, "--json", "-n", "10000"]).run().json();
        assert_eq!((&report["source"], &report["samples"]), (&json!("cpu"), &profile["samples"]), "{runtime}");
        assert_eq!(
            hottest(&report["methods"], "self", "total"),
            hottest(&profile["methods"], "self_samples", "total_samples"),
            "{runtime}"
        );
        assert!(hottest(&report["methods"], "self", "total")[0].0 == "Known.Burn(int)", "{runtime}: {report:#}");
        let contents = read_trace(&file, None, |_| true).unwrap().unwrap();
        let burnt = contents.analysis.cpu.as_ref().unwrap().profile.methods(SampleFilter::ALL, 1);
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
fn threads_that_wait_take_no_processor_time() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        // One thread waits for a lock, one sleeps, the main thread reads, and those of the runtime wait.
        program.carry_out("hold-lock 60000");
        let Some((profile, _)) = profile(&program, &["--duration", "3s"]) else { return };
        let threads = profile["threads"].as_array().unwrap();
        eprintln!("{runtime}: {} threads, {} ms in {} ms", threads.len(), profile["cpu_ms"], profile["duration_ms"]);
        assert!(threads.len() > 7, "{runtime}: {profile:#}");
        // Events of methods are sent by one, and what was called often is compiled again by another.
        let works = |thread: &&Value| {
            let name = thread["name"].as_str().unwrap();
            name == ".NET EventPipe" || name.starts_with(".NET Tiered") || runtime.major() == 3 && thread["id"] != program.pid()
        };
        for thread in threads.iter().filter(|thread| !works(thread)) {
            assert!(number(&thread["cpu_percent"]) <= 0.5, "{runtime}: {thread}");
        }
        assert!(total(&profile, "Known.Main()") < 15.0, "{runtime}: {profile:#}");
        // Wall time adds up, and is of the waits that there are: for the lock, and for the next command.
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
fn a_thread_that_has_no_processor_is_runnable() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let over = AtomicBool::new(false);
        let shown = std::thread::scope(|scope| {
            for _ in 0..4 * std::thread::available_parallelism().unwrap().get() {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let shown = profile(&program, &["--duration", "2s"]);
            over.store(true, Ordering::Relaxed);
            shown
        });
        let Some((profile, _)) = shown else { return };
        let main = profile["threads"].as_array().unwrap().iter().find(|thread| thread["id"] == program.pid()).unwrap();
        let (on, runnable) = (number(&main["on_cpu_percent"]), number(&main["runnable_percent"]));
        eprintln!("{runtime}: {on:.1} % on a processor, {runnable:.1} % runnable");
        assert!(runnable > 30.0 && on + runnable > 90.0, "{runtime}: {main}");
    });
}

#[test]
fn native_code_and_deep_stacks_are_told_apart() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        // Stacks are unwound for that by the runtime's own library.
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
        let deep = || {
            let (deep, output) = profile(&program, &["--duration", "1s"])?;
            (total(&deep, "Known.Deep(int, int)") > 100.0).then_some((deep, output.stderr))
        };
        let (deep, stderr) = poll(PATIENCE, deep).unwrap();
        assert!(stderr.contains("call chains cut off by the kernel (kernel.perf_event_max_stack)"), "{runtime}: {stderr}");
        // The kernel keeps 127 frames of 300.
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
fn what_was_sampled_is_shown_however_it_ends() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        if profile(&program, &["--duration", "100ms"]).is_none() {
            return;
        }
        let pid = program.pid().to_string();
        let start = || Invocation::new(["cpu", &pid, "--duration", "60s", "--json"]).start();
        // Its events are open files of its own.
        let samples = |dn_top: u32| {
            let files = std::fs::read_dir(format!("/proc/{dn_top}/fd")).unwrap();
            let targets = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
            targets.into_iter().any(|target| target.to_string_lossy().contains("perf_event")).then_some(())
        };
        let running = start();
        poll(PATIENCE, || samples(running.pid())).unwrap();
        program.spend(300);
        running.signal(Signal::INT);
        let output = running.wait();
        assert_eq!(output.code, 130, "{}", output.stderr);
        let shown: Value = serde_json::from_str(&output.stdout).unwrap();
        assert!(total(&shown, "Known.Main()") > 10.0 && shown["complete"] == true, "{runtime}: {}", output.stdout);
        let running = start();
        poll(PATIENCE, || samples(running.pid())).unwrap();
        program.spend(300);
        program.signal(Signal::KILL);
        program.wait();
        let output = running.wait();
        assert_eq!((output.code, output.json()["complete"].as_bool()), (0, Some(false)), "{runtime}: {}", output.stderr);
        assert!(output.stderr.contains("ended after") && number(&output.json()["samples"]) > 10.0, "{runtime}: {}", output.stderr);
    });
}

/// The CPU time of a method in a recording, and of all code, nanoseconds; `None` before there are samples.
fn cpu_time(analysis: Option<&RecordingAnalysis>, method: &str) -> Option<(u64, u64)> {
    let methods = analysis?.cpu.as_ref()?.profile.methods(SampleFilter::ALL, usize::MAX);
    let found = methods.methods.iter().find(|found| found.name == method)?;
    Some((found.total.all_ns(), methods.samples.all_ns()))
}

/// What the dashboard records when nothing else was chosen, or another profile.
fn plan(client: &Client, file: &Path, profiles: &[&str]) -> Plan {
    let options = TraceOptions {
        file: Some(file.to_owned()),
        ..TraceOptions::of_profiles(&profiles.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    Plan { analysed: true, ..Plan::of(&options, client.endpoint().key, "known".into(), Path::new("/"), &OutputName::default()).unwrap() }
}

#[test]
fn the_profile_cpu_shows_and_stores_samples_of_the_kernel() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.spend(500);
        program.command("spend 60000");
        let client = client(&program).await;
        if sampler(&client).is_none() {
            return;
        }
        let folder = folder();
        let file = folder.path().join("a.nettrace");
        let began = Instant::now();
        let recorder = Recorder::start(client.clone(), plan(&client, &file, &DASHBOARD_PROFILES)).await.unwrap();
        let mut progress = recorder.progress();
        let hottest = |recording: &Recording| {
            Some(recording.analysis.as_ref()?.cpu.as_ref()?.profile.methods(SampleFilter::ALL, 1).methods.first()?.name.clone())
        };
        let is_named = |recording: &Recording| hottest(recording).as_deref() == Some("Known.Burn");
        let shown = timeout(PATIENCE, progress.wait_for(is_named)).await.is_ok();
        assert!(shown, "{runtime}: {:?}", hottest(&recorder.progress().borrow()));
        eprintln!("{runtime}: the hottest method has its name after {:.2} s", began.elapsed().as_secs_f64());
        // One thread keeps a core busy: now, on average, and in the times of the threads.
        let is_busy = |recording: &Recording| {
            let cpu = recording.analysis.as_ref().unwrap().cpu.as_ref().unwrap();
            cpu.recent > Duration::from_millis(1900) && cpu.threads.iter().any(|thread| thread.cpu > Duration::from_secs(1))
        };
        let busy = timeout(PATIENCE * 2, progress.wait_for(is_busy)).await.unwrap().unwrap().clone();
        let cpu = busy.analysis.as_ref().unwrap().cpu.as_ref().unwrap();
        let methods = cpu.profile.methods(SampleFilter::ALL, usize::MAX);
        let main = cpu.threads.iter().find(|thread| thread.thread == u64::from(program.pid())).unwrap();
        let (on, now) = (main.cpu.as_secs_f64() / main.wall.as_secs_f64(), methods.samples.recent_ns as f64 / cpu.recent.as_nanos() as f64);
        let average = methods.samples.all_ns() as f64 / cpu.elapsed.as_nanos() as f64;
        eprintln!("{runtime}: {on:.2} of a core by the kernel's count, {now:.2} now and {average:.2} on average by samples");
        // The last two seconds may be unlike the rest where others take the processors.
        assert!((average - on).abs() < 0.25 && now > 0.0 && now < 1.25, "{runtime}: {on} {now} {average}");
        let off = main.off_cpu().iter().map(|(_, share)| share).sum::<f64>();
        assert!((on + off - 1.0).abs() < 0.05, "{runtime}: {main:?}");
        assert_eq!((cpu.lost, busy.no_cpu.as_ref()), (0, None), "{runtime}");
        assert!(busy.analysis.as_ref().unwrap().profile.is_empty(), "{runtime}: the runtime samples nothing");
        recorder.stop();
        let recording = recorder.finished().await;
        assert!(matches!(&recording.phase, Phase::Done(Outcome { complete: true, trouble: None, .. })), "{runtime}: {:?}", recording.phase);
        let samples = folder.path().join("a.cpu.nettrace");
        assert_eq!(recording.cpu_file.as_ref(), Some(&samples), "{runtime}");
        assert_eq!(std::fs::metadata(&samples).unwrap().permissions().mode() & 0o7777, 0o600);
        // Both files are read together, and hold what was shown.
        let live = recording.analysis.as_ref().unwrap().cpu.as_ref().unwrap();
        let shown = live.profile.methods(SampleFilter::ALL, usize::MAX);
        let contents = read_trace(&file, None, |_| true).unwrap().unwrap();
        let stored = contents.analysis.cpu.as_ref().unwrap().profile.methods(SampleFilter::ALL, usize::MAX);
        assert_eq!((stored.samples.all(), &*stored.methods[0].name), (shown.samples.all(), "Known.Burn(int)"), "{runtime}");
        assert_eq!(
            (stored.methods[0].own.all(), stored.methods[0].total.all()),
            (shown.methods[0].own.all(), shown.methods[0].total.all())
        );
        let part = read_trace(&file, Some((0, 500_000_000)), |_| true).unwrap().unwrap();
        let part = part.analysis.cpu.as_ref().unwrap().profile.count(SampleFilter::ALL).samples().all();
        assert!(part > 0 && part < stored.samples.all() / 2, "{runtime}: {part} of {}", stored.samples.all());
        let report = Invocation::new(["report", file.to_str().unwrap(), "--json"]).run().json();
        assert_eq!((&report["source"], report["samples"].as_u64()), (&json!("cpu"), Some(stored.samples.all())), "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn trace_stores_cpu_samples_in_a_file_beside() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 60000");
        if profile(&program, &["--duration", "100ms"]).is_none() {
            return;
        }
        let folder = folder();
        let file = folder.path().join("a.nettrace");
        let path = file.to_str().unwrap();
        let pid = program.pid().to_string();
        let trace = || Invocation::new(["trace", &pid, "--profile", "cpu", "--duration", "2s", "-o", path, "--json"]).run();
        let output = trace();
        let document = output.json();
        let samples = folder.path().join("a.cpu.nettrace");
        assert_eq!((&document["complete"], &document["cpu_file"]), (&json!(true), &json!(samples.to_str().unwrap())), "{}", output.stderr);
        let report = Invocation::new(["report", path, "--json"]).run().json();
        assert_eq!((&report["source"], &report["methods"][0]["name"]), (&json!("cpu"), &json!("Known.Burn(int)")), "{runtime}: {report:#}");
        assert!(report["samples"].as_u64() > Some(50), "{runtime}: {report:#}");
        // Exports have all of them, with native frames.
        let export = |format: &str| {
            let out = folder.path().join(format);
            let said = Invocation::new(["export", path, "--format", format, "-o", out.to_str().unwrap(), "--json"]).run().json();
            (said["files"].clone(), out)
        };
        let (files, folded) = export("folded");
        assert_eq!(files, json!([samples.to_str().unwrap()]));
        let folded = std::fs::read_to_string(folded).unwrap();
        let counts = |part: &str| -> u64 {
            folded.lines().filter(|line| line.contains(part)).map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
        };
        assert_eq!(counts(""), report["samples"].as_u64().unwrap() + report["waiting"].as_u64().unwrap(), "{runtime}: {folded}");
        let is_below_native_code =
            |line: &str| line.split(';').skip(1).position(|frame| frame.starts_with("Known.")).is_some_and(|at| at > 0);
        assert!(counts("Known.Burn(int)") * 2 > counts("") && folded.lines().any(is_below_native_code), "{runtime}: {folded}");
        let (files, perfetto) = export("perfetto");
        assert_eq!(files, json!([path, samples.to_str().unwrap()]));
        if let Some(engine) = Engine::newest() {
            engine.assert_right(&perfetto, "");
            assert_eq!(engine.query(&perfetto, "select count(*) n from perf_sample")[0]["n"], counts(""), "{runtime}");
        }
        // The stream of the runtime is as without.
        let before = [std::fs::read(&file).unwrap(), std::fs::read(&samples).unwrap()];
        let again = trace();
        assert!(again.code != 0 && again.stderr.contains("exists already"), "{}", again.stderr);
        std::fs::remove_file(&file).unwrap();
        let again = trace();
        assert!(again.code != 0 && again.stderr.contains("a.cpu.nettrace") && !file.exists(), "{}", again.stderr);
        assert_eq!(std::fs::read(&samples).unwrap(), before[1], "{runtime}");
        std::fs::remove_file(&samples).unwrap();
        // Events of threads need as many open files.
        let limit = "ulimit -n 40; exec \"$@\"";
        let words =
            ["-c", limit, "sh", env!("CARGO_BIN_EXE_dn-top"), "trace", &pid, "--profile", "cpu", "--duration", "2s", "-o", path, "--json"];
        let limited = Invocation::of("sh", words).run();
        let stderr = &limited.stderr;
        assert!(stderr.contains("thread time (managed only, includes waiting)") && stderr.contains("ulimit -n"), "{runtime}: {stderr}");
        assert_eq!((&limited.json()["complete"], limited.json().get("cpu_file"), samples.exists()), (&json!(true), None, false));
        let report = Invocation::new(["report", path, "--json"]).run().json();
        assert_eq!(report["source"], "threads", "{runtime}: {report:#}");
        assert!(report["samples"].as_u64() > Some(50), "{runtime}: {report:#}");
        assert!(program.is_alive(), "{runtime}");
    });
}

#[test]
fn a_recording_that_is_looked_at_shows_cpu_time() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.spend(500);
        let client = client(&program).await;
        if sampler(&client).is_none() {
            return;
        }
        let folder = folder();
        let config = select(&["dotnet-common", "dotnet-sampled-thread-time"], &[] as &[&str], None).unwrap().config;
        let plan = Plan { analysed: true, ..Plan::new(client.endpoint().key, "known".into(), config, folder.path().join("a.nettrace")) };
        let recorder = Recorder::start(client, plan).await.unwrap();
        program.command("spend 60000");
        let mut progress = recorder.progress();
        let is_shown = |recording: &Recording| {
            cpu_time(recording.analysis.as_deref(), "Known.Burn").is_some_and(|(own, all)| own > 2_000_000_000 && own * 2 > all)
        };
        let shown = timeout(PATIENCE * 2, progress.wait_for(is_shown)).await;
        assert!(shown.is_ok(), "{runtime}: {:?}", cpu_time(recorder.progress().borrow().analysis.as_deref(), "Known.Burn"));
        drop(shown);
        recorder.stop();
        let recording = recorder.finished().await;
        assert!(matches!(&recording.phase, Phase::Done(Outcome { complete: true, .. })), "{:?}", recording.phase);
        assert!(recording.notes.iter().all(|note| !note.contains("CPU time")), "{:?}", recording.notes);
        let analysis = recording.analysis.unwrap();
        let cpu = analysis.cpu.as_ref().unwrap().profile.methods(SampleFilter::ALL, usize::MAX);
        // Methods that were compiled again have got their names at the stop.
        let times = ["Known.Seventy", "Known.Burn"].map(|method| cpu_time(Some(&analysis), method).unwrap().0 as f64);
        assert!((times[0] / times[1] - 0.7).abs() < 0.1, "{runtime}: {times:?}");
        // What has no name by then is no method.
        assert!(cpu.unresolved * 50 < cpu.samples.all(), "{runtime}: {} of {}", cpu.unresolved, cpu.samples.all());
        assert!(cpu.methods.iter().any(|method| method.origin == Origin::Native), "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn the_live_view_shows_what_is_hot_now() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        if profile(&program, &["--duration", "100ms"]).is_none() {
            return;
        }
        let pid = program.pid().to_string();
        let (place, samples) = (folder(), folder());
        let (lines, file) = (place.path().join("lines"), samples.path().join("a.nettrace"));
        let output = std::fs::File::create(&lines).unwrap();
        let words = ["cpu", &pid, "--live", "--json", "-n", "5", "-o", file.to_str().unwrap()];
        let mut running = std::process::Command::new(env!("CARGO_BIN_EXE_dn-top")).args(words).stdout(output).spawn().unwrap();
        let read = || std::fs::read_to_string(&lines).unwrap();
        assert!(poll(PATIENCE * 2, || (read().lines().count() >= 4).then_some(())).is_some(), "{runtime}: {}", read());
        crate::support::send(running.id(), Signal::INT);
        assert_eq!(running.wait().unwrap().code(), Some(130), "{runtime}");
        let mut documents: Vec<Value> = read().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let summary = documents.pop().unwrap();
        assert_eq!((&summary["type"], &summary["schema"]), (&json!("summary"), &json!(1)), "{runtime}: {summary}");
        assert!(total(&summary, "Known.Burn(int)") > 500.0 && summary["complete"] == true && file.exists(), "{runtime}: {summary}");
        let mut before = 0.0;
        for moment in &documents {
            assert_eq!((&moment["type"], &moment["schema"]), (&json!("interval"), &json!(1)), "{runtime}: {moment}");
            let hottest = &moment["methods"][0];
            assert_eq!((&hottest["name"], &hottest["kind"]), (&json!("Known.Burn(int)"), &json!("managed")), "{runtime}: {moment}");
            let (now, rate) = (number(&hottest["now_percent"]), number(&hottest["now_ms_per_s"]));
            assert!((now * 10.0 - rate).abs() < 0.01 && now > 5.0 && now < 110.0, "{runtime}: {moment}");
            assert!(now <= number(&hottest["now_total_percent"]) && now <= number(&moment["now_percent"]) + 0.01, "{runtime}: {moment}");
            let methods = moment["methods"].as_array().unwrap();
            let of_caller = methods.iter().find(|method| method["name"] == "Known.Main()");
            assert!(methods.len() <= 5 && of_caller.is_none_or(|main| number(&main["now_total_percent"]) >= now), "{runtime}: {moment}");
            let (elapsed, window) = (number(&moment["elapsed_ms"]), number(&moment["window_ms"]));
            assert!(elapsed > before && window <= elapsed.min(2100.0) + 1.0, "{runtime}: {moment}");
            before = elapsed;
        }
        assert!(before > 900.0 * documents.len() as f64, "{runtime}: {} in {before} ms", documents.len());
        let stopped = Invocation::new(["cpu", &pid, "--live", "--duration", "3500ms"]).run();
        assert_eq!(stopped.code, 0, "{runtime}: {}", stopped.stderr);
        let moments = stopped.stdout.matches(" % of one core now; ").count();
        assert!((2..=4).contains(&moments) && stopped.stdout.contains("METHOD\n"), "{runtime}: {}", stopped.stdout);
        // All that was sampled comes at the end, and nothing moves the cursor where there is none.
        assert!(stopped.stdout.contains(" % of one core; ") && !stopped.stdout.contains('\x1b'), "{runtime}: {}", stopped.stdout);
        // A reader that has seen enough ends it.
        let head = Invocation::of("sh", ["-c", "\"$@\" | head -n 1", "sh", env!("CARGO_BIN_EXE_dn-top"), "cpu", &pid, "--live"]).run();
        assert!(head.code == 0 && head.stdout.lines().count() == 1, "{runtime}: {} {}", head.stdout, head.stderr);
        assert!(program.is_alive(), "{runtime}");
    });
}

#[test]
fn a_report_hides_frames_and_shows_waits() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("throw 10000000");
        let folder = folder();
        let file = folder.path().join("cpu.nettrace");
        let path = file.to_str().unwrap();
        let Some((profile, _)) = profile(&program, &["--duration", "2s", "-o", path]) else { return };
        let report = |options: &[&str]| Invocation::new([&["report", path, "--json", "-n", "10000"], options].concat()).run();
        let all = report(&[]).json();
        let modules = |report: &Value, is: fn(&str) -> bool| {
            let methods = report["methods"].as_array().unwrap().iter();
            methods.filter(|method| is(method["module"].as_str().unwrap())).map(|method| method["self_ns"].as_u64().unwrap()).sum::<u64>()
        };
        let is_kernel = |module: &str| module == "kernel";
        let is_native = |module: &str| module.contains(".so");
        assert!(modules(&all, is_native) > 0 && all["hidden_ns"] == 0 && all.get("off_cpu").is_none(), "{runtime}: {all:#}");
        let sees_kernel = modules(&all, is_kernel) > 0;
        assert_eq!(sees_kernel, profile["kernel_visible"] == true, "{runtime}");
        let without_kernel = report(&["--kernel", "hide"]).json();
        assert!(modules(&without_kernel, is_kernel) == 0 && modules(&without_kernel, is_native) >= modules(&all, is_native), "{runtime}");
        let output = report(&["--kernel", "hide", "--native", "hide"]);
        let managed = output.json();
        assert_eq!(modules(&managed, is_kernel) + modules(&managed, is_native), 0, "{runtime}: {managed:#}");
        // All of the time is still there, in the methods that called what is hidden.
        let sum = |report: &Value| modules(report, |_| true) + report["hidden_ns"].as_u64().unwrap();
        assert_eq!((sum(&managed), sum(&without_kernel)), (sum(&all), sum(&all)), "{runtime}: {}", output.stderr);
        assert_eq!((&managed["time_ns"], &managed["samples"]), (&all["time_ns"], &all["samples"]), "{runtime}");
        let own = |report: &Value| modules(report, |module| module == "known");
        assert!(own(&managed) > own(&all), "{runtime}: {} {}", own(&managed), own(&all));
        assert_eq!(output.stderr.contains("hidden functions"), managed["hidden_ns"].as_u64() > Some(0), "{runtime}: {}", output.stderr);

        // What threads wait for is that of the profile.
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
        assert!(
            text.stdout.contains("THREAD STATE") && text.stdout.contains("  futex\n") && text.stderr.is_empty(),
            "{runtime}: {}",
            text.stdout
        );
        assert!(program.is_alive(), "{runtime}");
    });
}

#[test]
fn a_report_of_sampled_threads_shows_what_they_wait_in() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold-lock 60000");
        let folder = folder();
        let file = folder.path().join("a.nettrace");
        let (path, pid) = (file.to_str().unwrap(), program.pid().to_string());
        let recorded =
            Invocation::new(["trace", &pid, "--profile", "dotnet-sampled-thread-time", "--duration", "1s", "-o", path, "--json"]).run();
        assert_eq!(recorded.code, 0, "{}", recorded.stderr);
        let output = Invocation::new(["report", path, "--json", "--off-cpu", "--native", "hide"]).run();
        assert!(output.stderr.contains("managed code alone"), "{runtime}: {}", output.stderr);
        let off_cpu = &output.json()["off_cpu"];
        let reasons = off_cpu["reasons"].as_array().unwrap();
        let waits = reasons.iter().map(|reason| reason["reason"].as_str().unwrap()).collect::<Vec<_>>();
        let shares = reasons.iter().map(|reason| number(&reason["percent"])).sum::<f64>();
        eprintln!("{runtime}: {shares:.0} % in {waits:?}");
        assert!(off_cpu["source"] == "methods" && shares > 50.0 && shares < 100.01, "{runtime}: {off_cpu:#}");
        assert!(waits.iter().any(|wait| wait.contains("Sleep")), "{runtime}: {off_cpu:#}");
    });
}
