//! The overview of a process without findings.

use std::time::Duration;

use crate::app::Msg;
use crate::app::tabs::Role;
use crate::app::test_app::{TestApp, process, published, sample_processes};
use crate::model::{CpuUse, ProcessUse};

#[test]
fn overview_separates_the_state_from_findings() {
    let (mut app, ticket) = TestApp::watching();
    app.count(ticket, published(61.0, 4e6, 38.0, 0.0, 0.0));
    let state = app.state.overview().unwrap().facts.into_iter().find(|fact| fact.label == "State").unwrap();
    assert_eq!((app.state.selected().unwrap().word(), state.value.as_str(), state.role), ("GC time", "running", Role::Good));
    assert_eq!(app.state.advice_without_findings(), ["F: find out why it is slow", "D: what every thread is doing"]);
}

/// A deadlock that began before the watch leaves no other sign.
#[test]
fn process_that_uses_no_cpu_is_idle() {
    for (percent, scans, is_idle) in [(0.0, 5, true), (0.0, 4, false), (0.9, 9, true), (1.0, 9, false)] {
        let mut app = TestApp::new(120, 40);
        for _ in 0..scans {
            let mut process = process(7, "Shop");
            process.usage.cpu_percent = Some(percent);
            app.wait(1_000);
            app.send(Msg::Processes(vec![process]));
        }
        assert_eq!(app.state.is_idle(), is_idle, "{percent} {scans}");
        let idle = ["D: what threads wait for", "M: async methods"];
        assert_eq!(app.state.advice_without_findings() == idle, is_idle, "{percent} {scans}");
    }
}

/// On a busy machine, a process that has work uses little CPU as well.
#[test]
fn process_that_waits_for_a_cpu_is_not_idle() {
    for (runnable_ms, is_idle) in [(0, true), (400, true), (600, false)] {
        let (mut app, ticket) = TestApp::watching();
        for _ in 0..5 {
            let mut processes = sample_processes();
            processes.iter_mut().for_each(|process| process.usage.cpu_percent = Some(0.1));
            app.wait(1_000);
            app.send(Msg::Processes(processes));
        }
        assert!(app.state.is_idle(), "whether it waits is not known yet");
        let (span, runnable) = (Duration::from_secs(5), Some(Duration::from_millis(runnable_ms)));
        let cpu = Some(CpuUse { span, cpu: Some(Duration::from_millis(5)), runnable, ..CpuUse::default() });
        let usage = Box::new(ProcessUse { cpu, ..ProcessUse::default() });
        app.send(Msg::WatchReport { ticket, counters: published(61.0, 4e6, 1.0, 0.0, 0.0), usage });
        assert_eq!(app.state.is_idle(), is_idle, "{runnable_ms}");
    }
}
