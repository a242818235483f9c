//! The process table as a list: the cells of each column.

use std::time::Duration;

use ratatui::layout::Rect;

use super::column::{runtime, user};
use super::{Column, Columns, Row, Trend};
use crate::analysis::Field;
use crate::app::layout::{ListLayout, Slot};
use crate::app::tabs::{self, Cell, Fit, List, Role, Sign};
use crate::app::{AutoWatch, HealthIssue, OpenFile, Options, State};
use crate::model::{Age, Bytes, Count, Process};

/// Maximum number of indented tree levels.
const MAX_INDENT_LEVELS: usize = 4;

/// The rows that pass the filter, with the columns that fit.
pub struct ProcessTable<'a> {
    state: &'a State,
    parts: Vec<(Part, Slot)>,
}

/// The content of a table column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Fact(Column),
    /// CPU usage over the last scans, next to its latest value.
    Trend,
}

impl State {
    pub fn process_table(&self, layout: &ListLayout) -> ProcessTable<'_> {
        let mut parts = Vec::with_capacity(layout.columns.len() + 1);
        for slot in &layout.columns {
            let mut fact = *slot;
            if slot.column == Column::Cpu && slot.width > Trend::WIDTH + Column::Cpu.width() {
                parts.push((Part::Trend, Slot { width: Trend::WIDTH, ..*slot }));
                fact = Slot { x: slot.x + Trend::WIDTH + 1, width: slot.width - Trend::WIDTH - 1, ..*slot };
            }
            parts.push((Part::Fact(slot.column), fact));
        }
        ProcessTable { state: self, parts }
    }

    /// Returns the displayed uptime of a process; frozen while paused, and when the process has ended.
    pub(in crate::app) fn uptime(&self, row: &Row) -> Age {
        let now = self.pause.as_ref().map_or(self.now, |pause| pause.since);
        let since_exit = row.exited_at.map_or(Duration::ZERO, |exited_at| now.elapsed.saturating_sub(exited_at));
        Age(Duration::from_millis(now.unix_ms.saturating_sub(row.process.started_unix_ms)).saturating_sub(since_exit))
    }

    /// Whether the columns of watched processes are shown. An automatic watch does not show them, so that it does not move the others.
    pub(in crate::app) fn shows_figures(&self) -> bool {
        let Options { columns, watch, .. } = &self.options;
        *columns != Columns::ALL || *watch == AutoWatch::All || self.watches.all().iter().any(|watch| !watch.automatic)
    }
}

impl List for ProcessTable<'_> {
    fn columns(&self) -> Vec<tabs::Column> {
        let sort = self.state.list.sort();
        let heading = |(part, slot): &(Part, Slot)| {
            let (title, fit) = match part {
                // In the narrowest terminals, the state is shown by signs only.
                Part::Fact(Column::State) if is_narrow(slot) => ("ST", Fit::Left),
                Part::Fact(Column::Pid) => (Column::Pid.title(), Fit::Id),
                Part::Fact(Column::Name) if !self.state.shows_files() => (Column::Name.title(), Fit::Suffix),
                Part::Fact(Column::Command) if self.state.shows_files() => (Column::Command.title_for_files(), Fit::Path),
                Part::Fact(column) => {
                    let title = if self.state.shows_files() { column.title_for_files() } else { column.title_within(slot.width) };
                    (title, if column.is_right_aligned() { Fit::Right } else { Fit::Left })
                }
                Part::Trend => ("", Fit::Left),
            };
            let sorted = (*part == Part::Fact(sort.column)).then_some(sort.direction);
            tabs::Column {
                title,
                width: slot.width,
                min_width: slot.width,
                max_width: slot.width,
                min_list_width: 0,
                fit,
                sorted,
                sortable: *part != Part::Trend,
            }
        };
        self.parts.iter().map(heading).collect()
    }

    fn slots(&self, _: Rect) -> Vec<Option<(u16, u16)>> {
        self.parts.iter().map(|(_, slot)| Some((slot.x, slot.width))).collect()
    }

    fn len(&self) -> usize {
        self.state.list.len()
    }

    fn id(&self, row: usize) -> String {
        self.state.list.at(row).map(|row| row.process.key.pid.to_string()).unwrap_or_default()
    }

    fn cell(&self, row: usize, column: usize) -> Cell {
        match (self.state.list.at(row), self.parts.get(column)) {
            (Some(row), Some((Part::Trend, _))) => {
                Cell::Levels(row.trend.levels(), if row.exited_at.is_some() { Role::Border } else { Role::Accent })
            }
            (Some(row), Some((Part::Fact(_), slot))) => self.fact(row, slot),
            _ => Cell::EMPTY,
        }
    }
}

