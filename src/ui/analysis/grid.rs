//! A list in columns: a heading, lines, the selected one, and where it is scrolled to.

use std::ops::Range;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::{Cursor, Focus, State};

use super::super::canvas::Canvas;

/// A column: its title, its width, and where its text stands. A width of 0 takes what is left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    title: &'static str,
    width: u16,
    right: bool,
}

/// A column of text.
pub(super) const fn text(title: &'static str, width: u16) -> Column {
    Column { title, width, right: false }
}

/// A column of numbers.
pub(super) const fn number(title: &'static str, width: u16) -> Column {
    Column { title, width, right: true }
}

/// Where the columns and lines of a list are.
pub(super) struct Grid {
    area: Rect,
    slots: Vec<(Column, u16)>,
}

impl Grid {
    /// Lays the columns out and draws their titles. The first columns stay where not all have room.
    pub(super) fn new(canvas: &mut Canvas<'_>, area: Rect, columns: &[Column]) -> Self {
        const GAP: u16 = 2;
        /// What a column that takes the rest should have.
        const REST: u16 = 24;
        let need = |column: &Column| if column.width == 0 { REST } else { column.width } + GAP;
        let mut columns = columns.to_vec();
        let mut used: u16 = columns.iter().map(need).sum::<u16>().saturating_sub(GAP);
        while used > area.width && columns.len() > 2 {
            // What takes the rest is the list's subject and stays.
            let Some(last) = columns.iter().rposition(|column| column.width > 0) else { break };
            used -= need(&columns.remove(last));
        }
        let fixed: u16 = columns.iter().filter(|column| column.width > 0).map(need).sum();
        let rest = area.width.saturating_sub(fixed);
        let mut x = area.x;
        let mut slots = Vec::with_capacity(columns.len());
        for mut column in columns {
            if column.width == 0 {
                column.width = rest;
            }
            slots.push((column, x));
            x += column.width + GAP;
        }
        let grid = Self { area, slots };
        for (column, x) in &grid.slots {
            grid.put(canvas, *column, *x, area.y, column.title, canvas.theme.dim);
        }
        grid
    }

    fn put(&self, canvas: &mut Canvas<'_>, column: Column, x: u16, y: u16, text: &str, style: Style) {
        let room = column.width.min(self.area.right().saturating_sub(x));
        if column.right {
            canvas.right(x, y, room, text, style);
        } else {
            canvas.text(x, y, room, text, style);
        }
    }

    /// Where lines go.
    pub(super) fn lines(&self) -> Rect {
        super::below(self.area, 1)
    }

    /// Where a column is: its left end and its width.
    pub(super) fn place(&self, title: &str) -> Option<(u16, u16)> {
        self.slot(title).map(|(column, x)| (x, column.width))
    }

    fn slot(&self, title: &str) -> Option<(Column, u16)> {
        self.slots.iter().find(|(column, _)| column.title == title).copied()
    }

    /// The lines that are shown of a list that can be moved in, which of them is selected, and where each goes.
    pub(super) fn window(&self, cursor: Cursor, len: usize) -> Range<usize> {
        cursor.window(len, usize::from(self.lines().height))
    }

    /// Marks the selected line, and what part of the list is shown.
    pub(super) fn finish(&self, canvas: &mut Canvas<'_>, state: &State, cursor: Cursor, len: usize) {
        let (theme, lines) = (canvas.theme, self.lines());
        let window = self.window(cursor, len);
        if len == 0 || lines.height == 0 {
            return;
        }
        let y = lines.y + (cursor.at.min(len - 1) - window.start) as u16;
        let style = if state.focus == Focus::Detail { theme.selected } else { theme.shadowed };
        canvas.style(Rect { x: lines.x.saturating_sub(1), y, width: lines.width + 2, height: 1 }, style);
        canvas.scroll_mark(Rect { x: lines.right(), width: 1, ..lines }, window.start, usize::from(lines.height), len);
    }
}
