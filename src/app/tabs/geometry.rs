//! Where everything of a tab is: one answer for drawing, the mouse and paging.

use ratatui::layout::Rect;

use super::look::Look;
use super::view::{Figure, Head, Role, View};
use crate::app::lints::lints;
use crate::app::pane::Tab;
use crate::app::state::State;
use crate::app::text::{width, wrap};

/// Where the parts of a tab are. A part that has no room has no height or no width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The line about the recording, and the findings below it.
    pub heading: Rect,
    /// Figures and lines above everything else.
    pub head: Rect,
    /// The table above the charts.
    pub summary: Rect,
    /// The charts, with their time axes.
    pub charts: Rect,
    /// The list, with its heading.
    pub list: Rect,
    /// What is beside or below the list.
    pub side: Rect,
}

/// From this height on, there is room for a table above the charts.
const TALL: u16 = 26;
/// Columns between two parts side by side.
const GAP: u16 = 3;

impl Geometry {
    /// Lays out what a tab shows in the body of the details.
    pub(super) fn new(look: &Look<'_>, tab: Tab, view: &View<'_>, body: Rect) -> Self {
        let area = Rect { x: body.x + 1, width: body.width.saturating_sub(2), ..body };
        let found = lints(&look.findings.snapshot, look.over()).iter().filter(|lint| lint.tab == tab).count();
        let (heading, area) = split(area, 1 + (found as u16).min(area.height / 4));
        // The filter stands in the first line of the head.
        let lines = view.head.iter().map(|head| head_lines(head, area)).sum::<u16>().max(u16::from(look.state.is_filtered(tab)));
        let (head, area) = split(area, lines);
        let rows = view.summary.as_ref().filter(|_| area.height >= TALL).map_or(0, |summary| summary.len() as u16 + 1);
        let (summary, area) = split(area, rows);
        let (charts, area) = split(area, if view.charts.is_empty() { 0 } else { chart_height(area.height) });
        let (list, side) = beside(view, area);
        Self { heading, head, summary, charts, list, side }
    }

    /// The rows of the list that are shown.
    pub fn rows(&self) -> Rect {
        Rect { y: self.list.y + self.list.height.min(1), height: self.list.height.saturating_sub(1), ..self.list }
    }
}

impl State {
    /// Where the body of the open tab is: below the line about the part of a file that is shown.
    pub fn tab_body(&self) -> Option<Rect> {
        let body = self.layout().detail?.body;
        let line = u16::from(self.open_file().is_some()).min(body.height);
        Some(Rect { y: body.y + line, height: body.height - line, ..body })
    }

    /// What the open tab shows, and where; `None` where it draws itself.
    pub fn tab_view(&self) -> Option<(View<'_>, Geometry)> {
        let view = self.view_of(self.tab)?;
        let geometry = Geometry::new(&Look::new(self)?, self.tab, &view, self.tab_body()?);
        Some((view, geometry))
    }

    /// Selects the row of the open tab's list that is in this line of the screen.
    pub(in crate::app) fn select_row(&mut self, y: u16) {
        let id = self.tab_view().and_then(|(view, geometry)| {
            let rows = geometry.rows();
            let line = (rows.y..rows.bottom()).position(|row| row == y)?;
            let row = view.cursor.window(view.list.len(), usize::from(rows.height)).nth(line)?;
            Some((view.cursor.moved_to(row), view.list.id(row)))
        });
        if let Some((cursor, id)) = id {
            self.views.select_at(self.tab, cursor, id);
        }
    }

    /// Whether the list of a tab is filtered, or its filter is being typed.
    fn is_filtered(&self, tab: Tab) -> bool {
        !self.views.filter(tab).value().is_empty() || self.line.is_some()
    }
}

/// The upper lines of an area, and the rest.
fn split(area: Rect, lines: u16) -> (Rect, Rect) {
    let lines = lines.min(area.height);
    (Rect { height: lines, ..area }, Rect { y: area.y + lines, height: area.height - lines, ..area })
}

/// Lines that a part of the head takes.
fn head_lines(head: &Head, area: Rect) -> u16 {
    match head {
        Head::Figures(figures) => figure_lines(figures, area),
        Head::Text(text, _) => (wrap(text, area.width).len() as u16).min(area.height.div_ceil(6)),
    }
}

/// Lines that figures take, one behind the other: at most a sixth of the room.
fn figure_lines(figures: &[Figure], area: Rect) -> u16 {
    const BLANKS: u16 = 3;
    if figures.is_empty() {
        return 0;
    }
    let (mut lines, mut x) = (1, 0_u16);
    for Figure { label, value, .. } in figures {
        let wanted = width(label).saturating_add(1).saturating_add(width(value));
        if x > 0 && x.saturating_add(wanted) > area.width {
            (lines, x) = (lines + 1, 0);
        }
        x = x.saturating_add(wanted).saturating_add(BLANKS);
    }
    lines.min(area.height.div_ceil(6))
}

/// The height of charts above a list, in a pane of this height.
fn chart_height(height: u16) -> u16 {
    match height {
        0..=6 => 0,
        7..=9 => 4,
        _ => (height * 2 / 5).clamp(5, 9),
    }
}

/// The list, and what is beside it or below it.
fn beside(view: &View<'_>, area: Rect) -> (Rect, Rect) {
    let nothing = Rect { y: area.bottom(), height: 0, ..area };
    let Some(side) = &view.side else { return (area, nothing) };
    if area.width >= side.wide {
        let left = area.width * 3 / 5;
        let right = area.width - left - GAP;
        return (Rect { width: left, ..area }, Rect { x: area.right() - right, width: right, ..area });
    }
    if !side.below {
        return (area, nothing);
    }
    // Each gets what it needs. Where that is too much, the side has what the list leaves, and a third at least.
    let rows = |len: usize| u16::try_from(len).unwrap_or(u16::MAX).saturating_add(1);
    let text = side.text.iter().map(|line| text_lines(line, area.width)).fold(0, u16::saturating_add);
    let needed = text.saturating_add(side.list.as_ref().map_or(0, |list| rows(list.len())));
    // One line between the two.
    let room = area.height.saturating_sub(1);
    let list = rows(view.list.len().max(1)).min(room.saturating_sub(needed).max(room * 2 / 3)).min(room);
    let (list, rest) = split(area, if room - list < 2 { area.height } else { list });
    if rest.height == 0 {
        return (list, nothing);
    }
    (list, Rect { y: rest.y + 1, height: rest.height - 1, ..rest })
}

/// Lines that a line of text takes: one, or where it is a single piece as many as it wraps to.
pub(super) fn text_lines(line: &[(String, Role)], room: u16) -> u16 {
    match line {
        [(text, _)] => text.lines().map(|line| wrap(line, room).len().max(1) as u16).sum::<u16>().max(1),
        _ => 1,
    }
}
