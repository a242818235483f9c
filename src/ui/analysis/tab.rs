//! A tab that is described by a [`View`]: figures, charts, a list, and what is about its selected row.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::analysis::Filter;
use crate::app::tabs::{Cell, Chart, Column, Figure, Fit, Geometry, Head, Line, List, Look, Plot, Role, Side, View, last_piece};
use crate::app::{Cursor, State, Tab};
use crate::model::sanitise;

use super::super::canvas::{Canvas, width};
use super::super::chart::{Curve, Span, curve, time_axis};
use super::super::theme::Theme;
use super::frame_name;
use super::grid::{self, Grid};
use super::panel::{self, History};
use super::{below, filter, flame};

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
            Role::Chip => self.chip,
        }
    }
}

/// Draws it. Returns where the terminal's cursor belongs, while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, view: &View<'_>, geometry: &Geometry) -> Option<(u16, u16)> {
    let first = geometry.heads.first().copied().unwrap_or_default();
    let (left, cursor) = filter(canvas, state, first);
    for (index, (head, area)) in view.head.iter().zip(&geometry.heads).enumerate() {
        let area = if index == 0 { left } else { *area };
        match head {
            Head::Figures(all) => figures(canvas, area, all),
            Head::Text(words) => _ = text(canvas, std::slice::from_ref(words), area),
        }
    }
    if let Some(summary) = view.summary.as_ref().filter(|_| geometry.summary.height > 0) {
        list(canvas, summary.as_ref(), geometry.summary);
    }
    let charts: Vec<History<'_>> = view.charts.iter().map(|chart| history(canvas.theme, chart)).collect();
    let look = Look::new(state);
    if let Some(look) = &look {
        panel::histories(canvas, look, geometry.charts, &charts);
    }
    if let (Some(look), true, Some(graph)) = (&look, state.tab == Tab::Methods && state.is_flame(), state.flame()) {
        flame::draw(canvas, look, &graph, geometry.list);
        return cursor;
    }
    if view.list.is_empty() {
        canvas.wrapped(geometry.list, &view.empty.0, canvas.theme.role(view.empty.1));
    } else {
        selectable(canvas, state, view.list.as_ref(), view.cursor, geometry.list);
    }
    if let Some(side) = view.side.as_ref().filter(|_| geometry.side.height > 0) {
        if geometry.side.x == geometry.list.x && !side.text.is_empty() {
            let theme = canvas.theme;
            for x in geometry.side.x..geometry.side.right() {
                canvas.sign(x, geometry.side.y - 1, theme.glyphs.horizontal, theme.border);
            }
        }
        beside(canvas, side, geometry.side);
    }
    cursor
}

/// Draws what is beside or below the list.
fn beside(canvas: &mut Canvas<'_>, side: &Side<'_>, area: Rect) {
    // What is listed below the text has a third at least.
    let wanted = side.list.as_ref().map_or(0, |rows| (rows.len() as u16 + 1).min(area.height / 3));
    let wanted = if wanted < 2 { 0 } else { wanted };
    let used = text(canvas, &side.text, Rect { height: area.height - wanted, ..area });
    let rest = below(area, used);
    if let Some(rows) = &side.list {
        list(canvas, rows.as_ref(), rest);
    }
    if let Some(Plot { title, unit, values }) = side.plot.as_ref().filter(|_| rest.height >= 4) {
        let span = Span::of_seconds(values.len());
        let shape = Curve { title, style: canvas.theme.bytes, unit: *unit, len: values.len() };
        let plot = Rect { height: rest.height - 1, ..rest };
        curve(canvas, plot, &shape, span, |index| values.get(index).copied().unwrap_or(0.0), |_| false);
        time_axis(canvas, Rect { y: plot.bottom(), height: 1, ..rest }, span, "now");
    }
}

/// Draws figures as far as the area goes.
fn figures(canvas: &mut Canvas<'_>, area: Rect, all: &[Figure]) {
    let all: Vec<panel::Figure> =
        all.iter().map(|Figure { label, value, role }| (*label, value.clone(), canvas.theme.role(*role))).collect();
    panel::figures(canvas, Rect { height: area.height.saturating_mul(6), ..area }, &all);
}

/// Draws a list with its selected row.
pub(super) fn selectable(canvas: &mut Canvas<'_>, state: &State, list: &dyn List, cursor: Cursor, area: Rect) {
    let grid = grid(canvas, list, area);
    rows(canvas, &grid, list, grid.window(cursor, list.len()).start, state.views.filter(state.tab));
    grid.finish(canvas, state, cursor, list.len());
}

/// Draws a list in which nothing is selected.
fn list(canvas: &mut Canvas<'_>, list: &dyn List, area: Rect) {
    let grid = grid(canvas, list, area);
    rows(canvas, &grid, list, 0, &Filter::default());
}

