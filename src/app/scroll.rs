//! Scroll bars: one geometry for drawing, clicks and drags.

use ratatui::layout::{Position, Rect};

use super::{Cursor, Overlay, State, Tab};
use crate::analysis::Field;

/// A scroll bar of a list or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrollBar {
    /// One column wide, as high as the visible lines.
    track: Rect,
    /// The first visible line.
    offset: usize,
    /// Number of lines that fit.
    shown: usize,
    /// Number of all lines.
    len: usize,
}

impl ScrollBar {
    /// Creates the scroll bar of a list, in the column to the right of its rows. The area has only rows. An offset beyond the last page is that of
    /// the last page.
    pub fn of_rows(rows: Rect, offset: usize, len: usize) -> Self {
        let shown = usize::from(rows.height);
        Self { track: Rect { x: rows.right(), width: 1, ..rows }, offset: offset.min(len.saturating_sub(shown)), shown, len }
    }

    /// Creates the scroll bar of a list with this selection.
    pub fn of_list(rows: Rect, cursor: Cursor, len: usize) -> Self {
        Self::of_rows(rows, cursor.window(len, rows.height.into()).start, len)
    }

    /// Creates the scroll bar of a text in a dialog, on the dialog's border.
    pub fn of_text(lines: Rect, offset: usize, len: usize) -> Self {
        Self::of_rows(Rect { width: lines.width + 1, ..lines }, offset, len)
    }

    /// Creates the scroll bar of messages. They take one line or more, so each of them can be the first visible one.
    pub fn of_messages(lines: Rect, offset: usize, len: usize) -> Self {
        Self { offset: offset.min(len.saturating_sub(1)), ..Self::of_text(lines, 0, len) }
    }

    /// Creates the scroll bar of the output of a program, which is scrolled relative to its end.
    pub fn of_output(lines: Rect, from_end: usize, len: usize) -> Self {
        Self::of_text(lines, len.saturating_sub(lines.height.into()).saturating_sub(from_end), len)
    }

    /// Returns the lines of the thumb; `None` if everything is visible.
    pub fn thumb(&self) -> Option<Rect> {
        let (height, hidden) = (usize::from(self.track.height), self.len.saturating_sub(self.shown));
        if hidden == 0 || height == 0 {
            return None;
        }
        let size = (height * self.shown / self.len).clamp(1, height);
        let at = ((height - size) * self.offset).div_ceil(hidden).min(height - size);
        Some(Rect { y: self.track.y + at as u16, height: size as u16, ..self.track })
    }

    /// Returns the first visible line.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of lines that fit, and of all lines.
    pub(super) fn lines(&self) -> (usize, usize) {
        (self.shown, self.len)
    }

    fn contains(&self, x: u16, y: u16) -> bool {
        self.thumb().is_some() && self.track.contains(Position::new(x, y))
    }

    /// Returns the line of the thumb that the pointer takes hold of; `None` next to the thumb.
    pub(super) fn grip(&self, y: u16) -> Option<u16> {
        self.thumb().filter(|thumb| (thumb.top()..thumb.bottom()).contains(&y)).map(|thumb| y - thumb.y)
    }

    /// Returns the line in the middle of the thumb, which jumps to the pointer next to it.
    pub(super) fn middle(&self) -> u16 {
        self.thumb().map_or(0, |thumb| thumb.height / 2)
    }

    /// Returns the offset with this line of the thumb at a screen line.
    pub(super) fn offset_at(&self, y: u16, grip: u16) -> usize {
        let Some(thumb) = self.thumb() else { return 0 };
        let (top, room) = (usize::from(y.saturating_sub(grip).saturating_sub(self.track.y)), usize::from(self.track.height - thumb.height));
        let hidden = self.len - self.shown;
        // A thumb as long as its track stays where it is.
        (top.min(room) * hidden).checked_div(room).unwrap_or(self.offset)
    }
}

listed! {
/// What a scroll bar scrolls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scrolled {
    Processes,
    Overview,
    /// The list of the open tab.
    Tab,
    /// The list over the panes.
    Picks,
    /// The text over the panes.
    Text,
}
}

