//! The overview of the selected process: findings, facts, graphs, capabilities.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::layout::padded;
use crate::app::tabs::{Figure, Graph, LABEL_WIDTH, MIN_GRAPH_WIDTH, Overview, OverviewLayout, Role, Sign};
use crate::app::{Focus, State};
use crate::model::Age;
use crate::sorting::CompactSort;

use super::analysis::{draw_finding, figures};
use super::canvas::{Canvas, below, width};
use super::chart::{AXIS, Span, marks, plot, time_axis};

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, body: Rect) {
    let Some(overview) = state.overview() else {
        canvas.text(body.x + 1, body.y, body.width, "No process is selected.", canvas.theme.dim);
        return;
    };
    let layout = overview.layout(body);
    let bar = overview.scroll_bar(body, state.details.scroll);
    let mut page = Page { area: padded(body), skip: bar.offset(), line: 0 };
    findings(canvas, state, &overview, page.take(layout.findings));
    if let Some((text, role)) = &overview.notice {
        canvas.wrapped(page.take(layout.notice), text, canvas.theme.role(*role));
    }
    figures(canvas, page.take(layout.facts), &overview.facts);
    canvas.wrapped(page.take(layout.command), &overview.command_in(body), canvas.theme.dim);
    graphs(canvas, &overview, &layout, &mut page);
    details(canvas, &overview, &layout, body, &mut page);
    canvas.scroll_mark(&bar);
}

/// Allocates lines from the top of the content, some of which are scrolled out of view.
struct Page {
    area: Rect,
    skip: usize,
    line: usize,
}

impl Page {
    /// Returns the visible part of the next lines.
    fn take(&mut self, lines: u16) -> Rect {
        let end = self.skip + usize::from(self.area.height);
        let first = self.line.clamp(self.skip, end);
        self.line += usize::from(lines);
        let last = self.line.clamp(self.skip, end);
        Rect { y: self.area.y + (first - self.skip) as u16, height: (last - first) as u16, ..self.area }
    }
}

fn findings(canvas: &mut Canvas<'_>, state: &State, overview: &Overview<'_>, area: Rect) {
    let theme = canvas.theme;
    if overview.findings.is_empty() && area.height > 0 {
        let advice = state.advice_without_findings();
        // Threads that were blocked before the watch began leave no sign but this one.
        let text = if state.is_idle() { " no findings, but it is idle" } else { " no findings" };
        let mut pieces = vec![(theme.sign(Sign::Yes), theme.good), (text, theme.dim)];
        for (index, text) in advice.iter().enumerate() {
            pieces.extend([(if index == 0 { ".  " } else { "; " }, theme.dim), (text.as_str(), theme.accent)]);
        }
        canvas.pieces(area.x, area.y, area.width, &pieces);
    }
    for (place, (found, y)) in overview.findings.iter().zip(area.y..area.bottom()).enumerate() {
        let age = found.age.filter(|age| age.as_secs() > 0).map(|age| format!(" for {}", Age(age))).unwrap_or_default();
        let line = Rect { y, height: 1, ..area };
        draw_finding(canvas, state, &found.finding, &age, line);
        if place == overview.selected && state.focus == Focus::Detail {
            canvas.style(Rect { x: line.x.saturating_sub(1), width: line.width + 2, ..line }, theme.selected);
        }
    }
}

fn graphs(canvas: &mut Canvas<'_>, overview: &Overview<'_>, layout: &OverviewLayout, page: &mut Page) {
    let OverviewLayout { columns, rows, height, others, .. } = *layout;
    let shown = &overview.graphs[..layout.shown().min(overview.graphs.len())];
    let span = common_span(shown);
    for (row, line) in shown.chunks(usize::from(columns)).enumerate() {
        let area = page.take(height);
        let axis = if row + 1 == usize::from(rows) { page.take(1) } else { Rect::default() };
        draw_graphs(canvas, line, span, columns, area, axis);
    }
    let rest: Vec<_> = overview.without_graph(shown.len()).map(|graph| Figure::new(graph.title, &graph.now, Role::Text)).collect();
    figures(canvas, page.take(others), &rest);
}

/// Draws graphs side by side, with a time axis below, as many as fit.
pub(super) fn row(canvas: &mut Canvas<'_>, graphs: &[Graph], area: Rect) {
    if graphs.is_empty() || area.height < 3 {
        return;
    }
    let columns = (area.width / MIN_GRAPH_WIDTH).clamp(1, graphs.len() as u16);
    let shown = &graphs[..usize::from(columns)];
    let height = area.height - 1;
    draw_graphs(canvas, shown, common_span(shown), columns, Rect { height, ..area }, below(area, height));
}

