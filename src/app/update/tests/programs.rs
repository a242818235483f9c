//! Programs that are started here.

use super::forms::{alone, form, type_text};
use crate::app::world::{World, process, recording};
use crate::app::{Effect, Field, JobResult, Msg, Overlay, StaleSockets, Ticket};
use crate::model::{PacketCounts, Phase, Process, ProducerReport, RecordingId, RunState};

#[test]
fn a_program_is_started_recorded_and_followed() {
    let mut world = alone("9.0.0");
    world.press("aG⏎");
    world.press("⇥⇥⇥y");
    assert!(form(&world).complaint.as_ref().unwrap().contains("Give a program"));
    type_text(&mut world, "/usr/bin/dotnet 'my app.dll' --x");
    world.press("⇥⌃u");
    type_text(&mut world, "gc-verbose");
    world.press("⇥");
    type_text(&mut world, "out.txt");
    world.press("⇥y");
    let effects = world.take_effects();
    let [Effect::Launch { words, id: RecordingId(1), order, output, ticket }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(words, &["/usr/bin/dotnet", "my app.dll", "--x"]);
    assert_eq!((order.profiles.as_slice(), output.to_str()), (&["gc-verbose".to_owned()][..], Some("out.txt")));
    // Nobody is asked about it when the dashboard is left: it only runs.
    assert_eq!(world.state.jobs.active(), 0);
    world.send(Msg::Launched { ticket: *ticket, recording: Box::new(recording(1, 0, Phase::Starting)) });
    assert_eq!(world.take_effects(), [Effect::Refresh]);
    assert_eq!(world.state.recordings.active(), 1);
    assert!(world.said_last().contains("OrderService (4242) starts"), "{:?}", world.said());
    let note = Some("It ended with 7".into());
    world.send(Msg::JobDone { ticket: *ticket, result: Ok(JobResult { note, ..JobResult::default() }) });
    assert!(world.said_last().contains("OrderService (4242): run done. It ended with 7"), "{:?}", world.said());
}

#[test]
fn what_a_program_writes_is_followed_until_somebody_reads_further_up() {
    let mut world = alone("9.0.0");
    world.press("aG⏎");
    type_text(&mut world, "bin/a=b");
    world.press("⇥⇥⇥y");
    let effects = world.take_effects();
    let [Effect::Launch { output, ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(output.to_str(), Some("ab_20261121_083021.out"), "a file of its own, whatever its name is");
    let ticket = *ticket;
    let write = |world: &mut World, lines: usize| {
        let lines = (1..=lines).map(|line| format!("line {line}").into()).collect();
        world.send(Msg::Wrote { ticket, lines });
    };
    let shown = |world: &World| match &world.state.overlay {
        Some(Overlay::Output(view)) => (view.rows(80).len(), view.reader.scroll),
        other => panic!("{other:?}"),
    };
    assert_eq!(shown(&world), (0, 0));
    world.state.take_dirty();
    write(&mut world, 100);
    assert_eq!((shown(&world), world.state.take_dirty()), ((100, 0), true));
    world.press("↑↑");
    write(&mut world, 200);
    assert_eq!(shown(&world), (100, 2), "what is read stands still");
    world.press("g");
    let page = world.state.layout().output_size().0;
    assert_eq!(shown(&world), (100, 100 - page));
    world.press("G");
    assert_eq!(shown(&world), (200, 0), "and goes on from the end");
    world.press("/line␣1⏎");
    assert_eq!(shown(&world).0, 119, "both words");
    // It goes on without being looked at, and can be looked at again, when it has ended, too.
    world.press("⎋");
    write(&mut world, 300);
    let note = Some("It ended with 7".into());
    world.send(Msg::JobDone { ticket, result: Ok(JobResult { note, ..JobResult::default() }) });
    world.press("⏎0⏎");
    assert_eq!(shown(&world), (300, 0));
}

#[test]
fn a_port_is_served_where_programs_find_it() {
    let mut world = alone("9.0.0");
    world.press("P⌃u");
    type_text(&mut world, "port");
    world.press("⇥y");
    assert!(form(&world).complaint.as_ref().unwrap().contains("a path that begins with /"));
    world.press("⌃u");
    type_text(&mut world, "/run/port");
    assert!(form(&world).effects()[0].contains("DOTNET_DiagnosticPorts=/run/port connects"));
    world.press("⇥y");
    let effects = world.take_effects();
    let [Effect::ServePort { path, ticket }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(path.to_str(), Some("/run/port"));
    let files = vec!["DOTNET_DiagnosticPorts=/run/port".into()];
    world.send(Msg::JobDone { ticket: *ticket, result: Ok(JobResult { files, ..JobResult::default() }) });
    assert!(world.said_last().contains("port done: DOTNET_DiagnosticPorts=/run/port"), "{:?}", world.said());
    // The same key takes it down, and says what that means; who waits runs first, unless somebody says otherwise.
    let on_port = |pid, name, run_state| Process { on_port: true, run_state, ..process(pid, name) };
    let web = on_port(42, "Web", RunState::Running);
    world.send(Msg::Processes(vec![web, on_port(43, "Job", RunState::Suspended), process(44, "Other")]));
    for (keys, resumed) in [("y", vec![43]), ("⇥→y", vec![])] {
        world.press("P⏎P");
        let effects = form(&world).effects().join(" ");
        assert!(effects.contains("Connected: Web (42), Job (43). The socket /run/port is removed."), "{effects}");
        assert!(effects.contains("Suspended at startup: 1.") && form(&world).focus == Field::Button(0), "{effects}");
        world.press(keys);
        let effects = world.take_effects();
        let [.., Effect::ClosePort { resume, ticket }] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!(resume.iter().map(|key| key.pid).collect::<Vec<_>>(), resumed);
        world.send(Msg::JobDone { ticket: *ticket, result: Err("Job waits on".into()) });
    }
    // It is served until it is gone.
    world.press("Py");
    let Some(ticket) = world.last_ticket() else { panic!("nothing was sent") };
    world.send(Msg::JobDone { ticket, result: Ok(JobResult::default()) });
    assert!(world.said_last().contains("close port done"), "{:?}", world.said());
    world.press("P");
    assert!(form(&world).effects()[0].contains("DOTNET_DiagnosticPorts="));
}

#[test]
fn stale_sockets_are_removed_after_a_question() {
    let mut world = alone("9.0.0");
    world.press("C");
    assert!(world.said_last().contains("There are no stale sockets."), "{:?}", world.said());
    world.send(Msg::StaleSockets(StaleSockets { count: 2, folders: ["/run/app".into()].into() }));
    world.press("C");
    assert!(form(&world).effects()[0].contains("Removes diagnostic sockets in /run/app."), "{:?}", form(&world).effects());
    assert_eq!(form(&world).focus, Field::Button(0));
    world.press("y");
    let effects = world.take_effects();
    let [.., Effect::CleanUp { folders, ticket }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(folders.iter().map(|folder| folder.to_str().unwrap()).collect::<Vec<_>>(), ["/run/app"]);
    let files = vec!["1 socket removed".into()];
    world.send(Msg::JobDone { ticket: *ticket, result: Ok(JobResult { files, ..JobResult::default() }) });
    assert!(world.said_last().contains("clean up done: 1 socket removed"), "{:?}", world.said());
}

#[test]
fn perfettos_tracing_service_is_served_and_how_that_goes_is_shown() {
    let mut world = alone("9.0.0");
    world.press("F");
    type_text(&mut world, "Web, 43");
    world.press("⇥⌃u");
    type_text(&mut world, "none-such");
    world.press("⇥y");
    assert!(form(&world).complaint.as_ref().unwrap().contains("none-such"));
    world.press("⌃u");
    type_text(&mut world, "gc-collect");
    world.press("⇥y");
    let effects = world.take_effects();
    let [Effect::ServeProducer { targets, profiles, ticket }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((targets.join("|"), profiles.join("|")), ("Web|43".to_owned(), "gc-collect".to_owned()));
    let report = |world: &mut World, report| world.send(Msg::Producer { ticket: *ticket, report });
    // The same key shows how it goes, while that changes.
    world.press("F");
    let shown = |world: &World| form(world).effects().join(" ");
    assert_eq!(shown(&world), "Connecting to the tracing service. No session has recorded the data source dotnet so far.");
    report(&mut world, ProducerReport::Waiting("no \u{1b}service".into()));
    assert!(shown(&world).starts_with("no \u{fffd}service. dn-top tries again."), "{}", shown(&world));
    report(&mut world, ProducerReport::Connected("/run/p".into()));
    let processes = vec!["Web (42)".into()];
    report(&mut world, ProducerReport::Started { instance: 3, processes, troubles: vec!["43 has ended".into()] });
    let packets = PacketCounts { packets: 1200, bytes: 64_000, dropped: 0 };
    report(&mut world, ProducerReport::Progress { instance: 3, packets });
    let expected = "Connected to the tracing service at /run/p. Session 3 records Web (42): 1.2k packets, 64.0 kB. 43 has ended";
    assert_eq!(shown(&world), expected);
    assert!(world.said_last().contains("session 3 began: Web (42) · 43 has ended"), "{:?}", world.said());
    report(&mut world, ProducerReport::Ended { instance: 3, packets: PacketCounts { dropped: 5, ..packets } });
    assert!(
        shown(&world).ends_with("Ended: 1 session, 1.2k packets, 64.0 kB; 5 more DROPPED: the service did not take them in time."),
        "{}",
        shown(&world)
    );
    assert_eq!(world.state.producer.as_ref().map(|producer| producer.packets().dropped), Some(5));
    // A service that goes takes its sessions with it.
    report(&mut world, ProducerReport::Started { instance: 4, processes: vec!["Web (42)".into()], troubles: Vec::new() });
    report(&mut world, ProducerReport::Waiting("the connection was closed".into()));
    assert!(shown(&world).contains("Ended: 2 sessions") && !shown(&world).contains("Session 4"), "{}", shown(&world));
    // What another one reports is of no interest.
    world.send(Msg::Producer { ticket: Ticket(999), report: ProducerReport::Connected("/run/q".into()) });
    assert!(!shown(&world).contains("/run/q"));
    // It ends when that is wanted, and is gone once it has.
    assert_eq!(form(&world).focus, Field::Button(0));
    world.press("y");
    assert_eq!(world.take_effects(), [Effect::EndProducer]);
    assert!(world.state.producer.is_some());
    world.send(Msg::JobDone { ticket: *ticket, result: Ok(JobResult::default()) });
    assert!(world.state.producer.is_none());
    assert!(world.said_last().contains("serve Perfetto done"), "{:?}", world.said());
}
