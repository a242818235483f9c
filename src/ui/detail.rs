//! The details of the selected process: the frame, the tabs, and what the open tab shows.

use crate::app::layout::{DetailLayout, TabSlot};
use crate::app::{Content, Focus, State, Tab, Typing};

use super::canvas::{Canvas, width};
use super::{analysis, info, span, trace};

/// Draws the details. Says where the terminal's cursor belongs, while a search is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &DetailLayout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let focused = state.focus == Focus::Detail;
    let style = if focused { theme.focus } else { theme.border };
    canvas.frame(layout.frame, style);
    for TabSlot { tab, place, title } in layout.tabs {
        let style = match (tab == state.tab, focused) {
            (true, true) => theme.chip,
            (true, false) => theme.strong,
            (false, _) => theme.dim,
        };
        let blank = if place.width > width(title) { " " } else { "" };
        canvas.pieces(place.x, place.y, place.width, &[(blank, style), (title, style), (blank, style)]);
    }
    subject(canvas, state, layout);
    let cursor = tab(canvas, state, layout);
    if cursor.is_some() { cursor } else { idle_line(canvas, state, layout) }
}

/// Draws what the open tab shows.
fn tab(canvas: &mut Canvas<'_>, state: &State, layout: &DetailLayout) -> Option<(u16, u16)> {
    let mut body = layout.body;
    if let Some(file) = state.open_file() {
        body = span::draw(canvas, file, body);
        // Before anything was read there is nothing to say but how far that is.
        state.shown_recording()?;
    }
    match state.tab.content() {
        Content::Info => info::draw(canvas, state, body),
        Content::Recordings => trace::draw(canvas, state, body),
        Content::Recording | Content::List => return analysis::draw(canvas, state, body),
    }
    None
}

/// A filter that is typed where nothing is to be filtered yet, in the lower border: whoever types sees what becomes of it.
fn idle_line(canvas: &mut Canvas<'_>, state: &State, layout: &DetailLayout) -> Option<(u16, u16)> {
    let line = state.line.as_ref().filter(|line| line.purpose == Typing::Tab)?;
    let (x, y, room) = (layout.frame.x + 2, layout.frame.bottom() - 1, layout.frame.width / 2);
    let used = canvas.value(x, y, room, format_args!(" /{} ", line.input.value()), canvas.theme.chip);
    canvas.text(x + used, y, room.saturating_sub(used), " nothing to filter here ", canvas.theme.dim);
    let before = u16::try_from(line.input.visual_cursor()).unwrap_or(u16::MAX);
    Some(((x + 2).saturating_add(before).min((x + used).saturating_sub(1)), y))
}

/// Whose details these are, at the right end of the upper border, or of the lower one where the tabs need the upper.
fn subject(canvas: &mut Canvas<'_>, state: &State, layout: &DetailLayout) {
    let theme = canvas.theme;
    let Some(row) = state.selected().filter(|_| state.tab != Tab::Jobs) else { return };
    let frame = layout.frame;
    let pid = format!(" {} ", row.process.key.pid);
    let name = &row.process.name;
    let tabs = layout.tabs.last().map_or(frame.x, |slot| slot.place.right());
    let right = frame.right().saturating_sub(2);
    let wanted = width(name) + 1 + width(&pid);
    let (left, y) = if wanted + 2 <= right.saturating_sub(tabs) { (tabs + 2, frame.y) } else { (frame.x + 2, frame.bottom() - 1) };
    let used = wanted.min(right.saturating_sub(left));
    if used > width(&pid) + 4 {
        let x = right - used;
        let name = canvas.pieces(x, y, used - width(&pid), &[(" ", theme.strong), (name, theme.strong)]);
        canvas.text(x + name, y, width(&pid), &pid, theme.dim);
    }
}
