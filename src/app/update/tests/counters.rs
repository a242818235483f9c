use std::sync::Arc;

use crate::analysis::{CounterSnapshot, CounterSource};
use crate::app::action::Context;
use crate::app::tabs::Head;
use crate::app::test_app::{TestApp, metered, process, published, recording};
use crate::app::{CounterLine, Effect, Msg, Tab};
use crate::ipc::RuntimeVersion;
use crate::model::{Contact, Phase, Process, Recording};
use crate::ui::tests::analysis::scripted;
use crate::ui::tests::screen;

/// Returns an app with the selected process watched and the counters tab open.
fn watched(keys: &str) -> TestApp {
    let mut app = TestApp::populated(120, 40);
    app.press("w⏎9");
    app.publish(&[metered()]);
    app.press(keys);
    app
}

fn lines(app: &TestApp) -> Vec<String> {
    let name = |line: &CounterLine<'_>| match line {
        CounterLine::Group { name, count, collapsed } => format!("{}{name} {count}", if *collapsed { "+" } else { "-" }),
        CounterLine::Counter(counter) => format!("{}{}", counter.name, counter.tags),
    };
    app.state.counter_lines().iter().map(name).collect()
}

#[test]
fn counters_are_grouped_by_provider_filtered_and_sorted() {
    let mut app = watched("");
    let all = ["-Shop.Meter 3", "basket.items", "checkout.durationpay=card", "checkout.durationpay=invoice", "-System.Runtime 6"];
    assert_eq!(lines(&app)[..5], all);
    // Enter collapses the provider of the selected line.
    app.press("↓↓⏎");
    assert_eq!(lines(&app)[..2], ["+Shop.Meter 3", "-System.Runtime 6"]);
    app.press("⏎");
    assert_eq!(lines(&app)[..5], all);
    app.press("/invoice⏎");
    assert_eq!(lines(&app), ["-Shop.Meter 1", "checkout.durationpay=invoice"]);
    app.press("/⎋");
    assert_eq!(lines(&app)[..5], all);
    let runtime = |app: &TestApp| lines(app)[5..].to_vec();
    assert_eq!(runtime(&app)[0], "alloc-rate");
    app.press(">");
    // By the rate of what only publishes increases.
    assert_eq!(runtime(&app)[..4], ["alloc-rate", "gc-heap-size", "cpu-usage", "exception-count"]);
    app.press(">");
    assert_eq!(lines(&app)[1], "checkout.durationpay=card", "what changes most comes first");
    app.press(">");
    assert_eq!(lines(&app)[..5], all);
}

#[test]
fn lines_of_a_metric_of_the_runtime_are_distinguishable() {
    const GENERATIONS: [&str; 5] = ["gen0", "gen1", "gen2", "loh", "poh"];
    let mut app = watched("");
    let mut counters = (*metered()).clone();
    let gauge = counters.counters[0].clone();
    counters.counters.extend(GENERATIONS.map(|generation| CounterSnapshot {
        name: "dotnet.gc.last_collection.heap.fragmentation.size".to_owned(),
        tags: format!("gc.heap.generation={generation}"),
        ..gauge.clone()
    }));
    app.publish(&[counters.into()]);
    let shown = screen(&app.state);
    assert!(GENERATIONS.iter().all(|generation| shown.contains(&format!("fragmentation.size {generation} "))), "{shown}");
    assert!(shown.contains("checkout.duration pay=card "), "{shown}");
}

#[test]
fn event_counters_also_published_by_meters_are_hidden() {
    let mut app = watched("");
    let mut counters = (*published(61.0, 4e6, 2.0, 3.0, 0.0)).clone();
    counters.counters[2].source = CounterSource::Meter;
    app.publish(&[Arc::new(counters)]);
    assert_eq!(lines(&app), ["-System.Runtime 1", "exception-count"]);
}

#[test]
fn meters_use_a_new_session_and_are_refused_before_net_9() {
    let mut app = watched("");
    app.take_effects();
    app.press("m");
    let effects = app.take_effects();
    assert!(matches!(effects.as_slice(), [Effect::Watch { meters: true, .. }]), "{effects:?}");
    assert!(lines(&app).len() > 4, "what is known stays until more comes");
    app.press("m");
    assert!(matches!(app.take_effects().as_slice(), [Effect::Watch { meters: false, .. }]));
    let mut app = TestApp::populated(120, 40);
    app.press("/legacy⏎⏎9m");
    assert_eq!(app.take_effects(), []);
    assert_eq!(app.last_toast(), "Watching all meters needs .NET 9; LegacyBilling runs an older version.");
    app.send(Msg::Processes(vec![Process { runtime: Some(RuntimeVersion::new("8.0.33")), ..process(660, "LegacyBilling") }]));
    app.press("m");
    assert_eq!(app.take_effects(), []);
    app.send(Msg::Processes(vec![Process { runtime: None, contact: Contact::Unknown, ..process(660, "LegacyBilling") }]));
    app.press("m");
    assert_eq!(app.last_toast(), "Watching all meters needs .NET 9; the version of LegacyBilling is not known yet.");
}

