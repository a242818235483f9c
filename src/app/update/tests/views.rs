use crossterm::event::KeyCode;

use crate::analysis::{Layer, OperationSnapshot};
use crate::app::action::{Action, Context, Key, KeyMap};
use crate::app::test_app::{TestApp, options, recording, sample_processes};
use crate::app::{Answer, Effect, Focus, Msg, Options, RowKind, Shape, Tab};
use crate::model::{Environment, EnvironmentSource, Outcome, Phase, Recording, StoppedBy};
use crate::ui::tests::analysis::{empty, scripted};
use crate::ui::tests::scenes::opened;

pub(super) fn analyzed(keys: &str) -> TestApp {
    let mut app = TestApp::populated(120, 40);
    app.press("⏎t");
    app.report(Recording { analysis: Some(scripted()), ..recording(1, 42, Phase::Recording) });
    app.press(keys);
    app
}

pub(super) fn done() -> Phase {
    Phase::Done(Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: None, trouble: None })
}

#[test]
fn every_tab_has_a_key_and_a_position_in_tab_order() {
    let mut app = analyzed("1");
    for tab in Tab::ALL.into_iter().filter(|tab| tab.key(RowKind::Process) != "Tab") {
        app.press(tab.key(RowKind::Process));
        assert_eq!(app.state.tab, tab);
    }
    app.press("0");
    for tab in Tab::ALL.into_iter().filter(|tab| tab.is_shown(RowKind::Process)) {
        app.press("⇥");
        assert_eq!(app.state.tab, tab);
    }
}

#[test]
fn texts_of_a_recording_name_the_configured_key() {
    let keys = KeyMap::new(vec![(Action::Profiles, vec![Key::parse("N").unwrap()])]).unwrap();
    let mut app = TestApp::with(Options { keys, ..options() }, 120, 40);
    app.send(Msg::Processes(sample_processes()));
    app.press("t");
    let mut analysis = (*scripted()).clone();
    (analysis.snapshot.gc.allocations, analysis.snapshot.jit.time) = (None, None);
    app.report(Recording { analysis: Some(analysis.into()), ..recording(1, 42, Phase::Recording) });
    assert_eq!(app.state.view_of(Tab::Gc).unwrap().side.unwrap().text[0][0].0, "Profile gc-verbose (N) records allocations by type.");
    assert_eq!(app.state.view_of(Tab::Jit).unwrap().empty.0, "Profile startup (N) records how long compilation takes.");
}

/// Lookups and connections can fail although no request does.
#[test]
fn failures_of_other_operations_are_shown() {
    for failed in [0, 2] {
        let mut analysis = (*scripted()).clone();
        let operations = &mut analysis.snapshot.activities.operations;
        for operation in operations.iter_mut() {
            (operation.failed, operation.others.failed) = (0, 0);
            operation.subjects.iter_mut().for_each(|subject| subject.failed = 0);
        }
        let lookup = OperationSnapshot { name: "Resolution".to_owned(), layer: Layer::Part, failed, ..operations[0].clone() };
        operations.push(lookup);
        let mut app = analyzed("");
        app.report(Recording { analysis: Some(analysis.into()), ..recording(1, 43, Phase::Recording) });
        let columns = app.state.view_of(Tab::Http).unwrap().list.columns();
        assert_eq!(columns.iter().any(|column| column.title == "FAILED"), failed > 0);
    }
}

#[test]
fn the_tab_stays_in_place_while_processes_are_filtered() {
    let mut app = analyzed("0⎋");
    let place = |app: &TestApp| app.state.tab_view().unwrap().1.list;
    let before = place(&app);
    app.press("/");
    assert_eq!(place(&app), before);
    app.press("⎋⏎");
    let before = place(&app);
    app.press("/");
    assert_eq!(place(&app).y, before.y + 1, "the filter of the tab takes a line");
}

#[test]
fn masked_values_do_not_prevent_sorting_by_value() {
    let mut app = TestApp::populated(120, 40);
    for name in ["A_PASSWORD", "A_PLACE"] {
        let variable = crate::ipc::Variable { name: name.to_owned(), value: "x".to_owned() };
        let variable = crate::model::Variable::new(&variable, &crate::model::SecretPatterns::default());
        assert_eq!(variable.is_secret(), name == "A_PASSWORD");
        app.state.details.environment = Answer::Received(Environment { variables: vec![variable], source: EnvironmentSource::Runtime });
        let columns = app.state.view_of(Tab::Environment).unwrap().list.columns();
        assert!(columns.iter().all(|column| column.sortable), "{name}");
    }
}

