//! Heap walks: requested, canceled, compared, written.

use std::sync::Arc;

use crate::app::action::{Action, Key, KeyMap};
use crate::app::test_app::{TestApp, options, process, trace_file, walked_heap};
use crate::app::{Effect, JobKind, Msg, Options, Overlay, Reply, Tab, Ticket, WalkedHeap};
use crate::model::{FileKind, OutputName, Process, ProcessKey, RunState, TraceFile};

const KEY: ProcessKey = ProcessKey { pid: 4242, started: 42_420 };

/// Starts a heap walk and returns its ticket.
fn walk(app: &mut TestApp) -> Ticket {
    app.take_effects();
    app.press("My⏎");
    let effects = app.take_effects();
    let [Effect::Begin { key: KEY, ticket, kind: JobKind::HeapWalk }] = effects[..] else { panic!("{effects:?}") };
    ticket
}

fn answered(app: &mut TestApp, walk_number: u64) -> Ticket {
    let ticket = walk(app);
    app.send(Msg::HeapWalked { ticket, result: Ok(walked_heap(walk_number)) });
    ticket
}

/// Returns the cells of all rows.
fn rows(app: &TestApp) -> Vec<Vec<String>> {
    let list = app.state.view_of(Tab::Heap).unwrap().list;
    (0..list.len()).map(|row| (0..list.columns().len()).map(|column| list.cell(row, column).into_text().to_string()).collect()).collect()
}

fn heading(app: &TestApp) -> String {
    let view = app.state.view_of(Tab::Heap).unwrap();
    view.heading.unwrap().into_iter().flatten().map(|(text, _)| text).collect()
}

#[test]
fn heap_walk_dialog_shows_the_cost_and_needs_confirmation() {
    let mut app = TestApp::populated(120, 40);
    app.press("M⏎");
    assert_eq!(app.take_effects(), [], "the harmless button comes first");
    app.press("M");
    let Some(crate::app::Overlay::Form(form)) = &app.state.overlay else { panic!("no dialog") };
    let effects = form.effects().join(" ");
    assert!(effects.contains("full, blocking GC") && effects.contains("is paused") && effects.contains("1.2 GB"), "{effects}");
    app.press("⎋");
    let ticket = answered(&mut app, 1);
    assert_eq!(rows(&app)[0], ["3.2 MB", "46 %", "20.0k", "4.8 MB", "Shop.Pricing.Quote", "Shop.Pricing"]);
    assert!(app.last_toast().starts_with("OrderService (4242): heap walk done"), "{}", app.last_toast());
    app.send(Msg::HeapWalked { ticket, result: Err("twice".into()) });
    assert!(!rows(&app).is_empty());
    // The duration of the last walk is the best estimate for the next.
    app.press("M");
    let Some(crate::app::Overlay::Form(form)) = &app.state.overlay else { panic!("no dialog") };
    assert!(form.effects()[1].contains("as long as the last time"), "{:?}", form.effects());
}

#[test]
fn running_heap_walk_is_shown_and_canceled_by_the_same_key() {
    let mut app = TestApp::populated(120, 40);
    let first = walk(&mut app);
    app.send(Msg::HeapProgress { ticket: first, objects: 5, bytes: 500 });
    assert_eq!(heading(&app), "Walking the heap … 5 objects, 500 B   M cancels");
    // Other commands are refused.
    app.press("d");
    assert!(app.last_toast().contains("is still busy with the heap walk"), "{}", app.last_toast());
    app.press("1M");
    assert_eq!((app.state.tab, app.take_effects()), (Tab::Heap, vec![]), "it is shown first");
    app.press("M");
    assert_eq!(app.take_effects(), [Effect::CancelHeapWalk { ticket: first }]);
    assert_eq!(app.state.jobs.active(), 0);
    app.send(Msg::HeapWalked { ticket: first, result: Ok(walked_heap(1)) });
    assert!(rows(&app).is_empty(), "it was canceled");
    let failed = walk(&mut app);
    app.send(Msg::HeapWalked { ticket: failed, result: Err("no object was reported within 30 s".into()) });
    assert_eq!(app.state.view_of(Tab::Heap).unwrap().empty.0, "no object was reported within 30 s");
}

