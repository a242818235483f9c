use std::time::Duration;

use crate::app::test_app::{TestApp, contents, options, process, recording, sample_processes};
use crate::app::{Effect, Focus, Level, Msg, Options, Tab};
use crate::model::{Outcome, Phase, Process, ProcessKey, Recording, RecordingId, StoppedBy, TraceOptions};
use crate::ui::tests::analysis::scripted;

const KEY: ProcessKey = ProcessKey { pid: 4242, started: 42_420 };

fn trace_options(profiles: &[String]) -> Box<TraceOptions> {
    Box::new(TraceOptions::of_profiles(profiles))
}

fn done(stopped_by: StoppedBy, complete: bool, file: bool, trouble: Option<&str>) -> Phase {
    Phase::Done(Outcome { stopped_by, complete, file: file.then(|| "/x/y.nettrace".into()), trouble: trouble.map(Into::into) })
}

#[test]
fn one_key_starts_and_stops_a_recording() {
    let mut app = TestApp::populated(120, 40);
    app.press("/order⏎ t");
    let profiles = vec!["dotnet-common".to_owned(), "cpu".to_owned()];
    assert_eq!(app.take_effects(), [Effect::StartTrace { id: RecordingId(1), key: KEY, options: trace_options(&profiles) }]);
    assert_eq!(app.state.tab, Tab::Trace);
    assert!(app.state.selected().unwrap().recording);
    app.report(recording(1, 5, Phase::Recording));
    app.press("t");
    assert_eq!(app.take_effects(), [Effect::StopTrace { id: RecordingId(1) }]);
    // An older snapshot does not revert the phase; a third press has no effect.
    app.report(recording(1, 6, Phase::Recording));
    app.press("t");
    assert_eq!(app.take_effects(), []);
    assert!(app.last_toast().contains("x stops without it"));
    app.press("x");
    assert_eq!(app.take_effects(), [Effect::AbandonTrace { id: RecordingId(1) }]);
    let over = done(StoppedBy::Interrupt, false, true, None);
    app.report(recording(1, 7, over.clone()));
    assert!(!app.state.selected().unwrap().recording);
    app.report(recording(1, 8, done(StoppedBy::Error, false, false, Some("late"))));
    assert_eq!(app.state.recordings.all()[0].value.phase, over, "nothing follows the end");
    app.press("t");
    assert!(matches!(app.take_effects().as_slice(), [Effect::StartTrace { id: RecordingId(2), .. }]));
}

#[test]
fn recording_tab_stays_open_on_start_and_stop() {
    for (tab, key) in [(Tab::Gc, "4"), (Tab::Methods, "7")] {
        let mut app = TestApp::populated(120, 40);
        app.press(&format!("/order⏎ ⏎ {key} t"));
        assert!(matches!(app.take_effects().as_slice(), [.., Effect::StartTrace { .. }]));
        assert_eq!(app.state.tab, tab);
        app.report(recording(1, 5, Phase::Recording));
        app.press("t");
        assert_eq!((app.take_effects().as_slice(), app.state.tab), ([Effect::StopTrace { id: RecordingId(1) }].as_slice(), tab));
    }
}

#[test]
fn only_a_stopping_recording_can_be_abandoned() {
    let mut app = TestApp::populated(120, 40);
    app.press("x");
    app.press("tx");
    assert!(!app.take_effects().iter().any(|effect| matches!(effect, Effect::AbandonTrace { .. })));
}

#[test]
fn slowdown_recording_runs_beside_others() {
    let mut app = TestApp::populated(120, 40);
    app.press("tF");
    let ids: Vec<_> =
        app.take_effects().iter().filter_map(|effect| if let Effect::StartTrace { id, .. } = effect { Some(id.0) } else { None }).collect();
    assert_eq!(ids, [1, 2]);
}

