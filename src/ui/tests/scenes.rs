//! What the program looks like in its main states.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::analysis::{SampleCount, StackGroup, ThreadId};
use crate::app::tabs::Stacks;
use crate::app::test_app::{START_UNIX_MS, TestApp, fleet, metered, options, published, recording};
use crate::app::{Effect, JobResult, Msg, Options};
use crate::model::{
    FileContents, Kept, KernelTrace, NoCpuTime, Outcome, PacketCounts, Phase, ProducerReport, Recording, RecordingAnalysis, SafeText,
    StoppedBy, ThreadUse, TraceFile,
};

use super::analysis::{cpu_time, empty, scripted};

/// A scene's name, and how to get there in a terminal of some size.
type Scene = (&'static str, fn(u16, u16) -> TestApp);

/// All scenes.
pub(crate) const SCENES: [Scene; 84] = [
    ("first", |w, h| TestApp::new(w, h)),
    ("none", none),
    ("table", TestApp::populated),
    ("trouble", |w, h| keyed(w, h, "G")),
    ("denied", |w, h| keyed(w, h, "/node⏎")),
    ("container", |w, h| keyed(w, h, "/web⏎⏎")),
    ("filtered", |w, h| keyed(w, h, "/we␣!report")),
    ("environment", environment),
    ("starting", |w, h| keyed(w, h, "⏎t")),
    ("recording", |w, h| tracing(w, h, 42, Phase::Recording)),
    ("stopping", |w, h| tracing(w, h, 97, Phase::Stopping { since: Duration::from_secs(3), bytes: 1_310_000 })),
    ("done", done),
    ("operations", operations),
    ("export", |w, h| {
        let mut app = tracing(w, h, 42, Phase::Recording);
        app.press("E");
        app
    }),
    ("exporting", exporting),
    ("dump", |w, h| keyed(w, h, "d")),
    ("full-dump", |w, h| keyed(w, h, "d⇥→→y⏎")),
    ("perf-map", |w, h| keyed(w, h, "p⇤")),
    ("profiles", |w, h| keyed(w, h, "T↓↓␣")),
    ("trace-form", |w, h| keyed(w, h, "O")),
    ("tracepoints", |w, h| into_kernel(w, h, "O⇤⇤all␣gc=1,2")),
    ("tracepoints-missing", tracepoints_missing),
    ("kernel", |w, h| into_kernel(w, h, "3")),
    ("providers", providers),
    ("choose-provider", |w, h| keyed(w, h, "O⇥⌃p↓")),
    ("choose-keywords", |w, h| keyed(w, h, "O⇥⌃p⏎↓␣↓↓␣")),
    ("wrong-answers", wrong_answers),
    ("act", |w, h| keyed(w, h, "a↓↓↓↓")),
    ("set-variable", |w, h| keyed(w, h, "a↓↓↓↓⏎⇥NAME⇥")),
    ("run", |w, h| keyed(w, h, "aG⏎dotnet␣app.dll")),
    ("run-output", ran),
    ("port", |w, h| keyed(w, h, "P")),
    ("close-port", close_port),
    ("producer", |w, h| keyed(w, h, "K")),
    ("served", served),
    ("flight", flight),
    ("copy", |w, h| keyed(w, h, "y")),
    ("palette", |w, h| keyed(w, h, ":du")),
    ("help", |w, h| keyed(w, h, "?")),
    ("quit", quit),
    ("finishing", finishing),
    ("overview", |w, h| analysed(w, h, "")),
    ("gc", |w, h| analysed(w, h, "4↓↓")),
    ("exceptions", |w, h| analysed(w, h, "5↓")),
    ("threads", |w, h| analysed(w, h, "6")),
    ("quiet-threads", quiet),
    ("methods", |w, h| analysed(w, h, "7w↓")),
    ("tree", |w, h| analysed(w, h, "7wf")),
    ("flame", |w, h| analysed(w, h, "7wff↓↓")),
    ("zoomed", |w, h| analysed(w, h, "7ff↓↓→⏎↓/price")),
    ("cpu-methods", |w, h| on_cpu(w, h, "7↓")),
    ("cpu-tree", |w, h| on_cpu(w, h, "7f")),
    ("cpu-flame", |w, h| on_cpu(w, h, "7ff↓↓")),
    ("cpu-threads", |w, h| on_cpu(w, h, "7s↓")),
    ("thread-time", thread_time),
    ("sampled-threads", |w, h| analysed(w, h, "7s↓↓")),
    ("one-thread", |w, h| analysed(w, h, "7s↓↓⏎")),
    ("events", |w, h| analysed(w, h, "8/runtime␣gc")),
    ("single-events", |w, h| analysed(w, h, "8f↓")),
    ("open-event", |w, h| analysed(w, h, "8f/exception⏎⏎")),
    ("logs", |w, h| analysed(w, h, "9⇥⇥↓↓")),
    ("requests", |w, h| analysed(w, h, "9⇥")),
    ("compilation", |w, h| analysed(w, h, "9⇥⇥⇥↓")),
    ("assemblies", |w, h| analysed(w, h, "0⇤⇤⇤")),
    ("slow", |w, h| analysed(w, h, "0⇤⇤")),
    ("stacks", stacks),
    ("nothing-more", |w, h| {
        let mut app = not_recorded(w, h);
        app.press("0⇤⇤⇤");
        app
    }),
    ("not-recorded", not_recorded),
    ("idle-filter", |w, h| keyed(w, h, "⏎8/gc")),
    ("nothing-yet", nothing_yet),
    ("analysed", finished),
    ("watching", |w, h| watching(w, h, "")),
    ("sick-overview", sick_overview),
    ("live-gc", |w, h| live(w, h, "⏎4")),
    ("live-exceptions", |w, h| live(w, h, "⏎5")),
    ("live-threads", |w, h| live(w, h, "⏎6↓")),
    ("counters", |w, h| counting(w, h, "↓↓")),
    ("counters-folded", |w, h| counting(w, h, "⏎>")),
    ("not-watched", |w, h| keyed(w, h, "⏎9")),
    ("file", opened),
    ("file-part", |w, h| {
        let mut app = opened(w, h);
        app.press("{b{2");
        app
    }),
    ("files", |w, h| {
        let mut app = opened(w, h);
        app.press("qz");
        app
    }),
    ("sick", |w, h| watching(w, h, "/inventory⏎⏎")),
    // Of two that are recorded one is sick.
    ("sick-recorded", |w, h| watching(w, h, "t/inventory⏎t/⎋")),
];

fn keyed(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = TestApp::populated(width, height);
    app.press(keys);
    app
}

/// All are watched, and one of them stands for its collector.
fn watching(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = keyed(width, height, "W");
    let well = published(61.4, 4.2e6, 1.3, 3.0, 0.0);
    app.publish(&[well.clone(), published(212.0, 31e6, 3.8, 120.0, 2.0), published(1_730.0, 912e6, 38.2, 0.0, 31.0), well]);
    app.press(keys);
    app
}

/// A recorded file is open that was read: fifty seconds of it.
pub(crate) fn opened(width: u16, height: u16) -> TestApp {
    let path = PathBuf::from("/srv/traces/OrderService_4242.nettrace.partial");
    let file = TraceFile { path, bytes: 182_000_000, process_id: 4242, start_unix_ms: START_UNIX_MS };
    let mut app = TestApp::with(Options { files: vec![file], ..options() }, width, height);
    app.send(Msg::Tick);
    let Some(Effect::ReadFile { ticket, .. }) = app.take_effects().pop() else { unreachable!("it is read at once") };
    let contents = FileContents {
        analysis: scripted(),
        bytes: 182_000_000,
        end: 50_000_000_000,
        duration: Duration::from_secs(42),
        complete: false,
        trouble: Some("cut off: 311 bytes after the last whole block at byte 181999689".into()),
    };
    app.send(Msg::FileRead { ticket, result: Ok(contents) });
    app
}

/// The selected process is watched, and sick in two ways.
fn sick_overview(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "w");
    let mut counters = (*published(331.0, 212e6, 38.2, 120.0, 2.0)).clone();
    let [rate, gauge] = ["exception-count", "gc-heap-size"].map(|name| {
        let mut all = counters.counters.iter();
        all.find(|counter| counter.name == name).cloned().unwrap()
    });
    for (name, value) in [("gen-0-size", 12e6), ("gen-1-size", 31e6), ("gen-2-size", 160e6), ("loh-size", 82e6), ("poh-size", 1e6)] {
        let mut counter = gauge.clone();
        (counter.name, counter.unit, counter.value) = (name.to_owned(), "B".to_owned(), Some(value));
        for (second, (_, size)) in counter.history.iter_mut().enumerate() {
            *size = value * (0.5 + second as f64 / 82.0);
        }
        counters.counters.push(counter);
    }
    for (name, value) in [("gen-0-gc-count", 9.0), ("gen-1-gc-count", 4.0), ("gen-2-gc-count", 1.0), ("monitor-lock-contention-count", 3.0)]
    {
        let mut counter = rate.clone();
        (counter.name, counter.rate) = (name.to_owned(), Some(value));
        counter.history.iter_mut().for_each(|(_, rate)| *rate = value);
        counters.counters.push(counter);
    }
    let counters = Arc::new(counters);
    for _ in 0..2 {
        app.publish(std::slice::from_ref(&counters));
        app.wait(21_000);
    }
    app
}

