//! Where the parts of the overview are.

use std::borrow::Cow;

use ratatui::layout::Rect;

use super::{COMMAND, Overview};
use crate::app::tabs::geometry::figure_lines;
use crate::app::text::wrap;

/// Where the parts of the overview are, in lines from its start, as far as they do not follow from what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OverviewLayout {
    /// Lines of the findings, and of the notice below them.
    pub findings: u16,
    /// Lines of the notice.
    pub notice: u16,
    /// Lines of the facts.
    pub facts: u16,
    /// Lines of the command line.
    pub command: u16,
    /// How many graphs are side by side.
    pub columns: u16,
    /// How many rows of them have room on the first page.
    pub rows: u16,
    /// Lines of each.
    pub height: u16,
    /// Lines of the figures whose graphs have no room.
    pub others: u16,
    /// Lines of the details.
    pub details: u16,
    /// How many capabilities are side by side.
    pub capability_columns: u16,
    /// Lines of capabilities, with their heading.
    pub capabilities: u16,
}

/// Columns of a graph at least.
const NARROWEST: u16 = 36;
/// Lines of a graph at least, with its title, and at most.
const LOWEST: u16 = 4;
const HIGHEST: u16 = 14;
/// Columns of a capability.
const CAPABILITY: u16 = 42;
/// Lines of a long text at most, and of the command line where there is little room.
const LONG: usize = 4;
const SHORT: usize = 2;
/// From this height on, there is room for a long command line.
const TALL: u16 = 20;
/// Columns of the names of the details.
pub const LABELS: u16 = 11;

impl OverviewLayout {
    /// All lines.
    pub fn lines(&self) -> usize {
        let page = self.first_page() + self.details + self.capabilities;
        usize::from(page)
    }

    /// Lines up to the details.
    pub fn first_page(&self) -> u16 {
        self.findings + self.notice + self.facts + self.command + self.graphs() + self.others
    }

    /// Lines of the graphs, with their time axis.
    pub fn graphs(&self) -> u16 {
        self.rows * self.height + u16::from(self.rows > 0)
    }

    /// How many graphs are shown.
    pub fn shown(&self) -> usize {
        usize::from(self.rows * self.columns)
    }
}

impl Overview<'_> {
    /// The details, each with its label and its lines.
    pub fn details_in(&self, body: Rect) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        let width = body.width.saturating_sub(2 + LABELS);
        let shown = self.details.iter().filter(move |(label, _)| body.height < TALL || *label != COMMAND);
        shown.map(move |(label, text)| {
            let mut lines = wrap(text, width);
            lines.truncate(LONG);
            (*label, lines)
        })
    }

    /// The command line, without folders where there is little room.
    pub fn command_in(&self, body: Rect) -> Cow<'_, str> {
        let process = &self.row.process;
        if body.height >= TALL { Cow::Borrowed(&process.command_line) } else { Cow::Owned(process.short_command_line()) }
    }

    /// Lays it out in the body of the details.
    pub fn layout(&self, body: Rect) -> OverviewLayout {
        let width = body.width.saturating_sub(2);
        let wrapped = |text: &str, most: usize| wrap(text, width).len().min(most) as u16;
        // Among many findings the first are the worst.
        let findings = (self.findings.len() as u16).min((body.height / 4).max(1)).max(u16::from(self.is_watched));
        let notice = self.notice.as_ref().map_or(0, |(text, _)| wrapped(text, LONG));
        let facts = figure_lines(&self.facts, Rect { width, height: 24, ..body });
        let command = wrapped(&self.command_in(body), if body.height >= TALL { LONG } else { SHORT });
        // The time axis has a line.
        let room = body.height.saturating_sub(findings + notice + facts + command + 1);
        let count = self.graphs.len() as u16;
        let most = (width / NARROWEST).clamp(1, 6).min(count.max(1));
        // Rows are filled as evenly as can be.
        let columns = count.div_ceil(count.div_ceil(most).max(1)).max(1);
        let needed = count.div_ceil(columns);
        // Low graphs are better than few.
        let lowest = if room.saturating_sub(1) / LOWEST > 1 { LOWEST } else { LOWEST - 1 };
        // One graph alone in the last row would leave most of it blank.
        let is_alone = columns > 1 && needed > 1 && count % columns == 1;
        let (columns, rows, others) = match needed * lowest <= room {
            true if is_alone => (columns, needed - 1, 1),
            true => (columns, needed, 0),
            false => (most, (room.saturating_sub(1) / lowest).min(needed), 1),
        };
        let height = room.saturating_sub(others).checked_div(rows).unwrap_or(0).min(HIGHEST);
        let capability_columns = (width / CAPABILITY).clamp(1, 4);
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
            others: if rows == 0 { 0 } else { others },
            // A blank line keeps them apart.
            details: if details > 0 { details + 1 } else { 0 },
            capability_columns,
            capabilities: if lines > 0 { lines + 2 } else { 0 },
        }
    }
}
