//! Recorded files: reading them and changing the shown range.

use std::sync::Arc;

use super::{comparison, heap, replies};
use crate::app::action::Action;
use crate::app::{Effect, FileUse, Level, ListState, OpenFile, Overlay, Palette, Pick, RowKind, State, Subject, Ticket, WalkedHeap};
use crate::model::{Bytes, FileContents, FileKind, Outcome, Phase, Recording, SafeText, StoppedBy, TraceFile, is_partial_file};

/// Searches for recorded files: those of this run, including open ones, and those in the current folder.
pub(in crate::app) fn find(state: &mut State, purpose: FileUse) -> Vec<Effect> {
    let of_this_run = state.recordings.all().iter().rev().filter_map(|tracked| match &tracked.value.phase {
        Phase::Done(outcome) => outcome.file.clone(),
        _ => None,
    });
    let known = of_this_run.collect();
    let ticket = state.next_ticket();
    state.pending_file_search = Some((ticket, purpose));
    vec![Effect::FindFiles { known, ticket }]
}

/// Opens the palette and searches for the files it also lists.
pub(in crate::app) fn open_palette(state: &mut State) -> Vec<Effect> {
    let effects = find(state, FileUse::Open);
    let palette = Palette { asked: state.pending_file_search.take().map(|(ticket, _)| ticket), ..Palette::default() };
    state.overlay = Some(Overlay::List(ListState::default(), Pick::Palette(state.searched(palette))));
    effects
}

pub(in crate::app) fn found(state: &mut State, ticket: Ticket, files: Vec<TraceFile>) {
    // The palette's contents depend on the context below it.
    let mut overlay = state.overlay.take();
    if let Some(Overlay::List(_, Pick::Palette(palette))) = overlay.as_mut().and_then(Overlay::beneath_help)
        && palette.asked == Some(ticket)
    {
        palette.files = files;
        *palette = state.searched(std::mem::take(palette));
        state.overlay = overlay;
        return;
    }
    state.overlay = overlay;
    let Some((_, purpose)) = state.pending_file_search.take_if(|(asked, _)| *asked == ticket) else { return };
    let of = state.row_kind();
    let ranges = purpose == FileUse::Compare && of == RowKind::File(FileKind::Trace);
    // Only files of the same kind can be compared, and a whole file not with itself.
    let whole = state.open_file().filter(|file| file.span().is_none()).map(|file| &file.facts.path);
    let is_same = |file: &TraceFile| whole == Some(&file.path);
    let fits = |file: &TraceFile| purpose == FileUse::Open || of == RowKind::File(file.kind) && !is_same(file);
    let files: Vec<_> = ranges.then_some(None).into_iter().chain(files.into_iter().filter(fits).map(Some)).collect();
    if files.is_empty() {
        let key = state.key(Action::Trace);
        let text = match purpose {
            FileUse::Open => format!(
                "No .nettrace or .gcdump files in the current folder: {key} records a trace, `dn-top open FILE` opens a file in another folder."
            ),
            FileUse::Compare => "No other .gcdump file in the current folder to compare with.".to_owned(),
        };
        state.notify(Level::Info, text);
    } else if state.overlay.is_none() && state.line.is_none() && state.pending_quit.is_none() {
        state.overlay = Some(Overlay::List(ListState::default(), Pick::Files(purpose, files)));
    }
}

/// Opens the chosen file, or compares with it, or with another range if there is none.
pub(in crate::app) fn picked(state: &mut State, purpose: FileUse, file: Option<TraceFile>) -> Vec<Effect> {
    match (purpose, file) {
        (FileUse::Compare, Some(file)) if file.kind == FileKind::Heap => heap::compare(state, &file),
        (FileUse::Compare, file) => comparison::begin(state, file.as_ref()),
        (FileUse::Open, file) => {
            file.into_iter().for_each(|file| state.open_additional_file(file));
            Vec::new()
        }
    }
}

/// Returns to the processes.
pub(in crate::app) fn close(state: &mut State) -> Vec<Effect> {
    let awaited: Vec<_> = state.files.iter().flat_map(|file| state.heaps.pending_reads(file.key)).collect();
    let pending = state.close_files();
    if state.shows_files() {
        return Vec::new();
    }
    if let Some(pending) = pending {
        replies::processes(state, pending);
    }
    awaited.into_iter().map(|ticket| Effect::CancelHeapWalk { ticket }).collect()
}

/// Has the selected trace read again, unless it is being read: it may have grown.
pub(super) fn read_again(state: &mut State) {
    if let Some(file) = state.open_file_mut()
        && file.facts.kind == FileKind::Trace
        && file.progress.is_none()
    {
        file.read_again();
    }
}