/// The same in a tab, of a process that is not recorded.
fn live(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = sick_overview(width, height);
    app.press(keys);
    for look in [1, 2] {
        let threads = threads().iter().map(|thread| ThreadUse { cpu: thread.cpu * look / 2, ..thread.clone() }).collect::<Vec<_>>();
        let asked = app.effects.iter().rev().find_map(|effect| match effect {
            Effect::ListThreads { ticket, .. } => Some(*ticket),
            _ => None,
        });
        if let Some(ticket) = asked {
            app.wait(60_000);
            app.send(Msg::Threads { ticket, threads });
            app.send(Msg::Processes(fleet()));
        }
    }
    app
}

/// The selected process is watched, with its meters.
fn counting(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = keyed(width, height, "w⏎9");
    app.publish(&[metered()]);
    app.press(keys);
    app
}

/// Keywords are offered while a provider is typed.
fn providers(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "O⇥");
    app.send(Msg::Paste("Microsoft-Windows-DotNETRuntime:g".to_owned()));
    app
}

/// Nothing is there that events in the kernel take.
fn tracepoints_missing(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "O⇤⇤");
    let missing = [
        "the kernel has none: it takes Linux 6.4 or newer, built with CONFIG_USER_EVENTS",
        "tracefs is not mounted: run `mount -t tracefs tracefs /sys/kernel/tracing` as root",
        "this user may not register events: run dn-top with sudo",
        "the runtime is too old: it needs .NET 10",
    ];
    let key = recording(1, 0, Phase::Starting).key;
    app.send(Msg::TracepointsMissing { key, missing: missing.map(Into::into).to_vec() });
    app
}

