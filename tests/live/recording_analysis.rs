//! The dashboard's analysis of a recording matches its file, and the program's behavior.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dn_top::analysis::{Live, Profile, SampleFilter};
use dn_top::app::{Finding, Tab, findings};
use dn_top::clr::select;
use dn_top::diagnosis::Thresholds;
use dn_top::ipc::{BufferMb, SessionConfig};
use dn_top::model::{Phase, Recording, RecordingAnalysis};
use dn_top::net::client::Client;
use dn_top::nettrace::{Decoder, Limits};
use dn_top::session::{Plan, Recorder};
use serde_json::{Value, json};

use crate::analysis::process;
use crate::support::{Program, TIMEOUT, folder, poll, runtimes};
use crate::trace::stats;

/// Collections, loads, compilation, contention, exceptions, threads, tiers; and samples.
const EVERYTHING: [&str; 2] = ["Microsoft-Windows-DotNETRuntime:0x100000c019:5", "Microsoft-DotNETCore-SampleProfiler:0:4"];

/// Makes a recording with all analyses while `act` runs.
pub(crate) async fn record(
    program: &mut Program,
    config: SessionConfig,
    file: &Path,
    act: impl FnOnce(&mut Program, &dyn Fn() -> Recording),
) -> Recording {
    let (process, client) = process(program).await;
    let plan = Plan { analyzed: true, ..Plan::new(process.key, process.name, config, file.to_owned()) };
    let recorder = Recorder::start(Client::clone(&client), plan).await.unwrap();
    let progress = recorder.progress();
    let look = || progress.borrow().clone();
    // The runtime sends the header, and delivers events to the session before it handles the next request.
    assert!(poll(TIMEOUT, || (look().bytes > 0).then_some(())).is_some(), "nothing comes");
    assert!(program.answers());
    tokio::task::block_in_place(|| act(program, &look));
    recorder.stop();
    let recording = recorder.finished().await;
    assert!(matches!(&recording.phase, Phase::Done(outcome) if outcome.complete && outcome.trouble.is_none()), "{recording:?}");
    recording
}

/// Runs all analyses on a file.
fn read(file: &Path) -> Live {
    let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default());
    decoder.feed(&fs::read(file).unwrap(), &mut live).unwrap();
    assert!(decoder.finish(&mut live).is_complete());
    live
}

/// Panics unless the file matches its live analysis: in the totals, by event, and in every analysis.
fn assert_same(file: &Path, recording: &Recording, analysis: &RecordingAnalysis, runtime: &str) {
    let stats = stats(file);
    let totals = analysis.snapshot.totals;
    let shown = json!([recording.bytes, totals.events, totals.dropped, totals.stacks, totals.threads, totals.sequence_points]);
    let reported = ["bytes", "events", "dropped", "stacks", "threads", "sequence_points"].map(|name| stats[name].clone());
    assert_eq!(shown, json!(reported), "{runtime}");
    assert_eq!(recording.events, totals.events, "{runtime}");
    let mut shown: Vec<Value> =
        analysis.events.iter().map(|rate| json!([rate.event.provider, rate.event.event_id, rate.event.name, rate.event.count])).collect();
    let counts = stats["counts"].as_array().unwrap();
    let mut reported: Vec<Value> =
        counts.iter().map(|count| json!([count["provider"], count["id"], count["name"], count["count"]])).collect();
    shown.sort_by_key(Value::to_string);
    reported.sort_by_key(Value::to_string);
    assert_eq!(shown, reported, "{runtime}");

    let live = read(file);
    assert_eq!(totals.dropped_at_start + totals.dropped + totals.problems + analysis.snapshot.unreadable, 0, "{runtime}: {totals:?}");
    assert_eq!(format!("{:#?}", analysis.snapshot), format!("{:#?}", live.snapshot(live.newest())), "{runtime}");
    assert_eq!(sampled(&analysis.profile), sampled(&live.profile()), "{runtime}");
}

/// Returns all sample counts. They are not split into CPU time and waiting, which is only possible for a live process.
fn sampled(profile: &Profile) -> Vec<String> {
    let threads =
        profile.newest().map(|(thread, at, frame)| (SampleFilter { thread: Some(thread), ..SampleFilter::ALL }, at, frame.name.as_str()));
    let of_thread = |(filter, at, top): (SampleFilter, i64, &str)| {
        let counts = profile.count(filter);
        let tree = counts.call_tree(|samples| samples.all_ns(), usize::MAX);
        let nodes = tree.iter().map(|node| {
            let [own, total] = [node.own, node.total].map(|samples| (samples.all(), samples.all_ns()));
            format!("{:?} {} {} {own:?} {total:?}", filter.thread, node.depth, node.name)
        });
        let mut lines: Vec<_> = nodes.collect();
        // Frames with the same time may be in any order.
        lines.sort_unstable();
        lines.push(format!("{:?} {at} {top}", filter.thread));
        lines
    };
    let whole = format!("{:?} {}", profile.interval_ns, profile.without_stack);
    threads.chain([(SampleFilter::ALL, 0, "")]).flat_map(of_thread).chain([whole]).collect()
}

/// Returns the number of these events of the runtime.
fn count(analysis: &RecordingAnalysis, name: &str) -> u64 {
    let of = |rate: &&dn_top::model::EventRate| rate.event.provider == "Microsoft-Windows-DotNETRuntime" && rate.event.name == name;
    analysis.events.iter().filter(of).map(|rate| rate.event.count).sum()
}

