use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEvent, MouseEventKind};

use crate::app::action::Context;
use crate::app::dialog::picked_profiles;
use crate::app::test_app::{TestApp, process, recording, sample_processes, trace_file, variables};
use crate::app::{Answer, Clipboard, Column, Direction, Effect, Focus, Found, Msg, Overlay, Pick, Tab};
use crate::clr::profiles;
use crate::model::{Environment, EnvironmentSource, Phase, Recording};

#[test]
fn keys_switch_between_contexts() {
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
        let mut app = TestApp::populated(120, 40);
        app.press(keys);
        assert_eq!(app.state.context(), context, "{keys}");
    }
}

#[test]
fn filter_applies_while_typing_and_is_cleared_by_esc() {
    let mut app = TestApp::populated(120, 40);
    app.press("/we");
    assert_eq!((app.state.list.len(), app.selected_name().as_str()), (1, "WebGateway"));
    app.press("b⏎");
    assert_eq!(app.state.list.filter().as_str(), "web");
    app.press("⎋");
    assert_eq!((app.state.list.filter().as_str(), app.state.list.len()), ("", 8));
    assert_eq!(app.selected_name(), "WebGateway", "the selection stays with the process");
    // While a filter is typed, arrow keys move the selection and letters are text.
    app.press("/r↓↓q");
    assert_eq!(app.state.context(), Context::Line);
    assert_eq!(app.state.list.filter().as_str(), "rq");
}

#[test]
fn sort_column_is_selected_by_angle_brackets_and_digits() {
    let mut app = TestApp::populated(120, 40);
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
        app.press(keys);
        let sort = app.state.list.sort();
        assert_eq!((sort.column, sort.direction == Direction::Descending), (column, descending), "{keys}");
    }
}

#[test]
fn key_repeat_counts_and_key_release_is_ignored() {
    let mut app = TestApp::populated(120, 40);
    for (kind, cursor) in [(KeyEventKind::Press, 1), (KeyEventKind::Repeat, 2), (KeyEventKind::Release, 2)] {
        app.send(Msg::Key(KeyEvent::new_with_kind(KeyCode::Down, KeyModifiers::NONE, kind)));
        assert_eq!(app.state.list.cursor(), Some(cursor), "{kind:?}");
    }
}

#[test]
fn messages_hidden_by_a_search_are_not_scrolled_past() {
    let mut app = TestApp::populated(120, 40);
    for text in ["one", "two", "three"] {
        app.send(Msg::Failed(text.into()));
    }
    for (keys, scroll) in [("!↓↓↓", 2), ("/two⏎↓↓", 0)] {
        app.press(keys);
        let Some(Overlay::Messages(reader)) = &app.state.overlay else { panic!("closed after {keys}") };
        assert_eq!(reader.scroll, scroll, "{keys}");
    }
}

#[test]
fn copy_menu_omits_masked_secrets() {
    let mut app = TestApp::populated(120, 40);
    app.press("y⏎");
    assert_eq!(app.take_effects(), [Effect::Copy { text: "4242".to_owned(), label: "pid".to_owned() }]);
    app.send(Msg::Copied { label: "pid".into(), to: Clipboard::Terminal });
    assert_eq!(app.last_toast(), "pid sent to the terminal's clipboard");

    app.press("e");
    app.answer();
    app.press("/API_KEY⏎");
    let offered = |app: &mut TestApp| {
        app.press("y");
        let texts: Vec<_> = app.copy_menu().into_iter().map(|(_, text)| text).collect();
        app.press("⎋");
        texts
    };
    assert!(!offered(&mut app).iter().any(|text| text.contains("sk-live")));
    app.press("v");
    assert_eq!(offered(&mut app)[0], "sk-live-0123456789");
}

