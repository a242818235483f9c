//! A list: its column titles, its rows, the selection, and the scroll bar.

use std::ops::Range;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::analysis::Filter;
use crate::app::tabs::{Cell, Column, Fit, List, Role, Sign, joined};
use crate::app::{Branch, Cursor, Direction, ScrollBar};

use super::canvas::{Canvas, width};
use super::names::{end_start, short_name, suffix_start};
use super::theme::Theme;

#[derive(Clone, Copy)]
pub(super) struct Listing<'a> {
    pub(super) list: &'a dyn List,
    /// The selected row, if any.
    pub(super) cursor: Option<Cursor>,
    pub(super) focused: bool,
    /// Whether the first line contains the column titles.
    pub(super) titled: bool,
    pub(super) filter: &'a Filter,
}

impl Theme {
    pub(super) fn role(&self, role: Role) -> Style {
        match role {
            Role::Text => self.text,
            Role::Dim => self.dim,
            Role::Strong => self.strong,
            Role::Accent => self.accent,
            Role::Good => self.good,
            Role::Warning => self.warn,
            Role::Bad => self.bad,
            Role::Key => self.key,
            Role::Bytes => self.bytes,
            Role::Events => self.events,
            Role::Border => self.border,
            Role::Part(place) => self.parts[place % self.parts.len()],
            Role::Chip => self.chip,
            Role::Recording => self.recording,
        }
    }

    pub(super) fn sign(&self, sign: Sign) -> &'static str {
        (self.glyphs.sign)(sign)
    }
}

pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, listing: &Listing<'_>) {
    let Listing { list, cursor, focused, titled, .. } = *listing;
    let columns = list.columns();
    let slots = list.slots(area);
    let heading = u16::from(titled).min(area.height);
    if heading > 0 {
        titles(canvas, area, &columns, &slots);
    }
    let lines = Rect { y: area.y + heading, height: area.height - heading, ..area };
    let height = usize::from(lines.height);
    let window = cursor.unwrap_or_default().window(list.len(), height);
    for (row, y) in window.clone().zip(lines.y..) {
        for (index, column) in columns.iter().enumerate() {
            if let Some((x, width)) = slots[index] {
                let place = Rect { x, y, width: width.min(area.right().saturating_sub(x)), height: 1 };
                cell(canvas, place, column, list.cell(row, index), listing.filter);
            }
        }
    }
    let Some(cursor) = cursor.filter(|_| !window.is_empty()) else { return };
    let y = lines.y + (cursor.at.min(list.len() - 1) - window.start) as u16;
    let style = if focused { canvas.theme.selected } else { canvas.theme.selected_unfocused };
    canvas.style(Rect { x: lines.x.saturating_sub(1), y, width: lines.width + 2, height: 1 }, style);
    canvas.scroll_mark(&ScrollBar::of_list(lines, cursor, list.len()));
}

fn titles(canvas: &mut Canvas<'_>, area: Rect, columns: &[Column], slots: &[Option<(u16, u16)>]) {
    let theme = canvas.theme;
    for (column, slot) in columns.iter().zip(slots) {
        let Some((x, width)) = *slot else { continue };
        let room = width.min(area.right().saturating_sub(x));
        match column.sorted {
            None => aligned(canvas, Rect { x, width: room, height: 1, ..area }, column.fit, column.title, theme.dim),
            Some(direction) => {
                let arrow = match direction {
                    Direction::Ascending => theme.glyphs.ascending,
                    Direction::Descending => theme.glyphs.descending,
                };
                // The arrow is in the gap behind the column, so that the title stays in place.
                let room = if is_right(column.fit) { width + 1 } else { room };
                let place = Rect { x, width: room, height: 1, ..area };
                aligned(canvas, place, column.fit, &format!("{}{arrow}", column.title), theme.key);
            }
        }
    }
}

fn is_right(fit: Fit) -> bool {
    matches!(fit, Fit::Right | Fit::Id)
}

/// Draws text on the side of its column.
fn aligned(canvas: &mut Canvas<'_>, place: Rect, fit: Fit, text: &str, style: Style) {
    let Rect { x, y, width, .. } = place;
    if is_right(fit) { canvas.right(x, y, width, text, style) } else { _ = canvas.text(x, y, width, text, style) }
}

