use std::sync::Arc;
use std::time::Duration;

use crate::analysis::{COUNTED, StackGroup, ThreadId};
use crate::app::action::Context;
use crate::app::tabs::Stacks;
use crate::app::test_app::{TestApp, recording};
use crate::app::top_frames::TopFrame;
use crate::app::type_tree::TypeTree;
use crate::app::{Effect, Msg, Shape, Tab};
use crate::model::{CpuThread, CpuTime, Phase, Recording, RecordingAnalysis, ThreadUse};
use crate::ui::tests::analysis::scripted;

pub(super) fn sampled(keys: &str) -> TestApp {
    let mut app = TestApp::populated(120, 40);
    app.press("⏎t");
    let name = |thread, name: &str| ThreadUse { thread, name: name.into(), cpu: Duration::from_secs(thread), runnable: None, state: 'S' };
    let threads = [name(11, "first"), name(13, "third")].into();
    app.report(Recording { analysis: Some(scripted()), threads, ..recording(1, 42, Phase::Recording) });
    app.press(keys);
    app
}

#[test]
fn methods_show_cpu_time_if_the_kernel_samples_it() {
    let mut app = sampled("7");
    let first = |app: &TestApp| app.state.methods()[0].1.name.clone();
    assert!(!first(&app).starts_with("on CPU"));
    let mut cpu = scripted().profile.clone();
    cpu.rename(|name| format!("on CPU: {name}"));
    let analysis = Arc::new(RecordingAnalysis { cpu: Some(CpuTime { profile: cpu, ..CpuTime::default() }), ..scripted().as_ref().clone() });
    app.report(Recording { analysis: Some(analysis), ..recording(1, 42, Phase::Recording) });
    assert!(first(&app).starts_with("on CPU"));
    // Waiting threads use no CPU.
    app.press("w");
    assert!(!first(&app).starts_with("on CPU"));
    // The runtime samples all threads, the kernel only running ones.
    let threads = app.state.thread_rows().len();
    let idle = Arc::new(RecordingAnalysis { cpu: Some(CpuTime::default()), ..scripted().as_ref().clone() });
    app.report(Recording { analysis: Some(idle), ..recording(1, 42, Phase::Recording) });
    app.press("w");
    assert_eq!((app.state.methods().len(), app.state.thread_rows().len()), (0, threads));
}

#[test]
fn threads_of_methods_are_sorted_below_the_row_for_all() {
    let mut app = sampled("7s");
    let listed = |app: &TestApp| {
        let view = app.state.view_of(Tab::Methods).unwrap();
        (0..view.list.len()).map(|row| view.list.id(row)).collect::<Vec<_>>()
    };
    let expected = |threads: &[ThreadId]| -> Vec<_> {
        [None].into_iter().chain(threads.iter().copied().map(Some)).map(|thread| format!("{thread:?}")).collect()
    };
    let by_thread = |app: &TestApp| app.state.sortable().iter().any(|column| column.title == "THREAD" && column.sorted.is_some());
    let mut keys = 0;
    while !by_thread(&app) {
        app.press(">");
        keys += 1;
        assert!(keys < 10, "there is no such column to sort by");
    }
    let mut threads: Vec<_> = app.state.thread_rows().iter().filter_map(|row| row.thread).collect();
    threads.sort_unstable();
    assert!(threads.len() > 1);
    let ascending = expected(&threads);
    threads.reverse();
    assert_eq!(listed(&app), expected(&threads));
    app.press("r");
    assert_eq!(listed(&app), ascending);
    // Enter shows the thread of the selected row, wherever it is.
    app.press("gg↓⏎");
    assert_eq!(format!("{:?}", app.state.shown_thread()), ascending[1]);
}

