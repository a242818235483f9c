//! Comparing what is shown of the open file.

use crate::app::comparison::{ComparedRange, Comparison};
use crate::app::dialog::FileUse;
use crate::app::{Answer, Effect, Focus, State, Tab, Ticket, files};
use crate::model::{FileContents, ProcessKey, SafeText, TraceFile};

/// Under this key the other file is read: that of no row.
const KEY: ProcessKey = ProcessKey { pid: 0, started: u64::MAX };

/// Lists what the open file can be compared with.
pub(in crate::app) fn choose(state: &mut State) -> Vec<Effect> {
    super::files::find(state, FileUse::Compare)
}

/// Compares with a file, or with the range that is shown now.
pub(super) fn begin(state: &mut State, file: Option<&TraceFile>) -> Vec<Effect> {
    let (comparison, effects) = match file {
        Some(file) => {
            let ticket = state.ticket();
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
    state.views.first(Tab::Compare);
    (state.tab, state.focus) = (Tab::Compare, Focus::Detail);
    effects
}

/// Whether the file that is compared with is being read under this ticket.
pub(super) fn awaits(state: &State, ticket: Ticket) -> bool {
    state.comparison.as_ref().is_some_and(|comparison| matches!(comparison.chosen, Answer::Requested(asked) if asked == ticket))
}

pub(super) fn progress(state: &mut State, ticket: Ticket, bytes: u64) {
    if awaits(state, ticket)
        && let Some(comparison) = &mut state.comparison
    {
        comparison.read = bytes;
        state.dirty = true;
    }
}

/// The file that is compared with was read, or cannot be.
pub(super) fn read(state: &mut State, result: Result<FileContents, SafeText>) -> Vec<Effect> {
    if let Some(comparison) = &mut state.comparison {
        comparison.chosen = result.map_or_else(Answer::Failed, |FileContents { analysis, end, complete, .. }| {
            Answer::Received(ComparedRange { range: files::range(None, end), complete, analysis })
        });
        state.dirty = true;
    }
    Vec::new()
}

/// Exchanges before and after.
pub(in crate::app) fn swap(state: &mut State) {
    if let Some(comparison) = &mut state.comparison {
        comparison.swap();
    }
}

/// Shows the figures of the next subject only, or all.
pub(in crate::app) fn next_subject(state: &mut State) {
    if let Some(comparison) = &mut state.comparison {
        comparison.next_subject();
    }
    state.views.first(Tab::Compare);
}

/// Compares again where something else is shown than was compared.
pub(super) fn refresh(state: &mut State) {
    if state.tab != Tab::Compare {
        return;
    }
    let shown = state.shown_recording().and_then(|tracked| tracked.value.analysis.clone());
    if let Some(comparison) = &mut state.comparison {
        comparison.refresh(shown.as_ref());
    }
}