/// Requests every file whose range to show differs from what was read.
pub(in crate::app) fn request_unread(state: &mut State) -> Vec<Effect> {
    let all = 0..state.files.len();
    let request = |index: usize| {
        if state.files[index].ticket.is_some() {
            return None;
        }
        let ticket = state.next_ticket();
        let file = &mut state.files[index];
        file.ticket = Some(ticket);
        file.progress = Some(0);
        let path = file.facts.path.clone();
        match file.facts.kind {
            FileKind::Trace => Some(Effect::ReadFile { key: file.key, ticket, path, span: file.span() }),
            FileKind::Heap => {
                state.heaps.begin_file(Subject::of(&file.process()), ticket);
                Some(Effect::ReadHeap { ticket, path })
            }
        }
    };
    all.filter_map(request).collect()
}

/// Requests the file of the shown recording if its analysis was released while it was not shown.
pub(in crate::app) fn request_again(state: &mut State) -> Option<Effect> {
    let id = state.shown_recording()?.value.id;
    let (key, path) = state.recordings.released(id)?;
    let path = path.clone();
    let ticket = state.next_ticket();
    state.recordings.requested(id, ticket);
    state.dirty = true;
    Some(Effect::ReadFile { key, ticket, path, span: None })
}

pub(in crate::app) fn progress(state: &mut State, ticket: Ticket, bytes: u64) {
    if let Some(file) = state.files.iter_mut().find(|file| file.ticket == Some(ticket)) {
        file.progress = Some(bytes);
    } else if let Some(comparison) = comparison::awaiting(state, ticket) {
        comparison.read = bytes;
    }
}

/// Stores the outcome of reading a heap file. Returns false if no file awaits it.
pub(super) fn heap_read(state: &mut State, ticket: Ticket, result: &Result<Arc<WalkedHeap>, SafeText>) -> bool {
    let Some(file) = state.files.iter_mut().find(|file| file.ticket == Some(ticket)) else { return false };
    file.progress = None;
    match result {
        Ok(found) => file.complete = Some(found.heap.is_exact()),
        Err(trouble) => state.notify(Level::Error, trouble.clone()),
    }
    true
}

pub(in crate::app) fn read(state: &mut State, ticket: Ticket, result: Result<FileContents, SafeText>) {
    let Some(file) = state.files.iter_mut().find(|file| file.ticket == Some(ticket)) else {
        if let Some(comparison) = comparison::awaiting(state, ticket) {
            return comparison::read(comparison, result);
        }
        let trouble = result.as_ref().err().cloned();
        if state.recordings.answer(ticket, result)
            && let Some(trouble) = trouble
        {
            state.notify(Level::Error, trouble);
        }
        return;
    };
    file.progress = None;
    let contents = match result {
        Ok(contents) => contents,
        Err(trouble) => {
            file.restore_range();
            // A recording has this name only while it is written.
            let was_partial = file.size_before.take().is_some() && is_partial_file(&file.facts.path);
            let text = if was_partial {
                format!("{trouble}. A finished recording has no .partial in its name: open that file.")
            } else {
                trouble.to_string()
            };
            return state.notify(Level::Error, text);
        }
    };
    let FileContents { analysis, bytes, end, duration, complete, trouble } = contents;
    file.complete = Some(complete);
    file.range_read();
    if file.span().is_none() {
        file.end = Some(end);
        file.events = Some(analysis.snapshot.rates.events.clone());
        file.facts.bytes = bytes;
    }
    let (name, size_before) = (file.facts.name().into_owned(), file.size_before.take());
    if size_before.is_some() {
        file.restore_range_after_reading_again();
    }
    let path = file.facts.path.clone();
    let outcome = Outcome { stopped_by: StoppedBy::Interrupt, complete, file: Some(path.clone()), trouble };
    let totals = &analysis.snapshot.totals;
    let recording = Recording {
        phase: Phase::Done(outcome),
        elapsed: duration,
        bytes,
        events: totals.events,
        dropped: totals.dropped,
        analysis: Some(analysis),
        ..Recording::starting(file.id, file.key, file.process().name, Vec::new(), path)
    };
    state.recordings.put(recording, state.now.elapsed);
    if let Some(before) = size_before {
        let text = match bytes.saturating_sub(before) {
            0 => format!("{name} has not grown."),
            more => format!("{name} has grown by {}.", Bytes(more)),
        };
        state.notify(Level::Info, text);
        let rows = state.files.iter().map(OpenFile::process).collect();
        state.list.replace(rows, state.now.elapsed);
    }
}
