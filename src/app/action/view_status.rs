//! When the keys of a view, or of a dialog, have something to act on.

use super::status::{self, Status, ready_if};
use crate::app::dialog::Overlay;
use crate::app::{RowKind, Shape, State, Tab};
use crate::model::FileKind;

pub(super) fn reveal(state: &State) -> Status {
    ready_if(state.variable().is_some_and(|(_, variable)| variable.is_secret()))
}

pub(super) fn samples(state: &State) -> Status {
    ready_if(state.has_samples())
}

pub(super) fn thrown(state: &State) -> Status {
    ready_if(state.analysis().is_some_and(|analysis| !analysis.snapshot.exceptions.stacks.is_empty()))
}

pub(super) fn waiting(state: &State) -> Status {
    // Samples of the kernel are of threads that run.
    let has_waiting = state.analysis().is_some_and(|analysis| !analysis.profile.is_empty());
    ready_if(has_waiting && state.views.sampling.shape != Shape::Threads)
}

pub(super) fn sortable(state: &State) -> Status {
    ready_if(state.is_sortable())
}

pub(super) fn enter_sampling(state: &State) -> Status {
    ready_if(state.has_samples() && matches!(state.views.sampling.shape, Shape::Flame | Shape::Threads))
}

pub(super) fn callers(state: &State) -> Status {
    ready_if(state.has_samples() && state.views.sampling.shape != Shape::Threads)
}

pub(super) fn widen(state: &State) -> Status {
    ready_if(state.can_widen())
}

pub(super) fn recorded(state: &State) -> Status {
    ready_if(state.analysis().is_some())
}

pub(super) fn allocations(state: &State) -> Status {
    ready_if(state.tab == Tab::Gc && state.allocations().is_some())
}

pub(super) fn counters(state: &State) -> Status {
    ready_if(state.counter_line().is_some())
}

pub(super) fn walking(state: &State) -> Status {
    ready_if(state.open_file().is_some_and(|file| file.end.is_some()))
}

pub(super) fn comparable(state: &State) -> Status {
    if state.row_kind() == RowKind::File(FileKind::Heap) { status::walked_heap(state) } else { walking(state) }
}

pub(super) fn compared(state: &State) -> Status {
    ready_if(state.comparison.as_ref().is_some_and(|comparison| !comparison.sections().is_empty()))
}

pub(super) fn choose(state: &State) -> Status {
    ready_if(matches!(&state.overlay, Some(Overlay::Form(form)) if form.can_choose()))
}

pub(super) fn copy_command(state: &State) -> Status {
    ready_if(matches!(&state.overlay, Some(Overlay::Form(form)) if form.command_line().is_some()))
}

pub(super) fn finding(state: &State) -> Status {
    if state.findings_of_selected().is_empty() { Status::Idle } else { Status::Ready }
}