/// Older runtimes include everything since process start in the first interval of a session.
#[test]
fn first_interval_of_a_session_is_not_a_rate() {
    for (history, expected) in [(vec![5000.0], vec![]), (vec![5000.0, 3.0, 7.0, 4.0], vec!["rate 4/s", "peak 7/s"])] {
        let mut counters = (*published(61.0, 4e6, 2.0, 3.0, 0.0)).clone();
        let thrown = counters.counters.iter_mut().find(|counter| counter.name == "exception-count").unwrap();
        (thrown.rate, thrown.history) =
            (history.last().copied(), (1..).zip(history).map(|(second, rate)| (second * 1_000_000_000, rate)).collect());
        let mut app = TestApp::populated(120, 40);
        app.press("w");
        app.publish(&[Arc::new(counters)]);
        let view = app.state.view_of(Tab::Exceptions).unwrap();
        let [Head::Figures(figures)] = &view.head[..] else { panic!("no figures") };
        assert_eq!(figures.iter().map(|figure| format!("{} {}", figure.label, figure.value)).collect::<Vec<_>>(), expected);
    }
}

/// Returns the cells of a counter of the runtime: value and change.
fn cells(app: &TestApp, name: &str) -> [String; 2] {
    let view = app.state.view_of(Tab::Counters).unwrap();
    let row = (0..view.list.len()).find(|row| view.list.cell(*row, 0).into_text().contains(name)).unwrap();
    [1, 3].map(|column| view.list.cell(row, column).into_text().to_string())
}

/// The sum since the session started says little.
#[test]
fn value_of_a_counter_that_only_publishes_increases_is_its_rate() {
    let mut app = watched("");
    let show = |app: &mut TestApp, history: &[f64], scale| {
        let mut counters = (*metered()).clone();
        let thrown = counters.counters.iter_mut().find(|counter| counter.name == "exception-count").unwrap();
        let last = *history.last().unwrap();
        (thrown.value, thrown.rate, thrown.scaled_rate) = (Some(1e6), Some(last), Some((last * scale, scale)));
        thrown.history = (1..).zip(history).map(|(second, rate)| (second * 1_000_000_000, *rate)).collect();
        app.publish(&[Arc::new(counters)]);
        cells(app, "exception-count")
    };
    assert_eq!(show(&mut app, &[9000.0, 5.0, 3.0], 1.0), ["3/s", "-2/s"]);
    // Unknown in the first interval, which may contain everything since the start of the process.
    assert_eq!(show(&mut app, &[9000.0], 1.0), ["", ""]);
    assert_eq!(show(&mut app, &[9000.0, 5.0], 1.0), ["5/s", ""]);
    assert_eq!(show(&mut app, &[9000.0, 0.5, 0.75], 60.0), ["45/min", "+15/min"]);
    app.press("/exception⏎↓y⏎");
    let effects = app.take_effects();
    let Some(Effect::Copy { text, .. }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(text, "System.Runtime/exception-count = 45 /min");
    assert!(screen(&app.state).contains("1.0M since the session started"), "{}", screen(&app.state));
}

#[test]
fn recording_counters_are_shown_without_a_watch() {
    let mut app = TestApp::populated(120, 40);
    app.press("⏎t9");
    assert_eq!(app.state.context(), Context::Counters);
    let mut analysis = (*scripted()).clone();
    analysis.snapshot.counters = (*metered()).clone();
    app.report(Recording { analysis: Some(analysis.into()), ..recording(1, 42, Phase::Recording) });
    assert_eq!(lines(&app).len(), 11);
    app.press("w");
    assert_eq!(lines(&app), [""; 0], "those of the watch replace them");
}

#[test]
fn the_selected_counter_stays_selected_and_is_copied() {
    let mut app = watched("↓↓↓");
    app.press("y⏎");
    let effects = app.take_effects();
    let Some(Effect::Copy { text, .. }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(text, "Shop.Meter/checkout.duration[pay=invoice] = 48 ms");
    let at = |app: &TestApp| app.state.view_cursor(Tab::Counters).at;
    assert_eq!(at(&app), 3);
    app.press(">");
    assert_eq!(lines(&app)[at(&app)], "checkout.durationpay=invoice");
}

#[test]
fn counter_filter_works_before_the_first_values() {
    let mut app = TestApp::populated(120, 40);
    app.press("w⏎9/told⏎");
    assert_eq!(app.state.views.filter(Tab::Counters).as_str(), "told");
    assert_eq!(app.state.recordings.active(), 0, "what is typed is no command");
}
