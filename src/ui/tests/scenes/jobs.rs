//! Long-running jobs other than recordings.

use std::sync::Arc;

use foldhash::HashMap;

use crate::analysis::{SampleCount, StackGroup, ThreadId};
use crate::app::tabs::Stacks;
use crate::app::test_app::{TestApp, walked_heap};
use crate::app::{Effect, JobResult, Msg};
use crate::model::{PacketCounts, Phase, ProducerReport, SafeText};

use super::keyed;
use super::recorded::tracing;

/// A program was started, wrote output, and exited.
pub(super) fn ran(width: u16, height: u16) -> TestApp {
    let mut app = keyed(width, height, "aG⏎dotnet␣app.dll⇥⇥⇥y");
    // In a terminal that is too small, it is not started.
    let Some(ticket) = app.last_ticket() else { return app };
    let error =
        "Unhandled exception. System.InvalidOperationException: Sequence contains no matching element, whatever was looked for in it";
    let mut lines: Vec<SafeText> = (1..=40).map(|order| format!("order {order} is done").into()).collect();
    lines.extend([error, "   at Shop.Orders.Find(Int32 id)", "   at Shop.Program.Main()"].map(SafeText::new));
    app.send(Msg::ProgramOutput { ticket, lines: lines.into() });
    app.wait(3000);
    app.send(Msg::JobDone { ticket, result: Ok(JobResult { note: Some("It exited with 134".into()), ..JobResult::default() }) });
    app.wait(10_000);
    app
}

/// A recording is exported while it is running.
pub(super) fn exporting(width: u16, height: u16) -> TestApp {
    let mut app = tracing(width, height, 42, Phase::Recording);
    app.press("E→⌃⏎");
    // In a terminal that is too small, keys have no effect.
    if let Some(ticket) = app.last_ticket() {
        app.send(Msg::JobProgress { ticket, percent: 45 });
    }
    app.wait(10_000);
    app.press("0");
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

/// The tracing service has two sessions, and does not accept all packets of one.
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
    // In a terminal that is too small, nothing is requested.
    let Some(Effect::SampleStacks { ticket, .. }) = app.take_effects().pop() else { return app };
    let group = |frames: &[&str], waiting, threads: &[u64]| StackGroup {
        frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
        samples: SampleCount { waiting, running: threads.len() as u64 - waiting, ..SampleCount::default() },
        threads: threads.iter().map(|thread| (ThreadId::of(*thread), 1)).collect(),
        ..StackGroup::default()
    };
    let order = ["Shop.Pricing.PriceEngine.PriceBasket", "Shop.Api.OrdersController.Create", "System.Threading.Thread.StartCallback"];
    let locked = ["System.Threading.Monitor.Enter_Slowpath", order[0], order[1], order[2]];
    let groups = vec![group(&locked, 3, &[11, 12, 15]), group(&order, 0, &[13]), group(&[], 0, &[4242])];
    let names = vec![(11, ".NET TP Worker".into()), (12, ".NET TP Worker".into()), (13, "pricing".into())];
    let waits = HashMap::from_iter([(13, "io")]);
    app.send(Msg::Stacks { ticket, result: Ok(Arc::new(Stacks { groups, names, waits, trouble: None })) });
    app
}
