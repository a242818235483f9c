use super::run_states::notice;
use crate::app::test_app::{TestApp, process, published, recording, sample_processes};
use crate::app::{Effect, JobKind, JobResult, Msg, Ticket};
use crate::model::{Contact, Outcome, Phase, Recording, StoppedBy, Trouble};

#[test]
fn a_dialog_closes_when_its_process_ends() {
    for keys in ["d", "p", "T", "O", "a", "a↓↓↓↓⏎"] {
        let mut app = TestApp::populated(120, 40);
        app.press(keys);
        // Changes of other processes keep the dialog open.
        app.send(Msg::Processes(sample_processes().into_iter().take(1).chain([process(7, "new")]).collect()));
        assert!(app.state.overlay.is_some(), "{keys}");
        app.send(Msg::Processes(sample_processes().into_iter().skip(1).collect()));
        assert!(app.state.overlay.is_none(), "{keys}");
        assert_eq!(app.last_toast(), "OrderService (4242) has ended; the action was not carried out.");
        app.take_effects();
        app.press("y⏎");
        assert!(app.take_effects().iter().all(|effect| matches!(effect, crate::app::Effect::Copy { .. })), "{keys}");
    }
}

#[test]
fn dialog_keeps_its_process_when_the_table_is_reordered() {
    let mut app = TestApp::populated(120, 40);
    app.press("d");
    let mut processes = sample_processes();
    for process in &mut processes {
        process.usage.cpu_percent = Some(process.key.pid.into());
    }
    app.send(Msg::Processes(processes));
    app.press("y⏎");
    let effects = app.take_effects();
    assert!(matches!(effects.as_slice(), [.., Effect::Begin { key, kind: JobKind::Dump(_), .. }] if key.pid == 4242), "{effects:?}");
}

#[test]
fn actions_are_refused_for_an_ended_process() {
    let mut app = TestApp::populated(120, 40);
    app.send(Msg::Processes(sample_processes().into_iter().skip(1).collect()));
    assert_eq!(app.selected_name(), "OrderService");
    for key in ["t", "d", "p", "e", "T"] {
        app.press(key);
        assert_eq!(app.take_effects(), [], "{key}");
        assert!(app.last_toast().contains("has ended"), "{key}");
    }
    app.wait(3000);
    assert_ne!(app.selected_name(), "OrderService");
}

/// Its last recording is what explains the crash.
#[test]
fn ended_process_stays_while_its_details_are_read() {
    let mut app = TestApp::populated(120, 40);
    app.press("t");
    app.report(recording(1, 5, Phase::Recording));
    app.press("⏎7");
    app.send(Msg::Processes(sample_processes().into_iter().skip(1).collect()));
    app.wait(60_000);
    assert_eq!(app.selected_name(), "OrderService");
    assert_eq!(app.state.selected().unwrap().word(), "ended");
    assert!(app.state.shown_recording().is_some());
    assert_eq!(notice(&app), "The process has ended. Its recordings and dumps are in 0: Jobs.");
    let uptime = |app: &TestApp| app.state.overview().unwrap().facts.into_iter().find(|fact| fact.label == "Uptime").unwrap().value;
    let at_exit = uptime(&app);
    app.wait(3_600_000);
    assert_eq!(uptime(&app), at_exit);
    app.press("⎋");
    assert_ne!(app.selected_name(), "OrderService");
    assert_eq!(app.state.list.rows().len(), sample_processes().len() - 1);
}

#[test]
fn ended_process_stays_although_it_no_longer_matches_the_filter() {
    let mut app = TestApp::populated(120, 40);
    app.press("t");
    app.report(recording(1, 5, Phase::Recording));
    app.press("/recording⏎⏎");
    assert_eq!(app.selected_name(), "OrderService");
    app.send(Msg::Processes(sample_processes().into_iter().skip(1).collect()));
    let outcome = Outcome { stopped_by: StoppedBy::TargetExit, complete: false, file: None, trouble: None };
    app.report(recording(1, 6, Phase::Done(outcome)));
    app.wait(60_000);
    assert_eq!((app.selected_name().as_str(), app.state.selected().unwrap().word()), ("OrderService", "ended"));
}

