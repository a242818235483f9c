use std::time::Duration;

use crate::app::world::{World, fleet, process, recording};
use crate::app::{Level, Msg, Options};
use crate::model::Phase;

/// Without any process younger than a minute, so that nothing counts seconds.
fn calm() -> World {
    let mut world = World::new(120, 40);
    // Until the bars of the processor time are level.
    for _ in 0..6 {
        world.send(Msg::Processes(fleet().into_iter().filter(|process| process.name != "ReportWorker").collect()));
    }
    world.wait(2000);
    world.state.take_dirty();
    world
}

#[test]
fn nothing_changed_is_nothing_drawn() {
    let mut world = calm();
    let same: Vec<_> = world.state.list.rows().iter().map(|row| row.process.clone()).collect();
    for _ in 0..30 {
        world.wait(1000);
        world.send(Msg::Processes(same.clone()));
        assert!(!world.state.take_dirty());
    }
    let mut other = same.clone();
    other[0].usage.cpu_percent = Some(3.0);
    world.send(Msg::Processes(other));
    assert!(world.state.take_dirty());
}

#[test]
fn the_clock_and_ages_are_kept_up() {
    let mut world = calm();
    // The clock shows minutes: 08:30:23 to 08:31:00.
    assert_eq!(world.state.next_deadline(world.now), Some(Duration::from_secs(37)));
    world.wait(36_999);
    assert!(!world.state.take_dirty());
    world.wait(1);
    assert!(world.state.take_dirty());
    // A process in its first minute counts seconds when the list is made anew, and the screen wakes for nothing in between.
    let mut young = process(9, "young");
    young.started_unix_ms = world.now.unix_ms;
    world.send(Msg::Processes(vec![young.clone()]));
    world.wait(3000);
    world.state.take_dirty();
    world.send(Msg::Processes(vec![young]));
    assert!(world.state.take_dirty());
    let next = world.state.next_deadline(world.now).unwrap();
    assert!(next > Duration::from_secs(1), "{next:?}");
}

#[test]
fn a_running_recording_counts_and_a_paused_display_does_not() {
    let mut world = calm();
    world.press("t");
    world.send(Msg::Recording(Box::new(recording(1, 5, Phase::Recording))));
    assert!(world.state.next_deadline(world.now).unwrap() <= Duration::from_secs(1));
    world.press("␣");
    world.wait(61_000);
    assert!(world.state.next_deadline(world.now).unwrap() > Duration::from_secs(1));
}

#[test]
fn messages_go_and_errors_stay_until_someone_is_there() {
    let mut world = calm();
    world.state.say(Level::Info, "info");
    world.state.say(Level::Error, "error");
    world.wait(3999);
    assert_eq!(world.said(), ["error", "info"]);
    world.state.take_dirty();
    world.wait(1);
    assert!(world.state.take_dirty());
    assert_eq!(world.said(), ["error"]);
    world.wait(600_000);
    assert_eq!(world.said(), ["error"]);
    world.press("↓");
    assert_eq!(world.said(), Vec::<String>::new());
    assert_eq!(world.state.toasts.history().len(), 2);

    // Esc puts one away that is new, and leaves the filter alone.
    world.press("/a⏎");
    world.state.say(Level::Error, "another");
    world.press("⎋");
    assert_eq!((world.said().len(), world.state.list.filter().as_str()), (0, "a"));
    // So does looking at all of them.
    world.state.say(Level::Error, "third");
    world.press("!⎋");
    assert_eq!(world.said().len(), 0);
    // The same words twice are one message.
    world.state.say(Level::Warning, "again");
    world.state.say(Level::Warning, "again");
    assert_eq!(world.said(), ["again"]);
}

#[test]
fn the_filter_of_the_command_line_is_there_from_the_start() {
    let mut world = World::with(Options { filter: "web".to_owned(), ..crate::app::world::options() }, 120, 40);
    world.send(Msg::Processes(fleet()));
    assert_eq!(world.selected_name(), "WebGateway");
}