#[test]
fn file_tabs_are_numbered_in_display_order() {
    let mut app = opened(120, 40);
    app.state.focus = Focus::Detail;
    let shown: Vec<Tab> = app.state.layout().detail.unwrap().tabs.iter().filter(|slot| slot.place.width > 0).map(|slot| slot.tab).collect();
    assert_eq!((shown[0], shown.len()), (Tab::Trace, 13));
    for (digit, tab) in (1..).zip(&shown).take(10) {
        app.press(&(digit % 10).to_string());
        assert_eq!(app.state.tab, *tab, "{digit}");
    }
    app.press("⇥");
    assert_eq!(app.state.tab, shown[10]);
}

/// Users type `/word⏎` without waiting for a filter line to open. None of these letters may trigger an action.
#[test]
fn filter_line_opens_in_every_tab_even_without_rows() {
    let not_recorded = || TestApp::populated(80, 24);
    let nothing_yet = || {
        let mut app = analyzed("");
        app.report(Recording { analysis: Some(empty()), ..recording(1, 43, Phase::Recording) });
        app
    };
    let makers: [(&str, &dyn Fn() -> TestApp); 4] =
        [("not recorded", &not_recorded), ("nothing yet", &nothing_yet), ("recorded", &|| analyzed("7s")), ("a file", &|| opened(80, 24))];
    for (name, make) in makers {
        for tab in Tab::ALL {
            let mut app = make();
            if !tab.is_shown(app.state.row_kind()) {
                continue;
            }
            (app.state.focus, app.state.tab) = (Focus::Detail, tab);
            app.take_effects();
            app.press("/");
            let purpose = app.state.line.as_ref().map(|line| line.purpose);
            assert!(purpose.is_some() && app.state.context() == Context::Line, "{name}: {tab:?}");
            app.press("qdxW");
            let mut effects = app.take_effects();
            // Requests sent by the tabs themselves.
            effects.retain(|effect| {
                !matches!(
                    effect,
                    Effect::ReadEnvironment { .. }
                        | Effect::ListThreads { .. }
                        | Effect::ListAssemblies { .. }
                        | Effect::FilterEvents { .. }
                )
            });
            assert_eq!(effects, [], "{name}: {tab:?}");
            assert_eq!(app.state.line.as_ref().unwrap().input.value(), "qdxW", "{name}: {tab:?}");
            app.press("⏎");
            assert!(app.state.line.is_none() && app.state.overlay.is_none() && app.toast_texts().is_empty(), "{name}: {tab:?}");
        }
    }
}

/// Hints are only shown for useful actions.
#[test]
fn filter_hint_is_shown_only_with_filterable_rows() {
    let filters = |app: &TestApp| app.state.hints(200).iter().any(|hint| hint.key == "/");
    for (tab, recorded) in [("2", false), ("5", true), ("7", true), ("8", true), ("9", false), ("9⇥", true), ("0⇤⇤⇤", true)] {
        let mut app = TestApp::populated(200, 40);
        app.press(&format!("⏎{tab}"));
        assert!(!filters(&app), "not recorded: {tab}");
        assert_eq!(filters(&analyzed(tab)), recorded, "{tab}");
    }
    let mut file = opened(200, 40);
    file.press("7");
    assert!(file.state.counters().is_some_and(|snapshot| snapshot.counters.is_empty()) && !filters(&file));
}

#[test]
fn methods_are_sorted_filtered_and_switched_between_shapes() {
    let first = |app: &TestApp| app.state.view_of(Tab::Methods).unwrap().list.cell(0, 3).into_text();
    let mut app = analyzed("7");
    assert_eq!(first(&app), "Shop.Pricing.PriceEngine.PriceBasket");
    app.press("w");
    assert_eq!(first(&app), "System.Threading.WaitHandle.WaitOneNoCheck");
    app.press("w>");
    assert_eq!(first(&app), "System.Threading.Thread.StartCallback");
    app.press("</discounts");
    assert_eq!((first(&app).as_str(), app.state.methods().len()), ("Shop.Pricing.Discounts.Apply", 1));
    app.press("⎋");
    assert!(app.state.methods().len() > 4);
    assert_eq!(app.state.views.sampling.shape, Shape::List);
    for shape in [Shape::Tree, Shape::Flame, Shape::List] {
        app.press("f");
        assert_eq!(app.state.views.sampling.shape, shape);
    }
}

/// Filters work the same everywhere, and an unknown column is reported together with the available ones.
#[test]
fn every_list_is_filtered_by_column() {
    for (tab, filter, column) in [
        ("4", "reason:small", "REASON"),
        ("5", "type:timeout", "TYPE"),
        ("7", "method:price", "METHOD"),
        ("8", "provider:runtime", "PROVIDER"),
        ("9⇥⇥", "level:warn", "LEVEL"),
    ] {
        let mut app = analyzed(tab);
        let len = |app: &TestApp| app.state.view_of(app.state.tab).unwrap().list.len();
        let all = len(&app);
        app.press(&format!("/{filter}"));
        assert!((1..=all).contains(&len(&app)), "{tab}: {} of {all}", len(&app));
        app.press("⌃unowhere:x");
        let view = app.state.view_of(app.state.tab).unwrap();
        assert!(
            view.list.is_empty() && view.empty.0.starts_with("No column \"nowhere\"") && view.empty.0.contains(column),
            "{tab}: {:?}",
            view.empty
        );
    }
}

