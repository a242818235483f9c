use crate::app::world::{World, fleet, process, published};
use crate::app::{Effect, JobResult, Msg, Ticket};
use crate::model::{Contact, Outcome, Phase, Recording, StoppedBy, Trouble};

#[test]
fn a_dialog_closes_when_its_process_ends() {
    for keys in ["d", "p", "T", "O", "a", "a↓↓↓↓⏎"] {
        let mut world = World::populated(120, 40);
        world.press(keys);
        // Other processes may come and go.
        world.send(Msg::Processes(fleet().into_iter().take(1).chain([process(7, "new")]).collect()));
        assert!(world.state.overlay.is_some(), "{keys}");
        world.send(Msg::Processes(fleet().into_iter().skip(1).collect()));
        assert!(world.state.overlay.is_none(), "{keys}");
        assert_eq!(world.said_last(), "OrderService (4242) has ended; the action was not carried out.");
        world.take_effects();
        world.press("y⏎");
        assert!(world.take_effects().iter().all(|effect| matches!(effect, crate::app::Effect::Copy { .. })), "{keys}");
    }
}

#[test]
fn a_dialog_keeps_its_process_whatever_the_table_does() {
    let mut world = World::populated(120, 40);
    world.press("d");
    let mut processes = fleet();
    for process in &mut processes {
        process.usage.cpu_percent = Some(process.key.pid as f32);
    }
    world.send(Msg::Processes(processes));
    world.press("y");
    let effects = world.take_effects();
    assert!(matches!(effects.as_slice(), [crate::app::Effect::Dump { key, .. }] if key.pid == 4242), "{effects:?}");
}

#[test]
fn a_process_that_ended_cannot_be_acted_on_while_its_row_fades() {
    let mut world = World::populated(120, 40);
    world.send(Msg::Processes(fleet().into_iter().skip(1).collect()));
    assert_eq!(world.selected_name(), "OrderService");
    for key in ["t", "d", "p", "e", "T"] {
        world.press(key);
        assert_eq!(world.take_effects(), [], "{key}");
        assert!(world.said_last().contains("has ended"), "{key}");
    }
    world.wait(3000);
    assert_ne!(world.selected_name(), "OrderService");
}

#[test]
fn pausing_freezes_the_table_but_not_the_truth() {
    let mut world = World::populated(120, 40);
    world.press("␣");
    world.send(Msg::Processes(fleet().into_iter().skip(1).collect()));
    assert_eq!(world.state.list.rows().len(), 8, "what is shown stands still");
    world.wait(60_000);
    assert_eq!(world.state.list.rows().len(), 8);
    // But nobody acts on what is no more.
    world.press("d");
    assert!(world.state.overlay.is_none() && world.said_last().contains("has ended"), "{:?}", world.said());
    world.press("␣");
    assert!(world.state.list.rows().iter().any(|row| row.gone_at.is_some()));
    world.wait(3000);
    assert_eq!(world.state.list.rows().len(), 7);
}

#[test]
fn text_from_outside_is_made_safe() {
    let mut hostile = process(1, "evil\u{1b}[2J");
    hostile.command_line = "a\nb\u{202e}c".into();
    hostile.user = Some("\u{7}".into());
    hostile.contact = Contact::Trouble { kind: Trouble::Slow, reason: "\u{9b}".into() };
    let mut world = World::new(120, 40);
    world.send(Msg::Processes(vec![hostile]));
    world.send(Msg::Failed("\u{1b}]0;owned\u{7}".into()));
    world.send(Msg::TaskPanicked("\u{1b}c".into()));
    let row = world.state.selected().unwrap();
    let all = [&row.process.name, &row.process.command_line, row.process.user.as_ref().unwrap(), row.process.contact.reason().unwrap()]
        .map(str::to_owned)
        .into_iter()
        .chain(world.said());
    for text in all {
        assert_eq!(crate::model::sanitise(&text), text);
        assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
    }
}

