//! What stands where nothing was recorded.

use ratatui::layout::Rect;

use crate::app::State;
use crate::app::action::{Action, Status, entry};

use super::canvas::Canvas;

/// What to press when nothing was recorded yet, or why nothing can be.
pub(super) fn invite(canvas: &mut Canvas<'_>, state: &State, area: Rect) {
    let theme = canvas.theme;
    if let Some(reason) = refusal(state) {
        canvas.wrapped(area, &reason, theme.warn);
        return;
    }
    let profiles = state.profiles().join(" + ");
    canvas.text(area.x, area.y, area.width, "Nothing was recorded of this process.", theme.text);
    let lines = [("t", profiles.as_str()), ("T", "choose what to record"), ("O", "filters, limits, when to stop, flight recorder")];
    for ((key, what), y) in lines.into_iter().zip((area.y + 2)..area.bottom()) {
        canvas.pieces(area.x, y, area.width, &[(key, theme.key), ("  ", theme.text), (what, theme.dim)]);
    }
}

fn refusal(state: &State) -> Option<String> {
    let entry = entry(Action::Trace)?;
    match entry.status(state) {
        Status::Refused(reason) => Some(reason),
        Status::Ready | Status::Idle => None,
    }
}
