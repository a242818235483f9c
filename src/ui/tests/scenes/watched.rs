//! Watched processes.

use std::sync::Arc;

use crate::analysis::CounterSnapshot;
use crate::app::test_app::{TestApp, metered, published, sample_processes};
use crate::app::{Effect, Msg};
use crate::model::ThreadUse;

use super::keyed;
use super::recorded::threads;

/// All are watched, and one of them spends much time in GC.
pub(super) fn watching(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = keyed(width, height, "W");
    let healthy = published(61.4, 4.2e6, 1.3, 3.0, 0.0);
    app.publish(&[healthy.clone(), published(212.0, 31e6, 3.8, 120.0, 2.0), published(1_730.0, 912e6, 38.2, 0.0, 31.0), healthy]);
    app.press(keys);
    app
}

/// The selected process is watched, and has two problems.
pub(super) fn overview_with_findings(width: u16, height: u16) -> TestApp {
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
    let jit = [("methods-jitted-count", 4_511.0), ("il-bytes-jitted", 476_000.0)];
    counters.counters.extend(jit.map(|(name, value)| CounterSnapshot {
        unit: String::new(),
        name: name.to_owned(),
        value: Some(value),
        ..gauge.clone()
    }));
    for (name, value) in [
        ("time-in-jit", 45.0),
        ("gen-0-gc-count", 9.0),
        ("gen-1-gc-count", 4.0),
        ("gen-2-gc-count", 1.0),
        ("monitor-lock-contention-count", 3.0),
    ] {
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

/// The same process in a tab, without a recording.
pub(super) fn live(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = overview_with_findings(width, height);
    app.press(keys);
    list_threads(&mut app);
    app
}

/// Its assemblies, from /proc.
pub(super) fn mapped(width: u16, height: u16) -> TestApp {
    let mut app = live(width, height, "⏎9⇥⇥⇥⇥");
    let ticket = app.effects.iter().rev().find_map(|effect| match effect {
        Effect::ListAssemblies { ticket, .. } => Some(*ticket),
        _ => None,
    });
    let paths = ["/srv/OrderService/OrderService.dll", "/usr/share/dotnet/shared/Microsoft.NETCore.App/9.0.7/System.Private.CoreLib.dll"];
    if let Some(ticket) = ticket {
        app.send(Msg::Assemblies { ticket, paths: paths.map(Into::into).to_vec() });
    }
    app
}

/// Answers two requests for the threads.
pub(super) fn list_threads(app: &mut TestApp) {
    for look in [1, 2] {
        let threads = threads().iter().map(|thread| ThreadUse { cpu: thread.cpu * look / 2, ..thread.clone() }).collect::<Vec<_>>();
        let asked = app.effects.iter().rev().find_map(|effect| match effect {
            Effect::ListThreads { ticket, .. } => Some(*ticket),
            _ => None,
        });
        if let Some(ticket) = asked {
            app.wait(60_000);
            app.send(Msg::Threads { ticket, threads });
            app.send(Msg::Processes(sample_processes()));
        }
    }
}

/// The selected process is watched, with its meters.
pub(super) fn counting(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = keyed(width, height, "w⏎9");
    app.publish(&[metered()]);
    app.press(keys);
    app
}
