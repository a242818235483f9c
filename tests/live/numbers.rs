//! Displayed numbers, checked on programs with known behavior.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use dn_top::analysis::ContentionSnapshot;
use dn_top::clr::select;
use dn_top::model::{Recording, RecordingAnalysis};

use crate::recording_analysis::record;
use crate::support::runtimes;
use crate::support::{Invocation, Program, Running, Signal, TIMEOUT, folder, poll};
use crate::trace::{self, stats};

/// A row of `counters --format csv`.
#[derive(Debug)]
struct Row {
    counter: String,
    kind: String,
    value: String,
}

/// Returns the rows of `counters` for a program, once the awaited counter has the given number of rows.
fn counters(program: &Program, names: &str, awaited: (&str, usize)) -> Vec<Row> {
    let running = Invocation::new(["counters", &program.pid().to_string(), "--counters", names, "--format", "csv"]).start();
    let is_awaited = |line: &&str| line.contains(awaited.0);
    let enough = || (running.stdout().lines().filter(is_awaited).count() >= awaited.1).then_some(());
    assert!(poll(TIMEOUT, enough).is_some(), "{}{}", running.stdout(), running.stderr());
    running.signal(Signal::INT);
    let output = running.wait();
    let row = |line: &str| {
        let columns: Vec<_> = line.split(',').collect();
        let [_, _, counter @ .., kind, value] = &columns[..] else { panic!("{line}") };
        Row { counter: counter.join(","), kind: (*kind).to_owned(), value: (*value).to_owned() }
    };
    output.stdout.lines().skip(1).map(row).collect()
}

/// The thread pool queue only shrinks here: its length is shown, not the change.
#[test]
fn thread_pool_amounts_are_absolute_not_deltas() {
    // Meters of the runtime are new in .NET 9.
    runtimes::each(runtimes::since(9, runtimes::with("known")), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("occupy 300 100");
        let names = "System.Runtime[dotnet.thread_pool.queue.length,dotnet.thread_pool.thread.count]";
        let rows = counters(&program, names, ("thread_pool.thread.count", 3));
        let of = |name: &str| {
            let rows: Vec<_> = rows.iter().filter(|row| row.counter.contains(name)).collect();
            assert!(rows.iter().all(|row| row.kind == "Metric" && !row.counter.contains(" / ")), "{runtime}: {rows:?}");
            rows.iter().map(|row| row.value.parse::<f64>().unwrap()).collect::<Vec<_>>()
        };
        let (queue, threads) = (of("queue.length"), of("thread.count"));
        assert!(queue.len() >= 2 && queue.is_sorted_by(|before, after| before >= after && *after > 0.0), "{runtime}: {queue:?}");
        assert!(threads.iter().all(|count| *count >= 1.0), "{runtime}: {threads:?}");
    });
}

/// Every interval has the same rows, each with a value without spurious digits.
#[test]
fn counters_keep_their_names_and_have_values() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        // In the first case, some are meters since .NET 9; in the second, all are EventCounters. One of them does not specify the time scale
        // of its rate.
        for names in ["System.Runtime", "System.Runtime[alloc-rate,exception-count,gen-0-gc-count,working-set,total-pause-time-by-gc]"] {
            let rows = counters(&program, names, (if names.contains('[') { "Allocation Rate" } else { "System.Runtime" }, 4));
            let rows = if names.contains('[') { rows } else { counters(&program, names, (&rows[0].counter, 4)) };
            let mut labels = BTreeMap::<_, BTreeSet<_>>::new();
            for Row { counter, kind, value } in &rows {
                let number: f64 = value.parse().unwrap_or_else(|_| panic!("{runtime}: {counter} {kind} {value:?}"));
                let decimals = value.split_once('.').map_or("", |(_, decimals)| decimals);
                assert!(
                    decimals.len() <= 3 || number.abs() < 0.1 && decimals.trim_start_matches('0').len() <= 2,
                    "{runtime}: {counter} {value}"
                );
                // Together with its tags.
                let tags = counter.split_once('[').map_or("", |(_, tags)| tags);
                labels.entry((counter.split(" (").next().unwrap(), tags, kind)).or_default().insert(counter);
            }
            assert!(labels.len() >= 4, "{runtime}: {rows:?}");
            assert!(labels.values().all(|names| names.len() == 1), "{runtime}: {labels:?}");
        }
    });
}

/// Returns the final analysis of a recording of these providers, while the program carries out `act`.
async fn recorded(program: &mut Program, providers: &[&str], act: impl FnOnce(&mut Program, &dyn Fn() -> Recording)) -> RecordingAnalysis {
    let place = folder();
    let config = select(&[] as &[&str], providers, None).unwrap().config;
    let recording = record(program, config, &place.path().join("a.nettrace"), act).await;
    RecordingAnalysis::clone(recording.analysis.as_deref().unwrap())
}

