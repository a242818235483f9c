//! Watches that begin without a key.

use std::time::Duration;

use super::watching::{columns, keys_of, watched, watching};
use crate::app::test_app::{TestApp, published, sample_processes};
use crate::app::{AutoWatch, Effect, Msg};
use crate::ipc::RuntimeVersion;
use crate::model::{Contact, Process, ProcessKey, RunState, Stopper};

/// Returns the running, attachable processes.
fn running() -> Vec<ProcessKey> {
    sample_processes().iter().filter(|process| is_healthy(process)).map(|process| process.key).collect()
}

fn is_healthy(process: &Process) -> bool {
    process.contact == Contact::Ok && process.run_state == RunState::Running
}

#[test]
fn the_selected_process_is_watched_after_a_second() {
    let mut app = watching(AutoWatch::Selected, false);
    app.press("↓↑");
    let [first, second, ..] = running()[..] else { panic!() };
    app.state.list.select(first);
    app.send(Msg::Tick);
    app.wait(999);
    assert_eq!(keys_of(&app.take_effects()), []);
    assert_eq!(app.state.next_deadline(app.now), Some(Duration::from_millis(1)), "it is waited for");
    app.wait(1);
    assert_eq!(keys_of(&app.take_effects()), [first]);
    assert!(columns(&app).is_empty() && app.state.list.find(first).unwrap().word() == "running", "the table stays as it is");
    // Scrolling starts no watches.
    for _ in 0..20 {
        for key in [second, first] {
            app.state.list.select(key);
            app.wait(200);
        }
    }
    assert_eq!(app.take_effects().iter().filter(|effect| matches!(effect, Effect::Watch { .. } | Effect::Unwatch { .. })).count(), 0);
    // When another process stays selected, the first is watched for a few more seconds.
    app.state.list.select(second);
    app.send(Msg::Tick);
    app.wait(1000);
    assert_eq!(keys_of(&app.take_effects()), [second]);
    app.wait(3999);
    assert_eq!(app.take_effects(), []);
    app.wait(1);
    assert_eq!(app.take_effects(), [Effect::Unwatch { key: first }]);
}

/// It does not answer.
#[test]
fn stopped_process_is_watched_once_it_continues() {
    let mut app = watching(AutoWatch::Selected, false);
    let first = running()[0];
    app.state.list.select(first);
    let mut processes = sample_processes();
    processes.iter_mut().filter(|process| process.key == first).for_each(|process| process.usage.stopper = Some(Stopper::Signal));
    app.send(Msg::Processes(processes));
    app.wait(5000);
    assert_eq!(keys_of(&app.take_effects()), []);
    app.send(Msg::Processes(sample_processes()));
    app.wait(1000);
    assert_eq!(keys_of(&app.take_effects()), [first]);
}

#[test]
fn at_most_three_automatic_watches_are_open() {
    let mut app = watching(AutoWatch::Selected, false);
    assert!(running().len() > 3);
    let mut most = 0;
    for key in running() {
        app.state.list.select(key);
        app.send(Msg::Tick);
        app.wait(1000);
        most = most.max(app.state.watches.all().len());
    }
    assert_eq!(most, 3);
}

#[test]
fn only_running_responsive_processes_are_watched_automatically() {
    let mut app = watching(AutoWatch::All, false);
    let mut expected = running();
    let mut all = keys_of(&app.take_effects());
    expected.sort_unstable();
    all.sort_unstable();
    assert_eq!(all, expected);
    assert!(all.len() < sample_processes().len() && !columns(&app).is_empty());
    for (watch, keys) in [(AutoWatch::Never, 0), (AutoWatch::Selected, 1)] {
        let mut app = watching(watch, false);
        app.wait(60_000);
        assert_eq!(keys_of(&app.take_effects()).len(), keys, "{watch:?}");
    }
    for process in sample_processes().iter().filter(|process| !is_healthy(process)) {
        let mut app = watching(AutoWatch::Selected, false);
        app.state.list.select(process.key);
        app.wait(60_000);
        assert_eq!(keys_of(&app.take_effects()), [], "{}", process.name);
    }
}

