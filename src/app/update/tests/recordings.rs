use std::time::Duration;

use crate::app::world::{World, recording};
use crate::app::{Effect, Msg, Tab};
use crate::model::{FileContents, Outcome, Phase, ProcessKey, Recording, RecordingId, StoppedBy, TraceOptions};
use crate::ui::tests::findings::scripted;

const KEY: ProcessKey = ProcessKey { pid: 4242, started: 42_420 };

fn order(profiles: &[String]) -> Box<TraceOptions> {
    Box::new(TraceOptions::of_profiles(profiles))
}

fn done(stopped_by: StoppedBy, complete: bool, file: bool, trouble: Option<&str>) -> Phase {
    Phase::Done(Outcome { stopped_by, complete, file: file.then(|| "/x/y.nettrace".into()), trouble: trouble.map(Into::into) })
}

#[test]
fn one_key_starts_and_stops() {
    let mut world = World::populated(120, 40);
    world.press("/order⏎ t");
    let profiles = vec!["dotnet-common".to_owned(), "dotnet-sampled-thread-time".to_owned()];
    assert_eq!(world.take_effects(), [Effect::StartTrace { id: RecordingId(1), key: KEY, order: order(&profiles) }]);
    assert_eq!(world.state.tab, Tab::Trace);
    assert!(world.state.selected().unwrap().recording);
    world.send(Msg::Recording(Box::new(recording(1, 5, Phase::Recording))));
    world.press("t");
    assert_eq!(world.take_effects(), [Effect::StopTrace { id: RecordingId(1) }]);
    // An older snapshot does not turn the time back; a third press waits.
    world.send(Msg::Recording(Box::new(recording(1, 6, Phase::Recording))));
    world.press("t");
    assert_eq!(world.take_effects(), []);
    assert!(world.said_last().contains("x stops without it"));
    world.press("x");
    assert_eq!(world.take_effects(), [Effect::AbandonTrace { id: RecordingId(1) }]);
    world.send(Msg::Recording(Box::new(recording(1, 7, done(StoppedBy::Interrupt, false, true, None)))));
    assert!(!world.state.selected().unwrap().recording);
    world.press("t");
    assert!(matches!(world.take_effects().as_slice(), [Effect::StartTrace { id: RecordingId(2), .. }]));
}

#[test]
fn abandoning_is_for_what_is_stopping() {
    let mut world = World::populated(120, 40);
    world.press("x");
    world.press("tx");
    assert!(!world.take_effects().iter().any(|effect| matches!(effect, Effect::AbandonTrace { .. })));
}

#[test]
fn profiles_are_chosen_and_remembered() {
    let mut world = World::populated(120, 40);
    world.press("T ␣↓␣↓␣⏎");
    let profiles = vec![crate::clr::profiles()[2].name.clone()];
    assert_eq!(world.take_effects(), [Effect::StartTrace { id: RecordingId(1), key: KEY, order: order(&profiles) }]);
    // Another of the same process, and with none chosen the one that is pointed at.
    world.press("T ↓↓␣ G⏎");
    let other = vec![crate::clr::profiles().last().unwrap().name.clone()];
    assert_eq!(world.take_effects(), [Effect::StartTrace { id: RecordingId(2), key: KEY, order: order(&other) }]);
    assert_eq!(world.state.recordings.active(), 2);
    // The one that is shown is stopped.
    world.press("⏎↓");
    assert_eq!(world.state.shown_recording().unwrap().value.id, RecordingId(1));
    world.press("t");
    assert_eq!(world.take_effects(), [Effect::StopTrace { id: RecordingId(1) }]);
    world.press("t");
    assert_eq!(world.take_effects(), [Effect::StopTrace { id: RecordingId(2) }]);
}

#[test]
fn several_processes_are_recorded_at_once() {
    let mut world = World::populated(120, 40);
    world.press("t↓t↓t");
    let keys = world.take_effects().into_iter().filter_map(|effect| match effect {
        Effect::StartTrace { key, .. } => Some(key.pid),
        _ => None,
    });
    assert_eq!(keys.collect::<Vec<_>>(), [4242, 5150, 660]);
    assert_eq!(world.state.recordings.active(), 3);
}

