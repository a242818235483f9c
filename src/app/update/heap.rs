//! Heap walks.

use std::sync::Arc;

use crate::app::{Effect, Form, JobResult, Level, Overlay, State, Tab, Ticket, WalkedHeap};
use crate::model::{SafeText, TraceFile};

use super::{files, panes, replies};

/// Opens the dialog for walking the heap of the selected process. If a walk is in progress, opens its tab, or cancels it if the tab is already
/// open.
pub(in crate::app) fn toggle(state: &mut State) -> Vec<Effect> {
    let Some(row) = state.selected() else { return Vec::new() };
    let key = row.process.key;
    let known = state.heaps.of(key);
    if known.is_none_or(|heap| heap.walking.is_none()) {
        let counters = state.watches.of(key).and_then(|watch| watch.counters.as_ref());
        let heap = counters.and_then(|counters| counters.stats.heap).map(|bytes| bytes as u64);
        let last = known.and_then(|heap| heap.last.as_ref()).map(|last| last.found.took);
        state.overlay = Some(Overlay::Form(Form::heap_walk(&row.process, heap, last)));
        return Vec::new();
    }
    if state.tab != Tab::Heap {
        state.open_tab(Tab::Heap);
        return Vec::new();
    }
    let subject = state.selected_subject();
    let Some((ticket, subject)) = state.heaps.cancel(key).zip(subject) else { return Vec::new() };
    let _ = state.jobs.end(ticket, Err("canceled".into()), state.now.elapsed);
    state.notify(Level::Info, format!("{subject}: heap walk canceled. The runtime still finishes the GC."));
    vec![Effect::CancelHeapWalk { ticket }]
}

/// Compares the heap of the open file with that of another file.
pub(super) fn compare(state: &mut State, file: &TraceFile) -> Vec<Effect> {
    let Some(key) = state.list.selected() else { return Vec::new() };
    let ticket = state.next_ticket();
    let before = state.heaps.compare(key, SafeText::new(&file.name()), ticket);
    let cancel = before.map(|ticket| Effect::CancelHeapWalk { ticket });
    cancel.into_iter().chain([Effect::ReadHeap { ticket, path: file.path.clone() }]).collect()
}

/// Stores the result of a heap walk or of reading a heap file.
pub(super) fn walked(state: &mut State, ticket: Ticket, result: Result<Arc<WalkedHeap>, SafeText>) {
    if state.heaps.store_comparison(ticket, &result, state.now) {
        match result {
            Ok(_) => (state.views.heap.difference, state.views.heap.swapped) = (true, false),
            Err(trouble) => state.notify(Level::Error, trouble),
        }
        return;
    }
    let is_of_file = files::heap_read(state, ticket, &result);
    let answer = result.as_ref().map(|found| JobResult { bytes: Some(found.heap.bytes), ..JobResult::default() }).map_err(Clone::clone);
    if state.heaps.end(ticket, result, state.now).is_some() && !is_of_file {
        replies::job_done(state, ticket, answer);
    }
}

/// Opens the dialog for writing the last walk to a file.
pub(in crate::app) fn file_form(state: &mut State) -> Vec<Effect> {
    let Some((subject, last)) = state.selected_heap().and_then(|heap| Some((&heap.subject, heap.last.as_ref()?))) else {
        return Vec::new();
    };
    let file = state.options.output_name.path(&subject.name, subject.key.pid, state.now.file_stamp(), "gcdump");
    let form = Form::heap_file(&file.to_string_lossy(), last.ticket);
    state.overlay = Some(Overlay::Form(form));
    panes::find_free_name(state, file.clone(), file)
}
