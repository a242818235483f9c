//! The recordings of a process, live. The tab draws itself.

use super::registry::{Descriptor, Shows};
use crate::app::action::Context;
use crate::app::pane::RowKind;

pub(super) const TAB: Descriptor = Descriptor {
    titles: ["Trace", "Trace", "Trc"],
    is_shown: RowKind::can_have_recording,
    context: |_| Context::Trace,
    actions: &[],
    shows: Shows::Itself,
};