#[test]
fn heap_texts_name_the_configured_key() {
    let keys = KeyMap::new(vec![(Action::WalkHeap, vec![Key::parse("N").unwrap()])]).unwrap();
    let mut app = TestApp::with(Options { keys, ..options() }, 120, 40);
    app.send(Msg::Processes(vec![process(4242, "OrderService")]));
    app.press("Ny⏎");
    assert!(heading(&app).ends_with("   N cancels"), "{}", heading(&app));
    let ticket = app.last_ticket().unwrap();
    app.send(Msg::HeapWalked { ticket, result: Ok(walked_heap(1)) });
    assert!(heading(&app).ends_with("   N walks it again"), "{}", heading(&app));
}

#[test]
fn two_heap_walks_of_a_process_are_compared() {
    let mut app = TestApp::populated(120, 40);
    app.press("f");
    answered(&mut app, 1);
    app.press("f");
    assert_eq!(rows(&app).len(), 5, "there is nothing to compare with");
    answered(&mut app, 2);
    app.press("f");
    let change = rows(&app);
    assert_eq!(change[0], ["+3.2 MB", "3.2 MB", "6.4 MB", "+20.0k", "Shop.Pricing.Quote", "Shop.Pricing"]);
    assert_eq!(change.last().unwrap()[0], "-205 kB");
    assert_eq!(change.len(), 3, "what stayed is left out");
    app.press("⎋⎋↓");
    assert!(rows(&app).is_empty(), "of another process");
    app.press("↑");
    assert_eq!(rows(&app).len(), 3);
}

/// A file can contain any numbers.
#[test]
fn heap_difference_of_any_sizes_is_shown() {
    let mut app = TestApp::populated(120, 40);
    for bytes in [0, 1 << 63, 1] {
        let ticket = walk(&mut app);
        let mut found = WalkedHeap::clone(&walked_heap(1));
        found.heap.bytes = bytes;
        app.send(Msg::HeapWalked { ticket, result: Ok(Arc::new(found)) });
        app.state.view_of(Tab::Heap).unwrap();
    }
    app.press("f");
    let view = app.state.view_of(Tab::Heap).unwrap();
    let head = format!("{:?}", view.head);
    assert!(head.contains("1 B (-9.2 EB)"), "{head}");
}