/// The kernel's times are exact; those of samples are not.
#[test]
fn exact_times_of_threads_replace_those_from_samples_of_the_runtime() {
    let mut app = sampled("6");
    let sampled = app.state.thread_rows().len();
    let idle = CpuThread { thread: 4711, name: "native".into(), cpu: Duration::from_secs(3), ..CpuThread::default() };
    let cpu = Some(CpuTime { threads: vec![idle], ..CpuTime::default() });
    let analysis = Arc::new(RecordingAnalysis { cpu, ..scripted().as_ref().clone() });
    app.report(Recording { analysis: Some(analysis), ..recording(1, 42, Phase::Recording) });
    assert_eq!(app.state.thread_rows().len(), sampled + 1);
    let screen = crate::ui::tests::screen(&app.state);
    let line = screen.lines().find(|line| line.contains("native")).unwrap_or_else(|| panic!("{screen}"));
    assert!(line.contains("3.0 s") && screen.contains("CPU is exact, from the kernel") && !screen.contains("RUNNING"), "{screen}");
}

/// CPU time is compared with that of another recording, but not with the time of its threads.
#[test]
fn only_times_of_the_same_kind_are_compared() {
    let threads = scripted();
    let mut profile = threads.profile.clone();
    profile.rename(|name| format!("on CPU: {name}"));
    let cpu = RecordingAnalysis { cpu: Some(CpuTime { profile, ..CpuTime::default() }), ..threads.as_ref().clone() };
    let none = RecordingAnalysis { cpu: Some(CpuTime::default()), ..threads.as_ref().clone() };
    let same = threads.compare(&threads);
    assert!(cpu.compare(&threads) == same && threads.compare(&cpu) == same);
    assert!(cpu.compare(&none) != same);
}

/// All samples are added up each time.
#[test]
fn a_view_of_samples_counts_them_once() {
    for keys in ["7", "7w", "7f", "7ff", "7c", "4f", "5f"] {
        let app = sampled(keys);
        let before = COUNTED.get();
        let view = app.state.view_of(app.state.tab).unwrap();
        assert!(!view.list.is_empty(), "{keys}");
        assert!(COUNTED.get() - before <= 1, "{keys}: {}", COUNTED.get() - before);
        // Needed for every key and hint.
        let before = COUNTED.get();
        app.state.context();
        assert_eq!(COUNTED.get(), before, "{keys}");
    }
}