#[test]
fn copied_paths_contain_no_control_characters() {
    let mut app = TestApp::populated(120, 40);
    let mut processes = sample_processes();
    processes[0].socket = Some("/tmp/a\nb\u{1b}-socket".into());
    app.send(Msg::Processes(processes));
    app.press("t");
    let Recording { mut file, .. } = recording(1, 5, Phase::Recording);
    file.set_file_name("a\nb\u{1b}.nettrace");
    app.report(Recording { file, ..recording(1, 5, Phase::Recording) });
    app.press("y");
    let items = app.copy_menu();
    let text = |label| items.iter().find(|(other, _)| *other == label).map(|(_, text)| text.as_str());
    assert_eq!(text("trace file"), Some("/srv/app/a b\u{fffd}.nettrace"));
    assert_eq!(text("socket"), Some("/tmp/a b\u{fffd}-socket"));
}

#[test]
fn pasted_text_is_limited_in_bytes() {
    let mut app = TestApp::populated(120, 40);
    app.press("/");
    app.send(Msg::Paste("日".repeat(5000)));
    assert_eq!(app.state.line.as_ref().map(|line| line.input.value().len()), Some(4098));
}

#[test]
fn environment_is_requested_once_and_stale_replies_dropped() {
    let mut app = TestApp::populated(120, 40);
    app.press("e");
    let effects = app.take_effects();
    let [Effect::ReadEnvironment { ticket: first, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    app.wait(1000);
    assert_eq!(app.take_effects(), [], "one question at a time");
    // Select another process and wait until the selection settles.
    app.press("⎋↓");
    assert_eq!(app.take_effects(), []);
    app.wait(300);
    let effects = app.take_effects();
    let [Effect::ReadEnvironment { ticket: second, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    app.send(Msg::Environment { ticket: *first, result: Ok(variables()) });
    assert!(app.state.details.environment.get().is_none(), "that was the answer to another question");
    app.send(Msg::Environment { ticket: *second, result: Ok(variables()) });
    let head = |app: &TestApp| format!("{:?}", app.state.view_of(Tab::Environment).unwrap().head);
    assert!(head(&app).contains("8 variables") && !head(&app).contains("at the start of the process"), "{}", head(&app));
    assert_eq!(app.state.details.environment.get().map(|environment| environment.variables.len()), Some(8));
    // A runtime that is too old to report it.
    app.state.details.environment = Answer::Received(Environment { source: EnvironmentSource::Startup, ..variables() });
    assert!(head(&app).contains("values at the start of the process"), "{}", head(&app));
}

#[test]
fn palette_runs_actions_and_selects_processes() {
    let mut app = TestApp::populated(120, 40);
    app.press(":dump⏎");
    assert!(matches!(app.state.overlay, Some(Overlay::Form(_))));
    app.press("⎋ /pwsh⏎ :order⏎");
    assert_eq!(app.selected_name(), "OrderService", "even where the filter hides it");
    app.take_effects();
    app.press("G:trace⏎");
    assert!(app.take_effects().iter().all(|effect| matches!(effect, Effect::FindFiles { .. })) || app.state.tab == Tab::Trace);
}

#[test]
fn palette_opens_tabs_profiles_themes_and_files() {
    let mut app = TestApp::populated(120, 40);
    app.state.options.themes = vec!["dark".into(), "high-contrast".into()];
    let found = |app: &TestApp| match &app.state.overlay {
        Some(Overlay::List(_, Pick::Palette(palette))) => palette.found.clone(),
        other => panic!("{other:?}"),
    };
    app.press(":");
    let [Effect::FindFiles { ticket, .. }] = *app.take_effects() else { panic!("no files are looked for") };
    // Available actions come before unavailable ones, and actions before everything else.
    let is_action = |found: &Found| matches!(found, Found::Action(_));
    let all = found(&app);
    let actions = all.iter().take_while(|found| is_action(found)).count();
    assert!(actions > 10 && !all[actions..].iter().any(is_action), "{all:?}");
    app.press("exceptions⏎");
    assert_eq!((app.state.tab, app.state.focus), (Tab::Exceptions, Focus::Detail));
    app.press("⎋:gc-collect⏎");
    let Some(Overlay::List(list, Pick::Profiles(_))) = &app.state.overlay else { panic!("no profiles") };
    assert_eq!(picked_profiles(&list.chosen, list.cursor.at), ["gc-collect"]);
    // An exact name comes before names that contain it.
    app.press("⎋:cpu");
    assert!(matches!(&found(&app)[0], Found::Profile(profile) if profile.name == "cpu"), "{:?}", found(&app));
    app.press("⎋:Database-Timing⏎");
    let Some(Overlay::List(list, Pick::Profiles(_))) = &app.state.overlay else { panic!("no profiles") };
    assert_eq!(picked_profiles(&list.chosen, list.cursor.at), ["database-timing"]);
    app.press("⎋");
    app.take_effects();
    app.press(":high-con⏎");
    assert_eq!(app.take_effects().pop(), Some(Effect::SetTheme("high-contrast".into())));
    // Somebody who knows no name types the kind.
    app.press(":theme");
    assert_eq!(found(&app), [Found::Theme("dark".into()), Found::Theme("high-contrast".into())]);
    app.press("␣dar");
    assert_eq!(found(&app), [Found::Theme("dark".into())]);
    app.press("⎋");
    app.take_effects();

    // Files arrive later and do not move the other entries.
    let file = trace_file("/x/dumping.nettrace");
    app.press(":dump");
    let Some(Effect::FindFiles { ticket: second, .. }) = app.take_effects().pop() else { panic!("no files are looked for") };
    let before = found(&app);
    app.send(Msg::FilesFound { ticket, files: vec![file.clone()] });
    assert_eq!(found(&app), before, "that was the answer to another question");
    app.send(Msg::FilesFound { ticket: second, files: vec![file.clone()] });
    assert_eq!(found(&app), [before, vec![Found::File(file)]].concat());
    app.press("ing⏎");
    assert!(app.state.shows_files());
    // A reply for a closed palette is ignored.
    app.press("⎋⎋:");
    let Some(Effect::FindFiles { ticket, .. }) = app.take_effects().pop() else { panic!("no files are looked for") };
    app.press("⎋");
    app.send(Msg::FilesFound { ticket, files: Vec::new() });
    assert!(app.state.overlay.is_none());
}

#[test]
fn rows_columns_tabs_and_hints_can_be_clicked() {
    let mut app = TestApp::populated(120, 40);
    let layout = app.state.layout();
    let (list, detail) = (layout.list.clone().unwrap(), layout.detail.clone().unwrap());
    app.click(list.rows.x + 5, list.rows.y + 2);
    assert_eq!(app.state.list.cursor(), Some(2));
    app.press("/!order⏎g↓");
    app.click(list.rows.x + 5, list.rows.bottom() - 1);
    assert_eq!(app.state.list.cursor(), Some(1), "there is no row");
    app.press("⎋");
    let name = list.columns.iter().find(|slot| slot.column == Column::Name).unwrap();
    app.click(name.x, list.head.y);
    assert_eq!(app.state.list.sort().column, Column::Name);
    let last = detail.tabs.last().unwrap().place;
    app.click(last.x, last.y);
    assert_eq!(app.state.context(), Context::Jobs);
    let help = app.state.hints(120).pop().unwrap();
    app.click(help.x, 39);
    assert!(matches!(app.state.overlay, Some(Overlay::Help(_))));
    let wheel = MouseEvent { kind: MouseEventKind::ScrollDown, column: 60, row: 20, modifiers: KeyModifiers::NONE };
    app.send(Msg::Mouse(wheel));
    let Some(Overlay::Help(help)) = &app.state.overlay else { panic!("closed") };
    assert_eq!(help.reader.scroll, 3);
}

#[test]
fn too_small_terminal_ignores_all_keys_except_quit() {
    let mut app = TestApp::populated(20, 5);
    app.press("dy ty py T⏎ :trace⏎");
    assert_eq!(app.take_effects(), []);
    app.press("q");
    assert_eq!(app.take_effects(), [Effect::Quit { keep_recording: false }]);

    // A dialog that was open before is not shown, either.
    let mut app = TestApp::populated(120, 40);
    app.press("py");
    app.send(Msg::Resize(30, 8));
    for (x, y) in (0..30).flat_map(|x| (0..8).map(move |y| (x, y))) {
        app.click(x, y);
    }
    assert_eq!(app.take_effects(), []);
    assert!(matches!(app.state.overlay, Some(Overlay::Form(_))));
}

#[test]
fn a_filter_closes_with_the_list_of_an_ended_process() {
    let mut app = TestApp::populated(120, 40);
    app.press("T/gc");
    assert_eq!(app.state.context(), Context::Line);
    app.send(Msg::Processes(sample_processes().into_iter().skip(1).collect()));
    assert_eq!(app.state.context(), Context::List);
}

#[test]
fn selection_stays_visible_among_thousands_of_processes() {
    let mut app = TestApp::new(120, 40);
    app.send(Msg::Processes((0..5000).map(|pid| process(pid, "a")).chain(sample_processes()).collect()));
    app.press("G");
    assert_eq!(app.state.list.cursor(), Some(app.state.list.len() - 1));
    let cursor = app.state.list.view_cursor().unwrap();
    assert!(cursor.window(app.state.list.len(), app.state.layout().list_height()).contains(&cursor.at));
}

/// Lists in overlays are filtered like all others, and the selected row is the one accepted.
#[test]
fn overlay_lists_are_filtered_paged_and_clicked() {
    let mut app = TestApp::populated(80, 24);
    app.press("T/gc-v⏎");
    let names = |app: &TestApp| match &app.state.overlay {
        Some(Overlay::List(list, _)) => list.chosen.iter().filter(|chosen| **chosen).count(),
        _ => panic!("no picker"),
    };
    let before = names(&app);
    assert_eq!(app.state.pick_list().unwrap().list.len(), 1);
    app.press("␣");
    assert_eq!(names(&app), before + 1);
    // An exact name comes first, then names with that prefix, then names that contain it.
    let picked = |app: &TestApp| profiles()[app.state.picked().unwrap()].name.as_str();
    app.press("/⎋/exceptions⏎");
    assert_eq!(picked(&app), "exceptions");
    app.press("/⎋/CPU⏎");
    assert_eq!(picked(&app), "cpu");
    app.send(Msg::Key(KeyCode::Down.into()));
    assert_eq!(picked(&app), "cpu-sampling");
    app.press("/⎋");
    // A page is the visible part of the list.
    let page = usize::from(app.state.pick_list().unwrap().rows().height);
    app.send(Msg::Key(KeyCode::PageDown.into()));
    assert_eq!(app.state.pick_list().unwrap().cursor.at, page - 1);
    // A click selects, another one toggles.
    let rows = app.state.pick_list().unwrap().rows();
    let before = names(&app);
    app.click(rows.x + 3, rows.y + 4);
    assert_eq!((app.state.pick_list().unwrap().cursor.at, names(&app)), (4, before));
    app.click(rows.x + 3, rows.y + 4);
    assert_ne!(names(&app), before);
    // The environment and job lists, too.
    let mut app = TestApp::populated(120, 40);
    app.press("⎋e");
    let ticket = app.effects.iter().find_map(|effect| match effect {
        Effect::ReadEnvironment { ticket, .. } => Some(*ticket),
        _ => None,
    });
    app.send(Msg::Environment { ticket: ticket.unwrap(), result: Ok(crate::app::test_app::variables()) });
    app.press("/path⏎");
    assert_eq!(app.state.variable().map(|(_, variable)| variable.name.as_str()), Some("PATH"));
    app.press("/⎋");
    let place = app.state.tab_view().unwrap().1.rows();
    app.click(place.x, place.y + 2);
    assert_eq!(app.state.view_cursor(Tab::Environment).at, 2);
}

/// The selection moves within the visible rows before the list scrolls.
#[test]
fn pick_list_keeps_its_scroll_offset() {
    let mut app = TestApp::populated(120, 24);
    app.press(":");
    app.press(&"↓".repeat(20));
    let window = |app: &TestApp| {
        let list = app.state.pick_list().unwrap();
        (list.cursor.window(list.list.len(), list.rows().height.into()), list.cursor.at)
    };
    let (rows, at) = window(&app);
    assert!(rows.start > 0, "{rows:?}");
    app.press("↑↑");
    assert_eq!(window(&app), (rows, at - 2));
}
