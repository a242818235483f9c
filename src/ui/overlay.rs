//! Overlays on the panes: pick lists, and the progress of quitting.

use ratatui::layout::Rect;

use crate::app::action::Action;
use crate::app::layout::Layout;
use crate::app::tabs::phase_badge;
use crate::app::{Overlay, Pick, PickList, State, Subject};
use crate::model::{Bytes, Counted, Phase};

use super::analysis::text;
use super::canvas::{Canvas, cursor_column, wrap};
use super::list::{self, Listing};

/// Draws a pick list over the panes. Returns the position of the terminal's cursor while its filter is being typed.
pub(super) fn pick_list(canvas: &mut Canvas<'_>, state: &State, list: &PickList<'_>) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let inside = canvas.dialog(list.frame, &list.title, theme.focus);
    let rows = list.rows();
    if list.list.is_empty() {
        canvas.wrapped(Rect { height: rows.height + list.detail_lines, ..rows }, &list.empty, theme.dim);
    } else {
        let listing = Listing { list: list.list.as_ref(), cursor: Some(list.cursor), focused: true, titled: false, filter: list.filter };
        list::draw(canvas, rows, &listing);
        let window = list.cursor.window(list.list.len(), rows.height.into());
        let y = rows.y + (list.cursor.at.saturating_sub(window.start)) as u16;
        canvas.text(rows.x - 2, y, 1, theme.glyphs.pointer, theme.key);
    }
    text(canvas, &list.detail, list.detail_area());
    match &state.overlay {
        Some(Overlay::List(_, Pick::Palette(palette))) => {
            let used = canvas.text(inside.x, inside.y, 2, ": ", theme.key);
            canvas.text(inside.x + used, inside.y, inside.width.saturating_sub(used), palette.input.value(), theme.strong);
            Some((cursor_column(inside.x.saturating_add(used), &palette.input).min(inside.right()), inside.y))
        }
        _ => super::reader::search(canvas, state, list.filter, list.frame),
    }
}

/// Draws the progress of quitting, while recordings are being finished.
pub(super) fn finishing(canvas: &mut Canvas<'_>, state: &State, layout: &Layout) {
    let theme = canvas.theme;
    let Some(pending_quit) = state.pending_quit else { return };
    let active: Vec<_> = state.recordings.all().iter().filter(|tracked| tracked.is_active()).collect();
    let left = pending_quit.limit.saturating_sub(state.now.elapsed).as_secs();
    let (head, foot) = if pending_quit.abandoned {
        ("Closing the files".to_owned(), format!("Quitting in {left} s at the latest."))
    } else {
        let key = state.key(Action::Abandon);
        (
            format!("Finishing {}", Counted(active.len() as u64, "recording")),
            format!("{key} quits now; the files stay readable. At most {left} s more."),
        )
    };
    let area = layout.centered(72, active.len() as u16 + 4);
    let inside = canvas.dialog(area, &head, theme.focus);
    for (tracked, y) in active.iter().zip(inside.y..inside.bottom().saturating_sub(1)) {
        let (sign, role, _) = phase_badge(&tracked.value);
        let (sign, style) = (theme.sign(sign), theme.role(role));
        let numbers = match tracked.value.phase {
            Phase::Stopping { bytes: bytes @ 1.., .. } if tracked.value.kernel.is_none() => format!("  {} of rundown", Bytes(bytes)),
            Phase::Joining { percent } => format!("  {percent} % of its CPU samples written"),
            _ => String::new(),
        };
        let name = Subject::of_recording(&tracked.value).to_string();
        canvas.pieces(inside.x, y, inside.width, &[(sign, style), (" ", style), (&name, theme.strong), (&numbers, theme.dim)]);
    }
    let lines = wrap(&foot, inside.width);
    for (line, y) in lines.iter().zip(inside.bottom().saturating_sub(lines.len() as u16)..) {
        canvas.text(inside.x, y, inside.width, line, theme.dim);
    }
}
