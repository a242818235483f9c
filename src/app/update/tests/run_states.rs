//! Processes that are stopped, suspended at startup, or have ended.

use crate::app::test_app::{START_UNIX_MS, TestApp, process, published, recording, sample_processes};
use crate::app::{Msg, Tab};
use crate::model::{Contact, Phase, Process, Recording, RunState, Stopper, Trouble};

pub(super) fn notice(app: &TestApp) -> String {
    app.state.overview().unwrap().notice.map(|(text, _)| text).unwrap_or_default()
}

#[test]
fn process_that_is_killed_while_stopped_is_no_longer_stopped() {
    let mut app = TestApp::populated(120, 40);
    let stopped = |mut process: Process| {
        process.usage.stopper = Some(Stopper::Signal);
        process
    };
    app.send(Msg::Processes(sample_processes().into_iter().map(stopped).collect()));
    app.press("⏎");
    assert!(app.state.selected().unwrap().stopper().is_some());
    app.send(Msg::Processes(sample_processes().into_iter().skip(1).map(stopped).collect()));
    assert_eq!((app.state.selected().unwrap().word(), app.state.selected().unwrap().stopper()), ("ended", None));
}

/// Its runtime does not answer, which is not the cause.
#[test]
fn a_narrow_table_names_what_has_stopped_a_process() {
    let mut app = TestApp::populated(80, 24);
    let key = app.state.list.selected().unwrap();
    let mut processes = sample_processes();
    for process in processes.iter_mut().filter(|process| process.key == key) {
        process.usage.stopper = Some(Stopper::Signal);
        process.contact = Contact::Trouble { kind: Trouble::Slow, reason: "no answer within 5 s".into() };
    }
    app.send(Msg::Processes(processes));
    let screen = crate::ui::tests::screen(&app.state);
    assert!(screen.contains("no thread runs: a signal has stopped it") && !screen.contains("no answer within 5 s"), "{screen}");
}

/// It would otherwise look like a healthy process that does nothing.
#[test]
fn stopped_process_is_shown_as_stopped() {
    let (mut app, ticket) = TestApp::watching();
    let key = app.state.list.selected().unwrap();
    app.count(ticket, published(61.0, 4e6, 38.0, 0.0, 0.0));
    assert_eq!((app.state.selected().unwrap().word(), app.state.overview().unwrap().is_watched), ("GC time", true));
    let mut processes = sample_processes();
    for process in processes.iter_mut().filter(|process| process.key == key) {
        process.usage.stopper = Some(Stopper::Signal);
    }
    app.send(Msg::Processes(processes.clone()));
    assert_eq!(app.state.selected().unwrap().word(), "stopped");
    assert_eq!(notice(&app), "Stopped by a signal: no thread runs, and its runtime does not answer. kill -CONT 4242 continues it.");
    let overview = app.state.overview().unwrap();
    assert!(!overview.is_watched && overview.findings.is_empty(), "what was found no longer lasts");
    app.take_effects();
    for key in ["D", "M", "t", "F", "d", "p"] {
        app.press(key);
        assert!(app.take_effects().is_empty() && app.state.overlay.is_none(), "{key}");
        assert!(app.last_toast().contains("(4242): Stopped by a signal: no thread runs"), "{key}: {}", app.last_toast());
    }
    for process in processes.iter_mut().filter(|process| process.key == key) {
        process.usage.stopper = Some(Stopper::Debugger(Some(77)));
    }
    app.send(Msg::Processes(processes));
    let expected = "Stopped by a debugger (PID 77): no thread runs, and its runtime does not answer until the debugger detaches.";
    assert_eq!(notice(&app), expected);
    app.send(Msg::Processes(sample_processes()));
    assert_eq!((app.state.selected().unwrap().word(), notice(&app)), ("GC time", String::new()));
}

#[test]
fn suspended_process_is_shown_with_what_to_do() {
    let mut app = TestApp::populated(120, 40);
    let suspended = sample_processes().into_iter().find(|process| process.run_state == RunState::Suspended).unwrap();
    app.state.list.select(suspended.key);
    assert_eq!(notice(&app), "Suspended at startup: R resumes it; t before that records it from its first instruction.");
    app.press("t");
    let recording = Recording { key: suspended.key, ..recording(1, 5, Phase::Starting) };
    app.report(recording);
    assert_eq!(notice(&app), "Suspended at startup: R resumes it.");
    let row = app.state.selected().unwrap();
    assert_eq!((row.recording, row.word()), (true, "suspended"), "a recording does not resume it");
    for tab in [Tab::Trace, Tab::Slowdown] {
        app.state.tab = tab;
        assert!(crate::ui::tests::screen(&app.state).contains("suspended at startup: no events before it is resumed"), "{tab:?}");
    }
    app.take_effects();
    app.press("D");
    assert!(app.take_effects().is_empty() && app.last_toast().ends_with("is suspended at startup: it runs no code yet. Resume it first."));
}

/// The State is that of the process; what was found is in the findings.
/// A process that restarts all the time is gone before it can be recorded.
#[test]
fn ended_process_that_ran_briefly_advises_a_diagnostic_port() {
    for (ran_for_ms, advises) in [(2_000, true), (60_000, false)] {
        let mut app = TestApp::new(120, 40);
        let started_unix_ms = START_UNIX_MS - ran_for_ms;
        let [short, other] = [Process { started_unix_ms, ..process(7, "Crash") }, process(8, "Other")];
        app.send(Msg::Processes(vec![short, other.clone()]));
        app.press("/Crash⏎");
        app.send(Msg::Processes(vec![other]));
        let screen = crate::ui::tests::screen(&app.state);
        assert!(screen.contains("The process has ended."), "{screen}");
        assert_eq!(screen.contains("P serves a diagnostic port"), advises, "{screen}");
    }
}