#[test]
fn sampling_views_are_unavailable_without_samples() {
    let mut app = TestApp::populated(120, 40);
    for keys in ["⏎7", "t7"] {
        app.press(keys);
        assert_eq!(app.state.context(), Context::Methods);
        app.press("wfs>/⏎");
        let sampling = &app.state.views.sampling;
        assert!(sampling.shape == Shape::List && !sampling.waiting && app.state.line.is_none());
    }
    app.report(Recording { analysis: Some(empty()), ..recording(1, 1, Phase::Recording) });
    app.press("f");
    assert_eq!(app.state.views.sampling.shape, Shape::List);
}

#[test]
fn selected_row_stays_selected_when_the_order_changes() {
    let mut app = analyzed("5↓");
    let name = |app: &TestApp| {
        let at = app.state.view_cursor(Tab::Exceptions).at;
        app.state.analysis().unwrap().snapshot.exceptions.types[at].name.clone()
    };
    assert_eq!(name(&app), "System.TimeoutException");
    let mut analysis = (*scripted()).clone();
    analysis.snapshot.exceptions.types.reverse();
    app.report(Recording { analysis: Some(analysis.into()), ..recording(1, 43, Phase::Recording) });
    assert_eq!((name(&app).as_str(), app.state.view_cursor(Tab::Exceptions).at), ("System.TimeoutException", 0));
    // If the selected row disappears, the position is kept; a selection of the first line stays on the first line.
    app.report(Recording { analysis: Some(empty()), ..recording(1, 44, Phase::Recording) });
    app.press("↓G g");
    app.report(Recording { analysis: Some(scripted()), ..recording(1, 45, done()) });
    assert_eq!(app.state.view_cursor(Tab::Exceptions).at, 0);
}

#[test]
fn analysis_outlives_its_recording_and_can_be_frozen() {
    let mut app = analyzed("8␣");
    let events = |app: &TestApp| app.state.analysis().map(|analysis| analysis.snapshot.totals.events);
    let before = events(&app);
    app.report(Recording { analysis: Some(empty()), ..recording(1, 43, Phase::Recording) });
    assert_eq!(events(&app), before);
    app.press("␣");
    assert_eq!(events(&app), Some(0));
    app.report(Recording { analysis: Some(scripted()), ..recording(1, 44, done()) });
    assert_eq!(events(&app), before);
}

#[test]
fn the_selected_exception_is_copied_with_its_stack() {
    let mut app = analyzed("5y⏎");
    let effects = app.take_effects();
    let Some(Effect::Copy { text, .. }) = effects.last() else { panic!("{effects:?}") };
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], ["System.InvalidOperationException: Order 4711 has been shipped already", "   at Shop.Pricing.Discounts.Apply"]);
}

#[test]
fn rows_are_filtered_selected_and_copied() {
    let mut app = analyzed("9⇥⇥");
    assert_eq!(app.state.tab, Tab::Logs);
    let rows = |app: &TestApp| app.state.view_of(Tab::Logs).unwrap().list.len();
    let all = rows(&app);
    app.press("/slow⏎");
    assert!(rows(&app) > 3 && rows(&app) < all);
    let second = app.state.view_of(Tab::Logs).unwrap().list.id(1);
    app.press("↓");
    let view = app.state.view_of(Tab::Logs).unwrap();
    assert_eq!(view.list.id(view.cursor.at), second);
    drop(view);
    app.press("y⏎");
    let effects = app.take_effects();
    assert!(matches!(effects.last(), Some(Effect::Copy { text, .. }) if text.contains("slow")), "{effects:?}");

    // Rows are hit where they are drawn, and the first page ends at the bottom of the screen.
    app.press("/⎋g");
    let (view, geometry) = app.state.tab_view().unwrap();
    let (page, third) = (geometry.rows(), view.list.id(2));
    drop(view);
    app.click(page.x, page.y + 2);
    let view = app.state.view_of(Tab::Logs).unwrap();
    assert_eq!((view.cursor.at, view.list.id(view.cursor.at)), (2, third));
    drop(view);
    app.press("g");
    app.send(Msg::Key(KeyCode::PageDown.into()));
    assert_eq!(app.state.view_of(Tab::Logs).unwrap().cursor.at, usize::from(page.height) - 1);
}
