use crate::app::action::Context;
use crate::app::world::{World, recording};
use crate::app::{Effect, Msg, Tab};
use crate::model::{Phase, Recording};
use crate::ui::tests::findings::scripted;

fn recorded(keys: &str) -> World {
    let mut world = World::populated(120, 40);
    world.press("⏎t");
    world.send(Msg::Recording(Box::new(Recording { findings: Some(scripted()), ..recording(1, 42, Phase::Recording) })));
    world.press(keys);
    world
}

fn names(world: &World) -> Vec<String> {
    let mut names: Vec<_> = world.state.single_events().iter().map(|(event, _)| event.kind.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn told(world: &mut World) -> Vec<String> {
    let filters = world.take_effects().into_iter();
    filters.filter_map(|effect| if let Effect::FilterEvents { filter, .. } = effect { Some(filter) } else { None }).collect()
}

#[test]
fn single_events_are_filtered_here_at_once_and_at_the_recorder_from_then_on() {
    let mut world = recorded("8f");
    assert!(names(&world).len() > 3 && !names(&world).contains(&"ThreadSample".to_owned()));
    assert_eq!(told(&mut world), [""; 0]);
    world.press("/exc⏎");
    assert_eq!(names(&world), ["ExceptionThrown"]);
    assert_eq!(told(&mut world), ["e", "ex", "exc"]);
    // Methods have a filter of their own, and another recording is told again.
    world.press("7/price⏎8");
    assert_eq!((told(&mut world), names(&world).len()), (vec![], 1));
    world.send(Msg::Recording(Box::new(recording(1, 43, super::views::done()))));
    world.press("t8");
    world.send(Msg::Recording(Box::new(Recording { findings: Some(scripted()), ..recording(2, 1, Phase::Recording) })));
    assert_eq!(told(&mut world), ["exc"]);
    world.press("/⎋");
    assert_eq!(told(&mut world), [""]);
}

#[test]
fn enter_goes_from_a_kind_to_its_events_and_into_one_and_escape_back() {
    let mut world = recorded("8/contention⏎");
    let kind = world.state.events()[0].event.name.clone();
    world.press("⏎");
    assert_eq!((world.state.views.events.single, names(&world)), (true, vec![kind]));
    world.press("↓⏎");
    assert!(world.state.views.events.open);
    world.press("⎋");
    assert_eq!((world.state.views.events.open, world.state.context()), (false, Context::Events));
    world.press("f");
    assert!(!world.state.views.events.single);
    world.press("⎋");
    assert_eq!(world.state.context(), Context::List);
}

#[test]
fn an_open_event_stays_open_while_others_come() {
    let mut world = recorded("8f/!gc⏎⏎");
    let shown = |world: &World| world.state.single_events()[world.state.view_cursor(Tab::Events).at].0.number;
    let before = shown(&world);
    let mut findings = (*scripted()).clone();
    let newer = findings.recent.events.remove(3);
    findings.recent.events.insert(0, newer);
    world.send(Msg::Recording(Box::new(Recording { findings: Some(findings.into()), ..recording(1, 43, Phase::Recording) })));
    assert_eq!(shown(&world), before);
    assert_eq!(world.state.view_cursor(Tab::Events).at, 1);
}

#[test]
fn an_event_is_copied_with_its_fields_and_stack() {
    let mut world = recorded("8f/exception⏎y⏎");
    let effects = world.take_effects();
    let Some(Effect::Copy { text, .. }) = effects.last() else { panic!("{effects:?}") };
    assert!(text.starts_with("Microsoft-Windows-DotNETRuntime/ExceptionThrown\nExceptionType: System."), "{text}");
    assert!(text.contains("\nExceptionHRESULT: 0x80131509\n") && text.contains("\n   at Shop.Pricing.Discounts.Apply"), "{text}");
}