fn history<'a>(theme: &Theme, chart: &Chart<'a>) -> History<'a> {
    let Chart { title, role, unit, line, keeps_value } = *chart;
    History { title, style: theme.role(role), unit, line, stays: keeps_value }
}

fn grid(canvas: &mut Canvas<'_>, list: &dyn List, area: Rect) -> Grid {
    let columns = list.columns();
    let columns: Vec<_> = columns
        .iter()
        .map(|Column { title, width, fit, .. }| if *fit == Fit::Right { grid::number(title, *width) } else { grid::text(title, *width) })
        .collect();
    let grid = Grid::new(canvas, area, &columns);
    if let Some(Column { title, .. }) = list.columns().into_iter().find(|column| column.is_sorted)
        && let Some((x, width)) = grid.place(title)
    {
        let (key, sign) = (canvas.theme.key, canvas.theme.glyphs.descending);
        canvas.right(x, area.y, width + 1, &format!("{title}{sign}"), key);
    }
    grid
}

/// Draws the rows from `first` on.
fn rows(canvas: &mut Canvas<'_>, grid: &Grid, list: &dyn List, first: usize, filter: &Filter) {
    let lines = grid.lines();
    let columns = list.columns();
    for (row, y) in (first..list.len()).zip(lines.y..lines.bottom()) {
        for (index, column) in columns.iter().enumerate() {
            let Some((x, room)) = grid.place(column.title) else { continue };
            match list.cell(row, index) {
                Cell::Text(text, role) => {
                    let (text, style) = (sanitise(&text), canvas.theme.role(role));
                    let marks = filter.marks(column.field(&text));
                    match column.fit {
                        Fit::Name => frame_name::write(canvas, x, y, room, &text, style, &marks),
                        Fit::Left => _ = canvas.filtered(x, y, room, &text, style, &marks),
                        Fit::Right => {
                            let blank = room.saturating_sub(width(&text));
                            canvas.filtered(x + blank, y, room - blank, &text, style, &marks);
                        }
                    }
                }
                Cell::Pieces(line) => {
                    let used = pieces(canvas, Rect { x, y, width: room, height: 1 }, &line);
                    let text: String = line.iter().map(|(text, _)| sanitise(text)).collect();
                    canvas.mark(x, y, used, &text, &filter.marks(column.field(&text)));
                }
                Cell::Meter(shares) => {
                    let shares: Vec<_> = shares.into_iter().map(|(share, role)| (share, canvas.theme.role(role))).collect();
                    panel::meter(canvas, x, y, room, &shares);
                }
                Cell::Node(depth, name, role) => {
                    // Deep stacks go on where there is still room for a name.
                    let indent = (2 * depth).min(usize::from(room / 2)) as u16;
                    let name = sanitise(&name);
                    let marks = filter.marks(column.field(&name));
                    frame_name::write(canvas, x + indent, y, room - indent, &name, canvas.theme.role(role), &marks);
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

/// Writes pieces of text. Returns how many columns they took.
fn pieces(canvas: &mut Canvas<'_>, area: Rect, line: &[(String, Role)]) -> u16 {
    let mut x = area.x;
    for (text, role) in line {
        x += canvas.foreign(x, area.y, area.right().saturating_sub(x), text, canvas.theme.role(*role));
    }
    x - area.x
}

/// Writes text. Returns how many lines it took.
pub(super) fn text(canvas: &mut Canvas<'_>, lines: &[Line], area: Rect) -> u16 {
    let mut rest = area;
    for (index, line) in lines.iter().enumerate() {
        let left = lines.len() - index;
        if rest.height == 0 || rest.height == 1 && left > 1 {
            canvas.value(rest.x, rest.y, rest.width * rest.height, format_args!("… {left} more lines"), canvas.theme.dim);
            return area.height;
        }
        rest = below(rest, wrapped(canvas, line, rest));
    }
    area.height - rest.height
}

/// Writes a line, its last piece wrapped. Returns how many lines it took.
fn wrapped(canvas: &mut Canvas<'_>, line: &Line, area: Rect) -> u16 {
    let Some(((text, role), others)) = line.split_last() else { return 1 };
    let (indent, lines) = last_piece(line, area.width);
    pieces(canvas, Rect { width: indent, ..area }, others);
    let mut rest = Rect { x: area.x + indent, width: area.width - indent, ..area };
    let style = canvas.theme.role(*role);
    for part in text.lines() {
        let part = sanitise(part);
        let used = if width(&part) <= rest.width {
            canvas.text(rest.x, rest.y, rest.width * rest.height.min(1), &part, style);
            1
        } else {
            canvas.wrapped(rest, &part, style).max(1)
        };
        rest = below(rest, used);
    }
    lines.min(area.height)
}
