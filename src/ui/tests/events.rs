//! Display of the events of a recording.

use std::sync::Arc;

use super::{analysis, picture, text};
use crate::analysis::EventCount;
use crate::app::test_app::{TestApp, recording};
use crate::model::{EventRate, Phase, Recording, RecordingAnalysis};
use crate::ui::Theme;

/// A running recording that contains these events.
fn with(events: Vec<EventRate>) -> TestApp {
    let analysis = RecordingAnalysis { events, ..analysis::empty().as_ref().clone() };
    let mut app = TestApp::populated(120, 40);
    app.press("⏎t");
    app.report(Recording { analysis: Some(Arc::new(analysis)), ..recording(1, 42, Phase::Recording) });
    app
}

fn of(provider: &str, name: &str, count: u64) -> EventRate {
    let event = EventCount { provider: provider.to_owned(), event_id: 1, name: name.to_owned(), count, bytes: 7 };
    EventRate { event, rate: 0.0 }
}

#[test]
fn kernel_samples_are_reported_without_runtime_samples() {
    let mut app = with(vec![of("Universal.Events", "cpu", 7)]);
    app.press("7");
    let shown = text(&picture(&app, &Theme::dark(), 120, 40));
    assert!(shown.contains("No samples of the runtime, but 7 CPU samples and 0 context switches of the kernel"), "{shown}");
}

#[test]
fn rundown_and_symbol_events_are_not_top_events() {
    let mut app = with(vec![
        of("Microsoft-Windows-DotNETRuntimeRundown", "MethodDCEndVerbose", 900),
        of("Universal.System", "ProcessSymbol", 800),
        of("Universal.Events", "cpu", 700),
        of("Orders", "OrderShipped", 600),
    ]);
    app.press("3");
    let shown = text(&picture(&app, &Theme::dark(), 120, 40));
    let seen = ["OrderShipped", "samples: see tab Events", "MethodDCEndVerbose", "ProcessSymbol"].map(|name| shown.contains(name));
    assert_eq!(seen, [true, true, false, false], "{shown}");
}

/// While recording, the rates are those of the last seconds: what occurred most so far may have ended.
#[test]
fn top_events_are_those_with_the_highest_rates() {
    let events = vec![
        of("Orders", "OrderShipped", 600),
        EventRate { rate: 4.0, ..of("Orders", "OrderFailed", 40) },
        EventRate { rate: 8.0, ..of("Orders", "OrderRetried", 30) },
    ];
    let mut app = with(events);
    app.press("3");
    let shown = text(&picture(&app, &Theme::dark(), 120, 40));
    let lines: Vec<_> = shown.lines().filter(|line| line.contains(" Order")).filter_map(|line| line.rsplit_once("/s  ")).collect();
    let events: Vec<_> = lines.into_iter().map(|(_, event)| event.trim_end_matches(['│', ' '])).collect();
    assert_eq!(events, ["━━━━━━━━ OrderRetried", "━━━━     OrderFailed", "         OrderShipped"], "{shown}");
}
