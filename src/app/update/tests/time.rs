use std::time::Duration;

use crate::app::test_app::{TestApp, process, recording, sample_processes};
use crate::app::{Level, Msg, Options};
use crate::model::Phase;

/// Returns an app without any process younger than a minute, so that no ages change every second.
fn idle_app() -> TestApp {
    let mut app = TestApp::new(120, 40);
    // Repeat until the CPU trend bars are level.
    for _ in 0..6 {
        app.send(Msg::Processes(sample_processes().into_iter().filter(|process| process.name != "ReportWorker").collect()));
    }
    app.wait(2000);
    app.state.take_dirty();
    app
}

#[test]
fn unchanged_state_is_not_redrawn() {
    let mut app = idle_app();
    let same: Vec<_> = app.state.list.rows().iter().map(|row| row.process.clone()).collect();
    for _ in 0..30 {
        app.wait(1000);
        app.send(Msg::Processes(same.clone()));
        assert!(!app.state.take_dirty());
    }
    let mut other = same.clone();
    other[0].usage.cpu_percent = Some(3.0);
    app.send(Msg::Processes(other));
    assert!(app.state.take_dirty());
}

#[test]
fn clock_and_process_ages_are_updated() {
    let mut app = idle_app();
    // The clock shows minutes: 08:30:23 to 08:31:00.
    assert_eq!(app.state.next_deadline(app.now), Some(Duration::from_secs(37)));
    app.wait(36_999);
    assert!(!app.state.take_dirty());
    app.wait(1);
    assert!(app.state.take_dirty());
    // The age of a process in its first minute is updated in seconds with the list, without extra wakeups.
    let mut young = process(9, "young");
    young.started_unix_ms = app.now.unix_ms;
    app.send(Msg::Processes(vec![young.clone()]));
    app.wait(3000);
    app.state.take_dirty();
    app.send(Msg::Processes(vec![young]));
    assert!(app.state.take_dirty());
    let next = app.state.next_deadline(app.now).unwrap();
    assert!(next > Duration::from_secs(1), "{next:?}");
}

#[test]
fn running_recording_refreshes_unless_the_display_is_frozen() {
    let mut app = idle_app();
    app.press("t");
    app.report(recording(1, 5, Phase::Recording));
    assert!(app.state.next_deadline(app.now).unwrap() <= Duration::from_secs(1));
    app.press("␣");
    app.wait(61_000);
    assert!(app.state.next_deadline(app.now).unwrap() > Duration::from_secs(1));
}

#[test]
fn messages_expire_and_errors_stay_until_a_key_press() {
    let mut app = idle_app();
    app.state.notify(Level::Info, "info");
    app.state.notify(Level::Error, "error");
    app.wait(3999);
    assert_eq!(app.toast_texts(), ["error", "info"]);
    app.state.take_dirty();
    app.wait(1);
    assert!(app.state.take_dirty());
    assert_eq!(app.toast_texts(), ["error"]);
    app.wait(600_000);
    assert_eq!(app.toast_texts(), ["error"]);
    app.press("↓");
    assert_eq!(app.toast_texts(), Vec::<String>::new());
    assert_eq!(app.state.toasts.history().len(), 2);

    // Esc dismisses a new error and keeps the filter.
    app.press("/a⏎");
    app.state.notify(Level::Error, "another");
    app.press("⎋");
    assert_eq!((app.toast_texts().len(), app.state.list.filter().as_str()), (0, "a"));
    // So does opening the message history.
    app.state.notify(Level::Error, "third");
    app.press("!⎋");
    assert_eq!(app.toast_texts().len(), 0);
    // Repeated text is a single message.
    app.state.notify(Level::Warning, "again");
    app.state.notify(Level::Warning, "again");
    assert_eq!(app.toast_texts(), ["again"]);
}

#[test]
fn command_line_filter_applies_at_startup() {
    let mut app = TestApp::with(Options { filter: "web".to_owned(), ..crate::app::test_app::options() }, 120, 40);
    app.send(Msg::Processes(sample_processes()));
    assert_eq!(app.selected_name(), "WebGateway");
}