/// Started by a key, or with the first profile on its own.
#[test]
fn slowdown_recording_stops_automatically() {
    for keys in ["F", "T↑⏎", "⏎8F"] {
        let mut app = TestApp::populated(120, 40);
        app.press(keys);
        let slow = TraceOptions { duration: Some(Duration::from_secs(30)), ..TraceOptions::of_profiles(&["slow".to_owned()]) };
        assert_eq!(app.take_effects(), [Effect::StartTrace { id: RecordingId(1), key: KEY, options: Box::new(slow) }], "{keys}");
        assert_eq!((app.state.tab, app.state.focus), (Tab::Slowdown, Focus::Detail));
        // While it is running, the key only shows it; afterwards, it starts another.
        app.press("1F");
        assert!(app.take_effects().is_empty() && app.state.tab == Tab::Slowdown, "{keys}");
        let what = vec!["slow".to_owned()];
        let analysis = Some(scripted());
        app.report(Recording { what, analysis, ..recording(1, 5, Phase::Recording) });
        // Enter opens the tab of the selected cause.
        app.press("⏎");
        assert_eq!(app.state.tab, Tab::Gc, "{keys}");
        // The default profiles stay unchanged.
        assert_eq!(app.state.last_profiles, crate::clr::DASHBOARD_PROFILES);
    }
    // The defaults can be configured.
    let profiles = Some(vec!["exceptions".to_owned()]);
    let mut app = TestApp::with(Options { profiles, ..options() }, 120, 40);
    app.send(Msg::Processes(sample_processes()));
    app.press("t");
    let expected = TraceOptions::of_profiles(&["exceptions".to_owned()]);
    assert!(matches!(&app.take_effects()[..], [Effect::StartTrace { options: started, .. }] if **started == expected));
    let mut app = TestApp::with(Options { readonly: true, ..options() }, 120, 40);
    app.send(Msg::Processes(sample_processes()));
    app.press("F");
    assert!(app.take_effects().is_empty() && app.last_toast().contains("--readonly"));
}

#[test]
fn profiles_are_chosen_and_remembered() {
    let mut app = TestApp::populated(120, 40);
    app.press("T ␣⏎");
    let profiles = ["cpu".to_owned()];
    assert_eq!(app.take_effects(), [Effect::StartTrace { id: RecordingId(1), key: KEY, options: trace_options(&profiles) }]);
    // A second recording of the same process; with no profile picked, the selected one is used.
    app.press("T ␣ G⏎");
    let other = vec![crate::clr::profiles().last().unwrap().name.clone()];
    assert_eq!(app.take_effects(), [Effect::StartTrace { id: RecordingId(2), key: KEY, options: trace_options(&other) }]);
    assert_eq!(app.state.recordings.active(), 2);
    // The shown recording is stopped.
    app.press("⏎↓");
    assert_eq!(app.state.shown_recording().unwrap().value.id, RecordingId(1));
    app.press("t");
    assert_eq!(app.take_effects(), [Effect::StopTrace { id: RecordingId(1) }]);
    app.press("t");
    assert_eq!(app.take_effects(), [Effect::StopTrace { id: RecordingId(2) }]);
}

#[test]
fn several_processes_are_recorded_at_once() {
    let mut app = TestApp::populated(120, 40);
    app.press("t↓t↓t");
    let keys = app.take_effects().into_iter().filter_map(|effect| match effect {
        Effect::StartTrace { key, .. } => Some(key.pid),
        _ => None,
    });
    assert_eq!(keys.collect::<Vec<_>>(), [4242, 5150, 660]);
    assert_eq!(app.state.recordings.active(), 3);
}

