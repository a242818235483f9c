use std::sync::Arc;

use crate::analysis::CounterSource;
use crate::app::action::Context;
use crate::app::world::{World, metered, published, recording};
use crate::app::{CounterLine, CounterOrigin, Effect, Msg, Tab};
use crate::model::{Phase, Recording};
use crate::ui::tests::findings::scripted;

/// The selected process is watched, and the tab is open.
fn watched(keys: &str) -> World {
    let mut world = World::populated(120, 40);
    world.press("w⏎9");
    world.tell(&[metered()]);
    world.press(keys);
    world
}

fn lines(world: &World) -> Vec<String> {
    let name = |line: &CounterLine<'_>| match line {
        CounterLine::Group { name, count, folded } => format!("{}{name} {count}", if *folded { "+" } else { "-" }),
        CounterLine::Counter(counter) => format!("{}{}", counter.name, counter.tags),
    };
    world.state.counter_lines().iter().map(name).collect()
}

#[test]
fn counters_stand_below_their_providers_and_are_folded_filtered_and_sorted() {
    let mut world = watched("");
    let all = ["-Shop.Meter 3", "basket.items", "checkout.durationpay=card", "checkout.durationpay=invoice", "-System.Runtime 6"];
    assert_eq!(lines(&world)[..5], all);
    // Enter folds the provider that the selected line belongs to.
    world.press("↓↓⏎");
    assert_eq!(lines(&world)[..2], ["+Shop.Meter 3", "-System.Runtime 6"]);
    world.press("⏎");
    assert_eq!(lines(&world)[..5], all);
    world.press("/invoice⏎");
    assert_eq!(lines(&world), ["-Shop.Meter 1", "checkout.durationpay=invoice"]);
    world.press("/⎋");
    assert_eq!(lines(&world)[..5], all);
    let runtime = |world: &World| lines(world)[5..].to_vec();
    assert_eq!(runtime(&world)[0], "alloc-rate");
    world.press(">");
    // The total since the session began.
    assert_eq!(runtime(&world)[..3], ["alloc-rate", "exception-count", "gc-heap-size"]);
    world.press(">");
    assert_eq!(lines(&world)[1], "checkout.durationpay=card", "what changes most comes first");
    world.press(">");
    assert_eq!(lines(&world)[..5], all);
}

#[test]
fn what_is_published_both_ways_is_shown_once() {
    let mut world = watched("");
    let mut counters = (*published(61.0, 4e6, 2.0, 3.0, 0.0)).clone();
    counters.counters[2].source = CounterSource::Meter;
    world.tell(&[Arc::new(counters)]);
    assert_eq!(lines(&world), ["-System.Runtime 1", "exception-count"]);
}

#[test]
fn meters_are_asked_for_in_another_session_and_old_runtimes_have_none() {
    let mut world = watched("");
    world.take_effects();
    world.press("m");
    let effects = world.take_effects();
    assert!(matches!(effects.as_slice(), [Effect::Watch { meters: true, .. }]), "{effects:?}");
    assert!(lines(&world).len() > 4, "what is known stays until more comes");
    world.press("m");
    assert!(matches!(world.take_effects().as_slice(), [Effect::Watch { meters: false, .. }]));
    let mut world = World::populated(120, 40);
    world.press("/legacy⏎⏎9m");
    assert_eq!(world.take_effects(), []);
    assert_eq!(world.said_last(), "All meters at once need .NET 9; LegacyBilling has an older one.");
}

#[test]
fn a_recording_shows_its_counters_where_nothing_is_watched() {
    let mut world = World::populated(120, 40);
    world.press("⏎t9");
    assert_eq!(world.state.context(), Context::Counters);
    let mut findings = (*scripted()).clone();
    findings.snapshot.counters = (*metered()).clone();
    world.send(Msg::Recording(Box::new(Recording { findings: Some(findings.into()), ..recording(1, 42, Phase::Recording) })));
    assert!(matches!(world.state.counter_origin(), Some(CounterOrigin::Recording(_))));
    assert_eq!(lines(&world).len(), 11);
    world.press("w");
    assert!(matches!(world.state.counter_origin(), Some(CounterOrigin::Watch(_))));
}

#[test]
fn the_selected_counter_stays_selected_and_is_copied() {
    let mut world = watched("↓↓↓");
    world.press("y⏎");
    let effects = world.take_effects();
    let Some(Effect::Copy { text, .. }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(text, "Shop.Meter/checkout.duration[pay=invoice] = 48 ms");
    let at = |world: &World| world.state.view_cursor(Tab::Counters).at;
    assert_eq!(at(&world), 3);
    world.press(">");
    assert_eq!(lines(&world)[at(&world)], "checkout.durationpay=invoice");
}

#[test]
fn counters_can_be_filtered_before_the_first_values_come() {
    let mut world = World::populated(120, 40);
    world.press("w⏎9/told⏎");
    assert_eq!(world.state.views.filter(Tab::Counters).as_str(), "told");
    assert_eq!(world.state.recordings.active(), 0, "what is typed is no command");
}
