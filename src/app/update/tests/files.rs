use std::time::Duration;

use crate::app::action::Context;
use crate::app::world::{World, options};
use crate::app::{Effect, Msg, Options, Tab, Ticket};
use crate::model::{FileContents, Span, TraceFile};
use crate::ui::tests::findings::scripted;
use crate::ui::tests::scenes::opened;

/// What was last asked of a file.
fn asked(world: &mut World) -> (Ticket, Option<Span>) {
    let effects = world.take_effects();
    let Some(Effect::ReadFile { ticket, span, .. }) = effects.last() else { panic!("{effects:?}") };
    (*ticket, *span)
}

#[test]
fn files_are_read_when_the_program_opens() {
    let file = |name: &str| TraceFile { path: name.into(), bytes: 1000, process_id: 7, start_unix_ms: 1 };
    let mut world = World::with(Options { files: vec![file("/x/b"), file("/x/a")], ..options() }, 120, 40);
    world.send(Msg::Tick);
    let effects = world.take_effects();
    assert!(matches!(effects.as_slice(), [Effect::ReadFile { span: None, .. }, Effect::ReadFile { span: None, .. }]), "{effects:?}");
    // Two files of one process are two rows.
    assert_eq!((world.state.list.len(), world.selected_name()), (2, "a".to_owned()));
    assert_eq!((world.state.tab, world.state.context()), (Tab::Trace, Context::Trace));
    let Effect::ReadFile { ticket, .. } = effects[1] else { panic!("{effects:?}") };
    world.send(Msg::FileProgress { ticket, bytes: 500 });
    assert_eq!(world.state.open_file().unwrap().word(), "reading");
    world.send(Msg::FileRead { ticket, result: Err("/x/a cannot be read\u{1b}".into()) });
    assert_eq!(world.said_last(), "/x/a cannot be read\u{fffd}");
    assert_eq!(world.state.open_file().unwrap().word(), "unreadable");
}

#[test]
fn a_part_is_chosen_and_the_newest_wish_wins() {
    const SECOND: i64 = 1_000_000_000;
    let mut world = opened(120, 40);
    let file = world.state.open_file().unwrap();
    assert_eq!((file.word(), file.end, file.span()), ("incomplete", Some(50 * SECOND), None));
    world.press("[");
    let (first, span) = asked(&mut world);
    assert_eq!(span, Some((i64::MIN, 49 * SECOND)));
    world.press("{");
    let (ticket, span) = asked(&mut world);
    assert_eq!(span, Some((i64::MIN, 39 * SECOND)));
    // From here, whichever way the cursor goes then.
    world.press("b}");
    assert_eq!(asked(&mut world).1, Some((39 * SECOND, 49 * SECOND)));
    world.press("{{");
    assert_eq!(asked(&mut world).1, Some((29 * SECOND, 39 * SECOND)));
    let events = |world: &World| world.state.findings().unwrap().snapshot.totals.events;
    let before = events(&world);
    let contents = |events: u64| {
        let mut findings = (*scripted()).clone();
        findings.snapshot.totals.events = events;
        let duration = Duration::from_secs(10);
        FileContents { findings: findings.into(), bytes: 1, end: 5, duration, complete: true, trouble: None }
    };
    for ticket in [first, ticket] {
        world.send(Msg::FileRead { ticket, result: Ok(contents(1)) });
    }
    assert_eq!(events(&world), before, "what nobody waits for any more is dropped");
    // Beyond the ends there is nothing.
    world.press("{{{{{{{{");
    assert_eq!(asked(&mut world).1, Some((0, 39 * SECOND)));
    world.press("B");
    let (ticket, span) = asked(&mut world);
    assert_eq!(span, None);
    world.send(Msg::FileRead { ticket, result: Ok(contents(77)) });
    assert_eq!((events(&world), world.state.open_file().unwrap().word()), (77, "whole"));
    world.press("B");
    assert_eq!(world.take_effects(), [], "it is shown already");
}

#[test]
fn nothing_is_done_to_a_process_that_is_not_there() {
    let mut world = opened(120, 40);
    for key in ["t", "T", "d", "p", "e", "w", "W"] {
        world.press(key);
        assert_eq!(world.take_effects(), [], "{key}");
        assert!(world.state.overlay.is_none() && world.said_last().contains("not a process"), "{key}");
    }
    let mut seen = Vec::new();
    for _ in 0..11 {
        seen.push(world.state.tab);
        world.press("⇥");
    }
    assert!(world.state.tab == Tab::Trace && seen.iter().all(|tab| tab.is_in_file()), "{seen:?}");
    world.press("qq");
    assert_eq!(world.take_effects(), [Effect::Quit { keep_recording: false }]);
}
