use crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::app::action::Context;
use crate::app::world::{World, recording};
use crate::app::{Effect, Focus, Msg, Shape, Tab};
use crate::model::{Outcome, Phase, Recording, StoppedBy};
use crate::ui::tests::findings::{empty, scripted};
use crate::ui::tests::scenes::opened;

fn analysed(keys: &str) -> World {
    let mut world = World::populated(120, 40);
    world.press("⏎t");
    world.send(Msg::Recording(Box::new(Recording { findings: Some(scripted()), ..recording(1, 42, Phase::Recording) })));
    world.press(keys);
    world
}

pub(super) fn done() -> Phase {
    Phase::Done(Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: None, trouble: None })
}

#[test]
fn every_view_has_its_digit_and_its_place_in_the_row_of_tabs() {
    let mut world = analysed("1");
    for tab in Tab::ALL.into_iter().filter(|tab| tab.key(false) != "Tab") {
        world.press(tab.key(false));
        assert_eq!(world.state.tab, tab);
    }
    world.press("0");
    for tab in Tab::ALL {
        world.press("⇥");
        assert_eq!(world.state.tab, tab);
    }
}

#[test]
fn the_tabs_of_a_file_are_counted_as_they_are_shown() {
    let mut world = opened(120, 40);
    world.state.focus = Focus::Detail;
    let shown: Vec<Tab> =
        world.state.layout().detail.unwrap().tabs.iter().filter(|slot| slot.place.width > 0).map(|slot| slot.tab).collect();
    assert_eq!((shown[0], shown.len()), (Tab::Trace, 11));
    for (digit, tab) in (1..).zip(&shown).take(10) {
        world.press(&(digit % 10).to_string());
        assert_eq!(world.state.tab, *tab, "{digit}");
    }
    world.press("⇥");
    assert_eq!(world.state.tab, shown[10]);
}

/// Fingers type `/word⏎` without waiting for what opens. Not one of these letters may be taken for a command.
#[test]
fn a_filter_is_typed_in_every_tab_even_where_nothing_is_to_be_filtered() {
    let not_recorded = || World::populated(80, 24);
    let nothing_yet = || {
        let mut world = analysed("");
        world.send(Msg::Recording(Box::new(Recording { findings: Some(empty()), ..recording(1, 43, Phase::Recording) })));
        world
    };
    let makers: [(&str, &dyn Fn() -> World); 4] =
        [("not recorded", &not_recorded), ("nothing yet", &nothing_yet), ("recorded", &|| analysed("7s")), ("a file", &|| opened(80, 24))];
    for (name, make) in makers {
        for tab in Tab::ALL {
            let mut world = make();
            if world.state.shows_files() && !tab.is_in_file() {
                continue;
            }
            (world.state.focus, world.state.tab) = (Focus::Detail, tab);
            world.take_effects();
            world.press("/");
            let purpose = world.state.line.as_ref().map(|line| line.purpose);
            assert!(purpose.is_some() && world.state.context() == Context::Line, "{name}: {tab:?}");
            world.press("qdxW");
            let mut effects = world.take_effects();
            // What the tabs themselves ask for.
            effects.retain(|effect| {
                !matches!(effect, Effect::ReadEnvironment { .. } | Effect::ListThreads { .. } | Effect::FilterEvents { .. })
            });
            assert_eq!(effects, [], "{name}: {tab:?}");
            assert_eq!(world.state.line.as_ref().unwrap().input.value(), "qdxW", "{name}: {tab:?}");
            world.press("⏎");
            assert!(world.state.line.is_none() && world.state.overlay.is_none() && world.said().is_empty(), "{name}: {tab:?}");
        }
    }
}

/// What the hints offer is of use.
#[test]
fn a_filter_is_hinted_where_there_is_something_to_filter() {
    let filters = |world: &World| world.state.hints(200).iter().any(|hint| hint.key == "/");
    for (tab, recorded) in [("2", false), ("5", true), ("7", true), ("8", true), ("9", false), ("9⇥", true), ("0⇤", true)] {
        let mut world = World::populated(200, 40);
        world.press(&format!("⏎{tab}"));
        assert!(!filters(&world), "not recorded: {tab}");
        assert_eq!(filters(&analysed(tab)), recorded, "{tab}");
    }
    let mut file = opened(200, 40);
    file.press("7");
    assert!(file.state.counters().is_some_and(|snapshot| snapshot.counters.is_empty()) && !filters(&file));
}

#[test]
fn methods_are_counted_sorted_and_filtered_as_asked() {
    let first = |world: &World| world.state.methods()[0].1.name.clone();
    let mut world = analysed("7");
    assert_eq!(first(&world), "Shop.Pricing.PriceEngine.PriceBasket");
    world.press("w");
    assert_eq!(first(&world), "System.Threading.WaitHandle.WaitOneNoCheck");
    world.press("w>");
    assert_eq!(first(&world), "System.Threading.Thread.StartCallback");
    world.press("</discounts");
    assert_eq!((first(&world).as_str(), world.state.methods().len()), ("Shop.Pricing.Discounts.Apply", 1));
    world.press("⎋");
    assert!(world.state.methods().len() > 4);
    assert_eq!(world.state.views.sampling.shape, Shape::List);
    for shape in [Shape::Tree, Shape::Flame, Shape::List] {
        world.press("f");
        assert_eq!(world.state.views.sampling.shape, shape);
    }
}