#[test]
fn recording_outcome_is_reported() {
    for (phase, expected) in [
        (done(StoppedBy::Interrupt, true, true, None), "OrderService (4242): recorded 1.8 MB, 63.8k events, in /x/y.nettrace."),
        (done(StoppedBy::Interrupt, false, true, None), "recorded, but the end is missing. Kept:"),
        (done(StoppedBy::TargetExit, false, true, None), "OrderService (4242) exited while being recorded. Kept:"),
        (
            done(StoppedBy::TargetExit, false, true, Some("the target exited; blocks are kept")),
            "exited while being recorded. The target exited; blocks are kept. Kept: 1.8 MB, 63.8k events, in /x/y.nettrace.",
        ),
        (
            done(StoppedBy::DiskSpace, true, true, Some("stopped before the disk is full: 255 MB are free")),
            "(4242): recorded 1.8 MB, 63.8k events, in /x/y.nettrace. Stopped before the disk is full: 255 MB are free.",
        ),
        (done(StoppedBy::Error, false, true, Some("No space left on /x.")), "the recording failed. No space left on /x. Kept:"),
        (done(StoppedBy::Error, false, false, Some("The session limit.")), "nothing was recorded. The session limit."),
    ] {
        let mut app = TestApp::populated(120, 40);
        app.press("t");
        app.report(recording(1, 7, phase));
        assert!(app.last_toast().contains(expected), "{expected}: {:?}", app.toast_texts());
    }
    let mut app = TestApp::populated(120, 40);
    app.press("t");
    app.send(Msg::TraceFailed { id: RecordingId(1), reason: "The runtime answered 0x80004005.".into() });
    assert_eq!(app.last_toast(), "OrderService (4242): nothing was recorded. The runtime answered 0x80004005.");
    app.send(Msg::TraceFailed { id: RecordingId(9), reason: "not requested".into() });
    assert_eq!(app.toast_texts().len(), 1);
}

#[test]
fn recording_with_all_that_was_requested_is_a_success() {
    for (events, trouble, expected) in [
        (7, None, Level::Success),
        (0, None, Level::Warning),
        (7, Some("less was kept than requested: no space left on device"), Level::Warning),
    ] {
        for stopped_by in [StoppedBy::Interrupt, StoppedBy::Event] {
            let mut app = TestApp::populated(120, 40);
            app.press("t");
            app.report(Recording { events, ..recording(1, 7, done(stopped_by, true, true, trouble)) });
            let level = app.state.toasts.history().next().unwrap().level;
            assert_eq!(level, expected, "{events} {trouble:?}: {}", app.last_toast());
        }
    }
}

#[test]
fn dropped_events_are_reported() {
    let mut app = TestApp::populated(120, 40);
    app.press("t");
    app.report(recording(1, 48, done(StoppedBy::Interrupt, true, true, None)));
    assert!(app.last_toast().contains("636 dropped"), "{:?}", app.toast_texts());
}

#[test]
fn frozen_display_updates_phases_but_not_figures() {
    let mut app = TestApp::populated(120, 40);
    app.press("t");
    app.report(recording(1, 5, Phase::Recording));
    app.press("␣");
    app.state.take_dirty();
    app.report(recording(1, 9, Phase::Recording));
    assert!(!app.state.take_dirty());
    let shown = |app: &TestApp| app.state.shown_recording().unwrap().value.clone();
    assert_eq!(shown(&app).elapsed, Duration::from_secs(5));
    app.report(recording(1, 10, Phase::Stopping { since: Duration::ZERO, bytes: 0 }));
    assert_eq!(shown(&app).elapsed, Duration::from_secs(10));
    // Recordings started while frozen are shown.
    app.press("↓t");
    assert_eq!(shown(&app).id, RecordingId(2));
    app.press("␣↑");
    app.report(recording(1, 11, Phase::Stopping { since: Duration::ZERO, bytes: 7 }));
    assert_eq!(shown(&app).elapsed, Duration::from_secs(11));
}

#[test]
fn opening_a_job_selects_its_process() {
    let mut app = TestApp::populated(120, 40);
    app.press("t");
    app.wait(10);
    app.press("↓ dy⏎");
    app.press("/web⏎ ⏎0 ↓⏎");
    assert_eq!((app.selected_name().as_str(), app.state.tab), ("OrderService", Tab::Trace));
    assert_eq!(app.state.list.filter().as_str(), "", "the filter hid it");
    app.press("0g⏎");
    assert_eq!((app.selected_name().as_str(), app.state.tab), ("Search.Indexer", Tab::Jobs));
}

