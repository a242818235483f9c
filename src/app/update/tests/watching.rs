use std::sync::Arc;

use crate::analysis::{CollectionMarks, FinalizerWait};
use crate::app::action::Status;
use crate::app::tabs::MIN_GRAPH_WIDTH;
use crate::app::test_app::{TestApp, add_counter, options, published, recording, sample_processes};
use crate::app::{AutoWatch, Column, Direction, Effect, Msg, Options, Sort, Ticket};
use crate::clr::COUNTERS_PROVIDER;
use crate::model::{Contact, Phase, ProcessKey, Recording};

/// Number of attachable sample processes.
pub(super) fn attachable() -> usize {
    sample_processes().iter().filter(|process| process.contact.is_attachable()).count()
}

pub(super) fn watched(effects: &[Effect]) -> Vec<(ProcessKey, Ticket)> {
    let watch = |effect: &Effect| if let Effect::Watch { key, ticket, .. } = effect { Some((*key, *ticket)) } else { None };
    effects.iter().filter_map(watch).collect()
}

pub(super) fn columns(app: &TestApp) -> Vec<Column> {
    app.state.layout().list.unwrap().columns.iter().map(|slot| slot.column).filter(|column| column.is_watched()).collect()
}

#[test]
fn one_key_toggles_the_watch_and_its_columns() {
    let mut app = TestApp::populated(120, 40);
    assert!(columns(&app).is_empty());
    let key = app.state.list.selected().unwrap();
    app.press("w");
    let effects = app.take_effects();
    let [(of, ticket)] = watched(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!(of, key);
    assert_eq!(columns(&app).len(), 5);
    // All figures are unknown before the first values.
    let watch = |app: &TestApp| app.state.list.find(key).unwrap().watch;
    assert_eq!(watch(&app).unwrap().stats.heap, None);
    app.count(ticket, published(61.0, 4e6, 2.0, 3.0, 0.0));
    assert_eq!(watch(&app).unwrap().stats.heap, Some(61e6));
    assert_eq!(app.state.selected().unwrap().word(), "watched");
    // Reports of an older session are ignored.
    app.count(Ticket(9999), published(1.0, 1.0, 90.0, 1.0, 1.0));
    assert_eq!(watch(&app).unwrap().issue, None);
    app.press("w");
    assert_eq!(app.take_effects(), [Effect::Unwatch { key }]);
    assert!(watch(&app).is_none() && columns(&app).is_empty());
    app.count(ticket, published(61.0, 4e6, 2.0, 3.0, 0.0));
    assert!(watch(&app).is_none(), "its last words come too late");
}

/// Returns an app with automatic watches.
pub(super) fn watching(watch: AutoWatch, readonly: bool) -> TestApp {
    let mut app = TestApp::with(Options { watch, readonly, ..options() }, 120, 40);
    app.send(Msg::Processes(sample_processes()));
    app
}

pub(super) fn keys_of(effects: &[Effect]) -> Vec<ProcessKey> {
    watched(effects).into_iter().map(|(key, _)| key).collect()
}

/// The table is sorted by a column of watched processes only while it is shown, which an automatic watch does not cause.
#[test]
fn the_table_is_not_sorted_by_a_hidden_column() {
    for (watch, column) in [(AutoWatch::Never, Column::Cpu), (AutoWatch::Selected, Column::Cpu), (AutoWatch::All, Column::Heap)] {
        let sort = Sort { column: Column::Heap, direction: Direction::Descending };
        let mut app = TestApp::with(Options { watch, sort, ..options() }, 120, 40);
        app.send(Msg::Processes(sample_processes()));
        assert_eq!(app.state.list.sort().column, column, "{watch:?}");
        assert!(column == Column::Heap || app.selected_name() == "OrderService", "the busiest process is first");
    }
    let mut app = watching(AutoWatch::Selected, false);
    app.wait(1000);
    assert_eq!(keys_of(&app.take_effects()).len(), 1);
    app.press("↓w>>");
    assert_eq!(app.state.list.sort().column, Column::Heap);
    app.press("w");
    assert_eq!((app.state.list.sort().column, app.state.watches.all().len()), (Column::Cpu, 1));
}

#[test]
fn a_key_turns_the_watch_off_and_on() {
    let mut app = watching(AutoWatch::Selected, false);
    app.wait(1000);
    let key = keys_of(&app.take_effects())[0];
    app.press("w");
    assert_eq!(app.take_effects(), [Effect::Unwatch { key }]);
    app.wait(60_000);
    assert_eq!(app.take_effects(), [], "it stays off");
    // A manual watch stays when another process is selected.
    app.press("w↓");
    app.wait(60_000);
    assert!(app.state.watches.of(key).is_some() && !columns(&app).is_empty());
}

/// Enter in a tab without a recording records exactly what it shows, and `t` still records the default profiles.
#[test]
fn enter_records_the_profiles_of_the_open_tab() {
    for (tab, profiles) in [("4", "gc-verbose"), ("5", "exceptions"), ("6", "contention threadpool"), ("9⇥", "http"), ("9⇥⇥", "logs")]
    {
        let mut app = TestApp::populated(120, 40);
        app.press("⏎");
        app.press(tab);
        let (shown, usual) = (app.state.tab, app.state.last_profiles.clone());
        app.take_effects();
        app.press("⏎");
        let effects = app.take_effects();
        let [Effect::StartTrace { options, .. }] = &effects[..] else { panic!("{tab}: {effects:?}") };
        assert_eq!((options.profiles.join(" ").as_str(), app.state.tab), (profiles, shown));
        assert_eq!(app.state.last_profiles, usual);
        app.press("⏎");
        assert_eq!(app.take_effects(), [], "it is recorded already");
    }
}

#[test]
fn finding_age_is_shown_and_reset_when_it_is_over() {
    let (mut app, ticket) = TestApp::watching();
    for _ in 0..3 {
        app.count(ticket, published(61.0, 4e6, 20.0, 900.0, 0.0));
        app.wait(4000);
    }
    let found = |app: &TestApp| -> Vec<_> {
        app.state.findings_of_selected().into_iter().map(|found| (found.finding.text, found.age.map(|age| age.as_secs()))).collect()
    };
    assert_eq!(found(&app), [("900/s exceptions".to_owned(), Some(12)), ("20 % of the time in GC".to_owned(), Some(12))]);
    // A session that is restarted lacks some figures at first.
    for (reports, age) in [(1, 12), (5, 12), (6, 0)] {
        for _ in 0..reports {
            app.count(ticket, published(61.0, 4e6, 2.0, 900.0, 0.0));
            assert_eq!(found(&app).len(), 1);
        }
        app.count(ticket, published(61.0, 4e6, 20.0, 900.0, 0.0));
        assert_eq!(found(&app)[1].1, Some(age), "after {reports} reports without it");
    }
}

/// Of a problem found by both, the overview shows the recording's finding.
#[test]
fn counters_add_the_findings_that_a_recording_lacks() {
    let mut app = TestApp::populated(120, 40);
    app.press("wt");
    let (_, ticket) = watched(&app.take_effects())[0];
    let mut analysis = (*crate::ui::tests::analysis::empty()).clone();
    analysis.snapshot.gc.pauses.recent_share = 0.5;
    analysis.snapshot.contention.recent_waiters = Some(9.0);
    analysis.snapshot.contention.long_waits_ns = vec![20_000_000_000];
    app.report(Recording { analysis: Some(analysis.into()), ..recording(1, 5, Phase::Recording) });
    let found = |app: &TestApp| -> Vec<_> {
        let mut found: Vec<_> = app.state.findings_of_selected().into_iter().map(|found| found.finding.text).collect();
        found.sort();
        found
    };
    let recorded = ["50 % of the time in GC", "9 threads at a time wait for locks", "a thread has been waiting for a lock for 20 s"];
    assert_eq!(found(&app), recorded);
    let mut counters = (*published(61.0, 4e6, 20.0, 0.0, 90.0)).clone();
    counters.stats.collections[2] = Some(4.0);
    counters.stats.contentions = Some(1e6);
    counters.finalizer_wait = Some(FinalizerWait { waiting_ns: 60_000_000_000, queued: 3 });
    app.count(ticket, counters);
    let finalizer = "the finalizer thread is blocked or busy, 3 objects queued";
    assert_eq!(found(&app), ["4/s gen 2 collections", recorded[0], recorded[1], "90 work items wait", recorded[2], finalizer]);
}

#[test]
fn watch_all_toggles_all_attachable_processes() {
    let mut app = TestApp::populated(120, 40);
    app.press("wW");
    assert_eq!(watched(&app.take_effects()).len(), attachable(), "the first is watched already");
    app.press("W");
    let ended = app.take_effects().iter().filter(|effect| matches!(effect, Effect::Unwatch { .. })).count();
    assert_eq!((ended, app.state.watches.all().len()), (attachable(), 0));
}

/// An automatic watch ends soon after its process is deselected, and its row shows no figures.
#[test]
fn watch_all_keeps_the_automatic_watch_of_the_selected_process() {
    let mut app = watching(AutoWatch::Selected, false);
    app.wait(1500);
    let selected = app.state.list.selected().unwrap();
    assert!(watched(&app.take_effects()).iter().map(|(key, _)| *key).eq([selected]));
    app.press("W");
    assert_eq!(watched(&app.take_effects()).len(), attachable() - 1, "no second session");
    let shown = |app: &TestApp| app.state.list.find(selected).unwrap().watch.map(|watch| watch.automatic);
    assert_eq!(shown(&app), Some(false));
    app.press("↓");
    app.wait(10_000);
    assert_eq!((shown(&app), app.state.watches.all().len()), (Some(false), attachable()));
    app.press("W");
    assert_eq!(app.state.watches.all().len(), 0);
}

#[test]
fn watch_all_applies_only_to_filtered_processes() {
    let mut app = TestApp::populated(120, 40);
    app.press("/order⏎W");
    let shown: Vec<_> = app.state.list.shown().map(|row| row.process.key).collect();
    assert!(!shown.is_empty() && shown.len() < attachable());
    assert!(watched(&app.take_effects()).iter().map(|(key, _)| *key).eq(shown.iter().copied()));
    // Watched processes hidden by the filter stay watched.
    app.press("/⌫⌫⌫⌫⌫⌫⏎W");
    app.take_effects();
    app.press("/order⏎W");
    let ended = app.take_effects();
    assert!(ended.iter().all(|effect| matches!(effect, Effect::Unwatch { key } if shown.contains(key))) && ended.len() == shown.len());
    assert_eq!(app.state.watches.all().len(), attachable() - shown.len());
}

#[test]
fn failed_watch_is_reported_and_ended_watch_is_not() {
    let (mut app, ticket) = TestApp::watching();
    let key = app.state.list.selected().unwrap();
    app.send(Msg::WatchEnded { ticket, trouble: None });
    assert!(app.state.watches.of(key).is_none() && app.toast_texts().is_empty());
    app.press("w");
    let (_, ticket) = watched(&app.take_effects())[0];
    app.send(Msg::WatchEnded { ticket, trouble: Some("no answer\u{1b}".into()) });
    assert_eq!(app.last_toast(), "OrderService (4242) is not watched: no answer\u{fffd}");
}

#[test]
fn processes_that_cannot_be_attached_to_are_not_watched() {
    let mut app = TestApp::populated(120, 40);
    let denied = sample_processes()
        .into_iter()
        .find(|process| matches!(&process.contact, Contact::Trouble { .. }) && !process.contact.is_attachable());
    app.state.list.select(denied.unwrap().key);
    app.press("w");
    assert_eq!(app.take_effects(), []);
    assert!(app.state.watches.all().is_empty() && !app.last_toast().is_empty());
    app.send(Msg::Processes(Vec::new()));
    app.wait(4000);
    let entry = crate::app::action::entry(crate::app::action::Action::WatchAll);
    assert!(matches!(entry.status(&app.state), Status::Refused(_)));
}

#[test]
fn figures_do_not_change_while_the_display_is_frozen() {
    let (mut app, ticket) = TestApp::watching();
    let key = app.state.list.selected().unwrap();
    let heap = |app: &TestApp| app.state.list.find(key).unwrap().watch.unwrap().stats.heap;
    app.count(ticket, published(61.0, 4e6, 2.0, 3.0, 0.0));
    app.press("␣");
    app.count(ticket, published(99.0, 4e6, 2.0, 3.0, 0.0));
    assert_eq!(heap(&app), Some(61e6));
    app.press("␣");
    assert_eq!(heap(&app), Some(99e6));
}

/// The narrowest graphs are shown in a terminal of 80 columns.
#[test]
fn titles_of_graphs_without_events_are_not_cut() {
    let (mut app, ticket) = TestApp::watching();
    let mut counters = published(61.0, 4e6, 2.0, 3.0, 0.0);
    let changed = Arc::make_mut(&mut counters);
    let names = ["gen-0-gc-count", "gen-1-gc-count", "gen-2-gc-count", "monitor-lock-contention-count"];
    changed.counters.retain(|counter| !names.contains(&counter.name.as_str()));
    for name in names {
        add_counter(changed, COUNTERS_PROVIDER, name).history.iter_mut().for_each(|(_, value)| *value = 21_600.0);
    }
    (changed.collections, changed.too_many_lock_waits) = (CollectionMarks::TooMany(359_000.0), Some(359_000.0));
    app.count(ticket, counters);
    let graphs = app.state.overview().unwrap().graphs;
    let title = |title| graphs.iter().find(|graph| graph.title == title).map(|graph| format!("{title} {}", graph.now)).unwrap();
    for (name, expected) in [("Collections", "Collections 21.6k/s  not marked"), ("Lock contention", "Lock contention 21.6k/s  not timed")]
    {
        assert_eq!(title(name), expected);
        assert!(expected.len() < usize::from(MIN_GRAPH_WIDTH), "{expected}");
    }
}

/// .NET Core 3.1 publishes whole megabytes.
#[test]
fn heap_of_less_than_a_megabyte_is_not_empty() {
    for (megabytes, expected) in [(0.0, "<1 MB"), (0.25, "250 kB"), (5.0, "5.0 MB")] {
        let (mut app, ticket) = TestApp::watching();
        let mut counters = published(megabytes, 4e6, 2.0, 3.0, 0.0);
        for counter in &mut Arc::make_mut(&mut counters).counters {
            counter.history.iter_mut().filter(|_| counter.name == "gc-heap-size").for_each(|(_, value)| *value = megabytes);
        }
        app.count(ticket, counters);
        let graphs = app.state.overview().unwrap().graphs;
        assert_eq!(graphs.iter().find(|graph| graph.title == "GC heap").map(|graph| graph.now.as_str()), Some(expected));
    }
}
