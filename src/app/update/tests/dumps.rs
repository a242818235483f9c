//! Core dumps, perf maps and unavailable actions.

use crate::app::test_app::{TestApp, process};
use crate::app::{Effect, JobKind, JobResult, Msg, Overlay, Reply};
use crate::ipc::{self, CommandCode, DumpFlags, DumpKind, DumpRequest, Failure, Hresult, PerfMapKind, RuntimeVersion, TargetPath};
use crate::model::{FreeSpace, Process, ProcessKey};

#[test]
fn dump_needs_confirmation_and_defaults_to_no() {
    let mut app = TestApp::populated(120, 40);
    let key = ProcessKey { pid: 4242, started: 42_420 };
    for harmless in ["d⏎", "dy", "dyyy", "d⎋", "dn", "dq", "d⇥⇥⏎⏎", "d→⇥→⏎⎋"] {
        app.press(harmless);
        assert_eq!(app.take_commands(), [], "{harmless}");
        app.press("⎋⎋");
    }
    app.press("dy⏎");
    let effects = app.take_commands();
    let [Effect::Begin { key: asked, kind: JobKind::Dump(request), .. }] = effects.as_slice() else { panic!("{effects:?}") };
    let path = TargetPath::new("/tmp/OrderService_4242_20261121_083021.dmp").unwrap();
    let expected = DumpRequest { path, kind: DumpKind::Heap, flags: DumpFlags::default() };
    assert_eq!((*asked, request), (key, &expected));
    // A second dump is refused.
    app.press("d");
    assert!(app.state.overlay.is_none());
    assert!(app.last_toast().contains("still busy with the heap dump"), "{:?}", app.toast_texts());
}

#[test]
fn entry_of_a_job_has_its_path_once_and_the_time_at_which_it_began() {
    let mut app = TestApp::populated(120, 40);
    app.press("dy⏎");
    let (ticket, clock) = (app.last_ticket().unwrap(), app.state.now.clock());
    let [Effect::Begin { kind: JobKind::Dump(DumpRequest { path, .. }), .. }] = &app.take_commands()[..] else { panic!() };
    let path = path.as_str().to_owned();
    let entry = |app: &TestApp| app.state.activity()[0].entry(app.state.now);
    assert_eq!(entry(&app), format!("{clock}  OrderService (4242)  heap dump {path}: no answer yet"));
    app.send(Msg::JobDone { ticket, result: Ok(JobResult { files: vec![path.as_str().into()], bytes: Some(184_000_000), note: None }) });
    for _ in 0..10 {
        assert_eq!(entry(&app), format!("{clock}  OrderService (4242)  heap dump: done, {path}, 184 MB"));
        app.wait(190);
    }
}

#[test]
fn dump_dialog_compares_the_expected_size_with_the_free_space() {
    let mut app = TestApp::populated(120, 40);
    app.press("d");
    let key = ProcessKey { pid: 4242, started: 42_420 };
    let request = |folder: &str| Effect::FindFreeSpace { key, folder: folder.into(), here: folder.into() };
    let answer = |folder: &str, bytes, is_memory| Msg::FreeSpace {
        folder: folder.into(),
        space: Some(FreeSpace { bytes, is_memory, memory_left: None }),
    };
    assert_eq!(app.take_effects(), [request("/tmp")]);
    let form = |app: &TestApp| {
        let Some(Overlay::Form(form)) = &app.state.overlay else { panic!("closed") };
        let place = form.place(&app.state.layout());
        let (mut effects, mut warning) = (String::new(), String::new());
        for (line, _) in place.lines {
            match line {
                crate::app::FormLine::Effect(text) => effects += &(text + " "),
                crate::app::FormLine::Warning(text) => warning += &(text + " "),
                _ => {}
            }
        }
        (effects, warning)
    };
    assert!(!form(&app).0.contains("free") && form(&app).1.is_empty(), "not known yet");
    app.send(answer("/tmp", 20_000_000_000, false));
    assert!(form(&app).0.contains("about 1.2 GB; 20.0 GB are free there."), "{:?}", form(&app));
    assert_eq!(form(&app).1, "");
    // Another folder is another request; the file's name is not.
    app.press("⇥⇥⌃u/small/a.dmp");
    let effects = app.take_effects();
    assert_eq!(effects.last(), Some(&request("/small")), "{effects:?}");
    assert!(!effects.contains(&request("/tmp")));
    app.send(answer("/tmp", 1, false));
    assert_eq!(form(&app).1, "", "the answer about another folder");
    app.send(answer("/small", 20_000_000, false));
    assert!(form(&app).1.starts_with("Only 20.0 MB are free in /small: this dump will probably not fit."), "{:?}", form(&app));
    assert!(!form(&app).0.contains("free"), "it is said once");
    app.send(answer("/small", 20_000_000, true));
    let killed = "/small is in memory, of which the limit of the process leaves 20.0 MB: the kernel would kill it during this dump.";
    assert!(form(&app).1.starts_with(killed), "{:?}", form(&app));
    // A mini dump fits.
    app.press("⇤←");
    assert!(form(&app).0.contains("some megabytes; 20.0 MB are free there.") && form(&app).1.is_empty(), "{:?}", form(&app));
    // It needs memory, too, of which a limit may leave too little.
    for (left, warns) in [(19_000_000, true), (20_000_000, false)] {
        let space = Some(FreeSpace { bytes: 20_000_000, is_memory: false, memory_left: Some(left) });
        app.send(Msg::FreeSpace { folder: "/small".into(), space });
        assert_eq!(form(&app).1.starts_with("The memory limit of the process leaves 19.0 MB, and createdump,"), warns, "{:?}", form(&app));
        assert_eq!(form(&app).1.is_empty(), !warns);
    }
    app.send(Msg::FreeSpace { folder: "/small".into(), space: None });
    assert!(!form(&app).0.contains("free"));
    app.take_effects();
    app.press("→y⏎");
    assert!(matches!(app.take_effects().as_slice(), [Effect::Begin { kind: JobKind::Dump(_), .. }]), "the warning does not prevent it");
}