/// A filter is the same everywhere, and a column that a list does not have is complained about, with those it has.
#[test]
fn every_list_is_filtered_by_column() {
    for (tab, filter, column) in [
        ("4", "reason:small", "REASON"),
        ("5", "type:timeout", "TYPE"),
        ("7", "method:price", "METHOD"),
        ("8", "provider:runtime", "PROVIDER"),
        ("9⇥⇥", "level:warn", "LEVEL"),
    ] {
        let mut world = analysed(tab);
        let len = |world: &World| world.state.view_of(world.state.tab).unwrap().list.len();
        let all = len(&world);
        world.press(&format!("/{filter}"));
        assert!((1..=all).contains(&len(&world)), "{tab}: {} of {all}", len(&world));
        world.press("⌃unowhere:x");
        let view = world.state.view_of(world.state.tab).unwrap();
        assert!(
            view.list.is_empty() && view.empty.0.starts_with("No column \"nowhere\"") && view.empty.0.contains(column),
            "{tab}: {:?}",
            view.empty
        );
    }
}

#[test]
fn what_needs_samples_is_not_offered_without() {
    let mut world = World::populated(120, 40);
    for keys in ["⏎7", "t7"] {
        world.press(keys);
        assert_eq!(world.state.context(), Context::Methods);
        world.press("wfs>/⏎");
        let sampling = &world.state.views.sampling;
        assert!(sampling.shape == Shape::List && !sampling.waiting && world.state.line.is_none());
    }
    world.send(Msg::Recording(Box::new(Recording { findings: Some(empty()), ..recording(1, 1, Phase::Recording) })));
    world.press("f");
    assert_eq!(world.state.views.sampling.shape, Shape::List);
}

#[test]
fn a_selected_line_stays_selected_when_others_come_before_it() {
    let mut world = analysed("5↓");
    let name = |world: &World| {
        let at = world.state.view_cursor(Tab::Exceptions).at;
        world.state.findings().unwrap().snapshot.exceptions.types[at].name.clone()
    };
    assert_eq!(name(&world), "System.TimeoutException");
    let mut findings = (*scripted()).clone();
    findings.snapshot.exceptions.types.reverse();
    world.send(Msg::Recording(Box::new(Recording { findings: Some(findings.into()), ..recording(1, 43, Phase::Recording) })));
    assert_eq!((name(&world).as_str(), world.state.view_cursor(Tab::Exceptions).at), ("System.TimeoutException", 0));
    // What is gone leaves the place where it was; the first line is the first, whatever it is.
    world.send(Msg::Recording(Box::new(Recording { findings: Some(empty()), ..recording(1, 44, Phase::Recording) })));
    world.press("↓G g");
    world.send(Msg::Recording(Box::new(Recording { findings: Some(scripted()), ..recording(1, 45, done()) })));
    assert_eq!(world.state.view_cursor(Tab::Exceptions).at, 0);
}

#[test]
fn findings_outlive_the_recording_and_stand_still_while_paused() {
    let mut world = analysed("8␣");
    let events = |world: &World| world.state.findings().map(|findings| findings.snapshot.totals.events);
    let before = events(&world);
    world.send(Msg::Recording(Box::new(Recording { findings: Some(empty()), ..recording(1, 43, Phase::Recording) })));
    assert_eq!(events(&world), before);
    world.press("␣");
    assert_eq!(events(&world), Some(0));
    world.send(Msg::Recording(Box::new(Recording { findings: Some(scripted()), ..recording(1, 44, done()) })));
    assert_eq!(events(&world), before);
}

#[test]
fn the_selected_exception_is_copied_with_its_stack() {
    let mut world = analysed("5y⏎");
    let effects = world.take_effects();
    let Some(Effect::Copy { text, .. }) = effects.last() else { panic!("{effects:?}") };
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], ["System.InvalidOperationException: Order 4711 has been shipped already", "   at Shop.Pricing.Discounts.Apply"]);
}

#[test]
fn rows_are_filtered_selected_and_copied() {
    let mut world = analysed("9⇥⇥");
    assert_eq!(world.state.tab, Tab::Logs);
    let rows = |world: &World| world.state.view_of(Tab::Logs).unwrap().list.len();
    let all = rows(&world);
    world.press("/slow⏎");
    assert!(rows(&world) > 3 && rows(&world) < all);
    let second = world.state.view_of(Tab::Logs).unwrap().list.id(1);
    world.press("↓");
    let view = world.state.view_of(Tab::Logs).unwrap();
    assert_eq!(view.list.id(view.cursor.at), second);
    drop(view);
    world.press("y⏎");
    let effects = world.take_effects();
    assert!(matches!(effects.last(), Some(Effect::Copy { text, .. }) if text.contains("slow")), "{effects:?}");

    // A row is where it is drawn, and the first page ends where the screen does.
    world.press("/⎋g");
    let (view, geometry) = world.state.tab_view().unwrap();
    let (page, third) = (geometry.rows(), view.list.id(2));
    drop(view);
    world.send(Msg::Mouse(MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: page.x,
        row: page.y + 2,
        modifiers: KeyModifiers::NONE,
    }));
    let view = world.state.view_of(Tab::Logs).unwrap();
    assert_eq!((view.cursor.at, view.list.id(view.cursor.at)), (2, third));
    drop(view);
    world.press("g");
    world.send(Msg::Key(KeyCode::PageDown.into()));
    assert_eq!(world.state.view_of(Tab::Logs).unwrap().cursor.at, usize::from(page.height) - 1);
}
