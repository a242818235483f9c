//! The layout of the overview.

use std::borrow::Cow;

use ratatui::layout::Rect;

use super::{COMMAND, FACTS_WITH_GRAPH, Graph, Overview};
use crate::app::ScrollBar;
use crate::app::tabs::geometry::figure_lines;
use crate::app::text::wrap;

/// Heights of the parts of the overview in lines, from top to bottom, and the arrangement of graphs and capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OverviewLayout {
    pub findings: u16,
    pub notice: u16,
    pub facts: u16,
    pub command: u16,
    /// Number of graphs side by side.
    pub columns: u16,
    /// Number of graph rows that fit on the first page.
    pub rows: u16,
    /// Lines of each graph.
    pub height: u16,
    /// Lines of the figures whose graphs do not fit.
    pub others: u16,
    pub details: u16,
    /// Number of capabilities side by side.
    pub capability_columns: u16,
    /// Lines of the capabilities, including their heading.
    pub capabilities: u16,
}

pub const MIN_GRAPH_WIDTH: u16 = 36;
/// Minimum height of a graph, including its title, and maximum height.
const MIN_GRAPH_HEIGHT: u16 = 4;
const MAX_GRAPH_HEIGHT: u16 = 14;
const CAPABILITY_WIDTH: u16 = 42;
/// Maximum lines of a long text, and of the command line if space is short.
const MAX_LINES: usize = 4;
const MAX_COMMAND_LINES: usize = 2;
/// Minimum height for a long command line.
const MIN_HEIGHT_FULL_COMMAND: u16 = 20;
/// Width of the labels of the details.
pub const LABEL_WIDTH: u16 = 11;

impl OverviewLayout {
    /// Returns the total number of lines.
    pub fn lines(&self) -> usize {
        let first_page = self.findings + self.notice + self.facts + self.command + self.graphs() + self.others;
        usize::from(first_page + self.details + self.capabilities)
    }

    /// Returns the number of lines of the graphs, including their time axis.
    pub fn graphs(&self) -> u16 {
        self.rows * self.height + u16::from(self.rows > 0)
    }

    /// Returns the number of graphs shown.
    pub fn shown(&self) -> usize {
        usize::from(self.rows * self.columns)
    }
}

impl Overview<'_> {
    /// Returns the scroll bar of the page at this scroll offset.
    pub fn scroll_bar(&self, body: Rect, scroll: usize) -> ScrollBar {
        ScrollBar::of_rows(body, scroll, self.layout(body).lines())
    }

    /// Returns the details, each with its label and wrapped lines.
    pub fn details_in(&self, body: Rect) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        let width = body.width.saturating_sub(2 + LABEL_WIDTH);
        let shown = self.details.iter().filter(move |(label, _)| body.height < MIN_HEIGHT_FULL_COMMAND || *label != COMMAND);
        shown.map(move |(label, text)| {
            let mut lines = wrap(text, width);
            lines.truncate(MAX_LINES);
            (*label, lines)
        })
    }

    /// Returns the command line, without directories if space is short.
    pub fn command_in(&self, body: Rect) -> Cow<'_, str> {
        let process = &self.row.process;
        if body.height >= MIN_HEIGHT_FULL_COMMAND { Cow::Borrowed(&process.command_line) } else { Cow::Owned(process.short_command_line()) }
    }

    /// Returns the graphs that do not fit, without those whose value is among the facts.
    pub fn without_graph(&self, shown: usize) -> impl Iterator<Item = &Graph> {
        let is_fact = |graph: &&Graph| self.facts.iter().any(|fact| FACTS_WITH_GRAPH.contains(&(fact.label, graph.title)));
        self.graphs.iter().skip(shown).filter(move |graph| !is_fact(graph))
    }

    /// Computes the layout within the body of the details pane.
    pub fn layout(&self, body: Rect) -> OverviewLayout {
        let width = body.width.saturating_sub(2);
        let wrapped = |text: &str, most: usize| wrap(text, width).len().min(most) as u16;
        // Findings are sorted, so the worst are kept.
        let findings = (self.findings.len() as u16).min((body.height / 4).max(1)).max(u16::from(self.is_watched));
        let notice = self.notice.as_ref().map_or(0, |(text, _)| wrapped(text, MAX_LINES));
        let facts = figure_lines(&self.facts, Rect { width, height: 24, ..body });
        let command = wrapped(&self.command_in(body), if body.height >= MIN_HEIGHT_FULL_COMMAND { MAX_LINES } else { MAX_COMMAND_LINES });
        // One line for the time axis.
        let room = body.height.saturating_sub(findings + notice + facts + command + 1);
        let count = self.graphs.len() as u16;
        let most = (width / MIN_GRAPH_WIDTH).clamp(1, 6).min(count.max(1));
        // Fills rows as evenly as possible.
        let columns = count.div_ceil(count.div_ceil(most).max(1)).max(1);
        let needed = count.div_ceil(columns);
        // Lower graphs are preferable to fewer graphs.
        let lowest = if room.saturating_sub(1) / MIN_GRAPH_HEIGHT > 1 { MIN_GRAPH_HEIGHT } else { MIN_GRAPH_HEIGHT - 1 };
        // A single graph in the last row would leave most of the row blank.
        let is_alone = columns > 1 && needed > 1 && count % columns == 1;
        let (columns, rows) = match needed * lowest <= room {
            true if is_alone => (columns, needed - 1),
            true => (columns, needed),
            false => (most, (room.saturating_sub(1) / lowest).min(needed)),
        };
        let others = u16::from(rows > 0 && self.without_graph(usize::from(rows * columns)).next().is_some());
        let height = room.saturating_sub(others).checked_div(rows).unwrap_or(0).min(MAX_GRAPH_HEIGHT);
        let capability_columns = (width / CAPABILITY_WIDTH).clamp(1, 4);
        let details = self.details_in(body).map(|(_, lines)| lines.len() as u16).sum::<u16>();
        let lines = (self.capabilities.len() as u16).div_ceil(capability_columns);
        OverviewLayout {
            findings,
            notice,
            facts,
            command,
            columns,
            rows,
            height,
            others,
            // Separated by a blank line.
            details: if details > 0 { details + 1 } else { 0 },
            capability_columns,
            capabilities: if lines > 0 { lines + 2 } else { 0 },
        }
    }
}
