use std::time::Duration;

use crate::app::action::Context;
use crate::app::test_app::{TestApp, options};
use crate::app::{Effect, Msg, Options, Tab, Ticket};
use crate::model::{FileContents, Span, TraceFile};
use crate::ui::tests::analysis::scripted;
use crate::ui::tests::scenes::opened;

/// What was last asked of a file.
fn asked(app: &mut TestApp) -> (Ticket, Option<Span>) {
    let effects = app.take_effects();
    let Some(Effect::ReadFile { ticket, span, .. }) = effects.last() else { panic!("{effects:?}") };
    (*ticket, *span)
}

#[test]
fn files_are_read_when_the_program_opens() {
    let file = |name: &str| TraceFile { path: name.into(), bytes: 1000, process_id: 7, start_unix_ms: 1 };
    let mut app = TestApp::with(Options { files: vec![file("/x/b"), file("/x/a")], ..options() }, 120, 40);
    app.send(Msg::Tick);
    let effects = app.take_effects();
    assert!(matches!(effects.as_slice(), [Effect::ReadFile { span: None, .. }, Effect::ReadFile { span: None, .. }]), "{effects:?}");
    // Two files of one process are two rows.
    assert_eq!((app.state.list.len(), app.selected_name()), (2, "a".to_owned()));
    assert_eq!((app.state.tab, app.state.context()), (Tab::Trace, Context::Trace));
    let Effect::ReadFile { ticket, .. } = effects[1] else { panic!("{effects:?}") };
    app.send(Msg::FileProgress { ticket, bytes: 500 });
    assert_eq!(app.state.open_file().unwrap().word(), "reading");
    app.send(Msg::FileRead { ticket, result: Err("/x/a cannot be read\u{1b}".into()) });
    assert_eq!(app.said_last(), "/x/a cannot be read\u{fffd}");
    assert_eq!(app.state.open_file().unwrap().word(), "unreadable");
}

#[test]
fn a_part_is_chosen_and_the_newest_wish_wins() {
    const SECOND: i64 = 1_000_000_000;
    let mut app = opened(120, 40);
    let file = app.state.open_file().unwrap();
    assert_eq!((file.word(), file.end, file.span()), ("incomplete", Some(50 * SECOND), None));
    app.press("[");
    let (first, span) = asked(&mut app);
    assert_eq!(span, Some((i64::MIN, 49 * SECOND)));
    app.press("{");
    let (ticket, span) = asked(&mut app);
    assert_eq!(span, Some((i64::MIN, 39 * SECOND)));
    // From here, whichever way the cursor goes then.
    app.press("b}");
    assert_eq!(asked(&mut app).1, Some((39 * SECOND, 49 * SECOND)));
    app.press("{{");
    assert_eq!(asked(&mut app).1, Some((29 * SECOND, 39 * SECOND)));
    let events = |app: &TestApp| app.state.analysis().unwrap().snapshot.totals.events;
    let before = events(&app);
    let contents = |events: u64| {
        let mut analysis = (*scripted()).clone();
        analysis.snapshot.totals.events = events;
        let duration = Duration::from_secs(10);
        FileContents { analysis: analysis.into(), bytes: 1, end: 5, duration, complete: true, trouble: None }
    };
    for ticket in [first, ticket] {
        app.send(Msg::FileRead { ticket, result: Ok(contents(1)) });
    }
    assert_eq!(events(&app), before, "an answer that is no longer awaited is dropped");
    // Beyond the ends there is nothing.
    app.press("{{{{{{{{");
    assert_eq!(asked(&mut app).1, Some((0, 39 * SECOND)));
    app.press("B");
    let (ticket, span) = asked(&mut app);
    assert_eq!(span, None);
    app.send(Msg::FileRead { ticket, result: Ok(contents(77)) });
    assert_eq!((events(&app), app.state.open_file().unwrap().word()), (77, "whole"));
    app.press("B");
    assert_eq!(app.take_effects(), [], "it is shown already");
}

#[test]
fn nothing_is_done_to_a_process_that_is_not_there() {
    let mut app = opened(120, 40);
    for key in ["t", "T", "d", "p", "e", "w", "W"] {
        app.press(key);
        assert_eq!(app.take_effects(), [], "{key}");
        assert!(app.state.overlay.is_none() && app.said_last().contains("not a process"), "{key}");
    }
    let mut seen = Vec::new();
    for _ in 0..12 {
        seen.push(app.state.tab);
        app.press("⇥");
    }
    assert!(app.state.tab == Tab::Trace && seen.iter().all(|tab| tab.is_in_file()), "{seen:?}");
    app.press("qq");
    assert_eq!(app.take_effects(), [Effect::Quit { keep_recording: false }]);
}
