use crate::app::action::Context;
use crate::app::test_app::{TestApp, contents, options, recording, sample_processes, trace_file};
use crate::app::{Column, Direction, Effect, Focus, Msg, Options, RowKind, Sort, Tab, Ticket};
use crate::model::{FileKind, Outcome, Phase, Span, StoppedBy};
use crate::ui::tests::analysis::{empty, scripted};
use crate::ui::tests::scenes::opened;

/// Returns the ticket and range of the last file read request.
pub(super) fn read_request(app: &mut TestApp) -> (Ticket, Option<Span>) {
    let effects = app.take_effects();
    let Some(Effect::ReadFile { ticket, span, .. }) = effects.last() else { panic!("{effects:?}") };
    (*ticket, *span)
}

#[test]
fn files_are_read_at_startup() {
    let by_name = Sort { column: Column::Name, direction: Direction::Ascending };
    for sort in [Sort::default(), by_name] {
        let app = TestApp::with(Options { files: vec![trace_file("/x/b"), trace_file("/x/a")], sort, ..options() }, 120, 40);
        assert_eq!(app.selected_name(), "a", "{sort:?}");
    }
    let mut app = TestApp::with(Options { files: vec![trace_file("/x/b"), trace_file("/x/a")], ..options() }, 120, 40);
    app.send(Msg::Tick);
    let effects = app.take_effects();
    assert!(matches!(effects.as_slice(), [Effect::ReadFile { span: None, .. }, Effect::ReadFile { span: None, .. }]), "{effects:?}");
    // Two files of the same process are two rows.
    assert_eq!((app.state.list.len(), app.selected_name()), (2, "a".to_owned()));
    assert_eq!((app.state.tab, app.state.context()), (Tab::Trace, Context::Trace));
    let Effect::ReadFile { ticket, .. } = effects[1] else { panic!("{effects:?}") };
    app.send(Msg::FileProgress { ticket, bytes: 500 });
    assert_eq!(app.state.open_file().unwrap().condition().2, "reading");
    app.send(Msg::FileRead { ticket, result: Err("/x/a cannot be read\u{1b}".into()) });
    assert_eq!(app.last_toast(), "/x/a cannot be read\u{fffd}");
    assert_eq!(app.state.open_file().unwrap().condition().2, "unreadable");
}

#[test]
fn recordings_of_one_process_can_be_told_apart_in_a_narrow_terminal() {
    let files = ["033321", "034118"].map(|time| trace_file(&format!("/srv/traces/shop/OrderService_4242_20261129_{time}.nettrace")));
    let app = TestApp::with(Options { files: files.to_vec(), ..options() }, 80, 24);
    let screen = crate::ui::tests::screen(&app.state);
    assert!(["_033321.nettrace", "_034118.nettrace"].iter().all(|end| screen.contains(end)), "{screen}");
}

/// The shown figures must be those of the shown range.
#[test]
fn range_that_cannot_be_read_is_not_shown() {
    let mut app = opened(120, 40);
    app.press("b[");
    let (ticket, span) = read_request(&mut app);
    app.send(Msg::FileRead { ticket, result: Ok(contents(scripted())) });
    assert_eq!(app.state.open_file().unwrap().span(), span);
    app.press("[");
    let (ticket, next) = read_request(&mut app);
    assert_ne!(next, span);
    app.send(Msg::FileRead { ticket, result: Err("/x/a cannot be opened".into()) });
    assert_eq!(app.state.open_file().unwrap().span(), span);
    assert_eq!(app.take_effects(), [], "it is not read again");
}

/// A file has a path, not a command line.
#[test]
fn files_are_filtered_and_copied_by_path() {
    let mut app = TestApp::with(Options { files: vec![trace_file("/x/b"), trace_file("/y/a")], ..options() }, 120, 40);
    app.press("⎋/file:/x⏎");
    assert_eq!(app.selected_name(), "b");
    app.press("y");
    let items = app.copy_menu();
    assert!(items.iter().any(|(_, text)| text == "/x/b"), "{items:?}");
    assert!(items.iter().all(|(label, _)| *label != "command line"), "{items:?}");
}