#[test]
fn full_dump_needs_a_second_confirmation() {
    let mut app = TestApp::populated(120, 40);
    // Focus the dump types, select the last one, focus the button, press it.
    app.press("d⇥←←");
    app.press("→⎋ d⇥→→ y⏎");
    assert_eq!(app.take_commands(), []);
    let Some(Overlay::Form(form)) = &app.state.overlay else { panic!("closed") };
    assert!(form.pressed_once && form.effects()[0].contains("Press again"));
    // Any other key resets the confirmation.
    app.press("⇤⇥y⏎");
    assert_eq!(app.take_commands(), []);
    app.press("⏎");
    let effects = app.take_commands();
    assert!(
        matches!(effects.as_slice(), [Effect::Begin { kind: JobKind::Dump(request), .. }] if request.kind == DumpKind::Full),
        "{effects:?}"
    );
}

#[test]
fn dump_path_must_be_absolute_in_the_target_file_system() {
    let mut app = TestApp::populated(120, 40);
    app.press("d⇥⇥⌃u");
    app.send(Msg::Paste("core\n.dmp\u{1b}[2J".to_owned()));
    app.press("⏎⏎y⏎");
    assert_eq!(app.take_commands(), []);
    let Some(Overlay::Form(form)) = &app.state.overlay else { panic!("closed") };
    assert_eq!(form.problem.as_deref(), Some("Enter an absolute path in the target's file system."));
    let Reply::Text(path) = &form.questions[1].reply else { panic!("no text") };
    assert_eq!(path.value(), "core .dmp [2J");
    app.press("⌃u/x/⏎⏎y⏎");
    assert_eq!(app.take_commands(), []);
    let Some(Overlay::Form(form)) = &app.state.overlay else { panic!("closed") };
    assert_eq!(form.problem.as_deref(), Some("Enter a file name, too."));
    // Focus the additional outputs, select a crash report, focus the button.
    app.press("⌃u/x/y⏎→⏎y⏎");
    let effects = app.take_commands();
    let [Effect::Begin { kind: JobKind::Dump(request), .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((request.path.as_str(), request.flags), ("/x/y", DumpFlags { crash_report: true, ..DumpFlags::default() }));
}

#[test]
fn a_perf_map_is_turned_on_and_off() {
    let mut app = TestApp::populated(120, 40);
    app.press("p⏎");
    assert_eq!(app.take_effects(), []);
    app.press("p⇥→→y⏎");
    let effects = app.take_effects();
    let [Effect::Begin { kind: JobKind::PerfMap(Some(PerfMapKind::All)), ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    app.send(Msg::JobDone { ticket: *ticket, result: Ok(crate::app::JobResult::default()) });
    // An enabled perf map can be turned off.
    app.press("py⏎");
    let effects = app.take_effects();
    assert!(matches!(effects.as_slice(), [Effect::Begin { kind: JobKind::PerfMap(None), .. }]), "{effects:?}");
}

#[test]
fn unavailable_action_reports_the_reason() {
    for (filter, key, reason) in [
        ("NodeAgent", "t", "it belongs to root"),
        ("NodeAgent", "d", "it belongs to root"),
        ("pwsh", "e", "diagnostics are switched off"),
        ("ReportWorker", "p", "would crash it"),
        ("no such process", "t", "No process is selected."),
    ] {
        let mut app = TestApp::populated(120, 40);
        app.press("/");
        app.send(Msg::Paste(filter.to_owned()));
        app.press("⏎");
        app.press(key);
        assert_eq!(app.take_effects(), [], "{filter} {key}");
        assert!(app.state.overlay.is_none());
        assert!(app.last_toast().contains(reason), "{filter} {key}: {:?}", app.toast_texts());
    }
}

#[test]
fn runtime_reply_overrides_the_version_check() {
    let opens = |process: Process, key: &str| {
        let mut app = TestApp::new(120, 40);
        app.send(Msg::Processes(vec![process]));
        app.press(key);
        if app.take_effects().is_empty() && app.state.overlay.is_none() { Err(app.last_toast()) } else { Ok(()) }
    };
    let of = |version: Option<&str>| Process { runtime: version.map(RuntimeVersion::new), ..process(42, "Web") };
    assert_eq!(opens(of(None), "p"), Ok(()), "only an answer can show it");
    assert_eq!(opens(of(Some("3.1.32")), "p"), Err("This needs .NET 8; Web runs 3.1.32.".into()));
    let answered = |version, hresult: Option<Hresult>| {
        let mut process = of(Some(version));
        let answer = hresult.map_or(Ok(ipc::Reply::Done), |hresult| Err(Failure::from(hresult).into()));
        process.support.record_reply(CommandCode::EnablePerfMap, &answer);
        opens(process, "p")
    };
    assert_eq!(answered("3.1.32", None), Ok(()));
    assert_eq!(answered("9.0.7", Some(Hresult::UNKNOWN_COMMAND)), Err("This is not supported by this runtime; Web runs 9.0.7.".into()));
}
