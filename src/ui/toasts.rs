//! Messages in the lower right corner, the newest at the bottom.

use ratatui::layout::Rect;

use crate::app::action::Action;
use crate::app::layout::Layout;
use crate::app::{Level, State};

use super::canvas::{Canvas, width, wrap};
use super::reader::mark;

/// Maximum number of messages shown at once.
const SHOWN: usize = 3;
/// Maximum number of lines of a message.
const LINES: usize = 4;

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &Layout) {
    let theme = canvas.theme;
    let screen = layout.screen;
    let key = state.key(Action::Messages);
    let truncated = format!(" … {key}");
    // The frame takes seven columns.
    let room = screen.width.saturating_sub(width(&truncated) + 7).min(64);
    let mut bottom = screen.bottom().saturating_sub(1);
    for toast in state.toasts.shown(state.now.elapsed).take(SHOWN) {
        let mut lines = wrap(&toast.text, room);
        if lines.len() > LINES {
            lines.truncate(LINES);
            lines[LINES - 1].push_str(&truncated);
        }
        let longest = lines.iter().map(|line| width(line)).max().unwrap_or(0).max(8);
        let height = lines.len() as u16 + 2;
        if bottom < height + 1 {
            break;
        }
        let area = Rect::new(screen.right().saturating_sub(longest + 7), bottom - height, longest + 6, height);
        let (sign, style) = mark(theme, toast.level);
        let inside = canvas.dialog(area, "", style);
        canvas.text(inside.x, inside.y, 1, sign, style);
        for (line, y) in lines.iter().zip(inside.y..) {
            canvas.text(inside.x + 2, y, longest, line, theme.text);
        }
        if toast.level == Level::Error {
            let columns = width(&key) + 6;
            let pieces = [(" ", theme.key), (&*key, theme.key), (" ", theme.key), ("all ", theme.dim)];
            canvas.pieces(area.right().saturating_sub(columns + 2), area.bottom() - 1, columns, &pieces);
        }
        bottom -= height;
    }
}
