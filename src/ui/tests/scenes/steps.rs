//! The way to each state.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::analysis::{SampleCount, StackGroup, ThreadId};
use crate::app::tabs::Stacks;
use crate::app::test_app::{TestApp, fleet, metered, options, published, recording, walked_heap};
use crate::app::{Effect, JobResult, Msg, Options};
use crate::model::{
    Kept, KernelTrace, NoCpuTime, Outcome, PacketCounts, Phase, ProducerReport, Recording, RecordingAnalysis, SafeText, StoppedBy,
    ThreadUse,
};

use crate::ui::tests::analysis::{cpu_time, empty, scripted};

pub(super) fn keyed(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = TestApp::populated(width, height);
    app.press(keys);
    app
}

/// All are watched, and one of them stands for its collector.
pub(super) fn watching(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = keyed(width, height, "W");
    let well = published(61.4, 4.2e6, 1.3, 3.0, 0.0);
    app.publish(&[well.clone(), published(212.0, 31e6, 3.8, 120.0, 2.0), published(1_730.0, 912e6, 38.2, 0.0, 31.0), well]);
    app.press(keys);
    app
}

/// The selected process is watched, and sick in two ways.
pub(super) fn sick_overview(width: u16, height: u16) -> TestApp {
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
pub(super) fn live(width: u16, height: u16, keys: &str) -> TestApp {
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
pub(super) fn counting(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = keyed(width, height, "w⏎9");
    app.publish(&[metered()]);
    app.press(keys);
    app
}

/// Keywords are offered while a provider is typed.
pub(super) fn providers(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "O⇥");
    app.send(Msg::Paste("Microsoft-Windows-DotNETRuntime:g".to_owned()));
    app
}

/// Nothing is there that events in the kernel take.
pub(super) fn tracepoints_missing(width: u16, height: u16) -> TestApp {
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
pub(super) fn into_kernel(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = keyed(width, height, "⏎t");
    let kernel = Some(KernelTrace { tracepoints: vec!["all".to_owned(), "gc".to_owned()], session: Some("0x7f12c0a5e010".to_owned()) });
    let begun = Recording { kernel, file: PathBuf::new(), ..recording(1, 42, Phase::Recording) };
    app.send(Msg::Recording(Box::new(Recording { bytes: 0, events: 0, dropped: 0, history: Vec::new(), ..begun })));
    app.press(keys);
    app
}

pub(super) fn wrong_answers(width: u16, height: u16) -> TestApp {
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
pub(super) fn ran(width: u16, height: u16) -> TestApp {
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
pub(super) fn exporting(width: u16, height: u16) -> TestApp {
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
pub(super) fn close_port(width: u16, height: u16) -> TestApp {
    let mut app = TestApp::with(Options { port: Some("/tmp/dn-top.port".into()), ..options() }, width, height);
    let mut processes = fleet();
    processes.iter_mut().for_each(|process| process.on_port = process.contact.is_attachable());
    app.send(Msg::Processes(processes));
    app.press("P");
    app
}

/// The tracing service has two sessions, and does not take all of one.
pub(super) fn served(width: u16, height: u16) -> TestApp {
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

pub(super) fn flight(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let kept = Some(Kept { bytes: 38_000_000, span: Duration::from_secs(130) });
    app.send(Msg::Recording(Box::new(Recording { kept, ..recording(1, 432, Phase::Recording) })));
    app
}

pub(super) fn none(width: u16, height: u16) -> TestApp {
    let mut app = TestApp::with(Options { readonly: true, demo: true, ..options() }, width, height);
    app.send(Msg::Processes(Vec::new()));
    app
}

pub(super) fn environment(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "e");
    app.answer();
    app.press("↓↓↓↓↓v↑");
    app
}

pub(super) fn tracing(width: u16, height: u16, seconds: u64, phase: Phase) -> TestApp {
    let mut app = keyed(width, height, "⏎t");
    app.wait(1000);
    app.send(Msg::Recording(Box::new(recording(1, seconds, phase))));
    app
}

pub(super) fn analysed(width: u16, height: u16, keys: &str) -> TestApp {
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
pub(super) fn on_cpu(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let what = ["dotnet-common", "cpu"].map(str::to_owned).to_vec();
    let analysis = Some(Arc::new(RecordingAnalysis { cpu: Some(cpu_time()), ..empty().as_ref().clone() }));
    app.send(Msg::Recording(Box::new(Recording { analysis, what, ..recording(1, 42, Phase::Recording) })));
    app.press(keys);
    app
}

/// It should, and may not.
pub(super) fn thread_time(width: u16, height: u16) -> TestApp {
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
pub(super) fn quiet(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let mut analysis = (*scripted()).clone();
    analysis.snapshot.contention.count = 0;
    analysis.snapshot.thread_pool.recent.clear();
    let analysis = Some(Arc::new(analysis));
    app.send(Msg::Recording(Box::new(Recording { analysis, threads: threads(), ..recording(1, 42, Phase::Recording) })));
    app.press("6↓");
    app
}

/// The heap is being walked.
pub(super) fn walking(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "My⏎");
    if let Some(ticket) = app.last_ticket() {
        app.send(Msg::HeapProgress { ticket, objects: 812_000, bytes: 61_400_000 });
    }
    app
}

/// The heap was walked twice.
pub(super) fn heap(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = TestApp::populated(width, height);
    for walk in [1, 2] {
        app.press("My⏎");
        app.wait(20_000);
        if let Some(ticket) = app.last_ticket() {
            app.send(Msg::HeapWalked { ticket, result: Ok(walked_heap(walk)) });
        }
        app.wait(10_000);
    }
    app.press(keys);
    app
}

/// Every thread was sampled once: three wait for the same lock.
pub(super) fn stacks(width: u16, height: u16) -> TestApp {
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
pub(super) fn threads() -> Arc<[ThreadUse]> {
    let thread = |thread, name: &str, cpu| ThreadUse { thread, name: name.into(), cpu: Duration::from_millis(cpu), state: 'S' };
    [
        thread(11, ".NET TP Worker", 38_120),
        thread(12, ".NET TP Worker", 140),
        thread(13, "pricing", 40_900),
        thread(77, ".NET Finalizer", 3),
    ]
    .into()
}

pub(super) fn not_recorded(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 5, Phase::Recording);
    app.send(Msg::Recording(Box::new(Recording { analysis: Some(empty()), ..recording(1, 5, Phase::Recording) })));
    app.press("6");
    app
}

pub(super) fn nothing_yet(width: u16, height: u16) -> TestApp {
    keyed(width, height, "⏎t4")
}

/// A recording that is over can still be looked at.
pub(super) fn finished(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let file = Some(PathBuf::from("/srv/app/OrderService_4242_20261121_083021.nettrace"));
    let phase = Phase::Done(Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file, trouble: None });
    app.send(Msg::Recording(Box::new(Recording { analysis: Some(scripted()), ..recording(1, 43, phase) })));
    app.press("4");
    app
}

pub(super) fn done(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    let file = PathBuf::from("/srv/app/OrderService_4242_20261121_083021.nettrace");
    let outcome = Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: Some(file), trouble: None };
    app.send(Msg::Recording(Box::new(recording(1, 43, Phase::Done(outcome)))));
    app
}

pub(super) fn operations(width: u16, height: u16) -> TestApp {
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

pub(super) fn quit(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    app.press("⌃c");
    app
}

pub(super) fn finishing(width: u16, height: u16) -> TestApp {
    let mut app = quit(width, height);
    app.press("→⏎");
    app.send(Msg::Recording(Box::new(recording(1, 44, Phase::Stopping { since: Duration::from_secs(2), bytes: 1_310_000 }))));
    app.wait(1000);
    app.send(Msg::Processes(fleet()));
    app
}