#[test]
fn last_heap_walk_can_be_written_once_complete() {
    let mut app = TestApp::populated(120, 40);
    walk(&mut app);
    app.press("o");
    assert!(app.state.overlay.is_none());
    let mut app = TestApp::populated(120, 40);
    let walk = answered(&mut app, 1);
    app.press("o⌃⏎");
    let effects = app.take_effects();
    let [Effect::Begin { kind: JobKind::HeapFile(of, destination), .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((*of, destination.to_str()), (walk, Some("OrderService_4242_20261121_083021.gcdump")));
    // During another walk, the object graph of the last one is not kept.
    app.press("My⏎o");
    assert!(app.last_toast().contains("walk this heap again"), "{}", app.last_toast());
}

#[test]
fn taken_file_name_gets_a_number_unless_edited() {
    let pattern = OutputName::parse("{kind}-{name}").unwrap();
    let mut app = TestApp::with(Options { output_name: pattern, ..options() }, 120, 40);
    app.send(Msg::Processes(vec![process(4242, "OrderService")]));
    answered(&mut app, 1);
    let typed = |app: &TestApp| match &app.state.overlay {
        Some(Overlay::Form(form)) => form.questions.iter().find_map(|question| match &question.reply {
            Reply::Text(input) => Some(input.value().to_owned()),
            Reply::Choice(_) => None,
        }),
        _ => None,
    };
    for (key, proposed, free) in [
        ("o", "heap-OrderService.gcdump", "heap-OrderService_2.gcdump"),
        ("d", "/tmp/dump-OrderService.dmp", "/tmp/dump-OrderService_2.dmp"),
    ] {
        app.take_effects();
        app.press(key);
        assert_eq!(app.take_commands(), [Effect::FindFreeName { proposed: proposed.into(), here: proposed.into() }]);
        assert_eq!(typed(&app).as_deref(), Some(proposed));
        let answer = || Msg::FreeName { proposed: proposed.into(), free: free.into() };
        app.send(answer());
        assert_eq!(typed(&app).as_deref(), Some(free));
        // Edited text is kept.
        app.press(if key == "d" { "⇥⇥x" } else { "x" });
        let edited = typed(&app);
        app.send(answer());
        assert_eq!(typed(&app), edited);
        app.press("⎋");
    }
}

#[test]
fn unavailable_heap_walk_reports_the_reason() {
    let refusal = |change: fn(&mut Process), options: Options| {
        let mut app = TestApp::with(options, 120, 40);
        let mut process = process(4242, "OrderService");
        change(&mut process);
        app.send(Msg::Processes(vec![process]));
        app.press("M");
        assert!(
            app.state.overlay.is_none()
                && app.take_effects().iter().all(|effect| !matches!(effect, Effect::Begin { kind: JobKind::HeapWalk, .. }))
        );
        app.last_toast()
    };
    let aot = refusal(|process| process.native_aot = true, options());
    assert!(aot.contains("a NativeAOT program has no heap walk"), "{aot}");
    let suspended = refusal(|process| process.run_state = RunState::Suspended, options());
    assert!(suspended.contains("is suspended at startup"), "{suspended}");
    let readonly = refusal(|_| {}, Options { readonly: true, ..options() });
    assert!(readonly.contains("--readonly"), "{readonly}");
}

fn heap_file(name: &str) -> TraceFile {
    let path = format!("/x/{name}").into();
    TraceFile { kind: FileKind::Heap, path, bytes: 5_000_000, process_id: 0, start_unix_ms: 1 }
}

/// Answers the pending request, which must be for this file.
fn read_next(app: &mut TestApp, name: &str, result: Result<u64, &str>) {
    let effects = app.take_effects();
    let Some(Effect::ReadHeap { ticket, path }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(path.file_name().unwrap(), name);
    app.send(Msg::HeapWalked { ticket: *ticket, result: result.map(walked_heap).map_err(Into::into) });
}

#[test]
fn heap_file_opens_with_the_heap_tab_only() {
    let mut app = TestApp::populated(120, 40);
    let walk = answered(&mut app, 1);
    app.press("L");
    let trace = trace_file("/x/a.nettrace");
    app.found(vec![heap_file("a.gcdump"), trace.clone()]);
    app.press("⏎");
    assert_eq!((app.state.tab, app.selected_name(), heading(&app)), (Tab::Heap, "a.gcdump".to_owned(), "Reading the file …".to_owned()));
    read_next(&mut app, "a.gcdump", Ok(1));
    assert_eq!(rows(&app)[0], ["3.2 MB", "46 %", "20.0k", "4.8 MB", "Shop.Pricing.Quote", "Shop.Pricing"]);
    assert!(heading(&app).starts_with("file written 1970-01-01") && heading(&app).ends_with("read in 1.2 s"), "{}", heading(&app));
    assert_eq!(app.state.open_file().unwrap().condition().2, "complete");
    // Walking, exporting and writing are unavailable, and there is no other tab.
    for (key, words) in [("M", "not a process"), ("E", "not a recording"), ("F", "not a recording")] {
        app.press(key);
        assert!(app.last_toast().contains(words) && app.state.overlay.is_none(), "{key}: {}", app.last_toast());
    }
    app.press("o[b⇥3");
    assert_eq!((app.take_effects(), app.state.tab), (vec![], Tab::Heap));
    assert!(app.state.overlay.is_none());
    // A trace opened next to it has the tabs of traces, not this one.
    app.state.open_additional_file(trace);
    app.send(Msg::Tick);
    assert_eq!((app.state.tab, app.selected_name()), (Tab::Trace, "a.nettrace".to_owned()));
    app.press("⎋k");
    assert_eq!((app.state.tab, app.selected_name()), (Tab::Heap, "a.gcdump".to_owned()));
    // The heap walk of the process can still be written.
    app.press("⎋⎋");
    assert!(!app.state.shows_files() && app.state.heaps.written_by(walk).is_some());
}

#[test]
fn the_heaps_of_two_files_are_compared() {
    let mut app = TestApp::with(Options { files: vec![heap_file("after.gcdump")], ..options() }, 120, 40);
    app.send(Msg::Tick);
    app.press("=");
    read_next(&mut app, "after.gcdump", Ok(2));
    let trace = trace_file("/x/a.nettrace");
    app.press("=");
    app.found(vec![trace.clone(), heap_file("after.gcdump")]);
    assert!(app.state.overlay.is_none() && app.last_toast().contains("No other .gcdump file"), "{}", app.last_toast());
    app.press("=");
    app.found(vec![trace, heap_file("after.gcdump"), heap_file("before.gcdump")]);
    // Neither the trace nor the open file is listed.
    app.press("⏎");
    read_next(&mut app, "before.gcdump", Err("cut off\u{1b}"));
    assert_eq!(app.last_toast(), "cut off\u{fffd}");
    assert_eq!(rows(&app)[0][0], "6.4 MB");
    app.press("=");
    app.found(vec![heap_file("before.gcdump")]);
    app.press("⏎");
    read_next(&mut app, "before.gcdump", Ok(1));
    assert_eq!(rows(&app)[0][..3], ["+3.2 MB", "3.2 MB", "6.4 MB"]);
    let head = |app: &TestApp| format!("{:?}", app.state.view_of(Tab::Heap).unwrap().head);
    assert!(head(&app).contains(r#"label: "before", value: "before.gcdump""#), "{}", head(&app));
    app.press("X");
    assert_eq!(rows(&app).last().unwrap()[..3], ["-3.2 MB", "6.4 MB", "3.2 MB"]);
    assert!(head(&app).contains(r#"label: "after", value: "before.gcdump""#), "{}", head(&app));
    app.press("f");
    assert_eq!(rows(&app)[0][0], "6.4 MB");
}

#[test]
fn unreadable_heap_file_reports_the_reason() {
    let mut app = TestApp::with(Options { files: vec![heap_file("a.gcdump")], ..options() }, 120, 40);
    app.send(Msg::Tick);
    read_next(&mut app, "a.gcdump", Err("/x/a.gcdump cannot be read: it is cut off"));
    assert_eq!(
        (app.last_toast().as_str(), app.state.open_file().unwrap().condition().2),
        ("/x/a.gcdump cannot be read: it is cut off", "unreadable")
    );
    assert_eq!(app.state.view_of(Tab::Heap).unwrap().empty.0, "/x/a.gcdump cannot be read: it is cut off");
}

#[test]
fn closing_the_files_cancels_a_pending_heap_read() {
    let mut app = TestApp::populated(120, 40);
    app.state.open_additional_file(heap_file("a.gcdump"));
    app.send(Msg::Tick);
    let opened = app.take_effects().iter().find_map(|effect| match effect {
        Effect::ReadHeap { ticket, .. } => Some(*ticket),
        _ => None,
    });
    app.press("⎋⎋");
    assert!(!app.state.shows_files());
    assert!(app.take_effects().contains(&Effect::CancelHeapWalk { ticket: opened.unwrap() }));
}

/// A heap file has only one tab. After it, the previous tab of traces is restored.
#[test]
fn trace_tab_is_restored_after_a_heap_file() {
    let files = vec![trace_file("a.nettrace"), heap_file("b.gcdump"), trace_file("c.nettrace")];
    let mut app = TestApp::with(Options { files, ..options() }, 120, 40);
    app.state.tab = Tab::Gc;
    for (name, tab) in [("a.nettrace", Tab::Gc), ("b.gcdump", Tab::Heap), ("c.nettrace", Tab::Gc), ("b.gcdump", Tab::Heap)] {
        let row = app.state.list.rows().iter().find(|row| &*row.process.name == name).unwrap().process.key;
        app.state.list.select(row);
        app.send(Msg::Tick);
        assert_eq!(app.state.tab, tab, "{name}");
    }
}
