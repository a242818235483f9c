use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::app::world::{World, process};
use crate::app::{ActMenu, Effect, Field, Form, JobResult, Msg, Overlay};
use crate::ipc::{ClientData, Command, EnvironmentName, EnvironmentValue, RuntimeVersion, TargetPath};
use crate::model::{Process, RunState};

/// One process of a version, selected.
pub(super) fn alone(version: &str) -> World {
    let mut world = World::new(120, 40);
    world.send(Msg::Processes(vec![Process { runtime: Some(RuntimeVersion::new(version)), ..process(42, "Web") }]));
    world
}

pub(super) fn form(world: &World) -> &Form {
    match &world.state.overlay {
        Some(Overlay::Form(form)) => form,
        other => panic!("no dialog: {other:?}"),
    }
}

pub(super) fn type_text(world: &mut World, text: &str) {
    world.send(Msg::Paste(text.to_owned()));
}

/// Goes down so many questions and answers each that is given.
pub(super) fn fill(world: &mut World, answers: &[&str]) {
    for answer in answers {
        if !answer.is_empty() {
            world.press("⌃u");
            type_text(world, answer);
        }
        world.press("⇥");
    }
}

#[test]
fn variables_hooks_and_profilers_are_asked_about() {
    let guid = "cf0d821e-299b-5307-a3d8-b283c03916dd";
    let name = || EnvironmentName::new("A_B").unwrap();
    let path = || TargetPath::new("/x/y.so").unwrap();
    let set = Command::SetEnvironmentVariable { name: name(), value: Some(EnvironmentValue::new(" v ").unwrap()) };
    let attach = Command::AttachProfiler { timeout_ms: 10_000, profiler: guid.parse().unwrap(), path: path(), data: ClientData::default() };
    for (down, answers, command) in [
        ("↓↓↓↓", &["A_B", " v "][..], set),
        ("↓↓↓↓↓", &["A_B"], Command::SetEnvironmentVariable { name: name(), value: None }),
        ("↓↓↓↓↓↓", &["/x/y.so"], Command::ApplyStartupHook { path: path() }),
        ("↓↓↓↓↓↓↓", &[guid, "/x/y.so", "", ""], attach),
    ] {
        let mut world = alone("9.0.0");
        world.press("a");
        world.press(down);
        world.press("⏎");
        assert_eq!(form(&world).focus, Field::Button(0), "no is the default");
        world.press("⏎");
        assert_eq!(world.take_effects(), []);
        world.press("a");
        world.press(down);
        world.press("⏎⇥");
        fill(&mut world, answers);
        world.press("y");
        let effects = world.take_effects();
        let [Effect::Control { key, command: asked, data: None, ticket }] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!((key.pid, asked), (42, &command));
        world.send(Msg::JobDone { ticket: *ticket, result: Ok(JobResult::default()) });
        assert!(world.said_last().ends_with("done"), "{:?}", world.said());
    }
    // No value is kept in the log.
    assert!(!format!("{:?}", alone("9.0.0").state.jobs).contains(" v "));
}

#[test]
fn wrong_answers_are_said_and_nothing_is_done() {
    for (down, answers, complaint, at) in [
        ("↓↓↓↓", &["A=B"][..], "Invalid variable name", 0),
        ("↓↓↓↓", &[""], "Invalid variable name", 0),
        ("↓↓↓↓↓↓", &["hook.dll"], "Give the whole path", 0),
        ("↓↓↓↓↓↓↓", &["not a guid", "/x"], "hexadecimal digits", 0),
        ("↓↓↓↓↓↓↓", &["cf0d821e-299b-5307-a3d8-b283c03916dd", "/x", "", "soon"], "Give a time", 3),
    ] {
        let mut world = alone("9.0.0");
        world.press("a");
        world.press(down);
        world.press("⏎⇥");
        fill(&mut world, answers);
        // To the buttons from wherever that is.
        while !matches!(form(&world).focus, Field::Button(_)) {
            world.press("⇥");
        }
        world.press("y");
        assert_eq!(world.take_effects(), []);
        assert!(form(&world).complaint.as_ref().unwrap().contains(complaint), "{:?}", form(&world).complaint);
        assert_eq!(form(&world).focus, Field::Question(at));
    }
}

