use std::sync::Arc;

use super::files::read_request;
use crate::app::tabs::Cell;
use crate::app::test_app::{TestApp, contents, trace_file};
use crate::app::{Effect, Msg, Tab, Ticket};
use crate::model::{FileContents, RecordingAnalysis};
use crate::ui::tests::analysis::scripted;
use crate::ui::tests::scenes::{compared, comparing, opened};

/// Returns the heading lines and the rows of the list.
fn shown(app: &TestApp) -> (Vec<String>, Vec<Vec<String>>) {
    let view = app.state.view_of(Tab::Compare).unwrap();
    let heading = view.heading.iter().flatten().map(|line| line.iter().map(|(text, _)| text.as_str()).collect()).collect();
    let cells = |row| (0..view.list.columns().len()).map(|column| view.list.cell(row, column).into_text().to_string()).collect();
    (heading, (0..view.list.len()).map(cells).collect())
}

fn titles(app: &TestApp) -> Vec<&'static str> {
    app.state.view_of(Tab::Compare).unwrap().list.columns().iter().map(|column| column.title).collect()
}

/// Returns the cells of the row with this name.
fn row(app: &TestApp, name: &str) -> Vec<String> {
    let at = titles(app).iter().position(|title| *title == "NAME").unwrap();
    let (_, rows) = shown(app);
    rows.iter().find(|cells| cells[at] == name).unwrap_or_else(|| panic!("{name}: {rows:#?}")).clone()
}

fn answer(app: &mut TestApp, ticket: Ticket, analysis: Arc<RecordingAnalysis>) {
    app.send(Msg::FileRead { ticket, result: Ok(FileContents { end: 5_000_000_000, ..contents(analysis) }) });
}

fn empty(app: &TestApp) -> String {
    app.state.view_of(Tab::Compare).unwrap().empty.0
}

#[test]
fn missing_samples_of_one_side_are_noted() {
    let mut app = comparing(120, 40, "↓↓");
    app.press("⏎");
    let (ticket, _) = read_request(&mut app);
    answer(&mut app, ticket, crate::ui::tests::analysis::empty());
    let (heading, _) = shown(&app);
    assert!(heading[0].ends_with("   no samples") && !heading[1].contains("no samples"), "{heading:?}");
}

#[test]
fn another_file_is_compared_with_the_open_one() {
    let mut app = comparing(120, 40, "↓↓");
    app.press("⏎");
    let effects = app.take_effects();
    let [Effect::ReadFile { key, ticket, path, span: None }] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(app.state.list.find(*key).is_none(), "reading it does not end the reading of an open file");
    assert!(path.to_str().unwrap().starts_with("/srv/traces/evil"));
    assert_eq!(app.state.tab, Tab::Compare);
    app.send(Msg::FileProgress { ticket: *ticket, bytes: 128 });
    assert_eq!(empty(&app), "Reading evil\u{fffd}[2J\u{fffd}.nettrace … 25 %");
    app.send(Msg::FileRead { ticket: *ticket, result: Err("/x/a cannot be read".into()) });
    assert_eq!(empty(&app), "/x/a cannot be read   = chooses another file.");

    let mut app = compared(120, 40, "");
    assert_eq!(titles(&app), ["CHANGE", "BEFORE", "AFTER", "SUBJECT", "NAME", "CHANGE %"]);
    let (heading, rows) = shown(&app);
    assert_eq!(
        heading,
        [
            "before  evil\u{fffd}[2J\u{fffd}.nettrace   whole file, 0:25.0",
            "after   OrderService_4242.nettrace.partial   whole file, 0:50.0   318 dropped   incomplete",
        ]
    );
    assert_eq!(row(&app, "gen 2 collections"), ["+0.07/s", "0.05/s", "0.1/s", "GC", "gen 2 collections", "+150 %"]);
    let timeouts = row(&app, "System.TimeoutException");
    assert_eq!((timeouts[1].as_str(), timeouts[5].as_str()), ("0/s", "new"));
    for subject in ["GC", "self time", "total time", "allocations", "exceptions", "contention"] {
        assert!(rows.iter().any(|cells| cells[3] == subject), "{subject}");
    }
    // One subject after another, then all again.
    let mut seen = Vec::new();
    loop {
        app.press("f");
        if titles(&app).contains(&"SUBJECT") {
            break;
        }
        seen.push(shown(&app).1.len());
    }
    assert_eq!(seen.iter().sum::<usize>(), rows.len());
    app.press("X");
    let (swapped, _) = shown(&app);
    assert!(swapped[0].starts_with("before  OrderService") && swapped[1].starts_with("after   evil"), "{swapped:?}");
    assert_eq!(row(&app, "gen 2 collections")[..3], ["-0.07/s", "0.1/s", "0.05/s"]);
    assert_eq!(row(&app, "System.TimeoutException")[5], "-100 %");
}

