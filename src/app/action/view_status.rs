//! Conditions under which the keys of a view or dialog have something to act on.

use super::status::{self, Status, ready_if};
use crate::app::dialog::Overlay;
use crate::app::{RowKind, State};
use crate::model::FileKind;

pub(super) fn sortable(state: &State) -> Status {
    ready_if(state.is_sortable())
}

pub(in crate::app) fn recorded(state: &State) -> Status {
    ready_if(state.analysis().is_some())
}

pub(super) fn has_range(state: &State) -> Status {
    ready_if(state.open_file().is_some_and(|file| file.end.is_some()))
}

pub(super) fn comparable(state: &State) -> Status {
    if state.row_kind() == RowKind::File(FileKind::Heap) { status::walked_heap(state) } else { has_range(state) }
}

pub(super) fn choose(state: &State) -> Status {
    ready_if(matches!(&state.overlay, Some(Overlay::Form(form)) if form.can_choose()))
}

/// Without fields, Enter already presses the button.
pub(super) fn start(state: &State) -> Status {
    ready_if(matches!(&state.overlay, Some(Overlay::Form(form)) if !form.questions.is_empty()))
}

pub(super) fn copy_command(state: &State) -> Status {
    ready_if(matches!(&state.overlay, Some(Overlay::Form(form)) if form.command_line().is_some()))
}
