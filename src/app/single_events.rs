//! Single events: which are shown, and which of them is open.

use crate::model::RecordingId;

/// How events are looked at.
#[derive(Debug, Default)]
pub struct EventsView {
    /// One by one, or by kind.
    pub single: bool,
    /// Whether the selected one is shown with all that is in it.
    pub open: bool,
    /// Which filter the recorder was told last.
    pub(super) told: Option<(RecordingId, String)>,
}