#[test]
fn threads_show_their_latest_known_top_frame() {
    let mut app = sampled("6");
    let frames = |app: &TestApp| {
        let frame = |(thread, frame): (ThreadId, TopFrame<'_>)| (thread.thread, frame.name.to_owned(), frame.age.as_secs());
        app.state.top_frames().into_iter().map(frame).collect::<Vec<_>>()
    };
    let recorded = frames(&app);
    assert_eq!(recorded.iter().map(|(thread, _, age)| (*thread, *age)).collect::<Vec<_>>(), [(11, 0), (12, 0), (13, 0)]);
    app.wait(60_000);
    assert_eq!(frames(&app), recorded, "the present of a recording is that of its last snapshot");
    // A sample of all stacks includes a thread missing from the recording.
    app.press("D");
    let ticket =
        app.take_effects().iter().find_map(|effect| if let Effect::SampleStacks { ticket, .. } = effect { Some(*ticket) } else { None });
    let group = StackGroup { frames: vec!["Shop.Wait".to_owned()], threads: vec![(ThreadId::of(77), 1)], ..StackGroup::default() };
    let stacks = Stacks { groups: vec![group], names: Vec::new(), waits: Default::default(), trouble: None };
    app.send(Msg::Stacks { ticket: ticket.unwrap(), result: Ok(Arc::new(stacks)) });
    app.wait(5000);
    assert_eq!(frames(&app).last(), Some(&(77, "Shop.Wait".to_owned(), 5)));
    // An ended recording shows only its own samples.
    app.report(Recording { analysis: Some(scripted()), ..recording(1, 50, super::views::done()) });
    assert_eq!(frames(&app), recorded);
}

#[test]
fn methods_are_limited_to_a_selected_thread_and_reset() {
    let mut app = sampled("7s");
    let rows: Vec<_> =
        app.state.thread_rows().iter().map(|row| (row.thread, row.usage.map(|usage| usage.name.as_str().to_owned()))).collect();
    let expected = [(None, None), (Some(11), Some("first".to_owned())), (Some(13), Some("third".to_owned())), (Some(12), None)]
        .map(|(thread, name)| (thread.map(ThreadId::of), name));
    assert_eq!(rows, expected);
    app.press("↓↓⏎");
    assert_eq!((app.state.views.sampling.shape, app.state.shown_thread()), (Shape::List, Some(ThreadId::of(13))));
    assert_eq!(app.state.view_cursor(Tab::Methods).at, 0);
    assert_eq!(app.state.methods()[0].1.name, "Shop.Pricing.PriceEngine.PriceBasket");
    assert!(app.state.methods().iter().all(|(_, frame)| frame.name != "Shop.Pricing.Discounts.Apply"));
    // The flame graph is limited to the thread. The first Backspace zooms out, the next one returns to all threads.
    app.press("ff↓⏎⌫");
    assert_eq!(app.state.shown_thread(), Some(ThreadId::of(13)));
    app.press("⌫");
    assert_eq!((app.state.shown_thread(), app.state.views.sampling.shape), (None, Shape::Flame));
    app.press("s↓⏎s⏎");
    assert_eq!((app.state.shown_thread(), app.state.views.sampling.shape), (None, Shape::Flame), "the first row is all of them");
}

#[test]
fn a_thread_selection_applies_to_one_recording() {
    let mut app = sampled("7s↓⏎");
    assert_eq!(app.state.shown_thread(), Some(ThreadId::of(11)));
    app.report(recording(1, 50, super::views::done()));
    app.press("t");
    app.report(Recording { analysis: Some(scripted()), ..recording(2, 5, Phase::Recording) });
    assert_eq!(app.state.shown_thread(), None);
}

/// Returns the visible rows of the call tree, and the selected one.
fn tree(app: &TestApp) -> (Vec<String>, String) {
    let view = app.state.view_of(Tab::Methods).unwrap();
    let column = view.list.columns().len() - 1;
    let rows: Vec<_> = (0..view.list.len()).map(|row| view.list.cell(row, column).into_text().to_string()).collect();
    let selected = rows[view.cursor.at].clone();
    (rows, selected)
}

#[test]
fn allocated_type_opens_its_call_tree() {
    let mut app = sampled("4");
    let rows = |app: &TestApp| {
        let view = app.state.view_of(Tab::Gc).unwrap();
        let of_tree = view.list.columns().iter().position(|column| column.title == "METHOD (CALL TREE)");
        let name = |row: usize| of_tree.map_or_else(|| view.list.id(row), |column| view.list.cell(row, column).into_text().to_string());
        ((0..view.list.len()).map(name).collect::<Vec<_>>(), name(view.cursor.at))
    };
    let collections = rows(&app).0.len();
    assert_eq!(app.state.context(), Context::Collections);
    app.press("f↓");
    let (types, selected) = rows(&app);
    assert_eq!((app.state.context(), types.len(), selected.as_str()), (Context::Allocations, 4, types[1].as_str()));
    app.press("⏎");
    assert_eq!(app.state.context(), Context::AllocationTree);
    let (all, first) = rows(&app);
    assert_eq!((all[0].as_str(), first.as_str()), ("Thread.StartCallback", "Thread.StartCallback"));
    assert!(all.iter().any(|name| name == "Discounts.Apply"), "the heaviest path is expanded: {all:?}");
    app.press("⏎");
    assert_eq!(rows(&app).0.len(), 1);
    app.press("→→");
    assert_eq!(rows(&app), (all.clone(), all[1].clone()));
    app.press("←←←");
    assert_eq!(rows(&app).0.len(), 1);
    // Return to the type with each of the keys, and then to the collections.
    for key in ["⌫", "⎋", "f"] {
        app.press(key);
        assert_eq!((app.state.context(), rows(&app)), (Context::Allocations, (types.clone(), types[1].clone())), "{key}");
        app.press("⏎");
    }
    app.press("⎋f");
    assert_eq!((app.state.context(), rows(&app).0.len()), (Context::Collections, collections));
    // Without recorded allocations, there is nothing to switch to.
    let empty = Arc::new(crate::ui::tests::analysis::empty().as_ref().clone());
    app.press("f");
    app.report(Recording { analysis: Some(empty), ..recording(1, 42, Phase::Recording) });
    assert_eq!(app.state.context(), Context::Collections);
}

#[test]
fn call_tree_expands_collapses_and_shows_callers() {
    let mut app = sampled("7wf");
    assert_eq!(app.state.context(), Context::CallTree);
    let (all, first) = tree(&app);
    assert_eq!((all[0].as_str(), first.as_str()), ("Thread.StartCallback", "Thread.StartCallback"));
    assert!(all.iter().any(|name| name == "PriceEngine.PriceBasket"), "the heaviest path is expanded: {all:?}");
    // Left collapses; right expands and then moves to the callee, left back to the caller.
    app.press("←");
    let (collapsed, _) = tree(&app);
    assert!(collapsed.len() < all.len());
    app.press("→");
    assert_eq!(tree(&app).0, all);
    app.press("→");
    assert_eq!(tree(&app).1, all[1]);
    app.press("←←");
    assert_eq!(tree(&app).1, all[0]);
    app.press("→→↑");
    assert_eq!(tree(&app), (all.clone(), all[0].clone()));
    app.press("⏎");
    assert_eq!(tree(&app).0, collapsed);
    app.press("⏎");
    assert_eq!(tree(&app).0, all);
    // Tab keys still switch tabs.
    app.press("⇥");
    assert_ne!(app.state.tab, Tab::Methods);
    app.press("⇤");
    let at = all.iter().position(|name| name == "PriceEngine.PriceBasket").unwrap();
    app.press("g");
    app.press(&"↓".repeat(at));
    app.press("c");
    assert_eq!(app.state.views.sampling.shape, Shape::Callers);
    let (rows, _) = tree(&app);
    assert_eq!(rows[0], "PriceEngine.PriceBasket");
    assert!(rows.iter().any(|name| name == "Thread.StartCallback"), "{rows:?}");
    app.press("⌫");
    assert_eq!((app.state.views.sampling.shape, tree(&app).0), (Shape::Tree, all));
    app.press("ffc");
    assert_eq!(app.state.views.sampling.shape, Shape::Callers, "from the list, too");
    app.press("c");
    assert_eq!(app.state.views.sampling.shape, Shape::List);
}

/// Cycles through the selected type, all types, and the list; rows are expanded and collapsed like those of samples.
#[test]
fn exceptions_have_a_call_tree() {
    let mut app = sampled("5↓");
    assert_eq!(app.state.context(), Context::Exceptions);
    let named = |app: &TestApp| {
        let view = app.state.view_of(Tab::Exceptions).unwrap();
        (0..view.list.len()).map(|row| view.list.cell(row, view.list.columns().len() - 1).into_text().to_string()).collect::<Vec<_>>()
    };
    let selected = app.state.view_of(Tab::Exceptions).unwrap().list.id(1);
    app.press("f");
    assert_eq!(
        (app.state.context(), app.state.views.of(Tab::Exceptions).type_tree.as_ref()),
        (Context::ThrowTree, Some(&TypeTree::Type(selected)))
    );
    let of_type = named(&app);
    app.press("f");
    assert_eq!(app.state.views.of(Tab::Exceptions).type_tree.as_ref(), Some(&TypeTree::All));
    let all = named(&app);
    assert!(all.len() > 1 && !of_type.is_empty(), "{all:?} {of_type:?}");
    app.press("←");
    assert!(named(&app).len() < all.len());
    app.press("⏎");
    assert_eq!(named(&app), all);
    app.press("←→");
    assert_eq!(named(&app), all);
    // Tab keys switch tabs, and the view is kept.
    app.press("⇥");
    assert_ne!(app.state.tab, Tab::Exceptions);
    app.press("⇤");
    assert_eq!(named(&app), all);
    app.press("f");
    assert_eq!((app.state.context(), app.state.views.of(Tab::Exceptions).type_tree.as_ref()), (Context::Exceptions, None));
}
