use std::time::Duration;

use crate::app::action::Status;
use crate::app::world::{World, fleet, options, published};
use crate::app::{Ailment, AutoWatch, Column, Effect, Msg, Options, Tab, Ticket, ailments};
use crate::model::{Contact, Process, ProcessKey, RunState};

/// Processes of the fleet that can be talked to.
fn attachable() -> usize {
    fleet().iter().filter(|process| process.contact.is_attachable()).count()
}

fn watched(effects: &[Effect]) -> Vec<(ProcessKey, Ticket)> {
    let watch = |effect: &Effect| if let Effect::Watch { key, ticket, .. } = effect { Some((*key, *ticket)) } else { None };
    effects.iter().filter_map(watch).collect()
}

fn columns(world: &World) -> Vec<Column> {
    world.state.layout().list.unwrap().columns.iter().map(|slot| slot.column).filter(|column| column.is_watched()).collect()
}

#[test]
fn one_key_watches_and_stops_and_brings_the_columns() {
    let mut world = World::populated(120, 40);
    assert!(columns(&world).is_empty());
    let key = world.state.list.selected().unwrap();
    world.press("w");
    let effects = world.take_effects();
    let [(of, ticket)] = watched(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!(of, key);
    assert_eq!(columns(&world).len(), 5);
    // Until it tells something, nothing is known.
    let pulse = |world: &World| world.state.list.find(key).unwrap().pulse;
    assert_eq!(pulse(&world).unwrap().vitals.heap, None);
    world.send(Msg::Watched { ticket, counters: published(61.0, 4e6, 2.0, 3.0, 0.0) });
    assert_eq!(pulse(&world).unwrap().vitals.heap, Some(61e6));
    assert_eq!(world.state.selected().unwrap().word(), "watched");
    // Of an older session nothing is taken.
    world.send(Msg::Watched { ticket: Ticket(9999), counters: published(1.0, 1.0, 90.0, 1.0, 1.0) });
    assert_eq!(pulse(&world).unwrap().ailment, None);
    world.press("w");
    assert_eq!(world.take_effects(), [Effect::Unwatch { key }]);
    assert!(pulse(&world).is_none() && columns(&world).is_empty());
    world.send(Msg::Watched { ticket, counters: published(61.0, 4e6, 2.0, 3.0, 0.0) });
    assert!(pulse(&world).is_none(), "its last words come too late");
}

/// Processes that are watched without a key.
fn watching(watch: AutoWatch, readonly: bool) -> World {
    let mut world = World::with(Options { watch, readonly, ..options() }, 120, 40);
    world.send(Msg::Processes(fleet()));
    world
}

/// Those that run and answer.
fn running() -> Vec<ProcessKey> {
    fleet().iter().filter(|process| is_well(process)).map(|process| process.key).collect()
}

fn is_well(process: &Process) -> bool {
    process.contact == Contact::Ok && process.run_state == RunState::Running
}

fn keys_of(effects: &[Effect]) -> Vec<ProcessKey> {
    watched(effects).into_iter().map(|(key, _)| key).collect()
}

#[test]
fn the_selected_process_is_watched_after_a_second() {
    let mut world = watching(AutoWatch::Selected, false);
    world.press("↓↑");
    let [first, second, ..] = running()[..] else { panic!() };
    world.state.list.select(first);
    world.send(Msg::Tick);
    world.wait(999);
    assert_eq!(keys_of(&world.take_effects()), []);
    assert_eq!(world.state.next_deadline(world.now), Some(Duration::from_millis(1)), "it is waited for");
    world.wait(1);
    assert_eq!(keys_of(&world.take_effects()), [first]);
    assert!(columns(&world).is_empty(), "the table stays as it is");
    // Who scrolls begins nothing.
    for _ in 0..20 {
        for key in [second, first] {
            world.state.list.select(key);
            world.wait(200);
        }
    }
    assert_eq!(world.take_effects().iter().filter(|effect| matches!(effect, Effect::Watch { .. } | Effect::Unwatch { .. })).count(), 0);
    // Another is selected for long: the first is watched for some seconds more.
    world.state.list.select(second);
    world.send(Msg::Tick);
    world.wait(1000);
    assert_eq!(keys_of(&world.take_effects()), [second]);
    world.wait(3999);
    assert_eq!(world.take_effects(), []);
    world.wait(1);
    assert_eq!(world.take_effects(), [Effect::Unwatch { key: first }]);
}

#[test]
fn few_sessions_follow_the_selection() {
    let mut world = watching(AutoWatch::Selected, false);
    assert!(running().len() > 3);
    let mut most = 0;
    for key in running() {
        world.state.list.select(key);
        world.send(Msg::Tick);
        world.wait(1000);
        most = most.max(world.state.watches.all().len());
    }
    assert_eq!(most, 3);
}

#[test]
fn a_key_turns_the_watch_off_and_on() {
    let mut world = watching(AutoWatch::Selected, false);
    world.wait(1000);
    let key = keys_of(&world.take_effects())[0];
    world.press("w");
    assert_eq!(world.take_effects(), [Effect::Unwatch { key }]);
    world.wait(60_000);
    assert_eq!(world.take_effects(), [], "it stays off");
    // What a key began stays when another process is selected.
    world.press("w↓");
    world.wait(60_000);
    assert!(world.state.watches.of(key).is_some() && !columns(&world).is_empty());
}

/// Enter in a tab without a recording records exactly what it shows, and `t` still records what it did before.
#[test]
fn one_key_records_what_the_tab_shows() {
    for (tab, profiles) in [("4", "gc-verbose"), ("5", "exceptions"), ("6", "contention threadpool"), ("9⇥", "http"), ("9⇥⇥", "logs")]
    {
        let mut world = World::populated(120, 40);
        world.press("⏎");
        world.press(tab);
        let (shown, usual) = (world.state.tab, world.state.profiles().to_vec());
        world.take_effects();
        world.press("⏎");
        let effects = world.take_effects();
        let [Effect::StartTrace { order, .. }] = &effects[..] else { panic!("{tab}: {effects:?}") };
        assert_eq!((order.profiles.join(" ").as_str(), world.state.tab), (profiles, shown));
        assert_eq!(world.state.profiles(), usual);
        world.press("⏎");
        assert_eq!(world.take_effects(), [], "it is recorded already");
    }
}

/// They are listed as often as the processes, and only where they are seen.
#[test]
fn threads_are_listed_in_their_tab_alone() {
    let mut world = World::populated(120, 40);
    let asked = |world: &mut World| {
        let of = |effect| if let Effect::ListThreads { key, ticket } = effect { Some((key, ticket)) } else { None };
        world.take_effects().into_iter().filter_map(of).collect::<Vec<_>>()
    };
    world.send(Msg::Processes(fleet()));
    assert_eq!(asked(&mut world), []);
    world.press("⏎6");
    let [(key, ticket)] = asked(&mut world)[..] else { panic!() };
    assert_eq!(Some(key), world.state.list.selected());
    world.send(Msg::Processes(fleet()));
    assert_eq!(asked(&mut world), [], "one question at a time");
    world.send(Msg::Threads { ticket, threads: Vec::new() });
    assert_eq!(asked(&mut world).len(), 1);
    world.send(Msg::Threads { ticket, threads: Vec::new() });
    world.press("␣");
    world.send(Msg::Processes(fleet()));
    assert_eq!(asked(&mut world), [], "the display is frozen");
}

#[test]
fn a_watch_that_failed_is_not_tried_again() {
    let mut world = watching(AutoWatch::Selected, false);
    world.wait(1000);
    let (_, ticket) = watched(&world.take_effects())[0];
    world.send(Msg::WatchEnded { ticket, trouble: Some("no answer".into()) });
    world.wait(60_000);
    assert_eq!(world.take_effects(), []);
}

#[test]
fn only_processes_that_run_and_answer_are_watched_without_a_key() {
    let mut world = watching(AutoWatch::All, false);
    let mut expected = running();
    let mut all = keys_of(&world.take_effects());
    expected.sort_unstable();
    all.sort_unstable();
    assert_eq!(all, expected);
    assert!(all.len() < fleet().len() && !columns(&world).is_empty());
    for (watch, keys) in [(AutoWatch::Never, 0), (AutoWatch::Selected, 1)] {
        let mut world = watching(watch, false);
        world.wait(60_000);
        assert_eq!(keys_of(&world.take_effects()).len(), keys, "{watch:?}");
    }
    for process in fleet().iter().filter(|process| !is_well(process)) {
        let mut world = watching(AutoWatch::Selected, false);
        world.state.list.select(process.key);
        world.wait(60_000);
        assert_eq!(keys_of(&world.take_effects()), [], "{}", process.name);
    }
}

/// That it is asked for in spite of `--readonly` is known from the options only.
#[test]
fn readonly_watches_what_it_was_asked_to_and_has_no_key_for_more() {
    let mut world = watching(AutoWatch::Selected, true);
    world.wait(1000);
    assert_eq!(keys_of(&world.take_effects()).len(), 1);
    world.press("↓w");
    assert_eq!(world.take_effects(), []);
}

#[test]
fn a_finding_says_since_when_and_recordings_are_worth_more_than_counters() {
    let mut world = World::populated(120, 40);
    world.press("w");
    let (_, ticket) = watched(&world.take_effects())[0];
    for _ in 0..3 {
        world.send(Msg::Watched { ticket, counters: published(61.0, 4e6, 20.0, 900.0, 0.0) });
        world.wait(4000);
    }
    let found = |world: &World| -> Vec<_> {
        world.state.findings_of_selected().into_iter().map(|found| (found.lint.finding, found.age.map(|age| age.as_secs()))).collect()
    };
    assert_eq!(found(&world), [("900/s exceptions".to_owned(), Some(12)), ("20 % of the time in GC".to_owned(), Some(12))]);
    world.send(Msg::Watched { ticket, counters: published(61.0, 4e6, 2.0, 900.0, 0.0) });
    world.send(Msg::Watched { ticket, counters: published(61.0, 4e6, 20.0, 900.0, 0.0) });
    assert_eq!(found(&world)[1].1, Some(0), "it begins anew");
}

#[test]
fn all_are_watched_that_can_be_and_then_none() {
    let mut world = World::populated(120, 40);
    world.press("wW");
    assert_eq!(watched(&world.take_effects()).len(), attachable(), "the first is watched already");
    world.press("W");
    let ended = world.take_effects().iter().filter(|effect| matches!(effect, Effect::Unwatch { .. })).count();
    assert_eq!((ended, world.state.watches.all().len()), (attachable(), 0));
}

#[test]
fn only_what_the_filter_lets_through_is_watched() {
    let mut world = World::populated(120, 40);
    world.press("/order⏎W");
    let shown: Vec<_> = world.state.list.shown().map(|row| row.process.key).collect();
    assert!(!shown.is_empty() && shown.len() < attachable());
    assert!(watched(&world.take_effects()).iter().map(|(key, _)| *key).eq(shown.iter().copied()));
    // Others that are watched stay watched.
    world.press("/⌫⌫⌫⌫⌫⌫⏎W");
    world.take_effects();
    world.press("/order⏎W");
    let ended = world.take_effects();
    assert!(ended.iter().all(|effect| matches!(effect, Effect::Unwatch { key } if shown.contains(key))) && ended.len() == shown.len());
    assert_eq!(world.state.watches.all().len(), attachable() - shown.len());
}

#[test]
fn the_sick_one_of_several_is_seen_and_comes_first() {
    let mut world = World::populated(120, 40);
    world.press("W");
    let well = || published(61.0, 4e6, 2.0, 3.0, 0.0);
    world.tell(&[well(), published(700.0, 9e8, 41.0, 0.0, 0.0), well()]);
    let sick: Vec<_> = world.state.list.rows().iter().filter(|row| row.word() == "GC time").map(|row| row.process.key).collect();
    assert_eq!(sick.len(), 1);
    world.press(">>>>");
    assert_eq!(world.state.list.sort().column, Column::GcTime);
    world.press("g");
    assert_eq!(world.state.list.selected(), Some(sick[0]));
    // A column that goes takes the order with it.
    world.press("W");
    assert_eq!(world.state.list.sort().column, Column::Cpu);
}

/// Who records the sick one to find out more sees why it is sick all the same, and finds it by either word.
#[test]
fn the_sick_one_stays_sick_while_it_is_recorded() {
    let mut world = World::populated(120, 40);
    world.press("w");
    world.tell(&[published(700.0, 9e8, 41.0, 0.0, 0.0)]);
    let sick = world.state.list.selected();
    world.press("t");
    let row = world.state.selected().unwrap();
    assert_eq!((row.recording, row.word(), row.ailment()), (true, "GC time", Some(Ailment::GcTime)));
    for filter in ["/recording⏎", "/⌃uGC␣time⏎"] {
        world.press(filter);
        assert_eq!((world.state.list.len(), world.state.list.selected()), (1, sick), "{filter}");
    }
}

#[test]
fn what_is_wrong_is_found_in_the_figures_worst_first() {
    use Ailment::{Exceptions, GcTime, Queue};
    for (counters, expected) in [
        (published(61.0, 4e6, 10.0, 50.0, 15.0), vec![]),
        (published(61.0, 4e6, 10.1, 0.0, 0.0), vec![(GcTime, Tab::Gc, "10 % of the time in GC")]),
        (
            published(61.0, 4e6, 20.0, 900.0, 90.0),
            vec![
                (Exceptions, Tab::Exceptions, "900/s exceptions"),
                (Queue, Tab::Threads, "90 work items wait"),
                (GcTime, Tab::Gc, "20 % of the time in GC"),
            ],
        ),
    ] {
        let lints = ailments(&counters).into_iter().map(|ailment| (ailment, ailment.lint(&counters)));
        let found: Vec<_> = lints.map(|(ailment, lint)| (ailment, lint.tab, lint.finding)).collect();
        assert!(found.iter().map(|(ailment, tab, text)| (*ailment, *tab, text.as_str())).eq(expected), "{found:?}");
    }
}

#[test]
fn a_watch_ends_with_its_process_quietly_and_with_a_word_where_it_fails() {
    let mut world = World::populated(120, 40);
    world.press("w");
    let (key, ticket) = watched(&world.take_effects())[0];
    world.send(Msg::WatchEnded { ticket, trouble: None });
    assert!(world.state.watches.of(key).is_none() && world.said().is_empty());
    world.press("w");
    let (_, ticket) = watched(&world.take_effects())[0];
    world.send(Msg::WatchEnded { ticket, trouble: Some("no answer\u{1b}".into()) });
    assert_eq!(world.said_last(), "OrderService (4242) is not watched: no answer\u{fffd}");
}

#[test]
fn what_cannot_be_talked_to_is_not_watched() {
    let mut world = World::populated(120, 40);
    let denied =
        fleet().into_iter().find(|process| matches!(&process.contact, Contact::Trouble { .. }) && !process.contact.is_attachable());
    world.state.list.select(denied.unwrap().key);
    world.press("w");
    assert_eq!(world.take_effects(), []);
    assert!(world.state.watches.all().is_empty() && !world.said_last().is_empty());
    world.send(Msg::Processes(Vec::new()));
    world.wait(4000);
    let entry = crate::app::action::entry(crate::app::action::Action::WatchAll).unwrap();
    assert!(matches!(entry.status(&world.state), Status::Refused(_)));
}

#[test]
fn figures_stand_still_while_the_display_is_frozen() {
    let mut world = World::populated(120, 40);
    world.press("w");
    let (key, ticket) = watched(&world.take_effects())[0];
    let heap = |world: &World| world.state.list.find(key).unwrap().pulse.unwrap().vitals.heap;
    world.send(Msg::Watched { ticket, counters: published(61.0, 4e6, 2.0, 3.0, 0.0) });
    world.press("␣");
    world.send(Msg::Watched { ticket, counters: published(99.0, 4e6, 2.0, 3.0, 0.0) });
    assert_eq!(heap(&world), Some(61e6));
    world.press("␣");
    assert_eq!(heap(&world), Some(99e6));
}
