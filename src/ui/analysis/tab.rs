//! A tab that is described by a [`View`]: figures, charts, a list, and what is about its selected row.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::tabs::{Cell, Chart, Column, Figure, Fit, Geometry, Head, Line, List, Look, Role, Side, View};
use crate::app::{Cursor, State};
use crate::model::sanitise;

use super::super::canvas::Canvas;
use super::super::theme::Theme;
use super::frame_name;
use super::grid::{self, Grid};
use super::panel::{self, History};
use super::{below, filter};

impl Theme {
    /// The style of a role.
    pub(super) fn role(&self, role: Role) -> Style {
        match role {
            Role::Text => self.text,
            Role::Dim => self.dim,
            Role::Strong => self.strong,
            Role::Accent => self.accent,
            Role::Good => self.good,
            Role::Warning => self.warn,
            Role::Bad => self.bad,
            Role::Bytes => self.bytes,
            Role::Events => self.events,
            Role::Border => self.border,
            Role::Match => self.matched,
        }
    }
}

/// Draws it. Returns where the terminal's cursor belongs, while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, view: &View<'_>, geometry: &Geometry) -> Option<(u16, u16)> {
    let (first, cursor) = filter(canvas, look.state, geometry.head);
    let mut area = geometry.head;
    for (index, head) in view.head.iter().enumerate() {
        let line = if index == 0 { first } else { area };
        let used = match head {
            Head::Figures(all) => figures(canvas, line, all),
            Head::Text(text, role) => canvas.wrapped(line, text, canvas.theme.role(*role)),
        };
        area = below(area, used);
    }
    if let Some(summary) = view.summary.as_ref().filter(|_| geometry.summary.height > 0) {
        list(canvas, summary.as_ref(), geometry.summary);
    }
    let charts: Vec<History<'_>> = view.charts.iter().map(|chart| history(canvas.theme, chart)).collect();
    panel::histories(canvas, look, geometry.charts, &charts);
    if view.list.is_empty() {
        canvas.wrapped(geometry.list, &view.empty.0, canvas.theme.role(view.empty.1));
    } else {
        selectable(canvas, look.state, view.list.as_ref(), view.cursor, geometry.list);
    }
    if let Some(Side { text: lines, list: rows, .. }) = view.side.as_ref().filter(|_| geometry.side.height > 0) {
        let is_below = geometry.side.x == geometry.list.x;
        if is_below && !lines.is_empty() {
            let theme = canvas.theme;
            for x in geometry.side.x..geometry.side.right() {
                canvas.sign(x, geometry.side.y - 1, theme.glyphs.horizontal, theme.border);
            }
        }
        // What is listed below the text has a third at least.
        let wanted = rows.as_ref().map_or(0, |rows| (rows.len() as u16 + 1).min(geometry.side.height / 3));
        let wanted = if wanted < 2 { 0 } else { wanted };
        let used = text(canvas, lines, Rect { height: geometry.side.height - wanted, ..geometry.side });
        if let Some(rows) = rows {
            list(canvas, rows.as_ref(), below(geometry.side, used));
        }
    }
    cursor
}

/// Draws figures as far as the area goes. Returns how many lines they took.
fn figures(canvas: &mut Canvas<'_>, area: Rect, all: &[Figure]) -> u16 {
    let all: Vec<panel::Figure> =
        all.iter().map(|Figure { label, value, role }| (*label, value.clone(), canvas.theme.role(*role))).collect();
    panel::figures(canvas, Rect { height: area.height.saturating_mul(6), ..area }, &all)
}

/// Draws a list with its selected row.
pub(super) fn selectable(canvas: &mut Canvas<'_>, state: &State, list: &dyn List, cursor: Cursor, area: Rect) {
    let grid = grid(canvas, list, area);
    rows(canvas, &grid, list, grid.window(cursor, list.len()).start);
    grid.finish(canvas, state, cursor, list.len());
}