/// Events of the selected process go to tracepoints.
fn into_kernel(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = keyed(width, height, "⏎t");
    let kernel = Some(KernelTrace { tracepoints: vec!["all".to_owned(), "gc".to_owned()], session: Some("0x7f12c0a5e010".to_owned()) });
    let begun = Recording { kernel, file: PathBuf::new(), ..recording(1, 42, Phase::Recording) };
    app.send(Msg::Recording(Box::new(Recording { bytes: 0, events: 0, dropped: 0, history: Vec::new(), ..begun })));
    app.press(keys);
    app
}

fn wrong_answers(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "O");
    for answer in ["gc-verbos", "", "", "lots", "0xzz", "soon"] {
        app.press("⌃u");
        app.send(Msg::Paste(answer.to_owned()));
        app.press("⇥");
    }
    app.press("⇤⇤⇤");
    app
}

/// A program was started, wrote something, and ended.
fn ran(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "aG⏎dotnet␣app.dll⇥⇥⇥y");
    // In a terminal that is too small nothing is.
    let Some(ticket) = app.last_ticket() else { return app };
    let error =
        "Unhandled exception. System.InvalidOperationException: Sequence contains no matching element, whatever was looked for in it";
    let mut lines: Vec<SafeText> = (1..=40).map(|order| format!("order {order} is done").into()).collect();
    lines.extend([error, "   at Shop.Orders.Find(Int32 id)", "   at Shop.Program.Main()"].map(SafeText::new));
    app.send(Msg::Wrote { ticket, lines: lines.into() });
    app.wait(3000);
    app.send(Msg::JobDone { ticket, result: Ok(JobResult { note: Some("It ended with 134".into()), ..JobResult::default() }) });
    app.wait(10_000);
    app
}

