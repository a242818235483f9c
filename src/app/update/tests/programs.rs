//! Programs started by dn-top.

use super::forms::{form, single_process, type_text};
use crate::app::test_app::{TestApp, process, recording, sample_processes};
use crate::app::{Effect, Field, JobKind, JobResult, Level, Msg, Overlay, ProgramRequest, StaleSockets, Ticket};
use crate::model::{PacketCounts, Phase, Process, ProducerReport, RecordingId, RunState, SafeText};

#[test]
fn own_log_is_followed_until_scrolled_up() {
    let mut app = TestApp::populated(120, 40);
    let lines = |count: usize| (0..count).map(|line| format!("line {line}").into()).collect::<Vec<SafeText>>().into();
    let shown = |app: &TestApp| match &app.state.overlay {
        Some(Overlay::Output(view)) => view.lines.len(),
        _ => 0,
    };
    app.press("l");
    assert_eq!(app.take_effects(), [Effect::ReadLog]);
    app.send(Msg::OwnLog(lines(100)));
    app.send(Msg::Processes(sample_processes()));
    assert_eq!((shown(&app), app.take_effects()), (100, vec![Effect::ReadLog]));
    // While scrolled up, the text is not updated.
    app.press("k");
    app.send(Msg::OwnLog(lines(120)));
    app.send(Msg::Processes(sample_processes()));
    assert_eq!((shown(&app), app.take_effects()), (100, vec![]));
    app.press("⎋");
    // A late reply is ignored.
    app.send(Msg::OwnLog(lines(120)));
    assert!(app.state.overlay.is_none());
}