#[test]
fn what_cannot_be_done_to_a_process_says_why_in_the_menu() {
    let suspended = Process { run_state: RunState::Suspended, ..process(42, "Web") };
    let old = Process { runtime: Some(RuntimeVersion::new("5.0.0")), ..process(42, "Web") };
    for (process, action, reason) in [
        (old.clone(), 4, "needs .NET 6"),
        (old, 6, "needs .NET 8"),
        (suspended, 7, "suspended at startup"),
        (process(42, "Web"), 8, "is not suspended at startup"),
        (process(42, "Web"), 9, "is not suspended at startup"),
    ] {
        let mut world = World::new(120, 40);
        world.send(Msg::Processes(vec![process]));
        world.press("a");
        (0..action).for_each(|_| world.press("↓"));
        world.press("⏎");
        assert!(world.state.overlay.is_none());
        assert!(world.said_last().contains(reason), "{:?}: {:?}", ActMenu::ITEMS[action], world.said());
    }
    // Everything is found by name, too.
    let mut world = alone("9.0.0");
    for name in ["set variable", "unset variable", "startup hook", "profiler", "run"] {
        world.press(":");
        type_text(&mut world, name);
        world.press("⏎");
        assert!(matches!(world.state.overlay, Some(Overlay::Form(_))), "{name}");
        world.press("⎋⎋");
    }
}

#[test]
fn buttons_and_questions_can_be_clicked() {
    let click = |world: &mut World, x, y| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        world.send(Msg::Mouse(MouseEvent { kind, column: x, row: y, modifiers: KeyModifiers::NONE }));
    };
    for (width, height) in [(120, 40), (80, 24), (40, 10)] {
        let mut world = World::populated(width, height);
        let place = |world: &World| form(world).place(&world.state.layout());
        world.press("d");
        let no = place(&world).buttons[0];
        click(&mut world, no.x + 1, no.y);
        assert!(world.state.overlay.is_none() && world.take_effects().is_empty(), "{width}");
        world.press("d");
        let (at, row) = place(&world).questions[0];
        click(&mut world, row.x, row.y);
        assert_eq!((at, form(&world).focus), (0, Field::Question(0)));
        let yes = place(&world).buttons[1];
        click(&mut world, yes.x + 1, yes.y);
        assert!(matches!(world.take_effects().as_slice(), [Effect::Dump { .. }]), "{width}");
    }
}

/// What was done is told whole, and stays when the process has gone.
#[test]
fn the_action_log_can_be_copied_and_outlives_the_process() {
    let mut world = alone("9.0.0");
    world.press("a↓↓↓↓⏎⇥");
    fill(&mut world, &["PASSWORD_FILE", "hunter2"]);
    world.press("y");
    let effects = world.take_effects();
    let [Effect::Control { ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    let ticket = *ticket;
    world.wait(61_000);
    world.send(Msg::JobDone { ticket, result: Err("the runtime answered E_FAIL".into()) });
    world.press("py");
    world.take_effects();
    world.send(Msg::Processes(vec![process(7, "Other")]));
    world.wait(10_000);
    world.press("⏎");
    while world.state.tab != crate::app::Tab::Jobs {
        world.press("⇥");
    }
    world.press("G y");
    let Some(Overlay::Copy(menu)) = &world.state.overlay else { panic!("no menu") };
    let text = |label| menu.items.iter().find(|item| item.label == label).map(|item| item.text.clone()).unwrap();
    let first = "08:30:21  Web (42)  set variable PASSWORD_FILE: failed: the runtime answered E_FAIL";
    let second = "08:31:22  Web (42)  perf map on perfmap: no answer yet";
    assert_eq!(text("this entry"), first);
    assert_eq!(text("answer"), "failed: the runtime answered E_FAIL");
    assert_eq!(text("log of the process"), format!("{first}\n{second}"));
    assert_eq!(text("whole log"), text("log of the process"));
}