/// A thread pool's first throughput sample, and the average after it, are computed since the machine was booted.
#[test]
fn thread_pool_throughput_matches_completed_work() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        let processors = std::thread::available_parallelism().unwrap().get();
        let mut truth = 0.0;
        let analysis = recorded(&mut program, &["Microsoft-Windows-DotNETRuntime:0x10000:4"], |program, _| {
            let began = Instant::now();
            program.carry_out("occupy 100 20");
            truth = (100 * processors) as f64 / began.elapsed().as_secs_f64();
        })
        .await;
        let pool = &analysis.snapshot.thread_pool;
        let is_near = |throughput: f64| (truth / 4.0..truth * 4.0).contains(&throughput);
        assert!(pool.throughput.is_some_and(is_near), "{runtime}: {:?} and not {truth}", pool.throughput);
        assert!(pool.recent.len() >= 2, "{runtime}: {pool:?}");
        assert!(pool.recent.iter().filter_map(|change| change.throughput).all(is_near), "{runtime}: {truth} and {:?}", pool.recent);
    });
}

/// A recording that is idle most of the time: its rates are relative to the whole recording, in the dashboard and in its file.
#[test]
fn rates_cover_whole_recording() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("throw 1");
        let mut quiet = 0;
        let analysis = recorded(&mut program, &["Microsoft-Windows-DotNETRuntime:0x8000:2"], |program, look| {
            let began = Instant::now();
            program.carry_out("throw 50");
            // The clock of the recording advances without events.
            assert!(poll(TIMEOUT, || (look().elapsed.as_secs() >= 2).then_some(())).is_some());
            quiet = began.elapsed().as_nanos() as u64;
        })
        .await;
        let snapshot = &analysis.snapshot;
        assert_eq!(snapshot.exceptions.thrown, 50, "{runtime}");
        assert!(snapshot.recorded_ns >= quiet, "{runtime}: {} ns and not {quiet}", snapshot.recorded_ns);
        let exceptions = snapshot.exceptions.recent.iter().map(|thrown| thrown.at).max().unwrap();
        assert!(snapshot.now > exceptions + 1_000_000_000, "{runtime}: the last of them is not the end");
    });
}

/// A wait that is still in progress when the recording is stopped counts up to the stop, and the call sites add up to the total.
#[test]
fn lock_waits_add_up_including_unfinished_ones() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        // Followed by a rundown that takes some time.
        let analysis = recorded(&mut program, &["Microsoft-Windows-DotNETRuntime:0x4000:4"], |program, look| {
            let wait_until = |is_reached: &dyn Fn(&ContentionSnapshot) -> bool| {
                let locks = || Some(look().analysis?.snapshot.contention.clone());
                poll(TIMEOUT, || locks().filter(is_reached)).unwrap_or_else(|| panic!("{:?}", look()))
            };
            program.carry_out("contend 5");
            let before = wait_until(&|locks| locks.ended >= 5 && locks.waiting == 0);
            program.command("hold-lock 60000");
            wait_until(&|locks| locks.count > before.count && locks.waiting > 0);
        })
        .await;
        let (snapshot, locks) = (&analysis.snapshot, &analysis.snapshot.contention);
        // The runtime can wait for a lock of its own, such as .NET 10 while it starts.
        let own: Vec<_> = locks.sites.iter().filter(|site| site.method.starts_with("Known.")).collect();
        let own = (own.iter().map(|site| site.count).sum::<u64>(), own.iter().map(|site| site.unfinished).sum::<u64>());
        assert_eq!((own, locks.waiting, locks.count - locks.ended), ((6, 1), 1, 1), "{runtime}: {locks:?}");
        let sum = |of: fn(&dn_top::analysis::ContentionSite) -> u64| locks.sites.iter().map(of).sum::<u64>();
        assert_eq!(
            (sum(|site| site.count), sum(|site| site.unfinished), sum(|site| site.wait_ns)),
            (locks.count, 1, locks.wait_ns),
            "{runtime}: {locks:?}"
        );
        assert_eq!(locks.sites.iter().map(|site| site.longest_ns).max(), Some(locks.longest_ns), "{runtime}");
        assert!(locks.wait_ns <= snapshot.recorded_ns * 2, "{runtime}: {locks:?}");
    });
}

/// On a busy machine the sampler falls behind, and takes fewer samples in the same time; their shares are nevertheless those of the time.
#[test]
fn shares_are_by_time_when_sampler_is_late() {
    for runtime in runtimes::with("known") {
        let mut program = runtime.program("known").start();
        program.carry_out("slow 1 300");
        let place = folder();
        let file = place.path().join("a.nettrace");
        let recording = record_samples(&program, &file);
        let lines = program.carry_out("slow 6 2500");
        let spent: Vec<f64> =
            lines.iter().find_map(|line| line.strip_prefix("spent ")).unwrap().split(' ').map(|ms| ms.parse().unwrap()).collect();
        recording.interrupt();
        let report = Invocation::new(["report", file.to_str().unwrap(), "--inclusive", "-n", "1000", "--json"]).run().json();
        let of = |name: &str, field: &str| {
            let methods = report["methods"].as_array().unwrap();
            let method = methods.iter().find(|method| method["name"] == name).unwrap_or_else(|| panic!("{runtime}: no {name}: {report:#}"));
            method[field].as_f64().unwrap()
        };
        let names = ["Known.Alone(int)", "Known.Crowded(int)"];
        let share = |[a, b]: [f64; 2]| a / (a + b) * 100.0;
        let (truth, counted) = (share([spent[0], spent[1]]), share(names.map(|name| of(name, "total"))));
        let timed = share(names.map(|name| of(name, "total_ns")));
        assert!((timed - truth).abs() < 12.0, "{runtime}: {timed} % and not {truth} %; {counted} % by count");
        let sum: f64 = report["methods"].as_array().unwrap().iter().map(|method| method["self_ns"].as_f64().unwrap()).sum();
        assert!(sum <= report["time_ns"].as_f64().unwrap() * 1.000_001, "{report:#}");
    }
}

