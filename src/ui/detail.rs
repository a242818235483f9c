//! The details of the selected process: the frame, the tabs, and the contents of the open tab.

use ratatui::layout::Rect;

use crate::app::action::Action;
use crate::app::layout::{DetailLayout, TabSlot, padded};
use crate::app::{Focus, LinePurpose, OpenFile, State, Tab};
use crate::model::FileKind;

use super::canvas::{Canvas, width};
use super::{analysis, overview, trace};

/// Draws the details. Returns the position of the terminal's cursor while a search is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &DetailLayout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let focused = state.focus == Focus::Detail;
    let style = if focused { theme.focus } else { theme.border };
    canvas.frame(layout.frame, style);
    for &TabSlot { tab, place, key, title } in &layout.tabs {
        let (style, key_style) = match (tab == state.tab, focused) {
            (true, true) => (theme.chip, theme.chip),
            (true, false) => (theme.strong, theme.strong),
            (false, true) => (theme.dim, theme.accent),
            // Digits sort the process table if that has the focus.
            (false, false) => (theme.dim, theme.dim),
        };
        let blank = if place.width > width(key) + width(title) { " " } else { "" };
        let behind = if key.is_empty() { "" } else { blank };
        let pieces = [(blank, style), (key, key_style), (behind, style), (title, style), (blank, style)];
        canvas.pieces(place.x, place.y, place.width, &pieces);
    }
    subject(canvas, state, layout);
    let cursor = tab(canvas, state, layout);
    if cursor.is_some() { cursor } else { idle_line(canvas, state, layout) }
}

/// Draws the contents of the open tab.
fn tab(canvas: &mut Canvas<'_>, state: &State, layout: &DetailLayout) -> Option<(u16, u16)> {
    let mut body = layout.body;
    if let Some(file) = state.open_file().filter(|file| file.facts.kind == FileKind::Trace) {
        body = file_range(canvas, state, file, body);
        // Before anything is read, there is only the progress to show.
        state.shown_recording()?;
    }
    match state.tab {
        Tab::Overview => overview::draw(canvas, state, body),
        Tab::Trace => trace::draw(canvas, state, body),
        _ => return analysis::draw(canvas, state, body),
    }
    None
}

/// Draws a filter that is being typed while there is nothing to filter, on the lower border.
fn idle_line(canvas: &mut Canvas<'_>, state: &State, layout: &DetailLayout) -> Option<(u16, u16)> {
    let typed = state.typed(LinePurpose::Tab)?;
    let (x, y, room) = (layout.frame.x + 2, layout.frame.bottom() - 1, layout.frame.width / 2);
    let (used, cursor) = canvas.filter(x, y, room, state.views.filter(state.tab), Some(typed));
    canvas.text(x + used, y, room.saturating_sub(used), " nothing to filter here ", canvas.theme.dim);
    cursor
}

/// Draws the process name at the right end of the upper border, or of the lower one if the tabs need the upper.
fn subject(canvas: &mut Canvas<'_>, state: &State, layout: &DetailLayout) {
    let theme = canvas.theme;
    let Some(row) = state.selected().filter(|_| state.tab != Tab::Jobs) else { return };
    let frame = layout.frame;
    let pid = match row.process.key.pid {
        0 => " ".to_owned(),
        pid => format!(" {pid} "),
    };
    let name = &row.process.name;
    let tabs = layout.tabs.last().map_or(frame.x, |slot| slot.place.right());
    let right = frame.right().saturating_sub(2);
    let wanted = canvas.columns(name) + 1 + width(&pid);
    let (left, y) = if wanted + 2 <= right.saturating_sub(tabs) { (tabs + 2, frame.y) } else { (frame.x + 2, frame.bottom() - 1) };
    let used = wanted.min(right.saturating_sub(left));
    if used > width(&pid) + 4 {
        let x = right - used;
        let name = canvas.pieces(x, y, used - width(&pid), &[(" ", theme.strong), (name, theme.strong)]);
        canvas.text(x + name, y, width(&pid), &pid, theme.dim);
    }
}

/// Draws the shown range of a recorded file, and its events over time. Returns the area below.
fn file_range(canvas: &mut Canvas<'_>, state: &State, file: &OpenFile, body: Rect) -> Rect {
    let theme = canvas.theme;
    let lines = file.range_lines(body.height);
    let line = Rect { height: lines.min(1), ..padded(body) };
    let style = if file.span().is_some() { theme.accent } else { theme.dim };
    let used = canvas.text(line.x, line.y, line.width, &file.range_text(), style) + 2;
    let timeline = file.timeline(body);
    if timeline.height > 1 {
        if file.complete == Some(false) && file.progress.is_none() {
            let advice = format!("incomplete; {} reads it again", state.key(Action::Refresh));
            canvas.right(line.x + used, line.y, line.width.saturating_sub(used), &advice, theme.dim);
        }
        file_events(canvas, file, Rect { height: 1, ..timeline });
        file_meter(canvas, file, Rect { y: timeline.y + 1, height: 1, ..timeline });
    } else {
        file_meter(canvas, file, timeline);
        // On a shared line, the range is shown by the style.
        file_events(canvas, file, timeline);
    }
    Rect { y: body.y + lines, height: body.height - lines, ..body }
}

/// Draws the shown range as a part of the file.
fn file_meter(canvas: &mut Canvas<'_>, file: &OpenFile, line: Rect) {
    let theme = canvas.theme;
    let Some(shown) = file.columns_shown(line) else { return };
    let [full, empty] = theme.glyphs.meter;
    for column in 0..line.width {
        let (sign, style) = if shown.contains(&column) { (full, theme.accent) } else { (empty, theme.border) };
        canvas.sign(line.x + column, line.y, sign, style);
    }
}

/// Draws the number of events over the time of a file.
fn file_events(canvas: &mut Canvas<'_>, file: &OpenFile, line: Rect) {
    let theme = canvas.theme;
    let Some(shown) = file.columns_shown(line) else { return };
    let parts = file.events_by_part(line.width.into());
    let most = parts.iter().copied().fold(0.0, f64::max);
    let bars = theme.glyphs.bars;
    for (column, events) in (0..).zip(parts).filter(|(_, events)| *events > 0.0) {
        let level = (events / most * (bars.len() - 1) as f64).ceil() as usize;
        let style = if shown.contains(&column) { theme.accent } else { theme.border };
        canvas.sign(line.x + column, line.y, bars[level.min(bars.len() - 1)], style);
    }
}
