//! The last line: what is possible now.

use crate::app::State;
use crate::app::layout::Layout;

use super::canvas::Canvas;

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &Layout) {
    let (key, label) = (canvas.theme.key, canvas.theme.dim);
    for hint in state.hints(layout.screen.width) {
        canvas.pieces(layout.hints.x + hint.x, layout.hints.y, hint.width, &[(&hint.key, key), (" ", label), (hint.label, label)]);
    }
}
