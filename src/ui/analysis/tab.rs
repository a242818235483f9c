//! A tab described by a [`View`]: figures, charts, a list, and details of its selected row.

use ratatui::layout::Rect;

use crate::analysis::Filter;
use crate::app::tabs::{Chart, Figure, Geometry, Head, LastPiece, Line, List, Look, Rows, Side, View};
use crate::app::{Focus, State};
use crate::model::{Counted, sanitize};

use super::super::canvas::{Canvas, below, width};
use super::super::chart::{Curve, Span, curve_with_axis};
use super::super::list::{self, Listing, pieces};
use super::super::overview;
use super::{filter, flame};

/// Draws the tab. Returns the position of the terminal's cursor while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, view: &View<'_>, geometry: &Geometry) -> Option<(u16, u16)> {
    let first = geometry.heads.first().copied().unwrap_or_default();
    let (left, cursor) = filter(canvas, state, first);
    for (index, (head, area)) in view.head.iter().zip(&geometry.heads).enumerate() {
        let area = if index == 0 { left } else { *area };
        match head {
            Head::Figures(all) => figures(canvas, area, all),
            Head::Text(words) => text(canvas, std::slice::from_ref(words), area),
        };
    }
    if let Some(summary) = view.summary.as_ref().filter(|_| geometry.summary.height > 0) {
        unselected(canvas, summary.as_ref(), geometry.summary);
    }
    let look = Look::new(state);
    charts(canvas, geometry.charts, &view.charts, if look.is_some_and(|look| look.has_ended()) { "end" } else { "now" });
    overview::row(canvas, &view.graphs, geometry.charts);
    if let (Some(look), Some(graph)) = (&look, &view.flame) {
        flame::draw(canvas, look, graph, geometry.list);
        return cursor;
    }
    if view.list.is_empty() {
        canvas.wrapped(geometry.list, &view.empty.0, canvas.theme.role(view.empty.1));
    } else {
        let listing = Listing {
            list: view.list.as_ref(),
            cursor: Some(view.cursor),
            focused: state.focus == Focus::Detail,
            titled: true,
            filter: state.views.filter(state.tab),
        };
        list::draw(canvas, geometry.list, &listing);
    }
    if let Some(side) = view.side.as_ref().filter(|_| geometry.side.height > 0) {
        if geometry.side.x == geometry.list.x && !side.text.is_empty() {
            let theme = canvas.theme;
            for x in geometry.side.x..geometry.side.right() {
                canvas.sign(x, geometry.side.y - 1, theme.glyphs.horizontal, theme.border);
            }
        }
        // Without a line, two lists look like one whose rows continue.
        if geometry.side.x > geometry.list.right() {
            let (theme, middle) = (canvas.theme, geometry.list.right() + (geometry.side.x - geometry.list.right()) / 2);
            for y in geometry.side.top()..geometry.side.bottom() {
                canvas.sign(middle, y, theme.glyphs.vertical, theme.border);
            }
        }
        beside(canvas, side, geometry.side);
    }
    cursor
}

/// Draws the part beside or below the list.
fn beside(canvas: &mut Canvas<'_>, side: &Side<'_>, area: Rect) {
    // Reserve up to a third of the height for the lists below the text.
    let needed = |rows: &Rows<'_>| u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(1);
    let wanted = side.lists.iter().map(needed).fold(0, u16::saturating_add).min(area.height / 3);
    let wanted = if wanted < 2 { 0 } else { wanted };
    let used = text(canvas, &side.text, Rect { height: area.height - wanted, ..area });
    let mut rest = below(area, used);
    for (index, rows) in side.lists.iter().enumerate() {
        // Each gets its share of the rest, plus what the following ones do not need.
        let after = &side.lists[index + 1..];
        let share = rest.height / (after.len() as u16 + 1);
        let others = after.iter().map(needed).fold(0, u16::saturating_add);
        let height = needed(rows).min(share.max(rest.height.saturating_sub(others)));
        unselected(canvas, rows.as_ref(), Rect { height, ..rest });
        rest = below(rest, height);
    }
    if let Some(chart) = side.chart.as_ref().filter(|_| rest.height >= 4) {
        draw_chart(canvas, rest, chart, "now");
    }
    if let Some(graph) = &side.graph {
        overview::row(canvas, std::slice::from_ref(graph), rest);
    }
}