#[test]
fn answers_are_told_in_words() {
    let mut world = World::populated(120, 40);
    world.press("dy");
    let ticket = world.last_ticket().unwrap();
    world.send(Msg::JobDone { ticket: Ticket(ticket.0 + 1), result: Ok(JobResult::default()) });
    assert_eq!(world.state.jobs.active(), 1, "that was no answer to this");
    let stalled = |world: &mut World| world.send(Msg::JobStalled { ticket, notice: "no part of the dump has been written".into() });
    stalled(&mut world);
    assert_eq!(world.said_last(), "no part of the dump has been written");
    world.send(Msg::job_done(ticket, Err("first line\n\nsecond\u{1b} line")));
    assert_eq!(world.said_last(), "OrderService (4242): heap dump failed. first line · second\u{fffd} line");
    world.send(Msg::JobDone { ticket, result: Ok(JobResult::default()) });
    stalled(&mut world);
    assert_eq!(world.said().len(), 3, "an answer comes once");
    world.press("⎋dy");
    let ticket = world.last_ticket().unwrap();
    let result = JobResult { files: vec!["/tmp/x.dmp".into()], bytes: Some(412_000_000), note: None };
    world.send(Msg::JobDone { ticket, result: Ok(result) });
    assert_eq!(world.said_last(), "OrderService (4242): heap dump done: /tmp/x.dmp, 412 MB");
}

#[test]
fn who_waits_is_resumed_alone_or_with_all_others() {
    use crate::app::{Effect, JobKind};
    use crate::model::RunState;

    let waiting = |pid| crate::model::Process { run_state: RunState::Suspended, ..process(pid, &format!("w{pid}")) };
    let mut world = World::new(120, 40);
    world.send(Msg::Processes(vec![process(1, "runs"), waiting(2), waiting(3)]));
    for (keys, resumed) in [("R y", vec![2]), ("R ↓ → y", vec![2, 3])] {
        world.state.list.select(crate::model::ProcessKey { pid: 2, started: 20 });
        world.press(keys);
        let effects = world.take_effects();
        let pids = |effect: &Effect| if let Effect::Resume { key, .. } = effect { Some(key.pid) } else { None };
        assert_eq!(effects.iter().filter_map(pids).collect::<Vec<_>>(), resumed, "{keys}: {effects:?}");
        for effect in effects {
            if let Effect::Resume { ticket, .. } = effect {
                world.send(Msg::JobDone { ticket, result: Ok(JobResult::default()) });
            }
        }
    }
    assert!(world.state.jobs.newest_first().all(|job| job.what == JobKind::Resume && !job.is_running()));
    world.state.list.select(crate::model::ProcessKey { pid: 1, started: 10 });
    world.press("R");
    assert!(world.state.overlay.is_none() && world.said_last().contains("is not suspended at startup"));
}

/// Shows, asks, watches, records and dumps each process, which then ends.
fn live_and_end(world: &mut World, pids: std::ops::Range<u32>) {
    for pid in pids {
        world.send(Msg::Processes(vec![process(pid, "ShortLived")]));
        world.press("2");
        world.wait(500);
        world.answer();
        // A flight recorder, and a dump.
        world.press("wO⇤⇤⇤⇤⌃u64MB⏎");
        world.press("dy");
        let effects = world.take_effects();
        let process = process(pid, "ShortLived");
        world.send(Msg::Processes(Vec::new()));
        let mut done = 0;
        for effect in effects {
            done += 1;
            match effect {
                Effect::Watch { ticket, .. } => {
                    world.send(Msg::Watched { ticket, counters: published(9.0, 1.0, 1.0, 1.0, 1.0) });
                    world.send(Msg::WatchEnded { ticket, trouble: None });
                }
                Effect::StartTrace { id, .. } => {
                    let outcome = Outcome { stopped_by: StoppedBy::TargetExit, complete: false, file: None, trouble: None };
                    let starting = Recording::starting(id, process.key, process.name.clone(), vec!["gc".to_owned()], "/x".into());
                    world.send(Msg::Recording(Box::new(Recording { phase: Phase::Done(outcome), ..starting })));
                }
                Effect::Dump { ticket, .. } => world.send(Msg::JobDone { ticket, result: Err(format!("{pid} has ended").into()) }),
                _ => done -= 1,
            }
        }
        assert_eq!(done, 3, "watched, recorded and dumped");
        world.wait(4000);
        world.take_effects();
    }
}

#[test]
fn a_thousand_processes_leave_nothing_behind() {
    let mut world = World::new(120, 40);
    // The logs of actions, recordings and messages fill up first.
    live_and_end(&mut world, 1000..1300);
    let used = allocation_counter::measure(|| live_and_end(&mut world, 2000..3000));
    let state = &world.state;
    assert_eq!((state.list.rows().len(), state.watches.all().len(), state.flights.len()), (0, 0, 0));
    assert!(used.bytes_current.abs() < 16 * 1024, "{used:?}");
}
