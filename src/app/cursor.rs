//! The selected line and scroll offset of a list.

use std::ops::Range;

/// The selected line and scroll offset of a list. The list's length is passed in when needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    pub at: usize,
    offset: usize,
}

/// A cursor movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    By(isize),
    Page(isize),
    First,
    Last,
}

/// The adjacent place in one of two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Neighbor {
    /// The one on the left, or above.
    Previous,
    /// The one on the right, or below.
    Next,
}

impl Neighbor {
    /// Returns the neighbor's index in a row of `len`, wrapping around at the ends.
    pub(super) fn of(self, at: usize, len: usize) -> usize {
        match self {
            Self::Previous => (at + len.saturating_sub(1)) % len.max(1),
            Self::Next => (at + 1) % len.max(1),
        }
    }
}

impl Step {
    /// Converts to a number of lines; `page` is the number of lines shown.
    pub(super) fn lines(self, page: usize) -> isize {
        match self {
            Self::By(lines) => lines,
            Self::Page(pages) => pages.saturating_mul(page.saturating_sub(1).max(1) as isize),
            Self::First => isize::MIN,
            Self::Last => isize::MAX,
        }
    }
}

impl Cursor {
    pub(super) fn at(at: usize) -> Self {
        Self { at, offset: 0 }
    }

    /// Returns a cursor at another line with the same scroll offset.
    pub(super) fn moved_to(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// Returns the number of lines above the first one shown.
    pub fn offset(self) -> usize {
        self.offset
    }

    /// Moves in a list of `len` lines, of which `page` are shown.
    pub(super) fn go(&mut self, step: Step, len: usize, page: usize) {
        self.at = self.at.saturating_add_signed(step.lines(page)).min(len.saturating_sub(1));
        self.fit(len, page);
    }

    /// Makes a line the first one shown. The selected line moves only as far as needed to stay on the screen.
    pub(super) fn scroll_to(&mut self, offset: usize, len: usize, page: usize) {
        self.offset = offset.min(len.saturating_sub(page));
        let last = (self.offset + page.max(1) - 1).min(len.saturating_sub(1));
        self.at = self.at.clamp(self.offset.min(last), last);
    }

    /// Keeps the selected line inside the list and on the screen.
    pub(super) fn fit(&mut self, len: usize, page: usize) {
        self.at = self.at.min(len.saturating_sub(1));
        self.offset = self.offset.min(len.saturating_sub(page)).min(self.at);
        if page > 0 && self.at >= self.offset + page {
            self.offset = self.at + 1 - page;
        }
    }

    /// Returns the range of lines shown if `page` lines fit.
    pub fn window(&self, len: usize, page: usize) -> Range<usize> {
        let mut fitted = *self;
        fitted.fit(len, page);
        fitted.offset..len.min(fitted.offset + page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_stays_within_the_list_and_the_visible_window() {
        let mut cursor = Cursor::default();
        for (step, at, window) in [
            (Step::By(1), 1, 0..3),
            (Step::By(2), 3, 1..4),
            (Step::Page(1), 5, 3..6),
            (Step::Last, 9, 7..10),
            (Step::By(5), 9, 7..10),
            (Step::Page(-1), 7, 7..10),
            (Step::First, 0, 0..3),
            (Step::By(-1), 0, 0..3),
        ] {
            cursor.go(step, 10, 3);
            assert_eq!((cursor.at, cursor.window(10, 3)), (at, window), "{step:?}");
        }
        cursor.go(Step::Last, 10, 3);
        cursor.fit(2, 3);
        assert_eq!((cursor.at, cursor.window(2, 3)), (1, 0..2));
        cursor.go(Step::By(1), 0, 0);
        assert_eq!((cursor.at, cursor.window(0, 0)), (0, 0..0));
    }
}