/// Draws figures one after the other, on as many lines as needed and possible. Returns the number of lines. The first figures matter most.
pub(in crate::ui) fn figures(canvas: &mut Canvas<'_>, area: Rect, figures: &[Figure]) -> u16 {
    let theme = canvas.theme;
    let (mut x, mut y, mut lines) = (area.x, area.y, 0);
    for Figure { label, value, role } in figures {
        let wanted = width(label).saturating_add(1).saturating_add(width(value));
        if x > area.x && x.saturating_add(wanted) > area.right() {
            (x, y) = (area.x, y + 1);
        }
        if y >= area.bottom() {
            break;
        }
        lines = y - area.y + 1;
        let room = area.right().saturating_sub(x);
        x += canvas.pieces(x, y, room, &[(label, theme.dim), (" ", theme.dim), (value, theme.role(*role))]) + 3;
    }
    lines
}

/// Draws charts with a time axis below: two side by side, or only the first if there is no room for both.
fn charts(canvas: &mut Canvas<'_>, area: Rect, charts: &[Chart], end: &str) {
    const GAP: u16 = 3;
    let width = if area.width >= 70 && charts.len() > 1 { (area.width - GAP) / 2 } else { area.width };
    let right = Rect { x: area.x + width + GAP, width: area.width.saturating_sub(width + GAP), ..area };
    for (chart, place) in charts.iter().zip([Rect { width, ..area }, right]) {
        if place.height >= 3 && place.width > 0 {
            draw_chart(canvas, place, chart, end);
        }
    }
}

fn draw_chart(canvas: &mut Canvas<'_>, area: Rect, Chart { title, role, unit, values }: &Chart, end: &str) {
    let curve = Curve { title, style: canvas.theme.role(*role), unit: *unit, values, lost: &[] };
    curve_with_axis(canvas, area, &curve, Span::of_seconds(values.len()), end);
}

/// Draws a list without a selection.
fn unselected(canvas: &mut Canvas<'_>, list: &dyn List, area: Rect) {
    list::draw(canvas, area, &Listing { list, cursor: None, focused: false, titled: true, filter: &Filter::default() });
}

/// Draws text. Returns the number of lines.
pub(in crate::ui) fn text(canvas: &mut Canvas<'_>, lines: &[Line], area: Rect) -> u16 {
    let mut rest = area;
    for (index, line) in lines.iter().enumerate() {
        let left = lines.len() - index;
        if rest.height == 0 || rest.height == 1 && left > 1 {
            let more = format!("… {}", Counted(left as u64, "more line"));
            canvas.text(rest.x, rest.y, rest.width * rest.height, &more, canvas.theme.dim);
            return area.height;
        }
        rest = below(rest, wrapped(canvas, line, rest));
    }
    area.height - rest.height
}

/// Draws a line, its last piece wrapped; on a single line if there is only one. Returns the number of lines.
fn wrapped(canvas: &mut Canvas<'_>, line: &Line, area: Rect) -> u16 {
    let Some(((text, role), others)) = line.split_last() else { return 1 };
    if area.height == 1 && !text.contains('\n') {
        pieces(canvas, area, line);
        return 1;
    }
    let LastPiece { is_below, indent, lines } = LastPiece::new(line, area.width);
    pieces(canvas, Rect { width: if is_below { area.width } else { indent }, ..area }, others);
    let before = u16::from(is_below);
    let mut rest = below(Rect { x: area.x + indent, width: area.width - indent, ..area }, before);
    let style = canvas.theme.role(*role);
    for part in text.lines() {
        if rest.height == 0 {
            break;
        }
        let part = sanitize(part);
        let used = if width(&part) <= rest.width {
            canvas.text(rest.x, rest.y, rest.width, &part, style);
            1
        } else {
            canvas.wrapped(rest, &part, style).max(1)
        };
        rest = below(rest, used);
    }
    (before + lines).min(area.height)
}