#[test]
fn time_range_is_selected_and_stale_replies_are_dropped() {
    const SECOND: i64 = 1_000_000_000;
    let mut app = opened(120, 40);
    let file = app.state.open_file().unwrap();
    assert_eq!((file.condition().2, file.end, file.span()), ("incomplete", Some(50 * SECOND), None));
    app.press("[");
    let (first, span) = read_request(&mut app);
    assert_eq!(span, Some((i64::MIN, 49 * SECOND)));
    app.press("{");
    let (ticket, span) = read_request(&mut app);
    assert_eq!(span, Some((i64::MIN, 39 * SECOND)));
    // From there to the end, until the cursor moves. The mark stays, whichever way that is.
    app.press("b");
    assert_eq!(read_request(&mut app).1, Some((39 * SECOND, 50 * SECOND)));
    app.press("}");
    assert_eq!(read_request(&mut app).1, Some((39 * SECOND, 49 * SECOND)));
    app.press("{{");
    assert_eq!(read_request(&mut app).1, Some((29 * SECOND, 39 * SECOND)));
    let events = |app: &TestApp| app.state.analysis().unwrap().snapshot.totals.events;
    let before = events(&app);
    let counted = |events: u64| {
        let mut analysis = (*scripted()).clone();
        analysis.snapshot.totals.events = events;
        contents(analysis.into())
    };
    for ticket in [first, ticket] {
        app.send(Msg::FileRead { ticket, result: Ok(counted(1)) });
    }
    assert_eq!(events(&app), before, "an answer that is no longer awaited is dropped");
    // The cursor stops at the ends of the file.
    app.press("{{{{{{{{");
    assert_eq!(read_request(&mut app).1, Some((0, 39 * SECOND)));
    app.press("B");
    let (ticket, span) = read_request(&mut app);
    assert_eq!(span, None);
    app.send(Msg::FileRead { ticket, result: Ok(counted(77)) });
    assert_eq!((events(&app), app.state.open_file().unwrap().condition().2), (77, "complete"));
    app.press("B");
    assert_eq!(app.take_effects(), [], "it is shown already");
    // There is nothing after the end.
    app.press("b");
    assert_eq!((app.take_effects(), app.state.open_file().unwrap().span()), (vec![], None));
    app.press("[");
    let (span, end) = (read_request(&mut app).1, app.state.open_file().unwrap().end.unwrap());
    assert!(span.is_some_and(|(from, to)| from < to && to == end), "{span:?}");
}

#[test]
fn range_of_a_file_with_impossible_times_stays_within_it() {
    let mut app = opened(120, 40);
    app.state.open_file_mut().unwrap().end = Some(i64::MAX);
    app.press("}");
    assert_eq!(app.state.open_file().unwrap().span(), None);
}

#[test]
fn process_actions_are_refused_for_files() {
    let mut app = opened(120, 40);
    for key in ["t", "T", "d", "p", "e", "w", "W"] {
        app.press(key);
        assert_eq!(app.take_effects(), [], "{key}");
        assert!(app.state.overlay.is_none() && app.last_toast().contains("not a process"), "{key}");
    }
    let mut seen = Vec::new();
    for _ in 0..13 {
        seen.push(app.state.tab);
        app.press("⇥");
    }
    assert!(app.state.tab == Tab::Trace && seen.iter().all(|tab| tab.is_shown(RowKind::File(FileKind::Trace))), "{seen:?}");
    app.press("qq");
    assert_eq!(app.take_effects(), [Effect::Quit { keep_recording: false }]);
}

/// Presses the key that lists recorded files and answers with these names.
fn listed(app: &mut TestApp, names: &[&str]) {
    app.take_effects();
    app.press("L");
    app.found(names.iter().map(|name| trace_file(&format!("/x/{name}"))).collect());
}

#[test]
fn files_open_from_the_dashboard_and_esc_returns_to_processes() {
    let mut app = TestApp::populated(120, 40);
    // Freezing affects processes, not files.
    app.press("j4␣");
    let (process, rows) = (app.selected_name(), app.state.list.len());
    app.send(Msg::FilesFound { ticket: Ticket(999), files: Vec::new() });
    listed(&mut app, &[]);
    assert!(app.state.overlay.is_none() && app.last_toast().contains("No .nettrace or .gcdump files"), "{}", app.last_toast());
    listed(&mut app, &["b.nettrace", "a.nettrace"]);
    assert_eq!(app.state.context(), Context::Pick);
    app.press("⎋");
    assert!(!app.state.shows_files());
    listed(&mut app, &["b.nettrace", "a.nettrace"]);
    app.press("⏎");
    let (ticket, _) = read_request(&mut app);
    assert_eq!((app.state.list.len(), app.selected_name(), app.state.tab), (1, "b.nettrace".to_owned(), Tab::Trace));
    // Process updates do not affect the list of files.
    app.send(Msg::Processes(sample_processes().into_iter().skip(1).collect()));
    assert_eq!(app.state.list.len(), 1);
    app.send(Msg::FileRead { ticket, result: Ok(contents(scripted())) });
    assert!(app.state.analysis().is_some());
    // Open another file, and one that is already open.
    for name in ["a.nettrace", "b.nettrace"] {
        listed(&mut app, &[name]);
        app.press("⏎");
        assert_eq!((app.state.list.len(), app.selected_name()), (2, name.to_owned()));
    }
    app.press("t");
    assert!(app.last_toast().contains("Esc in the table goes back to the processes"), "{}", app.last_toast());
    app.press("⎋⎋");
    assert_eq!((app.state.shows_files(), app.state.focus, app.selected_name()), (false, Focus::List, process));
    app.press("␣");
    assert_eq!(app.state.list.rows().iter().filter(|row| row.exited_at.is_none()).count(), rows - 1, "the newest processes are shown");
    assert!(app.state.recordings.all().is_empty());
    // Recording numbers continue from those used before.
    app.press("t");
    assert!(app.take_effects().iter().any(|effect| matches!(effect, Effect::StartTrace { .. })));
}