/// With `--readonly`, automatic watches are only started because of an explicit option.
#[test]
fn readonly_allows_automatic_but_not_manual_watches() {
    let mut app = watching(AutoWatch::Selected, true);
    app.wait(1000);
    assert_eq!(keys_of(&app.take_effects()).len(), 1);
    app.press("↓w");
    assert_eq!(app.take_effects(), []);
}

#[test]
fn failed_automatic_watch_is_retried_and_reported_once() {
    let mut app = TestApp::populated(120, 40);
    app.state.options.watch = AutoWatch::Selected;
    let fail = |app: &mut TestApp, seconds: u64| {
        app.take_effects();
        app.wait(1000 * (seconds - 1));
        assert_eq!(watched(&app.take_effects()), [], "not before {seconds} s");
        app.wait(2000);
        let (_, ticket) = watched(&app.take_effects())[0];
        app.send(Msg::WatchEnded { ticket, trouble: Some("no answer".into()) });
    };
    app.wait(2000);
    let (_, ticket) = watched(&app.take_effects())[0];
    app.send(Msg::WatchEnded { ticket, trouble: Some("no answer".into()) });
    let toast_count = app.toast_texts().len();
    assert_eq!(app.last_toast(), "OrderService (4242) is not watched: no answer");
    let (notice, _) = app.state.overview().unwrap().notice.unwrap();
    assert_eq!(notice, "Not watched: it failed, ! shows why. The next attempt is in 10s.");
    for seconds in [10, 20, 40, 80, 160, 300, 300] {
        fail(&mut app, seconds);
    }
    assert_eq!(app.toast_texts().len(), toast_count);
    // After values, it counts as another failure.
    app.wait(300_000);
    let (_, ticket) = watched(&app.take_effects())[0];
    app.count(ticket, published(61.0, 4e6, 2.0, 3.0, 0.0));
    app.send(Msg::WatchEnded { ticket, trouble: Some("no answer".into()) });
    fail(&mut app, 10);
    assert_eq!(app.last_toast(), "OrderService (4242) is not watched: no answer");
    // A manual watch does not wait for the retry.
    app.press("w");
    assert_eq!(watched(&app.take_effects()).len(), 1);
}

/// Before .NET 9, a session that starts during program startup can deadlock the program.
#[test]
fn watch_of_a_starting_older_runtime_is_delayed() {
    for (runtime, delay_ms) in [(Some("8.0.33"), 7_000), (None, 7_000), (Some("9.0.7"), 1_000)] {
        let mut app = TestApp::populated(120, 40);
        app.state.options.watch = AutoWatch::Selected;
        let mut young = sample_processes().into_iter().next().unwrap();
        (young.key.pid, young.started_unix_ms) = (77, app.now.unix_ms - 3_000);
        young.runtime = runtime.map(RuntimeVersion::new);
        app.send(Msg::Processes(vec![young]));
        let starts = |app: &TestApp| app.state.overview().unwrap().notice.is_some_and(|(text, _)| text.starts_with("Watched 10 s after"));
        app.wait(delay_ms - 1);
        assert_eq!((watched(&app.take_effects()).len(), starts(&app)), (0, delay_ms == 7_000), "{runtime:?}");
        app.wait(1);
        assert_eq!((watched(&app.take_effects()).len(), starts(&app)), (1, false), "{runtime:?}");
    }
}

/// A manual watch starts immediately.
#[test]
fn manual_watch_of_a_starting_runtime_is_not_delayed() {
    let mut app = TestApp::populated(120, 40);
    let mut young = sample_processes().into_iter().next().unwrap();
    (young.key.pid, young.started_unix_ms, young.runtime) = (77, app.now.unix_ms, Some(RuntimeVersion::new("8.0.33")));
    app.send(Msg::Processes(vec![young]));
    app.press("w");
    assert_eq!(watched(&app.take_effects()).len(), 1);
}