#[test]
fn an_end_is_told_as_it_was() {
    for (phase, said) in [
        (done(StoppedBy::Interrupt, true, true, None), "OrderService (4242): recorded 1.8 MB, 63.8k events, in /x/y.nettrace."),
        (done(StoppedBy::Interrupt, false, true, None), "recorded, without its last part. Kept:"),
        (done(StoppedBy::TargetExit, false, true, None), "OrderService (4242) ended while it was recorded. Kept:"),
        (done(StoppedBy::Error, false, true, Some("No space left on /x.")), "the recording failed. No space left on /x. Kept:"),
        (done(StoppedBy::Error, false, false, Some("The session limit.")), "nothing was recorded. The session limit."),
    ] {
        let mut world = World::populated(120, 40);
        world.press("t");
        world.send(Msg::Recording(Box::new(recording(1, 7, phase))));
        assert!(world.said_last().contains(said), "{said}: {:?}", world.said());
    }
    let mut world = World::populated(120, 40);
    world.press("t");
    world.send(Msg::TraceFailed { id: RecordingId(1), reason: "The runtime answered 0x80004005.".into() });
    assert_eq!(world.said_last(), "OrderService (4242): nothing was recorded. The runtime answered 0x80004005.");
    world.send(Msg::TraceFailed { id: RecordingId(9), reason: "nobody asked".into() });
    assert_eq!(world.said().len(), 1);
}

#[test]
fn what_was_dropped_is_said() {
    let mut world = World::populated(120, 40);
    world.press("t");
    world.send(Msg::Recording(Box::new(recording(1, 48, done(StoppedBy::Interrupt, true, true, None)))));
    assert!(world.said_last().contains("636 dropped"), "{:?}", world.said());
}

#[test]
fn paused_numbers_stand_still_and_phases_do_not() {
    let mut world = World::populated(120, 40);
    world.press("t");
    world.send(Msg::Recording(Box::new(recording(1, 5, Phase::Recording))));
    world.press("␣");
    world.state.take_dirty();
    world.send(Msg::Recording(Box::new(recording(1, 9, Phase::Recording))));
    assert!(!world.state.take_dirty());
    let shown = |world: &World| world.state.shown_recording().unwrap().value.clone();
    assert_eq!(shown(&world).elapsed, Duration::from_secs(5));
    world.send(Msg::Recording(Box::new(recording(1, 10, Phase::Stopping { since: Duration::ZERO, bytes: 0 }))));
    assert_eq!(shown(&world).elapsed, Duration::from_secs(10));
    // What is begun while it is frozen is shown, too.
    world.press("↓t");
    assert_eq!(shown(&world).id, RecordingId(2));
    world.press("␣↑");
    world.send(Msg::Recording(Box::new(recording(1, 11, Phase::Stopping { since: Duration::ZERO, bytes: 7 }))));
    assert_eq!(shown(&world).elapsed, Duration::from_secs(11));
}

#[test]
fn operations_lead_to_their_process() {
    let mut world = World::populated(120, 40);
    world.press("t");
    world.wait(10);
    world.press("↓ dy");
    world.press("/web⏎ ⏎0 ↓⏎");
    assert_eq!((world.selected_name().as_str(), world.state.tab), ("OrderService", Tab::Trace));
    assert_eq!(world.state.list.filter().as_str(), "", "the filter hid it");
    world.press("0g⏎");
    assert_eq!((world.selected_name().as_str(), world.state.tab), ("Search.Indexer", Tab::Jobs));
}

/// What was found in a recording may take a megabyte; its file holds it as well.
#[test]
fn findings_of_an_ended_recording_are_kept_while_it_is_shown() {
    let mut world = World::populated(120, 40);
    world.press("/order⏎ t");
    let findings = Some(scripted());
    let ended = done(StoppedBy::Interrupt, true, true, None);
    world.send(Msg::Recording(Box::new(Recording { findings, ..recording(1, 5, ended) })));
    world.take_effects();
    let kept = |world: &World| world.state.recordings.all()[0].value.findings.is_some();
    world.wait(1000);
    assert!(kept(&world));
    assert_eq!(world.take_effects(), [], "what is there is not read");

    // Another process is selected.
    world.press("/⎋↓");
    assert!(!kept(&world));
    world.wait(1000);
    assert_eq!(world.take_effects(), []);

    // And it again.
    world.press("↑");
    assert_eq!(world.take_effects(), [], "running through the table reads no file");
    world.wait(1000);
    let effects = world.take_effects();
    let [Effect::ReadFile { key: KEY, ticket, path, span: None }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(path.to_str(), Some("/x/y.nettrace"));
    world.send(Msg::FileRead { ticket: *ticket, result: Err("/x/y.nettrace cannot be read".into()) });
    assert_eq!(world.said_last(), "/x/y.nettrace cannot be read");
    assert_eq!(world.take_effects(), [], "once is enough");

    world.press("⎋↓↑");
    world.wait(1000);
    let effects = world.take_effects();
    let [Effect::ReadFile { ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    let contents = FileContents { findings: scripted(), bytes: 1, end: 5, duration: Duration::from_secs(5), complete: true, trouble: None };
    world.send(Msg::FileRead { ticket: *ticket, result: Ok(contents) });
    assert!(kept(&world));
    assert_eq!(world.take_effects(), []);
}