impl State {
    /// Returns the scroll bar at a screen position that can be used in the current context.
    pub(super) fn scroll_bar_at(&self, x: u16, y: u16) -> Option<(Scrolled, ScrollBar)> {
        let is_here = |scrolled: Scrolled| Some((scrolled, self.scroll_bar(scrolled).filter(|bar| bar.contains(x, y))?));
        Scrolled::ALL.into_iter().find_map(is_here)
    }

    /// Returns a scroll bar; `None` if it is not shown, or covered.
    pub(super) fn scroll_bar(&self, scrolled: Scrolled) -> Option<ScrollBar> {
        let is_pane = matches!(scrolled, Scrolled::Processes | Scrolled::Overview | Scrolled::Tab);
        if is_pane != self.context().is_pane() || self.line.is_some() {
            return None;
        }
        match scrolled {
            Scrolled::Processes => Some(ScrollBar::of_list(self.layout().list?.lines(), self.list.view_cursor()?, self.list.len())),
            Scrolled::Overview if self.tab == Tab::Overview => {
                let body = self.layout().detail?.body;
                Some(self.overview()?.scroll_bar(body, self.details.scroll))
            }
            Scrolled::Overview => None,
            Scrolled::Tab => {
                let (view, geometry) = self.tab_view().filter(|(view, _)| view.flame.is_none())?;
                Some(ScrollBar::of_list(geometry.rows(), view.cursor, view.list.len()))
            }
            Scrolled::Picks => {
                let list = self.pick_list()?;
                Some(ScrollBar::of_list(list.rows(), list.cursor, list.list.len()))
            }
            Scrolled::Text => self.text_scroll_bar(),
        }
    }

    /// Returns the scroll bar of the text over the panes.
    pub(super) fn text_scroll_bar(&self) -> Option<ScrollBar> {
        let text = self.layout().reader_text();
        Some(match self.overlay.as_ref()? {
            Overlay::Help(help) => ScrollBar::of_text(text, help.reader.scroll, self.help_rows(help).len()),
            Overlay::Messages(reader) => {
                let len = self.toasts.history().filter(|toast| reader.search.passes(&[Field::text("TEXT", &toast.text)])).count();
                ScrollBar::of_messages(text, reader.scroll, len)
            }
            Overlay::Output(view) => {
                // Two lines show the status of the program.
                let body = Rect { y: text.y + 2.min(text.height), height: text.height.saturating_sub(2), ..text };
                ScrollBar::of_output(body, view.reader.scroll, view.rows(text.width).len())
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumb_and_offset_are_inverse_to_each_other() {
        for (height, len) in [(10, 11), (10, 25), (10, 1_000), (3, 4), (1, 9), (40, 41)] {
            let bar = |offset| ScrollBar::of_rows(Rect::new(5, 7, 20, height), offset, len);
            let hidden = len - usize::from(height);
            for offset in 0..=hidden {
                let thumb = bar(offset).thumb().unwrap();
                assert!(thumb.x == 25 && thumb.top() >= 7 && thumb.bottom() <= 7 + height && thumb.height > 0, "{thumb:?}");
                assert_eq!(thumb.top() == 7, offset == 0 || height == 1);
                assert!(thumb.bottom() == 7 + height || offset < hidden);
                // Holding the thumb without moving it leaves it where it is.
                let grip = bar(offset).grip(thumb.bottom() - 1).unwrap();
                assert_eq!((grip, bar(offset).grip(thumb.bottom())), (thumb.height - 1, None));
                let again = bar(offset).offset_at(thumb.bottom() - 1, grip);
                assert_eq!(bar(again).thumb(), Some(thumb), "{height} of {len}, {offset}");
            }
            if height > 1 {
                assert_eq!((bar(0).offset_at(0, 0), bar(0).offset_at(200, 0)), (0, hidden));
            }
        }
        for (height, len) in [(10, 10), (10, 0), (0, 5)] {
            assert_eq!(ScrollBar::of_rows(Rect::new(0, 0, 9, height), 0, len).thumb(), None, "everything is visible");
        }
    }
}