/// Records samples of all threads.
fn record_samples(program: &Program, file: &Path) -> Running {
    trace::start(program, file, &["--profile", "dotnet-sampled-thread-time"])
}

/// The runtime writes at most 100 frames of a stack: callers beyond that seem not to run.
#[test]
fn truncated_stacks_are_reported() {
    for runtime in runtimes::with("known") {
        let mut program = runtime.program("known").start();
        let place = folder();
        for (depth, is_cut) in [(50, false), (150, true)] {
            let file = place.path().join(format!("{depth}.nettrace"));
            let recording = record_samples(&program, &file);
            program.carry_out(&format!("deep {depth} 1500"));
            recording.interrupt();
            let words = ["report", file.to_str().unwrap(), "--inclusive", "-n", "1000"];
            let output = Invocation::new(words).run();
            assert_eq!(
                output.stderr.contains("the runtime cut off at 100 frames: TOTAL is too low"),
                is_cut,
                "{runtime}: {}",
                output.stderr
            );
            let report = Invocation::new([&words[..], &["--json"]].concat()).run().json();
            let cut = report["cut_stacks"].as_u64().unwrap();
            assert_eq!(cut > 100, is_cut, "{runtime}: {report:#}");
            let total = |name: &str| {
                let method = report["methods"].as_array().unwrap().iter().find(|method| method["name"] == name);
                method.map_or(0, |method| method["total"].as_u64().unwrap())
            };
            // Main is the caller, but is cut off.
            let (deep, main) = (total("Known.Deep(int, int)"), total("Known.Main()"));
            assert!(deep > 100 && (main + 50 < deep) == is_cut, "{runtime}: {deep} {main}");
        }
    }
}

/// Returns the contents of a file, as shown by `open`.
pub(crate) fn read(file: &Path) -> Arc<RecordingAnalysis> {
    dn_top::session::read_trace(file, None, |_| true).unwrap().unwrap().analysis
}

/// A provider that is requested both by a profile and explicitly is recorded with both selections merged, which is reported.
#[test]
fn a_profile_and_a_provider_are_merged() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let provider = "Microsoft-Windows-DotNETRuntime:exception:error";
        let recording = trace::start(&program, &file, &["--profile", "contention", "--provider", provider]);
        program.carry_out("contend 3");
        program.carry_out("throw 4");
        let output = recording.interrupt();
        assert!(output.stderr.contains(&format!("{provider} and profile contention are merged")), "{runtime}: {}", output.stderr);
        let snapshot = read(&file).snapshot.clone();
        // The runtime's own threads may wait for locks too.
        let ended = snapshot.contention.ended;
        assert!((3..9).contains(&ended) && snapshot.exceptions.thrown == 4, "{runtime}: {ended} {}", snapshot.exceptions.thrown);
    });
}

/// Runtime events named in the manifest, or in their payloads, are shown by name.
#[test]
fn events_of_the_runtime_have_names() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let providers = ["Microsoft-Windows-DotNETRuntimePrivate:0xffffffffffffffff:5", "Microsoft-Windows-DotNETRuntime:1:5"];
        let recording = trace::start(&program, &file, &["--provider", providers[0], "--provider", providers[1]]);
        program.carry_out("collect 2 2");
        program.carry_out("hold 1000");
        recording.interrupt();
        let stats = stats(&file);
        let counts = stats["counts"].as_array().unwrap();
        let named = |provider: &str| {
            let of = |count: &&serde_json::Value| count["provider"] == provider;
            counts
                .iter()
                .filter(of)
                .map(|count| count["name"].as_str().filter(|name| !name.is_empty()).unwrap_or_else(|| panic!("{count}")))
                .collect::<BTreeSet<_>>()
        };
        let private = named("Microsoft-Windows-DotNETRuntimePrivate");
        assert!(private.contains("PrvSetGCHandle"), "{runtime}: {private:?}");
        let runtime_events = named("Microsoft-Windows-DotNETRuntime");
        // 3.1 has no such events.
        let dynamic = runtime.major() > 3;
        assert_eq!(runtime_events.contains("GC/CommittedUsage"), dynamic, "{runtime}: {runtime_events:?}");
        assert!(!runtime_events.contains("GCDynamicEvent"), "{runtime}: {runtime_events:?}");
    });
}