/// Draws a list in which nothing is selected.
fn list(canvas: &mut Canvas<'_>, list: &dyn List, area: Rect) {
    let grid = grid(canvas, list, area);
    rows(canvas, &grid, list, 0);
}

fn history<'a>(theme: &Theme, chart: &Chart<'a>) -> History<'a> {
    let Chart { title, role, unit, line, keeps_value } = *chart;
    History { title, style: theme.role(role), unit, line, stays: keeps_value }
}

fn grid(canvas: &mut Canvas<'_>, list: &dyn List, area: Rect) -> Grid {
    let columns = list.columns();
    let columns: Vec<_> = columns
        .iter()
        .map(|Column { title, width, fit }| if *fit == Fit::Right { grid::number(title, *width) } else { grid::text(title, *width) })
        .collect();
    Grid::new(canvas, area, &columns)
}

/// Draws the rows from `first` on.
fn rows(canvas: &mut Canvas<'_>, grid: &Grid, list: &dyn List, first: usize) {
    let lines = grid.lines();
    let columns = list.columns();
    for (row, y) in (first..list.len()).zip(lines.y..lines.bottom()) {
        for (index, column) in columns.iter().enumerate() {
            let Some((x, room)) = grid.place(column.title) else { continue };
            match list.cell(row, index) {
                Cell::Text(text, role) if column.fit == Fit::Name => {
                    frame_name::write(canvas, x, y, room, &text, canvas.theme.role(role));
                }
                Cell::Text(text, role) => grid.text(canvas, column.title, y, &text, canvas.theme.role(role)),
                Cell::Pieces(line) => {
                    pieces(canvas, Rect { x, y, width: room, height: 1 }, &line);
                }
                Cell::Meter(shares) => {
                    let shares: Vec<_> = shares.into_iter().map(|(share, role)| (share, canvas.theme.role(role))).collect();
                    panel::meter(canvas, x, y, room, &shares);
                }
                Cell::Bars(values, role) => bars(canvas, Rect { x, y, width: room, height: 1 }, &values, canvas.theme.role(role)),
            }
        }
    }
}

/// The latest values as bars, the newest at the right. None is as high as the line: it would touch the one above.
fn bars(canvas: &mut Canvas<'_>, area: Rect, values: &[f64], style: Style) {
    let bars = canvas.theme.glyphs.bars;
    let shown = &values[values.len().saturating_sub(usize::from(area.width))..];
    let known = || shown.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (known().fold(0.0, f64::min), known().fold(0.0, f64::max));
    let start = area.right() - shown.len() as u16;
    for (value, x) in shown.iter().zip(start..).filter(|(value, _)| value.is_finite()) {
        let share = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
        let level = (share * (bars.len() - 2) as f64).round() as usize;
        canvas.sign(x, area.y, bars[level], if share == 0.0 { canvas.theme.border } else { style });
    }
}

fn pieces(canvas: &mut Canvas<'_>, area: Rect, line: &Line) {
    let mut x = area.x;
    for (text, role) in line {
        x += canvas.foreign(x, area.y, area.right().saturating_sub(x), text, canvas.theme.role(*role));
    }
}

/// Writes text. Returns how many lines it took.
fn text(canvas: &mut Canvas<'_>, lines: &[Line], area: Rect) -> u16 {
    let mut rest = area;
    for (index, line) in lines.iter().enumerate() {
        let left = lines.len() - index;
        if rest.height <= 1 && left > 1 {
            canvas.value(rest.x, rest.y, rest.width * rest.height, format_args!("… {left} more lines"), canvas.theme.dim);
            return area.height;
        }
        let used = match line.as_slice() {
            [(text, role)] => {
                let mut below_it = rest;
                for part in text.lines() {
                    let used = canvas.wrapped(below_it, &sanitise(part), canvas.theme.role(*role));
                    below_it = below(below_it, used.max(1));
                }
                rest.height - below_it.height
            }
            _ => {
                pieces(canvas, rest, line);
                1
            }
        };
        rest = below(rest, used);
    }
    area.height - rest.height
}