#[test]
fn live_analysis_matches_file() {
    runtimes::each_async(runtimes::all(), async |runtime| {
        let name = runtime.to_string();
        let mut program = runtime.any().start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let recording = record(&mut program, select(&[] as &[&str], &EVERYTHING, None).unwrap().config, &file, |_, look| {
            assert!(poll(TIMEOUT, || (look().events > 5000).then_some(())).is_some(), "{name}: {:?}", look());
        })
        .await;
        let analysis: Arc<RecordingAnalysis> = recording.analysis.clone().unwrap();
        assert!(analysis.profile.count(SampleFilter::ALL).samples().all() > 0, "{name}");
        assert_same(&file, &recording, &analysis, &name);
        assert!(program.is_alive() && program.answers(), "{name}");
    });
}

#[test]
fn live_analysis_matches_program_activity() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        let name = runtime.to_string();
        let mut program = runtime.program("known").start();
        // Lets the program load what it needs to handle a command.
        program.carry_out("throw 1");
        let place = folder();
        let file = place.path().join("a.nettrace");
        let recording = record(&mut program, select(&[] as &[&str], &EVERYTHING, None).unwrap().config, &file, |program, _| {
            for command in ["throw 25", "collect 4 2", "collect 3 1", "contend 7"] {
                program.carry_out(command);
            }
        })
        .await;
        let analysis: Arc<RecordingAnalysis> = recording.analysis.clone().unwrap();
        let snapshot = &analysis.snapshot;
        assert_eq!((count(&analysis, "ExceptionThrown"), snapshot.exceptions.thrown), (25, 25), "{name}");
        let induced = |generation| {
            let is = |collection: &&dn_top::analysis::Collection| collection.generation == generation && collection.reason.is_induced();
            snapshot.gc.recent.iter().filter(is).count()
        };
        assert_eq!([induced(1), induced(2)], [3, 4], "{name}");
        assert_eq!(count(&analysis, "GCStart"), snapshot.gc.collections.iter().sum::<u64>(), "{name}");
        let site = snapshot.contention.sites.iter().find(|site| site.method.contains("Known.Contend.lambda_")).unwrap();
        assert_eq!(site.count, 7, "{name}");
        assert_same(&file, &recording, &analysis, &name);
    });
}

/// Locks and the thread pool.
const THREADS: &str = "Microsoft-Windows-DotNETRuntime:0x14000:4";
const FLOOD: &str = "DnTop-Known";

/// Returns the findings in a recording as it stands.
fn found(recording: &Recording) -> Vec<Finding> {
    recording.analysis.as_ref().map(|analysis| findings(&analysis.snapshot, false, &Thresholds::default())).unwrap_or_default()
}

/// Each problem is caused in a real program, and found while it lasts; a healthy program has no findings.
#[test]
fn problems_are_found_while_they_last() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        // Since .NET 6, the pool adds threads when pool threads wait for tasks, instead of starving.
        let held_up = if runtime.major() == 3 { "thread pool starved " } else { "pool threads wait for tasks" };
        for (command, tab, says) in [
            ("convoy 10 2000", Tab::Threads, "threads at a time wait for locks"),
            ("occupy 6 2000", Tab::Threads, "thread pool starved "),
            ("await 10", Tab::Threads, held_up),
            ("flood 40000", Tab::Trace, "events lost"),
        ] {
            let mut program = runtime.program("known").start();
            let place = folder();
            let file = place.path().join("a.nettrace");
            let config = select(&[] as &[&str], &[THREADS, FLOOD], None).unwrap().config;
            let config = SessionConfig { buffer: BufferMb::new(1).unwrap(), ..config };
            record(&mut program, config, &file, |program, look| {
                program.carry_out("contend 2");
                assert!(poll(TIMEOUT, || look().analysis.filter(|analysis| analysis.snapshot.contention.ended >= 2)).is_some());
                assert_eq!(found(&look()), [], "{runtime}: it is well");
                let seen = poll(TIMEOUT, || {
                    program.carry_out(command);
                    found(&look()).into_iter().find(|finding| finding.text.contains(says))
                });
                let seen = seen.unwrap_or_else(|| panic!("{runtime}, {command}: {:?}", found(&look())));
                assert!(seen.tab == tab && !seen.why.is_empty(), "{runtime}: {seen:?}");
            })
            .await;
        }
    });
}

/// Database commands: counted by their text.
#[test]
fn database_commands_are_counted_by_text() {
    runtimes::each_async(runtimes::with("store"), async |runtime| {
        let mut program = runtime.program("store").start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let config = select(&["database"], &[] as &[&str], None).unwrap().config;
        let recording = record(&mut program, config, &file, |program, _| {
            program.carry_out("sql 7 2 SELECT * FROM Orders WHERE Id = ?");
            program.carry_out("ef 5 2 UPDATE Stock SET Count = @n");
        })
        .await;
        let analysis = recording.analysis.unwrap();
        let reported = analysis.snapshot.activities.operations.iter().map(|operation| {
            let subject = operation.subjects.first().map(|subject| (subject.text.as_str(), subject.count));
            (operation.name.as_str(), operation.started, operation.ended, subject)
        });
        assert_eq!(
            reported.collect::<Vec<_>>(),
            [
                ("SqlClientDiagnosticListener", 7, 7, Some(("SELECT * FROM Orders WHERE Id = ?", 7))),
                ("Microsoft.EntityFrameworkCore", 5, 5, Some(("UPDATE Stock SET Count = @n", 5))),
            ]
        );
        // The minimum duration of a command.
        assert!(analysis.snapshot.activities.operations.iter().all(|operation| operation.mean_ns >= Some(2e6)));
    });
}
