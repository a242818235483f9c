use crate::app::test_app::{TestApp, process};
use crate::app::{ControlRequest, Effect, Field, Form, JobKind, JobResult, Msg, Overlay, Pick, Purpose};
use crate::ipc::{ClientData, Command, EnvironmentName, EnvironmentValue, RuntimeVersion, TargetPath};
use crate::model::{Process, RunState};

/// Returns an app with a single, selected process of a runtime version.
pub(super) fn single_process(version: &str) -> TestApp {
    let mut app = TestApp::new(120, 40);
    app.send(Msg::Processes(vec![Process { runtime: Some(RuntimeVersion::new(version)), ..process(42, "Web") }]));
    app
}

pub(super) fn form(app: &TestApp) -> &Form {
    match &app.state.overlay {
        Some(Overlay::Form(form)) => form,
        other => panic!("no dialog: {other:?}"),
    }
}

pub(super) fn type_text(app: &mut TestApp, text: &str) {
    app.send(Msg::Paste(text.to_owned()));
}

/// Answers the fields one after another; an empty answer skips the field.
pub(super) fn fill(app: &mut TestApp, answers: &[&str]) {
    for answer in answers {
        if !answer.is_empty() {
            app.press("⌃u");
            type_text(app, answer);
        }
        app.press("⇥");
    }
}

#[test]
fn control_forms_default_to_no_and_send_their_command() {
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
        let mut app = single_process("9.0.0");
        app.press("a");
        app.press(down);
        app.press("⏎");
        assert_eq!(form(&app).focus, Field::Question(0), "nothing can be requested before a field is filled in");
        answers.iter().for_each(|_| app.press("⏎"));
        assert_eq!(form(&app).focus, Field::Button(0), "no is the default");
        app.press("⏎");
        assert!(app.state.overlay.is_none());
        assert_eq!(app.take_effects(), []);
        app.press("a");
        app.press(down);
        app.press("⏎");
        fill(&mut app, answers);
        app.press("y⏎");
        let effects = app.take_effects();
        let [Effect::Begin { key, ticket, kind: JobKind::Control(_, ControlRequest { command: asked, data: None, .. }) }] =
            effects.as_slice()
        else {
            panic!("{effects:?}")
        };
        assert_eq!((key.pid, asked), (42, &command));
        app.send(Msg::JobDone { ticket: *ticket, result: Ok(JobResult::default()) });
        assert!(app.last_toast().ends_with("done"), "{:?}", app.toast_texts());
    }
    // Values are not kept in the action log.
    assert!(!format!("{:?}", single_process("9.0.0").state.jobs).contains(" v "));
}

#[test]
fn invalid_form_input_is_reported_and_not_sent() {
    for (down, answers, problem, at) in [
        ("↓↓↓↓", &["A=B"][..], "Invalid variable name", 0),
        ("↓↓↓↓", &[""], "Invalid variable name", 0),
        ("↓↓↓↓↓↓", &["hook.dll"], "Enter an absolute path", 0),
        ("↓↓↓↓↓↓↓", &["not a guid", "/x"], "hexadecimal digits", 0),
        ("↓↓↓↓↓↓↓", &["cf0d821e-299b-5307-a3d8-b283c03916dd", "/x", "", "soon"], "Give a time", 3),
    ] {
        let mut app = single_process("9.0.0");
        app.press("a");
        app.press(down);
        app.press("⏎");
        fill(&mut app, answers);
        // Move to the buttons from the current field.
        while !matches!(form(&app).focus, Field::Button(_)) {
            app.press("⇥");
        }
        app.press("y⏎");
        assert_eq!(app.take_effects(), []);
        assert!(form(&app).problem.as_ref().unwrap().contains(problem), "{:?}", form(&app).problem);
        assert_eq!(form(&app).focus, Field::Question(at));
    }
}