fn cell(canvas: &mut Canvas<'_>, place: Rect, column: &Column, cell: Cell, filter: &Filter) {
    let theme = canvas.theme;
    let Rect { x, y, width: room, .. } = place;
    match cell {
        Cell::Text(text, role) | Cell::Number(_, text, role) => {
            let style = theme.role(role);
            let marks = filter.marks(column.field(&text));
            match column.fit {
                Fit::Name => name(canvas, x, y, room, &text, style, &marks),
                Fit::Suffix => _ = suffix(canvas, x, y, room, &text, style, &marks),
                Fit::Path => _ = without_start(canvas, x, y, room, (&text, end_start(&text, room)), style, &marks),
                Fit::Left => _ = canvas.filtered(x, y, room, &text, style, &marks),
                Fit::Parts => _ = canvas.filtered(x, y, room, first_parts(&text, room), style, &marks),
                Fit::Right | Fit::Id => {
                    let blank = room.saturating_sub(canvas.columns(&text));
                    canvas.filtered(x + blank, y, room - blank, &text, style, &marks);
                }
            }
        }
        Cell::Unknown => aligned(canvas, place, column.fit, theme.glyphs.none, theme.dim),
        Cell::Signed(signs, word, role) => {
            let mut used = 0;
            for (sign, role) in signs {
                used += canvas.text(x + used, y, room.saturating_sub(used), theme.sign(sign), theme.role(role));
            }
            // The longest words only fit beside two signs without it.
            used += u16::from(used + 1 + canvas.columns(&word) <= room);
            let (x, room, style, marks) = (x + used, room.saturating_sub(used), theme.role(role), filter.marks(column.field(&word)));
            match column.fit {
                Fit::Suffix => suffix(canvas, x, y, room, &word, style, &marks),
                _ => canvas.filtered(x, y, room, &word, style, &marks),
            };
        }
        Cell::Levels(levels, role) => {
            for (level, x) in levels.into_iter().zip(x..) {
                if let Some(bar) = usize::from(level).checked_sub(1).and_then(|level| theme.glyphs.bars.get(level)) {
                    canvas.sign(x, y, bar, if level == 1 { theme.border } else { theme.role(role) });
                }
            }
        }
        Cell::Pieces(line) => {
            let used = pieces(canvas, place, &line);
            let text = joined(&line);
            canvas.mark(x, y, used, &text, &filter.marks(column.field(&text)));
        }
        Cell::Meter(shares) => {
            let shares: Vec<_> = shares.into_iter().map(|(share, role)| (share, theme.role(role))).collect();
            meter(canvas, x, y, room, &shares);
        }
        Cell::Node(branch, text, role) => {
            let indent = branches(canvas, Rect { width: room / 2, ..place }, &branch);
            name(canvas, x + indent, y, room.saturating_sub(indent), &text, theme.role(role), &filter.marks(column.field(&text)));
        }
        Cell::Bars(values, role) => bars(canvas, place, &values, theme.role(role)),
        Cell::Sign(sign, role) => _ = canvas.text(x, y, room, theme.sign(sign), theme.role(role)),
        Cell::Key(key) => aligned(canvas, place, column.fit, &key.name(theme.glyphs.ascii), theme.key),
        Cell::Masked => _ = canvas.text(x, y, room, theme.glyphs.mask, theme.dim),
        Cell::Check(chosen) => {
            let mark = if chosen { (theme.sign(Sign::Yes), theme.good) } else { (" ", theme.dim) };
            canvas.pieces(x, y, room, &[("[", theme.dim), mark, ("]", theme.dim)]);
        }
    }
}

/// Draws the lines before a row of a tree; if they do not fit, only the innermost. Returns the number of columns used.
fn branches(canvas: &mut Canvas<'_>, area: Rect, branch: &Branch) -> u16 {
    let theme = canvas.theme;
    let [continued, fork, end] = theme.glyphs.tree;
    let own = branch.last.map(|last| if last { end } else { fork });
    let lines = branch.above.iter().map(|line| if *line { continued } else { "  " }).chain(own);
    let fold = branch.expanded.map_or("  ", |expanded| theme.glyphs.fold[usize::from(expanded)]);
    let all: Vec<_> = lines.map(|line| (line, theme.border)).chain([(fold, theme.key)]).collect();
    let shown = &all[all.len().saturating_sub(usize::from(area.width / 2).max(1))..];
    canvas.pieces(area.x, area.y, shown.len() as u16 * 2, shown)
}

/// Draws a meter: shares from the left, each in its style.
fn meter(canvas: &mut Canvas<'_>, x: u16, y: u16, room: u16, shares: &[(f64, Style)]) {
    let [full, empty] = canvas.theme.glyphs.meter;
    let mut sum = 0.0;
    let mut at = 0;
    for (share, style) in shares {
        sum += if share.is_finite() { share.max(0.0) } else { 0.0 };
        let end = ((sum.min(1.0) * f64::from(room)).round() as u16).min(room);
        for column in at..end {
            canvas.sign(x + column, y, full, *style);
        }
        at = at.max(end);
    }
    for column in at..room {
        canvas.sign(x + column, y, empty, canvas.theme.border);
    }
}

/// Minimum span of the bars, as a share of the largest value, so that nearly constant values are a flat line.
const MIN_SPAN: f64 = 0.2;

/// Draws the latest values as bars, the newest on the right. None is as high as the line, or it would touch the one above.
fn bars(canvas: &mut Canvas<'_>, area: Rect, values: &[f64], style: Style) {
    let bars = canvas.theme.glyphs.bars;
    let shown = &values[values.len().saturating_sub(usize::from(area.width))..];
    let start = area.right() - shown.len() as u16;
    for ((value, share), x) in shown.iter().zip(heights(shown)).zip(start..).filter(|((value, _), _)| value.is_finite()) {
        let level = (share * (bars.len() - 2) as f64).round() as usize;
        canvas.sign(x, area.y, bars[level], if *value == 0.0 { canvas.theme.border } else { style });
    }
}