#[test]
fn frozen_table_still_refuses_actions_on_ended_processes() {
    let mut app = TestApp::populated(120, 40);
    app.press("␣");
    app.send(Msg::Processes(sample_processes().into_iter().skip(1).collect()));
    assert_eq!(app.state.list.rows().len(), 8, "what is shown stands still");
    app.wait(60_000);
    assert_eq!(app.state.list.rows().len(), 8);
    // Actions are refused for a process that has ended.
    app.press("d");
    assert!(app.state.overlay.is_none() && app.last_toast().contains("has ended"), "{:?}", app.toast_texts());
    app.press("␣");
    assert!(app.state.list.rows().iter().any(|row| row.exited_at.is_some()));
    app.wait(3000);
    assert_eq!(app.state.list.rows().len(), 7);
}

#[test]
fn untrusted_text_is_sanitized() {
    let mut hostile = process(1, "evil\u{1b}[2J");
    hostile.command_line = "a\nb\u{202e}c".into();
    hostile.user = Some("\u{7}".into());
    hostile.contact = Contact::Trouble { kind: Trouble::Slow, reason: "\u{9b}".into() };
    let mut app = TestApp::new(120, 40);
    app.send(Msg::Processes(vec![hostile]));
    app.send(Msg::Failed("\u{1b}]0;owned\u{7}".into()));
    app.send(Msg::TaskPanicked("\u{1b}c".into()));
    let row = app.state.selected().unwrap();
    let all = [&row.process.name, &row.process.command_line, row.process.user.as_ref().unwrap(), row.process.contact.reason().unwrap()]
        .map(str::to_owned)
        .into_iter()
        .chain(app.toast_texts());
    for text in all {
        assert_eq!(crate::model::sanitize(&text), text);
        assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
    }
}

#[test]
fn job_results_are_reported_in_messages() {
    let mut app = TestApp::populated(120, 40);
    app.press("dy⏎");
    let ticket = app.last_ticket().unwrap();
    app.send(Msg::JobDone { ticket: Ticket(ticket.0 + 1), result: Ok(JobResult::default()) });
    assert_eq!(app.state.jobs.active(), 1, "that was no answer to this");
    let stalled = |app: &mut TestApp| app.send(Msg::JobStalled { ticket, notice: "the dump has made no progress".into() });
    stalled(&mut app);
    assert_eq!(app.last_toast(), "the dump has made no progress");
    app.send(Msg::job_done(ticket, Err("first line\n\nsecond\u{1b} line")));
    assert_eq!(app.last_toast(), "OrderService (4242): heap dump failed. first line · second\u{fffd} line");
    app.send(Msg::JobDone { ticket, result: Ok(JobResult::default()) });
    stalled(&mut app);
    assert_eq!(app.toast_texts().len(), 2, "an answer comes once, and that the job began is outdated");
    app.press("⎋dy⏎");
    let ticket = app.last_ticket().unwrap();
    let result = JobResult { files: vec!["/tmp/x.dmp".into()], bytes: Some(412_000_000), note: None };
    app.send(Msg::JobDone { ticket, result: Ok(result) });
    assert_eq!(app.last_toast(), "OrderService (4242): heap dump done: /tmp/x.dmp, 412 MB");
}