#[test]
fn comparison_rows_are_filtered_and_sorted() {
    let mut app = compared(120, 40, "/subject:exceptions⏎");
    let (_, rows) = shown(&app);
    assert!(!rows.is_empty() && rows.iter().all(|cells| cells[3] == "exceptions"), "{rows:?}");
    app.press("/⎋>");
    let changes = |app: &TestApp| -> Vec<f64> {
        let list = app.state.view_of(Tab::Compare).unwrap().list;
        let quantity = |row| match list.cell(row, 0) {
            Cell::Number(quantity, ..) => Some(quantity),
            _ => None,
        };
        (0..list.len()).map_while(quantity).collect()
    };
    let largest = changes(&app);
    assert!(largest.len() > 10 && largest.is_sorted_by(|a, b| a >= b), "{largest:?}");
    app.press("r");
    assert!(changes(&app).is_sorted(), "{:?}", changes(&app));
    app.press("/nothing of that name⏎");
    assert_eq!(empty(&app), "No figure matches the filter.");
}

#[test]
fn a_range_is_compared_with_the_next_selected_range() {
    let mut app = opened(120, 40);
    app.state.tab = Tab::Compare;
    assert!(empty(&app).starts_with("=: compare this file"));
    app.press("[");
    let (ticket, _) = read_request(&mut app);
    answer(&mut app, ticket, scripted().as_ref().clone().into());
    app.press("=");
    let Some(Effect::FindFiles { ticket, known }) = app.take_effects().pop() else { panic!() };
    assert_eq!(known, [std::path::PathBuf::from("/srv/traces/OrderService_4242.nettrace.partial")], "whatever its folder is");
    // Also available without any other file.
    app.send(Msg::FilesFound { ticket, files: Vec::new() });
    app.press("⏎");
    assert_eq!(app.take_effects(), []);
    assert!(empty(&app).starts_with("This range is \"before\""), "{}", empty(&app));
    app.press("b]");
    let (ticket, span) = read_request(&mut app);
    assert_eq!(span, Some((49_000_000_000, 50_000_000_000)));
    // Until the answer arrives, the shown range is the one read before.
    assert!(shown(&app).0[1].contains("0:00.0 to 0:49.0"), "{:?}", shown(&app).0);
    let mut analysis = scripted().as_ref().clone();
    analysis.snapshot.gc.collections[2] += 42;
    answer(&mut app, ticket, analysis.into());
    let (heading, _) = shown(&app);
    assert!(heading[0].contains("0:00.0 to 0:49.0 of 0:50.0") && heading[1].contains("0:49.0 to 0:50.0"), "{heading:?}");
    assert_eq!(row(&app, "gen 2 collections")[0], "+1.0/s");
    assert_eq!(row(&app, "gen 0 collections")[0], "0");
}

#[test]
fn a_file_is_compared_with_itself_only_if_a_part_of_it_is_shown() {
    let mut app = opened(120, 40);
    for (keys, len) in [("=", 2), ("⎋[=", 3)] {
        app.press(keys);
        app.found(vec![app.state.open_file().unwrap().facts.clone(), trace_file("/x/b.nettrace")]);
        // Beside another range of the file.
        assert_eq!(app.state.pick_list().unwrap().list.len(), len);
    }
}

#[test]
fn closing_the_files_ends_the_comparison() {
    let mut app = TestApp::populated(120, 40);
    app.press("=");
    assert_eq!(app.take_effects(), [], "there is nothing to compare with");
    app.press("L");
    let file = trace_file("/x/a.nettrace");
    app.found(vec![file.clone()]);
    app.press("⏎");
    let (ticket, _) = read_request(&mut app);
    answer(&mut app, ticket, scripted());
    app.press("=");
    app.found(vec![trace_file("/x/b.nettrace")]);
    app.press("↓⏎");
    let (ticket, _) = read_request(&mut app);
    app.press("⎋⎋");
    assert!(!app.state.shows_files() && app.state.tab != Tab::Compare);
    answer(&mut app, ticket, scripted());
    assert!(app.state.comparison.is_none());
}
