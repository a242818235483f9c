//! A tab that is described by a [`View`]: figures, charts, a list, and what is about its selected row.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::tabs::{Chart, Column, Figure, Fit, Geometry, Line, List, Look, Role, Side, View};
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
        }
    }
}

/// Draws it. Returns where the terminal's cursor belongs, while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, view: &View<'_>, geometry: &Geometry) -> Option<(u16, u16)> {
    let (head, cursor) = filter(canvas, look.state, geometry.figures);
    let figures: Vec<panel::Figure> =
        view.figures.iter().map(|Figure { label, value, role }| (*label, value.clone(), canvas.theme.role(*role))).collect();
    panel::figures(canvas, Rect { height: head.height.saturating_mul(6), ..head }, &figures);
    let charts: Vec<History<'_>> = view.charts.iter().map(|chart| history(canvas.theme, chart)).collect();
    panel::histories(canvas, look, geometry.charts, &charts);
    list(canvas, look, view, geometry);
    match &view.side {
        Some(Side::List(side)) => {
            let grid = grid(canvas, side.as_ref(), geometry.side);
            rows(canvas, &grid, side.as_ref(), 0);
        }
        Some(Side::Text(lines)) => text(canvas, lines, geometry.side),
        None => {}
    }
    cursor
}

fn history<'a>(theme: &Theme, chart: &Chart<'a>) -> History<'a> {
    let Chart { title, role, unit, line, keeps_value } = *chart;
    History { title, style: theme.role(role), unit, line, stays: keeps_value }
}

fn list(canvas: &mut Canvas<'_>, look: &Look<'_>, view: &View<'_>, geometry: &Geometry) {
    let list = view.list.as_ref();
    if list.is_empty() {
        canvas.wrapped(geometry.list, &view.empty, canvas.theme.dim);
        return;
    }
    let grid = grid(canvas, list, geometry.list);
    rows(canvas, &grid, list, grid.window(view.cursor, list.len()).start);
    grid.finish(canvas, look.state, view.cursor, list.len());
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
            let cell = list.cell(row, index);
            let style = canvas.theme.role(cell.role);
            match (column.fit, grid.place(column.title)) {
                (Fit::Name, Some((x, room))) => _ = frame_name::write(canvas, x, y, room, &cell.text, style),
                (_, Some(_)) => grid.text(canvas, column.title, y, &cell.text, style),
                (_, None) => {}
            }
        }
    }
}

/// Text below a line that parts it from the list.
fn text(canvas: &mut Canvas<'_>, lines: &[Line], area: Rect) {
    let theme = canvas.theme;
    if area.height == 0 {
        return;
    }
    for x in area.x..area.right() {
        canvas.sign(x, area.y.saturating_sub(1), theme.glyphs.horizontal, theme.border);
    }
    let mut area = area;
    for line in lines {
        let used = match line.as_slice() {
            [(text, role)] => {
                let mut rest = area;
                for part in text.lines() {
                    let used = canvas.wrapped(rest, &sanitise(part), theme.role(*role));
                    rest = below(rest, used.max(1));
                }
                area.height - rest.height
            }
            pieces => {
                let mut x = area.x;
                for (text, role) in pieces {
                    x += canvas.foreign(x, area.y, area.right().saturating_sub(x), text, theme.role(*role));
                }
                1
            }
        };
        area = below(area, used);
        if area.height == 0 {
            return;
        }
    }
}