#[test]
fn one_or_all_suspended_processes_are_resumed() {
    use crate::model::RunState;

    let waiting = |pid| crate::model::Process { run_state: RunState::Suspended, ..process(pid, &format!("w{pid}")) };
    let mut app = TestApp::new(120, 40);
    app.send(Msg::Processes(vec![process(1, "runs"), waiting(2), waiting(3)]));
    for (keys, resumed) in [("R y⏎", vec![2]), ("R ↓ → y⏎", vec![2, 3])] {
        app.state.list.select(crate::model::ProcessKey { pid: 2, started: 20 });
        app.press(keys);
        let effects = app.take_effects();
        let pids = |effect: &Effect| if let Effect::Begin { key, kind: JobKind::Resume, .. } = effect { Some(key.pid) } else { None };
        assert_eq!(effects.iter().filter_map(pids).collect::<Vec<_>>(), resumed, "{keys}: {effects:?}");
        for effect in effects {
            if let Effect::Begin { ticket, kind: JobKind::Resume, .. } = effect {
                app.send(Msg::JobDone { ticket, result: Ok(JobResult::default()) });
            }
        }
    }
    assert!(app.state.jobs.newest_first().all(|job| job.kind == JobKind::Resume && !job.is_running()));
    app.state.list.select(crate::model::ProcessKey { pid: 1, started: 10 });
    app.press("R");
    assert!(app.state.overlay.is_none() && app.last_toast().contains("is not suspended at startup"));
    // One of one.
    app.send(Msg::Processes(vec![waiting(2)]));
    app.state.list.select(crate::model::ProcessKey { pid: 2, started: 20 });
    app.press("R ↓ →");
    assert_eq!(super::forms::form(&app).effects()[0], "w2 runs its first instructions.");
}

/// Adds each process, shows its environment, watches, records and dumps it, and removes it.
fn simulate_process_lifetimes(app: &mut TestApp, pids: std::ops::Range<u32>) {
    for pid in pids {
        app.send(Msg::Processes(vec![process(pid, "ShortLived")]));
        app.press("2");
        app.wait(500);
        app.answer();
        // Start a flight recorder and a dump.
        app.press("wO⇤⇤⇤⇤⌃u64MB⌃⏎");
        app.press("dy⏎");
        let effects = app.take_effects();
        let process = process(pid, "ShortLived");
        app.send(Msg::Processes(Vec::new()));
        let mut done = 0;
        for effect in effects {
            done += 1;
            match effect {
                Effect::Watch { ticket, .. } => {
                    app.count(ticket, published(9.0, 1.0, 1.0, 1.0, 1.0));
                    app.send(Msg::WatchEnded { ticket, trouble: None });
                }
                Effect::StartTrace { id, .. } => {
                    let outcome = Outcome { stopped_by: StoppedBy::TargetExit, complete: false, file: None, trouble: None };
                    let starting = Recording::starting(id, process.key, process.name.clone(), vec!["gc".to_owned()], "/x".into());
                    app.report(Recording { phase: Phase::Done(outcome), ..starting });
                }
                Effect::Begin { ticket, kind: JobKind::Dump(_), .. } => {
                    app.send(Msg::JobDone { ticket, result: Err(format!("{pid} has ended").into()) })
                }
                _ => done -= 1,
            }
        }
        assert_eq!(done, 3, "watched, recorded and dumped");
        app.wait(4000);
        app.take_effects();
    }
}

#[test]
fn a_thousand_ended_processes_leak_no_memory() {
    let mut app = TestApp::new(120, 40);
    // Fill the bounded logs of actions, recordings and messages first.
    simulate_process_lifetimes(&mut app, 1000..1300);
    let used = allocation_counter::measure(|| simulate_process_lifetimes(&mut app, 2000..3000));
    let state = &app.state;
    assert_eq!((state.list.rows().len(), state.watches.all().len(), state.flight_options.len()), (0, 0, 0));
    assert!(used.bytes_current.abs() < 16 * 1024, "{used:?}");
}

fn effects_for(effects: &[Effect]) -> Vec<(&'static str, u32)> {
    let key = |effect: &Effect| match effect {
        Effect::StartTrace { key, .. } => Some(("start", key.pid)),
        Effect::Watch { key, .. } => Some(("watch", key.pid)),
        Effect::Unwatch { key } => Some(("unwatch", key.pid)),
        Effect::StopTrace { .. } => Some(("stop", 0)),
        _ => None,
    };
    effects.iter().filter_map(key).collect()
}

