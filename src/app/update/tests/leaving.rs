use std::time::Duration;

use crate::app::test_app::{TestApp, recording};
use crate::app::{AutoWatch, Effect, Form, Msg, Ticket};
use crate::model::{Outcome, Phase, RecordingId, StoppedBy};

const ID: RecordingId = RecordingId(1);

fn recorded() -> TestApp {
    let mut app = TestApp::populated(120, 40);
    app.press("t");
    app.take_effects();
    app.report(recording(1, 5, Phase::Recording));
    app
}

fn finished() -> Msg {
    let outcome = Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: Some("/x".into()), trouble: None };
    Msg::Recording(Box::new(recording(1, 6, Phase::Done(outcome))))
}

#[test]
fn quit_is_immediate_without_running_jobs() {
    for keys in ["q", "⌃c", "?⌃c", "/⌃c", "e⌃c", "d⌃c", "⏎qq"] {
        let mut app = TestApp::populated(120, 40);
        app.press(keys);
        let effects: Vec<_> = app.take_commands().into_iter().filter(|effect| !matches!(effect, Effect::ReadEnvironment { .. })).collect();
        assert_eq!(effects, [Effect::Quit { keep_recording: false }], "{keys}");
        // Later messages are ignored.
        app.press("t");
        app.send(Msg::Failed("late".into()));
        assert_eq!(app.take_effects(), []);
    }
}

#[test]
fn quit_while_recording_needs_confirmation() {
    let quit = |keep_recording| Effect::Quit { keep_recording };
    for (keys, effects) in [
        ("q", vec![]),
        ("q⏎", vec![]),
        ("q⎋", vec![]),
        ("qn", vec![]),
        ("q→⏎", vec![Effect::StopTrace { id: ID }]),
        ("qy", vec![Effect::StopTrace { id: ID }]),
        ("⌃c⌃c", vec![Effect::StopTrace { id: ID }]),
        ("⌃c⌃c⌃c", vec![Effect::StopTrace { id: ID }, Effect::AbandonTrace { id: ID }]),
        ("qyx", vec![Effect::StopTrace { id: ID }, Effect::AbandonTrace { id: ID }]),
        ("qyxx", vec![Effect::StopTrace { id: ID }, Effect::AbandonTrace { id: ID }]),
        ("q→→⏎", vec![quit(true)]),
    ] {
        let mut app = recorded();
        app.press(keys);
        assert_eq!(app.take_effects(), effects, "{keys}");
    }
}

#[test]
fn quit_completes_when_recordings_are_finished() {
    let mut app = recorded();
    app.press("qy");
    app.take_effects();
    app.wait(2000);
    app.report(recording(1, 6, Phase::Stopping { since: Duration::from_secs(2), bytes: 1 }));
    // No other action is available while quitting.
    app.press("t d q ?");
    assert_eq!(app.take_effects(), []);
    app.send(finished());
    assert_eq!(app.take_effects(), [Effect::Quit { keep_recording: false }]);
}

/// A deadline that has passed without effect would wake up the program again and again.
#[test]
fn automatic_watches_are_not_due_while_quitting() {
    for watch in [AutoWatch::Selected, AutoWatch::All] {
        let mut app = recorded();
        app.press("qy");
        app.take_effects();
        app.state.options.watch = watch;
        app.wait(5_500);
        assert_eq!(app.take_effects(), []);
        assert_eq!(app.state.next_deadline(app.now), Some(Duration::from_secs(1)), "{watch:?}");
    }
}

#[test]
fn a_recording_that_starts_while_quitting_is_stopped() {
    let mut app = recorded();
    app.press("qy");
    app.take_effects();
    app.send(Msg::Launched { ticket: Ticket(1), recording: Box::new(recording(2, 0, Phase::Starting)) });
    assert!(app.take_effects().contains(&Effect::StopTrace { id: RecordingId(2) }));
}

#[test]
fn quit_abandons_recordings_after_a_timeout() {
    let mut app = recorded();
    app.press("qy");
    app.take_effects();
    app.wait(59_000);
    assert_eq!(app.take_effects(), []);
    app.wait(1_000);
    assert_eq!(app.take_effects(), [Effect::AbandonTrace { id: ID }]);
    app.wait(2_999);
    assert_eq!(app.take_effects(), []);
    app.wait(1);
    assert_eq!(app.take_effects(), [Effect::Quit { keep_recording: false }]);
}

#[test]
fn signal_quits_without_confirmation_and_with_a_shorter_timeout() {
    let mut app = recorded();
    app.press("dq");
    app.send(Msg::Terminate);
    assert_eq!(app.take_commands(), [Effect::StopTrace { id: ID }]);
    app.wait(8_000);
    assert_eq!(app.take_effects(), [Effect::AbandonTrace { id: ID }]);
    app.send(finished());
    assert_eq!(app.take_effects(), [Effect::Quit { keep_recording: false }]);

    // Recordings that are already stopping are abandoned.
    for keys in ["qy", "t"] {
        let mut app = recorded();
        app.press(keys);
        assert_eq!(app.take_effects(), [Effect::StopTrace { id: ID }], "{keys}");
        app.send(Msg::Terminate);
        assert_eq!(app.take_effects(), [Effect::AbandonTrace { id: ID }], "{keys}");
    }

    // A terminal that closes may send several signals.
    let mut app = recorded();
    app.send(Msg::Terminate);
    app.take_effects();
    app.send(Msg::Terminate);
    assert_eq!(app.take_effects(), []);

    let mut app = TestApp::populated(120, 40);
    app.send(Msg::Terminate);
    assert_eq!(app.take_effects(), [Effect::Quit { keep_recording: false }]);
}

#[test]
fn quit_during_a_dump_needs_confirmation() {
    let mut app = TestApp::populated(120, 40);
    app.press("dy⏎");
    app.take_effects();
    app.press("q");
    assert_eq!(app.take_effects(), []);
    app.press("→⏎");
    assert_eq!(app.take_effects(), [Effect::Quit { keep_recording: false }]);
    for (jobs, expected) in [(1, "A command is still running in a process;"), (2, "2 commands are still running in processes;")] {
        assert!(Form::quit(0, jobs).effects()[0].starts_with(expected));
    }
}
