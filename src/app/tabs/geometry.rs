//! The layout of a tab, shared by drawing, mouse handling and paging.

use ratatui::layout::Rect;

use super::{Column, Figure, Head, Line, View};
use crate::app::layout::padded;
use crate::app::text::{width, wrap};
use crate::app::{LinePurpose, State, Tab};

/// The areas of the parts of a tab. A part that does not fit has zero height or width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// The line about the recording, and the findings below it.
    pub heading: Rect,
    /// The parts of the head. The filter is at the end of the first line, even if there is no part.
    pub heads: Vec<Rect>,
    /// The table above the charts.
    pub summary: Rect,
    pub charts: Rect,
    /// The list, including its header.
    pub list: Rect,
    /// The area beside or below the list.
    pub side: Rect,
}

/// Minimum height for a table above the charts.
const MIN_SUMMARY_HEIGHT: u16 = 26;
/// Lines taken by a plot, including its time axis.
const PLOT_HEIGHT: u16 = 7;
/// Columns between adjacent parts.
const GAP: u16 = 3;

impl Geometry {
    /// Lays out the view of a tab within the body of the details pane.
    pub(super) fn new(view: &View<'_>, body: Rect, is_filtered: bool) -> Self {
        let area = padded(body);
        let lines = view.heading.as_ref().map_or(1, |lines| (lines.len() as u16).min(1 + area.height / 5));
        let (heading, area) = split(area, lines + (view.findings.len() as u16).min(area.height / 4));
        let room = area;
        // The filter is in the first line of the head.
        let lines = view.head.iter().map(|head| head_lines(head, area)).sum::<u16>().max(u16::from(is_filtered));
        let (head, area) = split(area, lines);
        let mut rest = head;
        let mut heads = Vec::with_capacity(view.head.len().max(1));
        for part in &view.head {
            let (place, below) = split(rest, head_lines(part, room));
            heads.push(place);
            rest = below;
        }
        if heads.is_empty() {
            heads.push(head);
        }
        let rows = view.summary.as_ref().filter(|_| area.height >= MIN_SUMMARY_HEIGHT).map_or(0, |summary| summary.len() as u16 + 1);
        let (summary, area) = split(area, rows);
        let (charts, area) = split(area, if view.charts.is_empty() && view.graphs.is_empty() { 0 } else { chart_height(area.height) });
        let (list, side) = beside(view, area);
        Self { heading, heads, summary, charts, list, side }
    }

    /// Returns the area of the visible rows.
    pub fn rows(&self) -> Rect {
        Rect { y: self.list.y + self.list.height.min(1), height: self.list.height.saturating_sub(1), ..self.list }
    }
}

impl State {
    /// Returns the body of the open tab, below the lines about the shown range of a file.
    pub fn tab_body(&self) -> Option<Rect> {
        let body = self.layout().detail?.body;
        let lines = self.open_file().map_or(0, |file| file.range_lines(body.height));
        Some(Rect { y: body.y + lines, height: body.height - lines, ..body })
    }

    /// Returns the view of the open tab and its layout; `None` if the tab draws itself.
    pub fn tab_view(&self) -> Option<(View<'_>, Geometry)> {
        let view = self.view_of(self.tab)?;
        let geometry = Geometry::new(&view, self.tab_body()?, self.is_filtered(self.tab));
        Some((view, geometry))
    }

    /// Selects the row of the open tab's list at this screen line.
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

    /// Sorts the list of the open tab by the column whose title is at this position. Returns whether there is one.
    pub(in crate::app) fn click_title(&mut self, x: u16, y: u16) -> bool {
        let column = self.tab_view().and_then(|(view, Geometry { list, .. })| {
            let columns = view.list.columns();
            let slots = view.list.slots(list);
            let is_here = |slot: &Option<(u16, u16)>| slot.is_some_and(|(from, width)| y == list.y && (from..from + width).contains(&x));
            let at = slots.iter().position(is_here)?;
            Some(columns[at]).filter(|column| column.sortable)
        });
        if let Some(column) = column {
            self.sort_tab_by(column);
        }
        column.is_some()
    }

    /// Returns whether the list of a tab is filtered, or its filter is being typed.
    fn is_filtered(&self, tab: Tab) -> bool {
        !self.views.filter(tab).as_str().is_empty() || self.typed(LinePurpose::Tab).is_some()
    }
}

/// Splits an area into its upper `lines` and the rest.
fn split(area: Rect, lines: u16) -> (Rect, Rect) {
    let lines = lines.min(area.height);
    (Rect { height: lines, ..area }, Rect { y: area.y + lines, height: area.height - lines, ..area })
}

/// Returns the number of lines of a part of the head.
fn head_lines(head: &Head, area: Rect) -> u16 {
    match head {
        Head::Figures(figures) => figure_lines(figures, area),
        Head::Text(line) => text_lines(line, area.width).min(max_head_lines(area)),
    }
}

