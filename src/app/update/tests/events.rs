use crate::app::action::Context;
use crate::app::test_app::{TestApp, recording};
use crate::app::{Effect, Tab};
use crate::model::{Phase, Recording};
use crate::ui::tests::analysis::{empty, scripted};

use super::views::{analyzed, done};

fn names(app: &TestApp) -> Vec<String> {
    let mut names: Vec<_> = app.state.single_events().iter().map(|(event, _)| event.kind.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn filters_sent(app: &mut TestApp) -> Vec<String> {
    let filters = app.take_effects().into_iter();
    filters.filter_map(|effect| if let Effect::FilterEvents { filter, .. } = effect { Some(filter) } else { None }).collect()
}

#[test]
fn event_filter_applies_to_the_view_and_the_recorder() {
    let mut app = analyzed("8f");
    assert!(names(&app).len() > 3 && !names(&app).contains(&"ThreadSample".to_owned()));
    assert_eq!(filters_sent(&mut app), [""; 0]);
    app.press("/exc⏎");
    assert_eq!(names(&app), ["ExceptionThrown"]);
    assert_eq!(filters_sent(&mut app), ["e", "ex", "exc"]);
    // Methods have a separate filter; a new recording is sent the event filter again.
    app.press("7/price⏎8");
    assert_eq!((filters_sent(&mut app), names(&app).len()), (vec![], 1));
    app.report(recording(1, 43, done()));
    app.press("t8");
    app.report(Recording { analysis: Some(scripted()), ..recording(2, 1, Phase::Recording) });
    assert_eq!(filters_sent(&mut app), ["exc"]);
    app.press("/⎋");
    assert_eq!(filters_sent(&mut app), [""]);
}

/// The filter belongs to the tab, so each recorder is sent it when its recording is shown.
#[test]
fn event_filter_is_sent_to_each_recorder() {
    let mut app = analyzed("8f/exc⏎");
    let other = app.state.list.at(1).unwrap().process.key;
    app.press("⎋↓t");
    app.report(Recording { analysis: Some(scripted()), key: other, ..recording(2, 1, Phase::Recording) });
    let sent = |app: &mut TestApp| {
        let of = |effect| if let Effect::FilterEvents { id, filter } = effect { Some((id.0, filter)) } else { None };
        app.take_effects().into_iter().filter_map(of).next_back()
    };
    app.press("⏎8");
    assert_eq!(sent(&mut app), Some((2, "exc".to_owned())));
    app.press("/⎋");
    assert_eq!(sent(&mut app), Some((2, String::new())));
    app.press("⎋↑");
    assert_eq!(sent(&mut app), Some((1, String::new())));
}

#[test]
fn empty_list_of_single_events_says_what_is_known() {
    let mut app = analyzed("8f");
    for (events, expected) in [(0, "No events so far."), (7, "Only thread samples or rundown events so far")] {
        let mut analysis = (*empty()).clone();
        analysis.snapshot.totals.events = events;
        app.report(Recording { analysis: Some(analysis.into()), ..recording(1, 43, Phase::Recording) });
        let text = app.state.view_of(Tab::Events).unwrap().empty.0;
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn enter_and_esc_navigate_event_types_events_and_details() {
    let mut app = analyzed("8/contention⏎");
    let kind = app.state.events()[0].event.name.clone();
    app.press("⏎");
    assert_eq!((app.state.views.events.single, names(&app)), (true, vec![kind]));
    app.press("↓⏎");
    assert!(app.state.views.events.open);
    app.press("⎋");
    assert_eq!((app.state.views.events.open, app.state.context()), (false, Context::Events));
    app.press("f");
    assert!(!app.state.views.events.single);
    app.press("⎋");
    assert_eq!(app.state.context(), Context::List);
}

#[test]
fn open_event_stays_open_while_new_events_arrive() {
    let mut app = analyzed("8f/!gc⏎⏎");
    let shown = |app: &TestApp| app.state.single_events()[app.state.view_cursor(Tab::Events).at].0.number;
    let before = shown(&app);
    let mut analysis = (*scripted()).clone();
    let newer = analysis.recent.events.remove(3);
    analysis.recent.events.insert(0, newer);
    app.report(Recording { analysis: Some(analysis.into()), ..recording(1, 43, Phase::Recording) });
    assert_eq!(shown(&app), before);
    assert_eq!(app.state.view_cursor(Tab::Events).at, 1);
}

#[test]
fn an_event_is_copied_with_its_fields_and_stack() {
    let mut app = analyzed("8f/exception⏎y⏎");
    let effects = app.take_effects();
    let Some(Effect::Copy { text, .. }) = effects.last() else { panic!("{effects:?}") };
    assert!(text.starts_with("Microsoft-Windows-DotNETRuntime/ExceptionThrown\nExceptionType: System."), "{text}");
    assert!(text.contains("\nExceptionHRESULT: 0x80131509\n") && text.contains("\n   at Shop.Pricing.Discounts.Apply"), "{text}");
}

#[test]
fn sampling_events_are_shown_only_if_the_filter_matches() {
    let mut app = analyzed("8");
    let kinds = |app: &TestApp| app.state.events().iter().map(|rate| rate.event.is_sampling_event()).collect::<Vec<_>>();
    assert!(kinds(&app).len() > 3 && !kinds(&app).contains(&true));
    app.press("/sample⏎");
    assert_eq!(kinds(&app), [true]);
}
