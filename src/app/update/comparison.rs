//! Comparison of the shown range of the open file.

use crate::app::{Answer, ComparedRange, Comparison, Effect, FileUse, State, Tab, Ticket, files};
use crate::model::{FileContents, ProcessKey, SafeText, TraceFile};

/// The key under which the other file is read; no row has it.
const KEY: ProcessKey = ProcessKey { pid: 0, started: u64::MAX };

/// Lists the files that the open file can be compared with.
pub(in crate::app) fn choose(state: &mut State) -> Vec<Effect> {
    super::files::find(state, FileUse::Compare)
}

/// Starts a comparison with a file, or with the currently shown range.
pub(super) fn begin(state: &mut State, file: Option<&TraceFile>) -> Vec<Effect> {
    let (comparison, effects) = match file {
        Some(file) => {
            let ticket = state.next_ticket();
            let read = Effect::ReadFile { key: KEY, ticket, path: file.path.clone(), span: None };
            let mut comparison = Comparison::new(SafeText::new(&file.name()), Answer::Requested(ticket));
            comparison.bytes = file.bytes;
            (comparison, vec![read])
        }
        None => {
            let Some((name, shown)) = state.shown_range() else { return Vec::new() };
            (Comparison::new(name, Answer::Received(shown)), Vec::new())
        }
    };
    state.comparison = Some(comparison);
    state.views.select_first(Tab::Compare);
    state.open_tab(Tab::Compare);
    effects
}

/// Returns the comparison with the file that is being read with this ticket.
pub(super) fn awaiting(state: &mut State, ticket: Ticket) -> Option<&mut Comparison> {
    state.comparison.as_mut().filter(|comparison| comparison.chosen.awaits(ticket))
}

/// Stores the contents of the file to compare with, or the reason for the failure.
pub(super) fn read(comparison: &mut Comparison, result: Result<FileContents, SafeText>) {
    comparison.chosen = result.map_or_else(Answer::Failed, |FileContents { analysis, end, complete, .. }| {
        Answer::Received(ComparedRange { range: files::range(None, end), complete, analysis })
    });
}

/// Swaps before and after.
pub(in crate::app) fn swap(state: &mut State) {
    if let Some(comparison) = &mut state.comparison {
        comparison.swap();
    }
}

/// Shows only the figures of the next subject, or all.
pub(in crate::app) fn next_subject(state: &mut State) {
    if let Some(comparison) = &mut state.comparison {
        comparison.next_subject();
    }
    state.views.select_first(Tab::Compare);
}

/// Compares again if the shown analysis has changed.
pub(super) fn refresh(state: &mut State) {
    if state.tab != Tab::Compare {
        return;
    }
    let shown = state.shown_recording().and_then(|tracked| tracked.value.analysis.clone());
    if let Some(comparison) = &mut state.comparison {
        comparison.refresh(shown.as_ref());
    }
}