#[test]
fn keys_shown_in_the_action_menu_work_in_it() {
    let mut app = single_process("9.0.0");
    app.press("ad");
    assert!(matches!(form(&app).purpose, Purpose::Dump(_)));
    app.press("⎋aR");
    assert!(app.state.overlay.is_none());
    assert!(app.last_toast().contains("is not suspended at startup"), "{:?}", app.toast_texts());
    // While a filter is typed, they are its text.
    app.press("a/d");
    assert!(matches!(app.state.overlay, Some(Overlay::List(_, Pick::Actions(_)))));
}

#[test]
fn unavailable_menu_action_reports_the_reason() {
    let suspended = Process { run_state: RunState::Suspended, ..process(42, "Web") };
    let old = Process { runtime: Some(RuntimeVersion::new("5.0.0")), ..process(42, "Web") };
    for (process, action, reason) in [
        (old.clone(), 4, "needs .NET 6"),
        (old, 6, "needs .NET 8"),
        (suspended, 7, "suspended at startup"),
        (process(42, "Web"), 8, "is not suspended at startup"),
        (process(42, "Web"), 9, "is not suspended at startup"),
    ] {
        let mut app = TestApp::new(120, 40);
        app.send(Msg::Processes(vec![process]));
        app.press("a");
        (0..action).for_each(|_| app.press("↓"));
        app.press("⏎");
        assert!(app.state.overlay.is_none());
        assert!(app.last_toast().contains(reason), "{:?}: {:?}", Pick::ACTIONS[action], app.toast_texts());
    }
    // All actions can also be found by name.
    let mut app = single_process("9.0.0");
    for name in ["set variable", "unset variable", "startup hook", "profiler", "run"] {
        app.press(":");
        type_text(&mut app, name);
        app.press("⏎");
        assert!(matches!(app.state.overlay, Some(Overlay::Form(_))), "{name}");
        app.press("⎋⎋");
    }
}

#[test]
fn buttons_and_questions_can_be_clicked() {
    for (width, height) in [(120, 40), (80, 24), (40, 10)] {
        let mut app = TestApp::populated(width, height);
        let place = |app: &TestApp| form(app).place(&app.state.layout());
        app.press("d");
        let no = place(&app).buttons[0];
        app.click(no.x + 1, no.y);
        assert!(app.state.overlay.is_none() && app.take_commands().is_empty(), "{width}");
        app.press("d");
        let (at, row) = place(&app).questions[0];
        app.click(row.x, row.y);
        assert_eq!((at, form(&app).focus), (0, Field::Question(0)));
        let yes = place(&app).buttons[1];
        app.click(yes.x + 1, yes.y);
        assert!(matches!(app.take_commands().as_slice(), [Effect::Begin { kind: JobKind::Dump(_), .. }]), "{width}");
    }
}

/// The action log contains complete entries and keeps them after the process has exited.
#[test]
fn the_action_log_can_be_copied_and_outlives_the_process() {
    let mut app = single_process("9.0.0");
    app.press("a↓↓↓↓⏎");
    fill(&mut app, &["PASSWORD_FILE", "hunter2"]);
    app.press("y⏎");
    let effects = app.take_effects();
    let [Effect::Begin { kind: JobKind::Control(..), ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    let ticket = *ticket;
    app.wait(61_000);
    app.send(Msg::JobDone { ticket, result: Err("the runtime answered E_FAIL".into()) });
    app.press("py⏎");
    app.take_effects();
    app.send(Msg::Processes(vec![process(7, "Other")]));
    app.wait(10_000);
    app.press("⏎");
    while app.state.tab != crate::app::Tab::Jobs {
        app.press("⇥");
    }
    app.press("G y");
    let items = app.copy_menu();
    let text = |label| items.iter().find(|(other, _)| *other == label).map(|(_, text)| text.as_str()).unwrap();
    let first = "08:30:21  Web (42)  set variable PASSWORD_FILE: failed: the runtime answered E_FAIL";
    let second = "08:31:22  Web (42)  perf map on perfmap: no answer yet";
    assert_eq!(text("this entry"), first);
    assert_eq!(text("answer"), "failed: the runtime answered E_FAIL");
    assert_eq!(text("process log"), format!("{first}\n{second}"));
    assert_eq!(text("full log"), text("process log"));
}