#[test]
fn launched_program_is_recorded_and_its_exit_reported() {
    let mut app = single_process("9.0.0");
    app.press("aG⏎");
    app.press("⇥⇥⇥y");
    assert!(form(&app).problem.as_ref().unwrap().contains("Give a program"));
    type_text(&mut app, "/usr/bin/dotnet 'my app.dll' --x");
    app.press("⇥⌃u");
    type_text(&mut app, "gc-verbose");
    app.press("⇥");
    type_text(&mut app, "out.txt");
    app.press("⇥y");
    let effects = app.take_effects();
    let [Effect::Begin { kind: JobKind::Launch(program, RecordingId(1)), ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    let ProgramRequest { words, options, output } = &**program;
    assert_eq!(words, &["/usr/bin/dotnet", "my app.dll", "--x"]);
    assert_eq!((options.profiles.as_slice(), output.to_str()), (&["gc-verbose".to_owned()][..], Some("out.txt")));
    // A running program does not require confirmation on quitting.
    assert_eq!(app.state.jobs.active(), 0);
    app.send(Msg::Launched { ticket: *ticket, recording: Box::new(recording(1, 0, Phase::Starting)) });
    assert_eq!(app.take_effects(), [Effect::Refresh]);
    assert_eq!(app.state.recordings.active(), 1);
    assert!(app.last_toast().contains("OrderService (4242) started"), "{:?}", app.toast_texts());
    let note = Some("It exited with 7".into());
    app.send(Msg::JobDone { ticket: *ticket, result: Ok(JobResult { note, ..JobResult::default() }) });
    assert!(app.last_toast().contains("OrderService (4242): run done. It exited with 7"), "{:?}", app.toast_texts());
}

#[test]
fn program_output_is_followed_until_scrolled_up() {
    let mut app = single_process("9.0.0");
    app.press("aG⏎");
    type_text(&mut app, "bin/a=b");
    app.press("⇥⇥⇥y");
    let effects = app.take_effects();
    let [Effect::Begin { kind: JobKind::Launch(program, _), ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(program.output.to_str(), Some("ab_20261121_083021.out"), "a file of its own, whatever its name is");
    let ticket = *ticket;
    let write = |app: &mut TestApp, lines: usize| {
        let lines = (1..=lines).map(|line| format!("line {line}").into()).collect();
        app.send(Msg::ProgramOutput { ticket, lines });
    };
    let shown = |app: &TestApp| match &app.state.overlay {
        Some(Overlay::Output(view)) => (view.rows(80).len(), view.reader.scroll),
        other => panic!("{other:?}"),
    };
    assert_eq!(shown(&app), (0, 0));
    app.state.take_dirty();
    write(&mut app, 100);
    assert_eq!((shown(&app), app.state.take_dirty()), ((100, 0), true));
    app.press("↑↑");
    write(&mut app, 200);
    assert_eq!(shown(&app), (100, 2), "what is read stands still");
    app.press("g");
    let page = usize::from(app.state.layout().reader_text().height) - 2;
    assert_eq!(shown(&app), (100, 100 - page));
    app.press("G");
    assert_eq!(shown(&app), (200, 0), "and goes on from the end");
    app.press("/line␣1⏎");
    assert_eq!(shown(&app).0, 119, "both words");
    // A search starts at the end, with all output.
    app.press("↑");
    write(&mut app, 250);
    assert_eq!(shown(&app).0, 119);
    app.press("/⏎");
    assert_eq!(shown(&app).0, 119, "nothing is typed yet");
    app.press("/␣⏎");
    assert_eq!(shown(&app), (133, 0));
    // Output is collected while it is not shown, and can be opened again, even after the program has exited.
    app.press("⎋");
    write(&mut app, 300);
    let note = Some("It exited with 7".into());
    app.send(Msg::JobDone { ticket, result: Ok(JobResult { note, ..JobResult::default() }) });
    app.press("⏎0⏎");
    assert_eq!(shown(&app), (300, 0));
}

#[test]
fn a_job_of_no_process_leads_to_none() {
    let mut app = single_process("9.0.0");
    app.press("P⇥y");
    app.take_effects();
    app.press("⏎0⏎");
    assert_eq!(app.last_toast(), "The port job concerns no process.");
}

#[test]
fn diagnostic_port_is_served_and_closed() {
    let mut app = single_process("9.0.0");
    app.press("P⌃u");
    type_text(&mut app, "port");
    app.press("⇥y");
    assert!(form(&app).problem.as_ref().unwrap().contains("an absolute path"));
    app.press("⌃u");
    type_text(&mut app, "/run/port");
    assert!(form(&app).effects()[0].contains("DOTNET_DiagnosticPorts=/run/port connects"));
    app.press("⇥y");
    let effects = app.take_effects();
    let [Effect::Begin { kind: JobKind::Port(path), ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(path.to_str(), Some("/run/port"));
    let files = vec!["DOTNET_DiagnosticPorts=/run/port".into()];
    app.send(Msg::JobDone { ticket: *ticket, result: Ok(JobResult { files, ..JobResult::default() }) });
    assert!(app.last_toast().contains("port done: DOTNET_DiagnosticPorts=/run/port"), "{:?}", app.toast_texts());
    // The same key closes the port. The dialog explains the consequences; suspended processes are resumed first unless that is turned off.
    let on_port = |pid, name, run_state| Process { on_port: true, run_state, ..process(pid, name) };
    let web = on_port(42, "Web", RunState::Running);
    app.send(Msg::Processes(vec![web, on_port(43, "Job", RunState::Suspended), process(44, "Other")]));
    for (keys, resumed) in [("y⏎", vec![43]), ("⇥→y⏎", vec![])] {
        app.press("P⏎P");
        let effects = form(&app).effects().join(" ");
        assert!(effects.contains("Connected: Web (42), Job (43). The socket /run/port is removed."), "{effects}");
        assert!(effects.contains("Suspended at startup: 1.") && form(&app).focus == Field::Button(0), "{effects}");
        app.press(keys);
        let effects = app.take_effects();
        let [.., Effect::Begin { kind: JobKind::ClosePort(_, resume), ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!(resume.iter().map(|key| key.pid).collect::<Vec<_>>(), resumed);
        app.send(Msg::JobDone { ticket: *ticket, result: Err("Job waits on".into()) });
    }
    // The port is served until it is closed.
    app.press("Py⏎");
    let Some(ticket) = app.last_ticket() else { panic!("nothing was sent") };
    app.send(Msg::JobDone { ticket, result: Ok(JobResult::default()) });
    assert!(app.last_toast().contains("close port done"), "{:?}", app.toast_texts());
    app.press("P");
    assert!(form(&app).effects()[0].contains("DOTNET_DiagnosticPorts="));
}

#[test]
fn stale_sockets_are_removed_after_confirmation() {
    let mut app = single_process("9.0.0");
    app.press("C");
    assert!(app.last_toast().contains("There are no stale sockets."), "{:?}", app.toast_texts());
    app.send(Msg::StaleSockets(StaleSockets { count: 2, folders: ["/run/app".into()].into() }));
    app.press("C");
    assert!(form(&app).effects()[0].contains("Removes diagnostic sockets in /run/app."), "{:?}", form(&app).effects());
    assert_eq!(form(&app).focus, Field::Button(0));
    // Only what the dialog names is confirmed.
    app.send(Msg::StaleSockets(StaleSockets { count: 3, folders: ["/run/app".into(), "/run/other".into()].into() }));
    app.press("y⏎");
    let effects = app.take_effects();
    let [.., Effect::Begin { kind: JobKind::CleanUp(folders), ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(folders.iter().map(|folder| folder.to_str().unwrap()).collect::<Vec<_>>(), ["/run/app"]);
    let files = vec!["1 socket removed".into()];
    app.send(Msg::JobDone { ticket: *ticket, result: Ok(JobResult { files, ..JobResult::default() }) });
    assert!(app.last_toast().contains("clean up done: 1 socket removed"), "{:?}", app.toast_texts());
}

#[test]
fn perfetto_producer_is_served_and_its_status_shown() {
    let mut app = single_process("9.0.0");
    app.press("K");
    type_text(&mut app, "Web, 43");
    app.press("⇥⌃u");
    type_text(&mut app, "none-such");
    app.press("⇥y");
    assert!(form(&app).problem.as_ref().unwrap().contains("none-such"));
    app.press("⌃u");
    type_text(&mut app, "gc-collect");
    app.press("⇥y");
    let effects = app.take_effects();
    let [Effect::Begin { kind: JobKind::Producer { targets, profiles }, ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((targets.join("|"), profiles.join("|")), ("Web|43".to_owned(), "gc-collect".to_owned()));
    let report = |app: &mut TestApp, report| app.send(Msg::Producer { ticket: *ticket, report });
    // The same key shows the status, which is updated live.
    app.press("K");
    let shown = |app: &TestApp| form(app).effects().join(" ");
    assert_eq!(shown(&app), "Connecting to the tracing service. No session has recorded the data source dotnet so far.");
    let summary = |app: &TestApp| app.state.producer.as_ref().unwrap().summary();
    assert_eq!(summary(&app), "connecting");
    report(&mut app, ProducerReport::Waiting("no \u{1b}service".into()));
    assert_eq!((summary(&app).as_str(), app.last_toast().as_str()), ("no service", "no \u{fffd}service; trying again"));
    assert!(shown(&app).starts_with("no \u{fffd}service. dn-top retries."), "{}", shown(&app));
    report(&mut app, ProducerReport::Connected("/run/p".into()));
    let processes = vec!["Web (42)".into()];
    report(&mut app, ProducerReport::Started { instance: 3, processes, troubles: vec!["43 has ended".into()] });
    let packets = PacketCounts { packets: 1200, bytes: 64_000, dropped: 0 };
    report(&mut app, ProducerReport::Progress { instance: 3, packets });
    let expected = "Connected to the tracing service at /run/p. Session 3 records Web (42): 1.2k packets, 64.0 kB. 43 has ended";
    assert_eq!(shown(&app), expected);
    assert!(app.last_toast().contains("session 3 began: Web (42) · 43 has ended"), "{:?}", app.toast_texts());
    report(&mut app, ProducerReport::Ended { instance: 3, packets: PacketCounts { dropped: 5, ..packets } });
    assert!(
        shown(&app).ends_with("Ended: 1 session, 1.2k packets, 64.0 kB; 5 more DROPPED: the service did not accept them in time."),
        "{}",
        shown(&app)
    );
    assert_eq!(app.state.producer.as_ref().map(|producer| producer.packets().dropped), Some(5));
    assert_eq!(app.state.toasts.history().next().unwrap().level, Level::Warning);
    // When the service disconnects, its sessions end.
    report(&mut app, ProducerReport::Started { instance: 4, processes: vec!["Web (42)".into()], troubles: Vec::new() });
    report(&mut app, ProducerReport::Waiting("the connection was closed".into()));
    assert!(shown(&app).contains("Ended: 2 sessions") && !shown(&app).contains("Session 4"), "{}", shown(&app));
    // Reports with another ticket are ignored.
    app.send(Msg::Producer { ticket: Ticket(999), report: ProducerReport::Connected("/run/q".into()) });
    assert!(!shown(&app).contains("/run/q"));
    // The producer is stopped on request and removed once it has ended.
    assert_eq!(form(&app).focus, Field::Button(0));
    app.press("y⏎");
    assert_eq!(app.take_effects(), [Effect::StopProducer]);
    assert!(app.state.producer.is_some());
    app.send(Msg::JobDone { ticket: *ticket, result: Ok(JobResult::default()) });
    assert!(app.state.producer.is_none());
    assert!(app.last_toast().contains("serve Perfetto done"), "{:?}", app.toast_texts());
}