/// Returns the height of each value's bar, from 0 to 1.
fn heights(values: &[f64]) -> impl Iterator<Item = f64> {
    let known = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let span = (high - low).max(low.abs().max(high.abs()) * MIN_SPAN);
    values.iter().map(move |value| if span > 0.0 { ((value - low) / span).clamp(0.0, 1.0) } else { 0.0 })
}

/// Draws pieces of text. Returns the number of columns used.
pub(super) fn pieces(canvas: &mut Canvas<'_>, area: Rect, line: &[(impl AsRef<str>, Role)]) -> u16 {
    let mut x = area.x;
    for (text, role) in line {
        x += canvas.text(x, area.y, area.right().saturating_sub(x), text.as_ref(), canvas.theme.role(*role));
    }
    x - area.x
}

/// Returns the comma-separated parts of a text that fit, and at least the first.
fn first_parts(text: &str, room: u16) -> &str {
    let mut rest = text;
    while width(rest) > room
        && let Some((shorter, _)) = rest.rsplit_once(", ")
    {
        rest = shorter;
    }
    rest
}

/// Draws a method's name, without its start if there is no room for it.
fn name(canvas: &mut Canvas<'_>, x: u16, y: u16, room: u16, name: &str, style: Style, marks: &[Range<usize>]) {
    let is_whole = short_name(name, room).len() == name.len();
    let skipped = if is_whole { 0 } else { name.len() - short_name(name, room.saturating_sub(1)).len() };
    without_start(canvas, x, y, room, (name, skipped), style, marks);
}

/// Draws an indented name, without its start if it has dots and there is no room for it. Returns the number of columns used.
fn suffix(canvas: &mut Canvas<'_>, x: u16, y: u16, room: u16, text: &str, style: Style, marks: &[Range<usize>]) -> u16 {
    let name = text.trim_start_matches(' ');
    let indent = text.len() - name.len();
    let marks: Vec<_> = marks.iter().map(|range| range.start.saturating_sub(indent)..range.end.saturating_sub(indent)).collect();
    let indent = room.min(indent as u16);
    let room = room - indent;
    indent + without_start(canvas, x + indent, y, room, (name, suffix_start(name, room)), style, &marks)
}

/// Draws a name without its first `skipped` bytes. Returns the number of columns used.
fn without_start(
    canvas: &mut Canvas<'_>,
    x: u16,
    y: u16,
    room: u16,
    (name, skipped): (&str, usize),
    style: Style,
    marks: &[Range<usize>],
) -> u16 {
    if skipped == 0 {
        return canvas.filtered(x, y, room, name, style, marks);
    }
    let used = canvas.text(x, y, room, canvas.theme.glyphs.more, canvas.theme.dim);
    if marks.iter().any(|range| range.start < skipped) {
        canvas.style(Rect::new(x, y, used, 1), canvas.theme.matched);
    }
    let left = marks.iter().filter(|range| range.end > skipped);
    let left: Vec<_> = left.map(|range| range.start.saturating_sub(skipped)..range.end - skipped).collect();
    used + canvas.filtered(x + used, y, room.saturating_sub(used), &name[skipped..], style, &left)
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;

    use super::*;
    use crate::app::test_app::TestApp;

    #[test]
    fn list_without_room_draws_nothing() {
        let app = TestApp::populated(80, 24);
        let layout = app.state.layout();
        let table = app.state.process_table(layout.list.as_ref().unwrap());
        let (theme, cursor) = (Theme::dark(), Some(Cursor::default()));
        let area = Rect::new(0, 0, 80, 3);
        let mut buffer = Buffer::empty(area);
        let listing = Listing { list: &table, cursor, focused: true, titled: true, filter: &Filter::default() };
        draw(&mut Canvas::new(&mut buffer, &theme), Rect { height: 0, ..area }, &listing);
        assert_eq!(buffer, Buffer::empty(area));
    }

    #[test]
    fn nearly_constant_values_are_drawn_flat() {
        let shown = |values: &[f64]| heights(values).map(|share| (share * 100.0).round()).collect::<Vec<_>>();
        assert_eq!(shown(&[7.0, 7.0]), [0.0, 0.0]);
        assert_eq!(shown(&[0.0, 0.0]), [0.0, 0.0]);
        assert_eq!(shown(&[99.0, 100.0]), [0.0, 5.0]);
        assert_eq!(shown(&[0.0, 5.0, 10.0]), [0.0, 50.0, 100.0]);
        assert_eq!(shown(&[50.0, 100.0]), [0.0, 100.0]);
    }

    #[test]
    fn trailing_parts_are_dropped_to_fit() {
        for (room, shown) in [(20, "a 9 %, bb 1 %, c 1 %"), (19, "a 9 %, bb 1 %"), (12, "a 9 %"), (3, "a 9 %"), (0, "a 9 %")] {
            assert_eq!(first_parts("a 9 %, bb 1 %, c 1 %", room), shown, "{room}");
        }
        assert_eq!(first_parts("", 0), "");
    }
}