impl ProcessTable<'_> {
    fn fact(&self, row: &Row, slot: &Slot) -> Cell {
        let process = &row.process;
        let role = row_role(row);
        match slot.column {
            Column::Pid => Cell::known(Some(process.key.pid).filter(|pid| *pid != 0), role),
            Column::Name => {
                let role = if role == Role::Text { Role::Strong } else { role };
                let name = format!("{:1$}{2}", "", 2 * row.depth.min(MAX_INDENT_LEVELS), process.name);
                match self.state.list.is_tagged(process.key) {
                    true => Cell::Signed(vec![(Sign::Yes, Role::Accent)], name.into(), Role::Accent),
                    false => Cell::new(name, role),
                }
            }
            Column::Runtime => match runtime(process) {
                Some(text) => Cell::new(text, if process.runtime.is_some() { role } else { Role::Dim }),
                None => Cell::Unknown,
            },
            Column::Cpu => match process.usage.cpu_percent {
                Some(percent) => Cell::Number(percent, format!("{percent:.1}").into(), if percent < 0.05 { Role::Dim } else { role }),
                None => Cell::Unknown,
            },
            Column::Memory if process.usage.rss_bytes == 0 => Cell::Unknown,
            Column::Memory => Cell::new(Bytes(process.usage.rss_bytes), role),
            Column::Heap | Column::Allocation | Column::GcTime | Column::Exceptions | Column::Queue => figure(row, slot.column, role),
            Column::Threads if process.usage.threads == 0 => Cell::Unknown,
            Column::Threads => Cell::new(process.usage.threads, role),
            Column::User => Cell::new(user(process), role),
            Column::Uptime => Cell::new(self.state.uptime(row).to_string(), role),
            Column::State => {
                let file = self.state.files.iter().find(|file| file.key == process.key);
                let (sign, role, word) = file.map_or_else(|| row.condition(), OpenFile::condition);
                let recording =
                    (row.recording && (row.issue().is_some() || row.is_suspended())).then_some((Sign::Recording, Role::Recording));
                let signs = recording.into_iter().chain([(sign, role)]).collect();
                Cell::Signed(signs, if is_narrow(slot) { "" } else { word }.into(), role)
            }
            Column::Container => Cell::new(process.container.as_deref().unwrap_or_default(), role),
            Column::Command => match row.trouble() {
                // It must be visible here, not only in a log.
                Some(trouble) => Cell::new(trouble, Role::Warning),
                None => Cell::new(self.command(process), Role::Dim),
            },
        }
    }

    /// Returns the command line without directories, unless the filter matches only the full one.
    fn command(&self, process: &Process) -> String {
        if self.state.shows_files() {
            return process.command_line.to_string();
        }
        let (short, filter) = (process.short_command_line(), self.state.list.filter());
        let matches = |text: &str| !filter.is_empty() && !filter.marks(Field::text(Column::Command.title(), text)).is_empty();
        if !matches(&short) && matches(&process.command_line) { process.command_line.to_string() } else { short }
    }
}

/// Returns whether the state column has room for signs only.
fn is_narrow(slot: &Slot) -> bool {
    slot.width < 8
}

/// Returns the role that colors the whole row.
fn row_role(row: &Row) -> Role {
    if row.exited_at.is_some() || !row.process.contact.is_attachable() {
        Role::Dim
    } else if row.new_until.is_some() {
        Role::Key
    } else {
        Role::Text
    }
}

/// Returns the value of a watched process, highlighted if it causes the health issue.
fn figure(row: &Row, column: Column, role: Role) -> Cell {
    let Some((watch, value)) = row.watch.and_then(|watch| Some((watch, column.figure(&watch.stats)?))) else { return Cell::Unknown };
    // The other issues have no column of their own.
    let is_issue = matches!(
        (watch.issue, column),
        (Some(HealthIssue::GcTime), Column::GcTime)
            | (Some(HealthIssue::Exceptions), Column::Exceptions)
            | (Some(HealthIssue::Queue), Column::Queue)
    );
    let role = match value {
        _ if row.exited_at.is_some() => role,
        _ if is_issue => Role::Bad,
        ..0.05 => Role::Dim,
        _ => role,
    };
    let whole = value.max(0.0) as u64;
    match column {
        Column::Heap | Column::Allocation => Cell::new(Bytes(whole), role),
        Column::GcTime => Cell::Number(value, format!("{value:.*}", usize::from(value < 9.95)).into(), role),
        _ => Cell::new(Count(whole), role),
    }
}
