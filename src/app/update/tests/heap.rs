//! Walks over heaps: asked for, canceled, compared, written.

use crate::app::test_app::{TestApp, options, process, walked_heap};
use crate::app::{Effect, Msg, Options, Tab, Ticket};
use crate::model::{Process, ProcessKey, RunState};

const KEY: ProcessKey = ProcessKey { pid: 4242, started: 42_420 };

/// Presses the keys that walk the heap, and gives the ticket.
fn walk(app: &mut TestApp) -> Ticket {
    app.take_effects();
    app.press("My⏎");
    let effects = app.take_effects();
    let [Effect::WalkHeap { key: KEY, ticket }] = effects[..] else { panic!("{effects:?}") };
    ticket
}

fn answered(app: &mut TestApp, walk_number: u64) -> Ticket {
    let ticket = walk(app);
    app.send(Msg::HeapWalked { ticket, result: Ok(walked_heap(walk_number)) });
    ticket
}

/// The rows of the list, as they are.
fn rows(app: &TestApp) -> Vec<Vec<String>> {
    let list = app.state.view_of(Tab::Heap).unwrap().list;
    (0..list.len()).map(|row| (0..list.columns().len()).map(|column| list.cell(row, column).into_text()).collect()).collect()
}

fn heading(app: &TestApp) -> String {
    let view = app.state.view_of(Tab::Heap).unwrap();
    view.heading.unwrap().into_iter().flatten().map(|(text, _)| text).collect()
}

#[test]
fn a_walk_is_asked_for_in_a_dialog_that_says_what_it_costs() {
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
    assert!(app.said_last().starts_with("OrderService (4242): heap walk done"), "{}", app.said_last());
    app.send(Msg::HeapWalked { ticket, result: Err("twice".into()) });
    assert!(!rows(&app).is_empty());
    // The time of the last walk is the best guess for the next.
    app.press("M");
    let Some(crate::app::Overlay::Form(form)) = &app.state.overlay else { panic!("no dialog") };
    assert!(form.effects()[1].contains("as long as the last time"), "{:?}", form.effects());
}

#[test]
fn a_walk_in_progress_is_shown_and_canceled_by_the_same_key() {
    let mut app = TestApp::populated(120, 40);
    let first = walk(&mut app);
    app.send(Msg::HeapProgress { ticket: first, objects: 5, bytes: 500 });
    assert_eq!(heading(&app), "Walking the heap … 5 objects, 500 B   M cancels");
    // The process is busy.
    app.press("d");
    assert!(app.said_last().contains("is still busy with the heap walk"), "{}", app.said_last());
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
fn two_walks_are_compared_and_belong_to_their_process() {
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

#[test]
fn what_was_walked_last_can_be_written_once_it_is_there() {
    let mut app = TestApp::populated(120, 40);
    walk(&mut app);
    app.press("o");
    assert!(app.state.overlay.is_none());
    let mut app = TestApp::populated(120, 40);
    let walk = answered(&mut app, 1);
    app.press("o⏎");
    let effects = app.take_effects();
    let [Effect::WriteHeap { walk: of, destination, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((*of, destination.to_str()), (walk, Some("OrderService_4242_20261121_083021.gcdump")));
    // While another walk goes on, its objects are let go.
    app.press("My⏎o");
    assert!(app.said_last().contains("walk this heap again"), "{}", app.said_last());
}

#[test]
fn what_cannot_be_walked_says_why() {
    let refusal = |change: fn(&mut Process), options: Options| {
        let mut app = TestApp::with(options, 120, 40);
        let mut process = process(4242, "OrderService");
        change(&mut process);
        app.send(Msg::Processes(vec![process]));
        app.press("M");
        assert!(app.state.overlay.is_none() && app.take_effects().iter().all(|effect| !matches!(effect, Effect::WalkHeap { .. })));
        app.said_last()
    };
    let aot = refusal(|process| process.native_aot = true, options());
    assert!(aot.contains("a NativeAOT program has no heap walk"), "{aot}");
    let suspended = refusal(|process| process.run_state = RunState::Suspended, options());
    assert!(suspended.contains("is suspended at startup"), "{suspended}");
    let readonly = refusal(|_| {}, Options { readonly: true, ..options() });
    assert!(readonly.contains("--readonly"), "{readonly}");
}