/// A recording is exported while it goes on.
fn exporting(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    app.press("E→⏎");
    if let Some(ticket) = app.last_ticket() {
        app.send(Msg::JobProgress { ticket, percent: 45 });
    }
    app.wait(10_000);
    app.press("0");
    app
}

/// A port is served, and is to be no longer.
fn close_port(width: u16, height: u16) -> TestApp {
    let mut app = TestApp::with(Options { port: Some("/tmp/dn-top.port".into()), ..options() }, width, height);
    let mut processes = fleet();
    processes.iter_mut().for_each(|process| process.on_port = process.contact.is_attachable());
    app.send(Msg::Processes(processes));
    app.press("P");
    app
}

/// The tracing service has two sessions, and does not take all of one.
fn served(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "F⇥⇥→⏎");
    if let Some(ticket) = app.last_ticket() {
        let mut report = |report| app.send(Msg::Producer { ticket, report });
        report(ProducerReport::Connected("/run/perfetto/traced-producer.sock".into()));
        let processes = || vec!["OrderService (42)".into(), "WebGateway (97)".into()];
        report(ProducerReport::Started {
            instance: 1,
            processes: processes(),
            troubles: vec!["LegacyBilling (101) is suspended at startup".into()],
        });
        report(ProducerReport::Started { instance: 2, processes: processes(), troubles: Vec::new() });
        report(ProducerReport::Progress { instance: 1, packets: PacketCounts { packets: 123_456, bytes: 7_100_000, dropped: 789 } });
        report(ProducerReport::Progress { instance: 2, packets: PacketCounts { packets: 456, bytes: 9_100, dropped: 0 } });
    }
    app.wait(20_000);
    app.press("K");
    app
}

fn flight(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let kept = Some(Kept { bytes: 38_000_000, span: Duration::from_secs(130) });
    app.send(Msg::Recording(Box::new(Recording { kept, ..recording(1, 432, Phase::Recording) })));
    app
}

fn none(width: u16, height: u16) -> TestApp {
    let mut app = TestApp::with(Options { readonly: true, demo: true, ..options() }, width, height);
    app.send(Msg::Processes(Vec::new()));
    app
}

fn environment(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "e");
    app.answer();
    app.press("↓↓↓↓↓v↑");
    app
}

fn tracing(width: u16, height: u16, seconds: u64, phase: Phase) -> TestApp {
    let mut app = keyed(width, height, "⏎t");
    app.wait(1000);
    app.send(Msg::Recording(Box::new(recording(1, seconds, phase))));
    app
}

fn analysed(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let what = ["dotnet-common", "dotnet-sampled-thread-time", "gc-verbose", "contention"].map(str::to_owned).to_vec();
    app.send(Msg::Recording(Box::new(Recording {
        analysis: Some(scripted()),
        what,
        threads: threads(),
        ..recording(1, 42, Phase::Recording)
    })));
    app.press(keys);
    app
}

/// The kernel samples the process.
fn on_cpu(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let what = ["dotnet-common", "cpu"].map(str::to_owned).to_vec();
    let analysis = Some(Arc::new(RecordingAnalysis { cpu: Some(cpu_time()), ..empty().as_ref().clone() }));
    app.send(Msg::Recording(Box::new(Recording { analysis, what, ..recording(1, 42, Phase::Recording) })));
    app.press(keys);
    app
}

/// It should, and may not.
fn thread_time(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let what = ["dotnet-common", "cpu"].map(str::to_owned).to_vec();
    let no_cpu = "process 4242 cannot be sampled: the kernel denies perf events to users without CAP_PERFMON (kernel.perf_event_paranoid is 3); run dn-top \
                  with sudo, or `sudo sysctl kernel.perf_event_paranoid=2`";
    let remedy = "`sudo sysctl kernel.perf_event_paranoid=2`, or run dn-top with sudo".into();
    let no_cpu = Some(NoCpuTime { why: no_cpu.into(), remedy });
    app.send(Msg::Recording(Box::new(Recording { analysis: Some(scripted()), what, no_cpu, ..recording(1, 42, Phase::Recording) })));
    app.press("7");
    app
}