#[test]
fn tagged_processes_are_recorded_and_watched_together() {
    let mut app = TestApp::populated(120, 40);
    // NodeAgent (733) cannot be recorded.
    app.press("/!search⏎gssss");
    let tagged: Vec<_> = app.state.list.tagged().iter().map(|key| key.pid).collect();
    assert_eq!(tagged, [4242, 660, 733, 901]);
    let selected = app.selected_name();
    app.take_effects();
    app.press("w");
    assert_eq!(effects_for(&app.take_effects()), [("watch", 4242), ("watch", 660), ("watch", 901)]);
    assert!(app.last_toast().starts_with("1 of 4 tagged processes: "), "{:?}", app.toast_texts());
    app.press("t");
    assert_eq!(effects_for(&app.take_effects()), [("start", 4242), ("start", 660), ("start", 901)]);
    assert_eq!(app.selected_name(), selected, "the selection stays");
    // In the details, keys apply to the selected process.
    app.press("⏎w");
    assert_eq!(effects_for(&app.take_effects()).len(), 1);
    // Processes not listed are unaffected.
    app.press("⎋⎋/order⏎wT⏎");
    assert_eq!(effects_for(&app.take_effects()), [("unwatch", 4242), ("start", 4242)]);
    app.press("⎋U");
    assert!(app.state.list.tagged().is_empty());
}

#[test]
fn slowdown_recording_covers_all_tagged_processes() {
    for keys in ["F", "T↑⏎"] {
        let mut app = TestApp::populated(120, 40);
        app.press("/!search⏎gssss");
        let selected = app.selected_name();
        app.take_effects();
        app.press(keys);
        let effects = app.take_effects();
        assert_eq!(effects_for(&effects), [("start", 4242), ("start", 660), ("start", 901)], "{keys}");
        let is_limited = |effect: &Effect| matches!(effect, Effect::StartTrace { options, .. } if options.duration.is_some());
        assert!(effects.iter().all(is_limited), "{keys}");
        assert!(app.last_toast().starts_with("1 of 4 tagged processes: "), "{:?}", app.toast_texts());
        assert_eq!((app.selected_name(), app.state.tab), (selected, crate::app::Tab::Slowdown));
        // The default profiles stay unchanged.
        assert_eq!(app.state.last_profiles, crate::clr::DASHBOARD_PROFILES);
    }
}

#[test]
fn process_tree_groups_children_and_containers() {
    let mut app = TestApp::new(120, 40);
    let of = |pid: u32, parent: Option<u32>, container: Option<&str>, cpu: f64| {
        let mut process = process(pid, &format!("P{pid}"));
        (process.parent, process.container, process.usage.cpu_percent) = (parent, container.map(Into::into), Some(cpu));
        process
    };
    let all = vec![
        of(10, Some(1), None, 1.0),
        of(11, Some(10), None, 50.0),
        of(12, Some(11), None, 60.0),
        of(13, Some(10), None, 70.0),
        of(20, Some(1), Some("abc"), 40.0),
        of(21, Some(1), Some("def"), 30.0),
        of(22, Some(1), Some("abc"), 20.0),
        // A cycle of parents.
        of(30, Some(31), None, 5.0),
        of(31, Some(30), None, 6.0),
    ];
    app.send(Msg::Processes(all));
    let rows = |app: &TestApp| -> Vec<(u32, usize)> {
        (0..app.state.list.len()).filter_map(|place| app.state.list.at(place)).map(|row| (row.process.key.pid, row.depth)).collect()
    };
    let flat = [13, 12, 11, 20, 21, 22, 31, 30, 10].map(|pid| (pid, 0));
    assert_eq!(rows(&app), flat);
    app.press("H");
    let tree = [(20, 0), (22, 0), (21, 0), (10, 0), (13, 1), (11, 1), (12, 2), (31, 0), (30, 0)];
    assert_eq!(rows(&app), tree);
    // Children of a hidden parent become roots.
    app.press("/!P11⏎");
    assert_eq!(rows(&app)[..2], [(12, 0), (20, 0)]);
    app.press("⎋H");
    assert_eq!(rows(&app), flat);
}

#[test]
fn filter_given_up_while_typed_keeps_the_selection() {
    let mut app = TestApp::populated(120, 40);
    app.press("↓↓");
    let before = app.selected_name();
    app.press("/no␣such⎋");
    assert_eq!(app.selected_name(), before);
    let other = app.state.list.rows().iter().find(|row| *row.process.name != *before).unwrap().process.name.to_string();
    app.press(&format!("/{other}⏎⎋"));
    assert_ne!(app.selected_name(), before, "an accepted filter selects what it leaves");
}