/// Returns the time span that fits all graphs.
fn common_span(graphs: &[Graph]) -> Span {
    Span::of_seconds(graphs.iter().flat_map(|graph| &graph.layers).map(|layer| layer.values.len()).max().unwrap_or(0))
}

/// Draws graphs in columns, and their time axes in another area, if it is not empty.
fn draw_graphs(canvas: &mut Canvas<'_>, graphs: &[Graph], span: Span, columns: u16, area: Rect, axis: Rect) {
    for (graph, column) in graphs.iter().zip(0..) {
        draw_graph(canvas, graph, span, place(area, columns, column));
        time_axis(canvas, place(axis, columns, column), span, "now");
    }
}

/// Returns the area of one of several columns.
fn place(area: Rect, columns: u16, column: u16) -> Rect {
    const GAP: u16 = 2;
    let width = (area.width + GAP) / columns;
    Rect { x: area.x + column * width, width: width.saturating_sub(GAP), ..area }
}

fn draw_graph(canvas: &mut Canvas<'_>, graph: &Graph, span: Span, area: Rect) {
    let theme = canvas.theme;
    if area.height < 2 || area.width < AXIS + 4 {
        return;
    }
    let layers: Vec<_> = graph.layers.iter().map(|layer| (theme.role(layer.role), layer.values.as_slice())).collect();
    let peak = plot(canvas, below(area, 1), span, graph.unit, &layers, &[]);
    marks(canvas, below(area, 1), span, peak, &graph.marks);
    let mut used = canvas.pieces(area.x, area.y, area.width, &[(graph.title, theme.strong), (" ", theme.dim), (&graph.now, theme.text)]);
    let mut parts: Vec<_> = graph.layers.iter().collect();
    // The largest first.
    parts.compact_sort_by(|a, b| b.values.last().unwrap_or(&0.0).total_cmp(a.values.last().unwrap_or(&0.0)));
    let mut legend: Vec<(String, Style)> = parts.into_iter().map(|layer| (layer.label.clone(), theme.role(layer.role))).collect();
    if peak <= 0.0 {
        legend.clear();
    }
    if let [(label, style)] = legend.as_mut_slice() {
        (*label, *style) = (format!("peak {}", (graph.unit)(peak)), theme.dim);
    }
    // Only labels that fit completely.
    for (label, style) in legend {
        if used + 2 + width(&label) > area.width {
            break;
        }
        used += 2 + canvas.text(area.x + used + 2, area.y, area.width - used - 2, &label, style);
    }
}

fn details(canvas: &mut Canvas<'_>, overview: &Overview<'_>, layout: &OverviewLayout, body: Rect, page: &mut Page) {
    let theme = canvas.theme;
    if layout.details > 0 {
        page.take(1);
    }
    for (label, lines) in overview.details_in(body) {
        for (index, line) in lines.iter().enumerate() {
            let area = page.take(1);
            if area.height > 0 {
                canvas.text(area.x, area.y, LABEL_WIDTH, if index == 0 { label } else { "" }, theme.dim);
                canvas.text(area.x + LABEL_WIDTH, area.y, area.width.saturating_sub(LABEL_WIDTH), line, theme.dim);
            }
        }
    }
    if layout.capabilities == 0 {
        return;
    }
    page.take(1);
    let heading = page.take(1);
    if heading.height > 0 {
        canvas.text(heading.x, heading.y, heading.width, "Capabilities", theme.strong);
    }
    let columns = layout.capability_columns;
    for line in overview.capabilities.chunks(usize::from(columns)) {
        let area = page.take(1);
        if area.height == 0 {
            continue;
        }
        let room = area.width / columns;
        for (capability, column) in line.iter().zip(0..) {
            let (sign, sign_style, text, style) = match &capability.available {
                Ok(text) => (theme.sign(Sign::Yes), theme.good, text.as_str(), theme.dim),
                Err(text) => (theme.sign(Sign::No), theme.warn, *text, theme.warn),
            };
            let x = area.x + column * room;
            canvas.text(x, area.y, 1, sign, sign_style);
            canvas.text(x + 2, area.y, 20, capability.name, if capability.available.is_ok() { theme.text } else { theme.dim });
            canvas.text(x + 23, area.y, room.saturating_sub(24), text, style);
        }
    }
}
