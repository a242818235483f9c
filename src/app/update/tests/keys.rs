use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::app::action::Context;
use crate::app::world::{World, fleet, process, variables};
use crate::app::{Clipboard, Column, Effect, Msg, Overlay, Reply, Tab};
use crate::ipc::{self, CommandCode, DumpFlags, DumpKind, DumpRequest, Failure, Hresult, PerfMapKind, RuntimeVersion, TargetPath};
use crate::model::{Process, ProcessKey};

#[test]
fn keys_lead_from_one_place_to_another() {
    use Context::*;
    for (keys, context) in [
        ("", List),
        ("⏎", Overview),
        ("⏎⇥", Environment),
        ("⏎⇥⇥", Trace),
        ("⏎⇤", Jobs),
        ("⏎9", Counters),
        ("⏎0", Jobs),
        ("⏎2⎋", List),
        ("⏎q", List),
        ("e", Environment),
        ("e⎋", List),
        ("⇥⏎", Environment),
        ("/", Line),
        ("/web⏎", List),
        ("/web⎋", List),
        ("?", Reader),
        ("??", List),
        ("?/dump", Line),
        ("?/dump⏎", Reader),
        ("?/dump⎋q", List),
        ("!", Reader),
        (":", Palette),
        (":⎋", List),
        ("T", PickMany),
        ("y", Pick),
        ("d", Form),
        ("d⇥⇥", FormText),
        ("dn", List),
        ("d⏎", List),
        ("p", Form),
        ("p⎋", List),
    ] {
        let mut world = World::populated(120, 40);
        world.press(keys);
        assert_eq!(world.state.context(), context, "{keys}");
    }
}

#[test]
fn a_filter_narrows_at_once_stays_and_goes() {
    let mut world = World::populated(120, 40);
    world.press("/we");
    assert_eq!((world.state.list.len(), world.selected_name().as_str()), (1, "WebGateway"));
    world.press("b⏎");
    assert_eq!(world.state.list.filter().as_str(), "web");
    world.press("⎋");
    assert_eq!((world.state.list.filter().as_str(), world.state.list.len()), ("", 8));
    assert_eq!(world.selected_name(), "WebGateway", "the selection stays with the process");
    // While it is typed, arrows move, letters do not.
    world.press("/r↓↓q");
    assert_eq!(world.state.context(), Context::Line);
    assert_eq!(world.state.list.filter().as_str(), "rq");
}

#[test]
fn columns_are_sorted_by_with_arrows_and_digits() {
    let mut world = World::populated(120, 40);
    for (keys, column, descending) in [
        ("", Column::Cpu, true),
        (">", Column::Memory, true),
        ("<<", Column::Runtime, false),
        ("r", Column::Runtime, true),
        ("1", Column::Pid, false),
        ("1", Column::Pid, true),
        ("2", Column::Name, false),
        ("<<", Column::Command, false),
        (">", Column::Pid, false),
        ("0", Column::Command, false),
    ] {
        world.press(keys);
        let sort = world.state.list.sort();
        assert_eq!((sort.column, sort.descending), (column, descending), "{keys}");
    }
}

#[test]
fn a_held_key_repeats_and_a_released_one_does_nothing() {
    let mut world = World::populated(120, 40);
    for (kind, cursor) in [(KeyEventKind::Press, 1), (KeyEventKind::Repeat, 2), (KeyEventKind::Release, 2)] {
        world.send(Msg::Key(KeyEvent::new_with_kind(KeyCode::Down, KeyModifiers::NONE, kind)));
        assert_eq!(world.state.list.cursor(), Some(cursor), "{kind:?}");
    }
}

