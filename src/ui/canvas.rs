//! Drawing to the buffer: everything is clipped, nothing can panic, and plain text needs no allocation.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use ratatui::widgets::{Clear, Widget};
use tui_input::Input;

use super::glyphs::to_ascii;
use super::theme::Theme;
use crate::analysis::Filter;
use crate::app::ScrollBar;
pub(super) use crate::app::layout::{width, wrap};
use crate::model::safe;

/// Maximum number of bytes of sanitized text in one cell.
const MAX_CELL_BYTES: usize = 64;

/// Returns the noun for a count that is drawn separately: the first one is singular.
pub(super) fn plural(count: u64, nouns: [&'static str; 2]) -> &'static str {
    nouns[usize::from(count != 1)]
}

/// Returns the rest of an area below some lines.
pub(super) fn below(area: Rect, lines: u16) -> Rect {
    let lines = lines.min(area.height);
    Rect { y: area.y + lines, height: area.height - lines, ..area }
}

/// Returns the column of the terminal's cursor in a text that begins at `x`.
pub(super) fn cursor_column(x: u16, input: &Input) -> u16 {
    x.saturating_add(u16::try_from(input.visual_cursor()).unwrap_or(u16::MAX))
}

/// Returns the rest of a text after some columns.
pub(super) fn skip_columns(text: &str, columns: usize) -> String {
    let mut skipped = 0;
    text.chars()
        .skip_while(|c| {
            let before = skipped;
            skipped += usize::from(width(c.encode_utf8(&mut [0; 4])));
            before < columns
        })
        .collect()
}

/// A buffer to draw to, with a theme.
pub(super) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    pub(super) theme: &'a Theme,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, theme: &'a Theme) -> Self {
        Self { buffer, theme }
    }

    fn ascii_if_needed<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.theme.glyphs.ascii && !text.is_ascii() { Cow::Owned(to_ascii(text)) } else { Cow::Borrowed(text) }
    }

    /// Returns the number of columns that a text takes when drawn.
    pub(super) fn columns(&self, text: &str) -> u16 {
        width(&self.ascii_if_needed(text))
    }

    /// Draws text, at most `room` columns wide; longer text is truncated and marked. Returns the number of columns used.
    ///
    /// This is the last line of defense: whatever the text, no control character reaches the terminal.
    pub(super) fn text(&mut self, x: u16, y: u16, room: u16, text: &str, style: Style) -> u16 {
        let area = self.buffer.area;
        let room = room.min(area.right().saturating_sub(x));
        if room == 0 || y < area.top() || y >= area.bottom() || x < area.left() {
            return 0;
        }
        // Text has at most as many columns as bytes. Overlong text is not scanned to its end in every frame.
        let longest = usize::from(room) * MAX_CELL_BYTES;
        let (start, rest) = text.split_at((0..=longest.min(text.len())).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0));
        let start = safe(start);
        let text = self.ascii_if_needed(&start);
        // Replace the style of what was drawn here before.
        let style = Style::reset().patch(style);
        let fits = rest.is_empty() && (text.len() <= usize::from(room) || width(&text) <= room);
        let (end, _) = self.buffer.set_stringn(x, y, &text, usize::from(if fits { room } else { room - 1 }), style);
        if fits {
            return end - x;
        }
        let (end, _) = self.buffer.set_stringn(end, y, self.theme.glyphs.more, 1, style);
        end - x
    }

    /// Draws right-aligned text.
    pub(super) fn right(&mut self, x: u16, y: u16, room: u16, text: &str, style: Style) {
        let blank = room.saturating_sub(self.columns(text));
        self.text(x + blank, y, room - blank, text, style);
    }

    /// Draws pieces of text one after the other. Returns the number of columns used.
    pub(super) fn pieces(&mut self, x: u16, y: u16, room: u16, pieces: &[(&str, Style)]) -> u16 {
        let mut used = 0;
        for (text, style) in pieces {
            used += self.text(x + used, y, room - used.min(room), text, *style);
        }
        used
    }

    /// Draws sanitized text, and highlights the matches of a filter.
    pub(super) fn filtered(&mut self, x: u16, y: u16, room: u16, text: &str, style: Style, marks: &[Range<usize>]) -> u16 {
        let used = self.text(x, y, room, text, style);
        self.mark(x, y, used, text, marks);
        used
    }

    /// Highlights ranges of a text drawn in `columns` columns. If it is truncated before the end of a range, the truncation mark is highlighted.
    pub(super) fn mark(&mut self, x: u16, y: u16, columns: u16, text: &str, marks: &[Range<usize>]) {
        let Some(last) = marks.iter().map(|range| range.end).max() else { return };
        let (matched, end) = (self.theme.matched, x + columns);
        let mut at = x;
        for grapheme in Span::raw(text).styled_graphemes(Style::new()) {
            let start = grapheme.symbol.as_ptr() as usize - text.as_ptr() as usize;
            let columns = self.columns(grapheme.symbol);
            let is_cut =
                at.saturating_add(columns) > end || at.saturating_add(columns) == end && start + grapheme.symbol.len() < text.len();
            if start >= last || is_cut {
                if is_cut && start < last && at < end {
                    self.style(Rect::new(end - 1, y, 1, 1), matched);
                }
                return;
            }
            if marks.iter().any(|range| range.start < start + grapheme.symbol.len() && start < range.end) {
                self.style(Rect::new(at, y, columns, 1), matched);
            }
            at += columns;
        }
    }

    /// Draws text on several lines, wrapped between words, as far as it fits. Returns the number of lines.
    pub(super) fn wrapped(&mut self, area: Rect, text: &str, style: Style) -> u16 {
        let lines = wrap(&self.ascii_if_needed(text), area.width);
        for (line, y) in lines.iter().zip(area.y..area.bottom()) {
            self.text(area.x, y, area.width, line, style);
        }
        (lines.len() as u16).min(area.height)
    }

    /// Applies a style to existing contents.
    pub(super) fn style(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area, style);
    }

    pub(super) fn clear(&mut self, area: Rect) {
        Clear.render(area.intersection(self.buffer.area), self.buffer);
    }

    pub(super) fn sign(&mut self, x: u16, y: u16, sign: &str, style: Style) {
        if let Some(cell) = self.buffer.cell_mut((x, y)) {
            cell.set_symbol(sign).set_style(style);
        }
    }

    pub(super) fn char(&mut self, x: u16, y: u16, c: char, style: Style) {
        if let Some(cell) = self.buffer.cell_mut((x, y)) {
            cell.set_char(c).set_style(style);
        }
    }

    pub(super) fn frame(&mut self, area: Rect, style: Style) {
        if area.width < 2 || area.height < 2 {
            return;
        }
        let glyphs = self.theme.glyphs;
        let (right, bottom) = (area.right() - 1, area.bottom() - 1);
        for x in area.x + 1..right {
            self.sign(x, area.y, glyphs.horizontal, style);
            self.sign(x, bottom, glyphs.horizontal, style);
        }
        for y in area.y + 1..bottom {
            self.sign(area.x, y, glyphs.vertical, style);
            self.sign(right, y, glyphs.vertical, style);
        }
        let corners = [(area.x, area.y), (right, area.y), (area.x, bottom), (right, bottom)];
        for ((x, y), corner) in corners.into_iter().zip(glyphs.corners) {
            self.sign(x, y, corner, style);
        }
    }

    /// Draws a filter, or the text that is being typed for it. Returns the number of columns used, and the position of the terminal's cursor while
    /// it is being typed.
    pub(super) fn filter(&mut self, x: u16, y: u16, room: u16, filter: &Filter, typed: Option<&Input>) -> (u16, Option<(u16, u16)>) {
        let text = typed.map_or(filter.as_str(), Input::value);
        if text.is_empty() && typed.is_none() {
            return (0, None);
        }
        // What is being typed is drawn around the cursor, which needs a column of its own at the end.
        let scroll = typed.map_or(0, |input| input.visual_scroll(usize::from(room.saturating_sub(3))));
        let used = self.text(x, y, room, &format!(" /{} ", skip_columns(text, scroll)), self.theme.chip);
        let last = (x + used).saturating_sub(1);
        let scrolled = u16::try_from(scroll).unwrap_or(u16::MAX);
        (used, typed.map(|input| (cursor_column(x.saturating_add(2), input).saturating_sub(scrolled).min(last), y)))
    }

    /// Draws a frame with a title over existing contents, and returns the area inside.
    pub(super) fn dialog(&mut self, area: Rect, title: &str, style: Style) -> Rect {
        // A blank column on each side separates it from what it covers.
        let left = area.x.saturating_sub(1);
        self.clear(Rect { x: left, width: area.right() + 1 - left, ..area });
        self.frame(area, style);
        let strong = self.theme.strong;
        let room = area.width.saturating_sub(6);
        // The PID after a long name must remain visible.
        let (start, pid) = title.split_at(title.rfind(" (").unwrap_or(title.len()));
        let used = self.text(area.x + 3, area.y, room.saturating_sub(self.columns(pid)), start, strong);
        let used = used + self.text(area.x + 3 + used, area.y, room - used.min(room), pid, strong);
        if used > 0 {
            self.sign(area.x + 2, area.y, " ", strong);
            self.sign(area.x + 3 + used, area.y, " ", strong);
        }
        Rect::new(area.x + 2, area.y + 1, area.width.saturating_sub(4), area.height.saturating_sub(2))
    }

    /// Draws the thumb of a scroll bar.
    pub(super) fn scroll_mark(&mut self, bar: &ScrollBar) {
        let (thumb, style) = (self.theme.glyphs.thumb, self.theme.dim);
        let Some(place) = bar.thumb() else { return };
        for y in place.top()..place.bottom() {
            self.sign(place.x, y, thumb, style);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_part_of_a_match_is_highlighted() {
        let (unicode, ascii) = (Theme::dark(), Theme::dark().ascii());
        // The highlight is at the matching letters; the truncation mark stands for what follows it.
        for (text, theme, room, range, marked) in [
            ("abcdef", &unicode, 6, 2..4, "  ##  "),
            ("abcdef", &unicode, 4, 1..2, " #    "),
            ("abcdef", &unicode, 4, 2..5, "  ##  "),
            ("abcdef", &unicode, 4, 4..5, "   #  "),
            ("abcd", &unicode, 4, 3..4, "   #  "),
            ("日本語", &unicode, 6, 3..6, "  ##  "),
            ("日本語", &unicode, 4, 6..9, "  #   "),
            ("", &unicode, 4, 0..0, "      "),
            // Drawn as "??a" and "...a".
            ("日本a", &ascii, 6, 6..7, "  #   "),
            ("…a", &ascii, 6, 3..4, "   #  "),
        ] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
            Canvas::new(&mut buffer, theme).filtered(0, 0, room, text, Style::new(), std::slice::from_ref(&range));
            let is_marked = |cell: &ratatui::buffer::Cell| {
                cell.style().fg == theme.matched.fg && cell.style().add_modifier == theme.matched.add_modifier
            };
            let line: String = buffer.content().iter().map(|cell| if is_marked(cell) { '#' } else { ' ' }).collect();
            assert_eq!(line, marked, "{text} {room} {range:?}");
        }
    }

    #[test]
    fn end_of_a_long_filter_is_visible_while_it_is_typed() {
        let (theme, filter) = (Theme::dark(), Filter::default());
        for (typed, shown, cursor) in [("abc", " /abc   ", 5), ("abcdef", " /bcdef ", 7), ("abcdefgh", " /defgh ", 7)] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
            let (_, at) = Canvas::new(&mut buffer, &theme).filter(0, 0, 8, &filter, Some(&Input::new(typed.to_owned())));
            let line: String = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
            assert_eq!((line.as_str(), at), (shown, Some((cursor, 0))), "{typed}");
        }
    }

    #[test]
    fn long_text_is_truncated_with_a_mark_within_its_width() {
        let theme = Theme::dark();
        for (text, room, shown) in
            [("abc", 3, "abc  "), ("abcd", 3, "ab…  "), ("日本", 3, "日…  "), ("日本", 2, "…    "), ("x", 0, "     ")]
        {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 5, 1));
            let used = Canvas::new(&mut buffer, &theme).text(0, 0, room, text, Style::new());
            assert!(used <= room, "{text}");
            let line: String = buffer.content().iter().map(|cell| cell.symbol()).collect();
            // The cell after a wide character is empty.
            assert_eq!(line.replace("日 ", "日"), shown.trim_end().to_owned() + &" ".repeat(5 - usize::from(used)), "{text} in {room}");
        }
        let mut buffer = Buffer::empty(Rect::new(0, 0, 2, 1));
        let mut canvas = Canvas::new(&mut buffer, &theme);
        canvas.text(7, 0, 9, "abc", Style::new());
        canvas.text(0, 7, 9, "abc", Style::new());
        canvas.frame(Rect::new(1, 0, 90, 90), Style::new());
        canvas.clear(Rect::new(1, 0, 90, 90));
    }
}