/// Threads were sampled, and no wait for a lock was seen.
fn quiet(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let mut analysis = (*scripted()).clone();
    analysis.snapshot.contention.count = 0;
    analysis.snapshot.thread_pool.recent.clear();
    let analysis = Some(Arc::new(analysis));
    app.send(Msg::Recording(Box::new(Recording { analysis, threads: threads(), ..recording(1, 42, Phase::Recording) })));
    app.press("6↓");
    app
}

/// Every thread was sampled once: three wait for the same lock.
fn stacks(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "D");
    // Where there is no room to show it, nothing is asked.
    let Some(Effect::SampleStacks { ticket, .. }) = app.take_effects().pop() else { return app };
    let group = |frames: &[&str], waiting, threads: &[u64]| StackGroup {
        frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
        samples: SampleCount { waiting, running: threads.len() as u64 - waiting, ..SampleCount::default() },
        threads: threads.iter().map(|thread| (ThreadId::of(*thread), 1)).collect(),
    };
    let order = ["Shop.Pricing.PriceEngine.PriceBasket", "Shop.Api.OrdersController.Create", "System.Threading.Thread.StartCallback"];
    let locked = ["System.Threading.Monitor.Enter_Slowpath", order[0], order[1], order[2]];
    let groups = vec![group(&locked, 3, &[11, 12, 15]), group(&order, 0, &[13]), group(&[], 0, &[4242])];
    let names = vec![(11, ".NET TP Worker".into()), (12, ".NET TP Worker".into()), (13, "pricing".into())];
    app.send(Msg::Stacks { ticket, result: Ok(Arc::new(Stacks { groups, names, trouble: None })) });
    app
}

/// What /proc says of the threads of the made-up session.
fn threads() -> Arc<[ThreadUse]> {
    let thread = |thread, name: &str, cpu| ThreadUse { thread, name: name.into(), cpu: Duration::from_millis(cpu), state: 'S' };
    [
        thread(11, ".NET TP Worker", 38_120),
        thread(12, ".NET TP Worker", 140),
        thread(13, "pricing", 40_900),
        thread(77, ".NET Finalizer", 3),
    ]
    .into()
}

fn not_recorded(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 5, Phase::Recording);
    app.send(Msg::Recording(Box::new(Recording { analysis: Some(empty()), ..recording(1, 5, Phase::Recording) })));
    app.press("6");
    app
}

fn nothing_yet(width: u16, height: u16) -> TestApp {
    keyed(width, height, "⏎t4")
}

/// A recording that is over can still be looked at.
fn finished(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let file = Some(PathBuf::from("/srv/app/OrderService_4242_20261121_083021.nettrace"));
    let phase = Phase::Done(Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file, trouble: None });
    app.send(Msg::Recording(Box::new(Recording { analysis: Some(scripted()), ..recording(1, 43, phase) })));
    app.press("4");
    app
}

fn done(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let file = PathBuf::from("/srv/app/OrderService_4242_20261121_083021.nettrace");
    let outcome = Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: Some(file), trouble: None };
    app.send(Msg::Recording(Box::new(recording(1, 43, Phase::Done(outcome)))));
    app
}

fn operations(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let files = vec!["/tmp/OrderService_4242_20261121_083024.dmp".into()];
    let reason = "The runtime answered 0x80004005 (E_FAIL): it could not open the file. Check that its temporary directory is writable.";
    for (keys, result) in [("dy⏎", Ok(JobResult { files, bytes: Some(412_000_000), note: None })), ("p→y⏎", Err(reason))] {
        app.wait(2000);
        app.press(keys);
        app.wait(1000);
        if let Some(ticket) = app.last_ticket() {
            app.send(Msg::job_done(ticket, result));
        }
    }
    app.wait(60_000);
    app.press("dy⏎ 0");
    app.wait(3000);
    app
}

fn quit(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    app.press("⌃c");
    app
}

fn finishing(width: u16, height: u16) -> TestApp {
    let mut app = quit(width, height);
    app.press("→⏎");
    app.send(Msg::Recording(Box::new(recording(1, 44, Phase::Stopping { since: Duration::from_secs(2), bytes: 1_310_000 }))));
    app.wait(1000);
    app.send(Msg::Processes(fleet()));
    app
}