#[test]
fn a_dump_is_asked_about_and_no_is_the_default() {
    let mut world = World::populated(120, 40);
    let key = ProcessKey { pid: 4242, started: 42_420 };
    for harmless in ["d⏎", "d⎋", "dn", "dq", "d⇥⇥⏎⏎", "d→⇥→⏎⎋"] {
        world.press(harmless);
        assert_eq!(world.take_effects(), [], "{harmless}");
        world.press("⎋⎋");
    }
    world.press("dy");
    let effects = world.take_effects();
    let [Effect::Dump { key: asked, request, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    let path = TargetPath::new("/tmp/OrderService_4242_20261121_083021.dmp").unwrap();
    let expected = DumpRequest { path, kind: DumpKind::Heap, flags: DumpFlags::default() };
    assert_eq!((*asked, request), (key, &expected));
    // One at a time.
    world.press("d");
    assert!(world.state.overlay.is_none());
    assert!(world.said_last().contains("still busy with the heap dump"), "{:?}", world.said());
}

#[test]
fn a_full_dump_needs_a_second_yes() {
    let mut world = World::populated(120, 40);
    // To the types, to the last of them, to the buttons, to yes.
    world.press("d⇥←←");
    world.press("→⎋ d⇥→→ y");
    assert_eq!(world.take_effects(), []);
    let Some(Overlay::Form(form)) = &world.state.overlay else { panic!("closed") };
    assert!(form.armed && form.effects()[0].contains("Press again"));
    // Anything else in between starts over.
    world.press("⇤⇥y");
    assert_eq!(world.take_effects(), []);
    world.press("⏎");
    let effects = world.take_effects();
    assert!(matches!(effects.as_slice(), [Effect::Dump { request, .. }] if request.kind == DumpKind::Full), "{effects:?}");
}

#[test]
fn a_dump_path_is_whole_and_as_the_target_sees_it() {
    let mut world = World::populated(120, 40);
    world.press("d⇥⇥⌃u");
    world.send(Msg::Paste("core\n.dmp\u{1b}[2J".to_owned()));
    world.press("⏎⏎y");
    assert_eq!(world.take_effects(), []);
    let Some(Overlay::Form(form)) = &world.state.overlay else { panic!("closed") };
    assert_eq!(form.complaint.as_deref(), Some("Give the whole path, from / on, as the target sees it."));
    let Reply::Text(path) = &form.questions[1].reply else { panic!("no text") };
    assert_eq!(path.value(), "core .dmp [2J");
    // To what else is written, a crash report, and the buttons.
    world.press("⌃u/x/y⏎→⏎y");
    let effects = world.take_effects();
    let [Effect::Dump { request, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((request.path.as_str(), request.flags), ("/x/y", DumpFlags { crash_report: true, ..DumpFlags::default() }));
}

#[test]
fn a_perf_map_is_turned_on_and_off() {
    let mut world = World::populated(120, 40);
    world.press("p⏎");
    assert_eq!(world.take_effects(), []);
    world.press("p⇥→→y");
    let effects = world.take_effects();
    let [Effect::PerfMap { kind: Some(PerfMapKind::All), ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    world.send(Msg::JobDone { ticket: *ticket, result: Ok(crate::app::JobResult::default()) });
    // What was turned on is offered to be turned off.
    world.press("py");
    let effects = world.take_effects();
    assert!(matches!(effects.as_slice(), [Effect::PerfMap { kind: None, .. }]), "{effects:?}");
}

#[test]
fn what_cannot_be_done_says_why() {
    for (filter, key, reason) in [
        ("NodeAgent", "t", "it belongs to root"),
        ("NodeAgent", "d", "it belongs to root"),
        ("pwsh", "e", "diagnostics are switched off"),
        ("ReportWorker", "p", "would crash it"),
        ("no such process", "t", "No process is selected."),
    ] {
        let mut world = World::populated(120, 40);
        world.press("/");
        world.send(Msg::Paste(filter.to_owned()));
        world.press("⏎");
        world.press(key);
        assert_eq!(world.take_effects(), [], "{filter} {key}");
        assert!(world.state.overlay.is_none());
        assert!(world.said_last().contains(reason), "{filter} {key}: {:?}", world.said());
    }
}

#[test]
fn an_answer_counts_more_than_the_version() {
    let opens = |process: Process, key: &str| {
        let mut world = World::new(120, 40);
        world.send(Msg::Processes(vec![process]));
        world.press(key);
        if world.take_effects().is_empty() && world.state.overlay.is_none() { Err(world.said_last()) } else { Ok(()) }
    };
    let of = |version: Option<&str>| Process { runtime: version.map(RuntimeVersion::new), ..process(42, "Web") };
    assert_eq!(opens(of(None), "p"), Ok(()), "only an answer can show it");
    assert_eq!(opens(of(Some("3.1.32")), "e"), Err("This needs .NET 5; Web runs 3.1.32.".into()));
    assert_eq!(opens(of(Some("3.1.32")), "p"), Err("This needs .NET 8; Web runs 3.1.32.".into()));
    let answered = |version, hresult: Option<Hresult>| {
        let mut process = of(Some(version));
        let answer = hresult.map_or(Ok(ipc::Reply::Done), |hresult| Err(Failure::from(hresult).into()));
        process.support.learn(CommandCode::EnablePerfMap, &answer);
        opens(process, "p")
    };
    assert_eq!(answered("3.1.32", None), Ok(()));
    assert_eq!(answered("9.0.7", Some(Hresult::UNKNOWN_COMMAND)), Err("This is not supported by this runtime; Web runs 9.0.7.".into()));
}

#[test]
fn copying_offers_what_is_there_and_nothing_that_is_masked() {
    let mut world = World::populated(120, 40);
    world.press("y⏎");
    assert_eq!(world.take_effects(), [Effect::Copy { text: "4242".to_owned(), label: "pid".to_owned() }]);
    world.send(Msg::Copied { label: "pid".into(), to: Clipboard::Terminal });
    assert_eq!(world.said_last(), "pid sent to the terminal's clipboard");

    world.press("e");
    world.answer();
    world.press("/API_KEY⏎");
    let offered = |world: &mut World| {
        world.press("y");
        let Some(Overlay::Copy(menu)) = &world.state.overlay else { panic!("no menu") };
        let texts: Vec<_> = menu.items.iter().map(|item| item.text.clone()).collect();
        world.press("⎋");
        texts
    };
    assert!(!offered(&mut world).iter().any(|text| text.contains("sk-live")));
    world.press("v");
    assert_eq!(offered(&mut world)[0], "sk-live-0123456789");
}

#[test]
fn the_environment_is_asked_for_once_and_old_answers_are_dropped() {
    let mut world = World::populated(120, 40);
    world.press("e");
    let effects = world.take_effects();
    let [Effect::ReadEnvironment { ticket: first, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    world.wait(1000);
    assert_eq!(world.take_effects(), [], "one question at a time");
    // Another process, once the selection has settled.
    world.press("⎋↓");
    assert_eq!(world.take_effects(), []);
    world.wait(300);
    let effects = world.take_effects();
    let [Effect::ReadEnvironment { ticket: second, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    world.send(Msg::Environment { ticket: *first, result: Ok(variables()) });
    assert!(world.state.details.environment.get().is_none(), "that was the answer to another question");
    world.send(Msg::Environment { ticket: *second, result: Ok(variables()) });
    assert_eq!(world.state.details.environment.get().map(Vec::len), Some(8));
}

#[test]
fn the_palette_does_what_it_finds_and_goes_to_processes() {
    let mut world = World::populated(120, 40);
    world.press(":dump⏎");
    assert!(matches!(world.state.overlay, Some(Overlay::Form(_))));
    world.press("⎋ /pwsh⏎ :order⏎");
    assert_eq!(world.selected_name(), "OrderService", "even where the filter hides it");
    world.press("G:trace⏎");
    assert!(world.take_effects().is_empty() || world.state.tab == Tab::Trace);
}

#[test]
fn what_can_be_pressed_can_be_clicked() {
    let mut world = World::populated(120, 40);
    let click = |world: &mut World, x, y| {
        world.send(Msg::Mouse(MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: x,
            row: y,
            modifiers: KeyModifiers::NONE,
        }));
    };
    let layout = world.state.layout();
    let (list, detail) = (layout.list.clone().unwrap(), layout.detail.clone().unwrap());
    click(&mut world, list.rows.x + 5, list.rows.y + 2);
    assert_eq!(world.state.list.cursor(), Some(2));
    world.press("/!order⏎g↓");
    click(&mut world, list.rows.x + 5, list.rows.bottom() - 1);
    assert_eq!(world.state.list.cursor(), Some(1), "there is no row");
    world.press("⎋");
    let name = list.columns.iter().find(|slot| slot.column == Column::Name).unwrap();
    click(&mut world, name.x, list.head.y);
    assert_eq!(world.state.list.sort().column, Column::Name);
    let last = detail.tabs.last().unwrap().place;
    click(&mut world, last.x, last.y);
    assert_eq!(world.state.context(), Context::Jobs);
    let help = world.state.hints(120).pop().unwrap();
    click(&mut world, help.x, 39);
    assert!(matches!(world.state.overlay, Some(Overlay::Help(_))));
    let wheel = MouseEvent { kind: MouseEventKind::ScrollDown, column: 60, row: 20, modifiers: KeyModifiers::NONE };
    world.send(Msg::Mouse(wheel));
    let Some(Overlay::Help(reader)) = &world.state.overlay else { panic!("closed") };
    assert_eq!(reader.scroll, 3);
}

#[test]
fn nothing_is_done_on_a_screen_that_shows_nothing() {
    let mut world = World::populated(20, 5);
    world.press("dy ty py T⏎ :trace⏎");
    assert_eq!(world.take_effects(), []);
    world.press("q");
    assert_eq!(world.take_effects(), [Effect::Quit { keep_recording: false }]);
}

#[test]
fn several_thousand_processes_are_no_trouble_to_move_in() {
    let mut world = World::new(120, 40);
    world.send(Msg::Processes((0..5000).map(|pid| process(pid, "a")).chain(fleet()).collect()));
    world.press("G");
    assert_eq!(world.state.list.cursor(), Some(world.state.list.len() - 1));
    assert_eq!(world.state.list.window(world.state.layout().list_height()).filter(|(_, selected)| *selected).count(), 1);
}

/// A list over the panes is filtered as every other, and what is selected is what is taken.
#[test]
fn lists_over_the_panes_are_filtered_paged_and_clicked() {
    let mut world = World::populated(80, 24);
    world.press("T/gc-v⏎");
    let names = |world: &World| match &world.state.overlay {
        Some(Overlay::Profiles(picker)) => (0..picker.chosen.len()).filter(|index| picker.chosen[*index]).count(),
        _ => panic!("no picker"),
    };
    let before = names(&world);
    assert_eq!(world.state.pick_list().unwrap().list.len(), 1);
    world.press("␣");
    assert_eq!(names(&world), before + 1);
    world.press("/⎋");
    // A page is what is shown of the list.
    let page = usize::from(world.state.pick_list().unwrap().rows().height);
    world.send(Msg::Key(KeyCode::PageDown.into()));
    assert_eq!(world.state.pick_list().unwrap().cursor.at, page - 1);
    // A click selects, a second one chooses.
    let rows = world.state.pick_list().unwrap().rows();
    let click = |world: &mut World| {
        let (kind, modifiers) = (MouseEventKind::Down(MouseButton::Left), KeyModifiers::NONE);
        world.send(Msg::Mouse(MouseEvent { kind, column: rows.x + 3, row: rows.y + 4, modifiers }));
    };
    let before = names(&world);
    click(&mut world);
    assert_eq!((world.state.pick_list().unwrap().cursor.at, names(&world)), (4, before));
    click(&mut world);
    assert_ne!(names(&world), before);
    // In the environment and among the jobs, too.
    let mut world = World::populated(120, 40);
    world.press("⎋e");
    let ticket = world.effects.iter().find_map(|effect| match effect {
        Effect::ReadEnvironment { ticket, .. } => Some(*ticket),
        _ => None,
    });
    world.send(Msg::Environment { ticket: ticket.unwrap(), result: Ok(crate::app::world::variables()) });
    world.press("/path⏎");
    assert_eq!(world.state.variable().map(|(_, variable)| variable.name.as_str()), Some("PATH"));
    world.press("/⎋");
    let place = world.state.tab_view().unwrap().1.rows();
    let (kind, modifiers) = (MouseEventKind::Down(MouseButton::Left), KeyModifiers::NONE);
    world.send(Msg::Mouse(MouseEvent { kind, column: place.x, row: place.y + 2, modifiers }));
    assert_eq!(world.state.view_cursor(Tab::Environment).at, 2);
}