/// The analysis of a recording may take a megabyte, and can be read from its file again.
#[test]
fn ended_recording_analysis_is_kept_only_while_shown() {
    let mut app = TestApp::populated(120, 40);
    app.press("/order⏎ t");
    let analysis = Some(scripted());
    let ended = done(StoppedBy::Interrupt, true, true, None);
    app.report(Recording { analysis, ..recording(1, 5, ended) });
    app.take_effects();
    let kept = |app: &TestApp| app.state.recordings.all()[0].value.analysis.is_some();
    app.wait(1000);
    assert!(kept(&app));
    assert_eq!(app.take_effects(), [], "what is there is not read");

    // Select another process.
    app.press("/⎋↓");
    assert!(!kept(&app));
    app.wait(1000);
    assert_eq!(app.take_effects(), []);

    // Return to the first one.
    app.press("↑");
    assert_eq!(app.take_effects(), [], "running through the table reads no file");
    app.wait(1000);
    let effects = app.take_effects();
    let [Effect::ReadFile { key: KEY, ticket, path, span: None }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(path.to_str(), Some("/x/y.nettrace"));
    app.send(Msg::FileRead { ticket: *ticket, result: Err("/x/y.nettrace cannot be read".into()) });
    assert_eq!(app.last_toast(), "/x/y.nettrace cannot be read");
    assert_eq!(app.take_effects(), [], "once is enough");

    app.press("⎋↓↑");
    app.wait(1000);
    let effects = app.take_effects();
    let [Effect::ReadFile { ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    app.send(Msg::FileRead { ticket: *ticket, result: Ok(contents(scripted())) });
    assert!(kept(&app));
    assert_eq!(app.take_effects(), []);
}

#[test]
fn stacks_of_a_native_aot_program_are_not_sampled() {
    let mut app = TestApp::with(options(), 120, 40);
    app.send(Msg::Processes(vec![Process { native_aot: true, ..process(4242, "OrderService") }]));
    app.take_effects();
    app.press("D");
    assert!(app.take_effects().is_empty() && app.last_toast().contains("NativeAOT"), "{}", app.last_toast());
}

#[test]
fn one_key_samples_the_stacks_of_the_selected_process() {
    let mut app = TestApp::populated(120, 40);
    app.press("DD");
    let effects = app.take_effects();
    let [Effect::SampleStacks { key: KEY, ticket }] = effects[..] else { panic!("{effects:?}") };
    assert_eq!((app.state.tab, app.state.focus), (Tab::Stacks, Focus::Detail));
    app.send(Msg::Stacks { ticket, result: Err("no thread was sampled".into()) });
    assert_eq!(app.state.view_of(Tab::Stacks).unwrap().empty.0, "no thread was sampled");
    // Selecting another process discards the pending request.
    app.press("D⎋↓");
    let effects = app.take_effects();
    let [Effect::SampleStacks { ticket, .. }] = effects[..] else { panic!("{effects:?}") };
    app.send(Msg::Stacks { ticket, result: Err("too late".into()) });
    assert!(app.state.view_of(Tab::Stacks).unwrap().empty.0.starts_with("D: sample the stacks"));
}

#[test]
fn the_message_history_shows_how_a_recording_ended() {
    for (stopped_by, expected) in
        [(StoppedBy::Interrupt, "stopped, complete: 1.8 MB, "), (StoppedBy::TargetExit, "ended with the process, complete: 1.8 MB, ")]
    {
        let mut app = TestApp::populated(120, 40);
        app.press("t");
        app.report(recording(1, 7, done(stopped_by, true, true, None)));
        let answer = app.state.activity()[0].answer();
        assert!(answer.starts_with(expected), "{answer}");
    }
}