fn max_head_lines(area: Rect) -> u16 {
    (area.height / 6).max(1)
}

/// Returns the number of lines taken by consecutive figures.
pub(super) fn figure_lines(figures: &[Figure], area: Rect) -> u16 {
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
    lines.min(max_head_lines(area))
}

/// Returns the height of charts above a list, in a pane of this height.
fn chart_height(height: u16) -> u16 {
    match height {
        0..=6 => 0,
        7..=9 => 4,
        _ => (height * 2 / 5).clamp(5, 9),
    }
}

/// Returns the areas of the list, and of the part beside or below it.
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
    // Each part gets the height it needs. If that does not fit, the side gets what the list leaves, but at least its share.
    let rows = |len: usize| u16::try_from(len).unwrap_or(u16::MAX).saturating_add(1);
    let text = side.text.iter().map(|line| text_lines(line, area.width)).fold(0, u16::saturating_add);
    let plot = if side.chart.is_some() || side.graph.is_some() { PLOT_HEIGHT } else { 0 };
    let lists = side.lists.iter().map(|list| rows(list.len())).fold(0, u16::saturating_add);
    let needed = text.saturating_add(lists).saturating_add(plot);
    // One blank line between the two.
    let room = area.height.saturating_sub(1);
    let list = rows(view.list.len().max(1)).min(room.saturating_sub(needed).max(room - room * side.thirds / 3)).min(room);
    let (list, rest) = split(area, if room - list < 2 { area.height } else { list });
    if rest.height == 0 {
        return (list, nothing);
    }
    (list, Rect { y: rest.y + 1, height: rest.height - 1, ..rest })
}

/// The place of the last piece of a line, which is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastPiece {
    /// Whether it begins below the other pieces, because they leave less than half of the room.
    pub is_below: bool,
    /// The column at which it begins.
    pub indent: u16,
    /// Number of lines that it takes.
    pub lines: u16,
}

impl LastPiece {
    /// Places the last piece of a line that has this many columns.
    pub fn new(line: &Line, room: u16) -> Self {
        let Some(((text, _), others)) = line.split_last() else { return Self { is_below: false, indent: 0, lines: 1 } };
        let before = others.iter().map(|(text, _)| width(text)).fold(0, u16::saturating_add);
        if before.saturating_add(width(text)) <= room && !text.contains('\n') {
            return Self { is_below: false, indent: before, lines: 1 };
        }
        let is_below = before > room / 2;
        let indent = if is_below { 0 } else { before };
        let lines = text.lines().map(|part| if width(part) <= room - indent { 1 } else { wrap(part, room - indent).len().max(1) as u16 });
        Self { is_below, indent, lines: lines.sum::<u16>().max(1) }
    }
}

fn text_lines(line: &Line, room: u16) -> u16 {
    let last = LastPiece::new(line, room);
    last.lines + u16::from(last.is_below)
}

/// Returns the left end and width of each column. Columns shrink to their minimum width, then the last ones are hidden; the column without
/// a width of its own is the subject of the list and is never hidden.
pub(super) fn column_slots(columns: &[Column], area: Rect) -> Vec<Option<(u16, u16)>> {
    const GAP: u16 = 2;
    /// Desired width of the column that takes the rest.
    const REST: u16 = 24;
    /// Width that this column keeps before others grow beyond their own.
    const ENOUGH_WIDTH: u16 = 110;
    let need = |column: &Column| if column.width == 0 { REST } else { column.min_width } + GAP;
    let mut shown: Vec<usize> = (0..columns.len()).filter(|index| columns[*index].min_list_width <= area.width).collect();
    let mut used = shown.iter().map(|index| need(&columns[*index])).sum::<u16>().saturating_sub(GAP);
    while used > area.width && shown.len() > 2 {
        let Some(last) = shown.iter().rposition(|index| columns[*index].width > 0) else { break };
        used -= need(&columns[shown.remove(last)]);
    }
    let mut spare = area.width.saturating_sub(used);
    let mut widths = vec![0; columns.len()];
    for index in shown.iter().copied().filter(|index| columns[*index].width > 0) {
        let Column { width, min_width, .. } = columns[index];
        let more = spare.min(width - min_width);
        spare -= more;
        widths[index] = min_width + more;
    }
    let fixed = shown.iter().map(|index| widths[*index]).filter(|width| *width > 0).map(|width| width + GAP).sum::<u16>();
    let mut rest = area.width.saturating_sub(fixed);
    for index in shown.iter().copied().filter(|index| columns[*index].width > 0) {
        let more = rest.saturating_sub(ENOUGH_WIDTH).min(columns[index].max_width - columns[index].width);
        widths[index] += more;
        rest -= more;
    }
    let mut slots = vec![None; columns.len()];
    let mut x = area.x;
    for index in shown {
        let width = if columns[index].width == 0 { rest } else { widths[index] };
        slots[index] = Some((x, width));
        x += width + GAP;
    }
    slots
}
