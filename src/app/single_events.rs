//! Single events: which are shown, and which of them is open.

use crate::model::RecordingId;

/// How events are looked at.
#[derive(Debug, Default)]
pub struct EventsView {
    /// One by one, or by kind.
    pub single: bool,
    /// Whether the selected one is shown with all that is in it.
    pub open: bool,
    /// The filter that the recorder has.
    pub(super) published: Option<(RecordingId, String)>,
}