/// Replies for a dialog are delivered even while the help covers it.
#[test]
fn file_list_reaches_a_palette_covered_by_help() {
    let mut app = TestApp::populated(120, 40);
    app.press(":");
    let effects = app.take_effects();
    let [Effect::FindFiles { ticket, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    app.state.open_help();
    app.send(Msg::FilesFound { ticket: *ticket, files: vec![trace_file("/x/below-the-help.nettrace")] });
    assert_eq!(app.state.context(), Context::Reader);
    app.press("⎋below-the-help⏎");
    assert!(app.state.shows_files());
}

#[test]
fn recordings_of_this_run_are_listed_from_any_folder() {
    let mut app = TestApp::populated(120, 40);
    app.press("t");
    let outcome = Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: Some("/elsewhere/a.nettrace".into()), trouble: None };
    app.report(recording(1, 5, Phase::Done(outcome)));
    app.take_effects();
    app.press("L");
    let effects = app.take_effects();
    let [Effect::FindFiles { known, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(known, &[std::path::PathBuf::from("/elsewhere/a.nettrace")]);
}

/// Each part has its events, and the parts add up to all events, whatever the screen width.
#[test]
fn event_histogram_of_a_file_counts_every_event() {
    let app = opened(120, 40);
    let file = app.state.open_file().unwrap();
    let all: f64 = app.state.analysis().unwrap().snapshot.rates.events.whole().1.iter().sum();
    assert!(all > 0.0);
    for parts in [1, 7, 78, 118, 1000] {
        let events = file.events_by_part(parts);
        assert!(events.len() == parts && events.iter().all(|events| *events >= 0.0), "{parts}");
        assert!((events.iter().sum::<f64>() - all).abs() < 1e-6, "{parts}: {events:?}");
    }
    assert_eq!([13, 14].map(|height| file.range_lines(height)), [1, 3]);
}

/// With a range selected, the events around it stay visible for further selection.
#[test]
fn histogram_covers_the_whole_file_with_a_range_selected() {
    let mut app = opened(120, 40);
    let before = app.state.open_file().unwrap().events_by_part(50);
    app.press("{b{");
    let (ticket, span) = read_request(&mut app);
    assert!(span.is_some());
    app.send(Msg::FileRead { ticket, result: Ok(contents(empty())) });
    assert_eq!(app.state.open_file().unwrap().events_by_part(50), before);
}

/// Another dn-top may still write the file.
#[test]
fn file_is_read_again_and_its_growth_is_reported() {
    let mut app = opened(120, 40);
    let screen = crate::ui::tests::screen(&app.state);
    assert!(screen.contains("incomplete; F5 reads it again"), "{screen}");
    app.press("[");
    let (ticket, range) = read_request(&mut app);
    app.send(Msg::FileRead { ticket, result: Ok(contents(scripted())) });
    let refresh = |app: &mut TestApp, bytes: u64, end: i64| {
        app.press("⌃r");
        let (ticket, span) = read_request(app);
        assert_eq!(span, None, "what was added is in no range");
        app.press("⌃r");
        assert_eq!(app.take_effects(), [], "it is being read");
        let contents = crate::model::FileContents { bytes, end, ..contents(scripted()) };
        app.send(Msg::FileRead { ticket, result: Ok(contents.clone()) });
        assert_eq!(app.state.open_file().unwrap().end, Some(end));
        assert_eq!(app.state.selected().unwrap().process.usage.rss_bytes, bytes, "the size in the table");
        let growth = app.last_toast();
        let (ticket, span) = read_request(app);
        assert!(span.is_some() && span == range, "the range that was shown before");
        app.send(Msg::FileRead { ticket, result: Ok(crate::model::FileContents { bytes, end, ..contents }) });
        assert_eq!(app.take_effects(), []);
        growth
    };
    assert_eq!(refresh(&mut app, 183_500_000, 60_000_000_000), "OrderService_4242.nettrace.partial has grown by 1.5 MB.");
    assert_eq!(refresh(&mut app, 183_500_000, 60_000_000_000), "OrderService_4242.nettrace.partial has not grown.");
    // The recording has been finished and renamed since then.
    app.press("⌃r");
    let (ticket, _) = read_request(&mut app);
    app.send(Msg::FileRead { ticket, result: Err("/srv/a.nettrace.partial cannot be opened: not found".into()) });
    assert!(app.last_toast().ends_with("not found. A finished recording has no .partial in its name: open that file."));
    assert_eq!(app.take_effects(), [], "what was read before is still shown");
}
