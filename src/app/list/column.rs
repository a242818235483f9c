//! The columns of the process table.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use crate::analysis::RuntimeStats;
use crate::model::{Contact, Process, RunState};

use super::Row;
use crate::app::sort::Direction;

listed! {
/// A column of the process table. All are in screen order, as numbered by the digit keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Column {
    Pid => ("PID", 7),
    /// Entry assembly.
    Name => ("NAME", 16),
    Runtime => ("RUNTIME", 9),
    /// Percent of one core.
    Cpu => ("CPU%", 6),
    /// Resident memory.
    Memory => ("RSS", 7),
    /// GC heap size. This and the following four columns appear only while a process is watched.
    Heap => ("HEAP", 7),
    /// Bytes allocated per second.
    Allocation => ("ALLOC/S", 7),
    /// Percent of time in GC.
    GcTime => ("GC%", 4),
    /// Exceptions per second.
    Exceptions => ("EXC/S", 5),
    /// Thread pool queue length.
    Queue => ("TPQ", 5),
    Threads => ("THREADS", 4),
    User => ("USER", 9),
    /// Time since the process started.
    Uptime => ("UPTIME", 7),
    /// Running, suspended, recording, or a problem in one word.
    State => ("STATE", 13),
    /// Container id; only if a process runs in a container.
    Container => ("CONTAINER", 12),
    /// Command line, or a problem as a sentence.
    Command => ("COMMAND", 19),
}
/// Returns the title in the header, and the least width in terminal columns.
fn heading(self) -> (&'static str, u16);
}

impl Column {
    /// The columns searched by a filter.
    pub const FILTERED: [Self; 7] = [Self::Pid, Self::Name, Self::Runtime, Self::User, Self::State, Self::Container, Self::Command];

    /// Returns the title in the header.
    pub fn title(self) -> &'static str {
        self.heading().0
    }

    /// Returns the title in the list of recorded files.
    pub fn title_for_files(self) -> &'static str {
        match self {
            Self::Memory => "SIZE",
            Self::Command => "FILE",
            _ => self.title(),
        }
    }

    /// Returns the title for a column of this width.
    pub(super) fn title_within(self, width: u16) -> &'static str {
        match self {
            Self::Threads if width < self.title_width() => "THR",
            _ => self.title(),
        }
    }

    /// Returns the width that the whole title needs.
    pub fn title_width(self) -> u16 {
        self.title().len() as u16
    }

    /// Returns the name on the command line: the title in lower case, without the unit.
    pub fn name(self) -> String {
        self.title().split(['%', '/']).next().unwrap_or_default().to_lowercase()
    }

    /// Returns the column with this name.
    ///
    /// # Errors
    /// A sentence that lists all names.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|column| column.name() == name.trim().to_lowercase());
        found.ok_or_else(|| format!("unknown column '{}': expected one of {}", name.escape_debug(), Columns::default()))
    }

    /// Returns the least width in terminal columns.
    pub fn width(self) -> u16 {
        self.heading().1
    }

    /// The columns that can be hidden when space is short; the last in this list is hidden first. The others are always shown.
    ///
    /// Columns of watched processes are kept longer than those that always have values.
    pub const BY_NEED: [Self; 12] = [
        Self::GcTime,
        Self::Heap,
        Self::Exceptions,
        Self::Allocation,
        Self::Queue,
        Self::Memory,
        Self::Runtime,
        Self::Uptime,
        Self::Command,
        Self::Threads,
        Self::User,
        Self::Container,
    ];

    /// Returns whether the column contains right-aligned numbers.
    pub fn is_right_aligned(self) -> bool {
        self.is_watched() || matches!(self, Self::Pid | Self::Cpu | Self::Memory | Self::Threads | Self::Uptime)
    }

    /// Returns the default direction.
    pub fn first_direction(self) -> Direction {
        let is_descending = self.is_watched() || matches!(self, Self::Cpu | Self::Memory | Self::Threads | Self::State);
        if is_descending { Direction::Descending } else { Direction::Ascending }
    }

    /// Returns whether the column applies to watched processes only.
    pub fn is_watched(self) -> bool {
        matches!(self, Self::Heap | Self::Allocation | Self::GcTime | Self::Exceptions | Self::Queue)
    }

    /// Returns the text that a filter searches; empty for columns that it does not search.
    pub(super) fn text(self, row: &Row) -> Cow<'_, str> {
        let process = &row.process;
        match self {
            Self::Pid => process.key.pid.to_string().into(),
            Self::Name => process.name.as_str().into(),
            Self::Runtime => runtime(process).unwrap_or_default(),
            Self::User => user(process),
            Self::State => row.word().into(),
            Self::Container => process.container.as_deref().unwrap_or_default().into(),
            Self::Command => process.command_line.as_str().into(),
            _ => Cow::default(),
        }
    }

    /// Returns the value of a watched process, if the column shows one.
    pub fn figure(self, stats: &RuntimeStats) -> Option<f64> {
        match self {
            Self::Heap => stats.heap,
            Self::Allocation => stats.allocation_rate,
            Self::GcTime => stats.gc_time_percent,
            Self::Exceptions => stats.exceptions,
            Self::Queue => stats.queue_length,
            _ => None,
        }
    }

    /// Returns whether the value of a row is unknown.
    pub(super) fn is_unknown(self, row: &Row) -> bool {
        match self {
            Self::Runtime => runtime(&row.process).is_none(),
            Self::Cpu => row.process.usage.cpu_percent.is_none(),
            Self::Memory => row.process.usage.rss_bytes == 0,
            Self::Threads => row.process.usage.threads == 0,
            Self::User => row.process.user.is_none(),
            Self::Container => row.process.container.is_none(),
            _ => self.is_watched() && row.watch.and_then(|watch| self.figure(&watch.stats)).is_none(),
        }
    }

    /// Compares two rows in ascending order; unknown values are lowest.
    pub(super) fn compare(self, a: &Row, b: &Row) -> Ordering {
        let (left, right) = (&a.process, &b.process);
        match self {
            Self::Pid => left.key.pid.cmp(&right.key.pid),
            Self::Name => caseless(&left.name, &right.name),
            Self::Runtime => version(left).cmp(&version(right)),
            Self::Cpu => tenths(left.usage.cpu_percent).cmp(&tenths(right.usage.cpu_percent)),
            Self::Memory => left.usage.rss_bytes.cmp(&right.usage.rss_bytes),
            Self::Heap | Self::Allocation | Self::GcTime | Self::Exceptions | Self::Queue => {
                let figure = |row: &Row| row.watch.and_then(|watch| self.figure(&watch.stats)).unwrap_or(-1.0);
                figure(a).total_cmp(&figure(b))
            }
            Self::Threads => left.usage.threads.cmp(&right.usage.threads),
            Self::User => left.user.cmp(&right.user).then(left.uid.cmp(&right.uid)),
            Self::Uptime => (right.started_unix_ms, right.key.started).cmp(&(left.started_unix_ms, left.key.started)),
            Self::State => state_rank(a).cmp(&state_rank(b)),
            Self::Container => left.container.cmp(&right.container),
            Self::Command => caseless(&left.command_line, &right.command_line),
        }
    }
}

/// The shown columns of the process table, from left to right. Always includes NAME and contains no duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    order: [Column; Column::ALL.len()],
    count: usize,
}

impl Columns {
    pub const ALL: Self = Self { order: Column::ALL, count: Column::ALL.len() };

    /// Parses comma-separated names.
    ///
    /// # Errors
    /// A sentence that describes the problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut columns = Self { order: Column::ALL, count: 0 };
        for name in text.split(',') {
            let column = Column::named(name)?;
            if columns.listed().contains(&column) {
                return Err(format!("column '{}' is given twice", column.name()));
            }
            columns.order[columns.count] = column;
            columns.count += 1;
        }
        if columns.listed().contains(&Column::Name) { Ok(columns) } else { Err("column 'name' is missing".to_owned()) }
    }

    /// Returns the columns from left to right.
    pub fn listed(&self) -> &[Column] {
        &self.order[..self.count]
    }
}

impl Default for Columns {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.listed().iter().map(|column| column.name()).collect::<Vec<_>>().join(","))
    }
}

/// Returns the runtime version; a reachable runtime that reports none is older than .NET 5.
pub(super) fn runtime(process: &Process) -> Option<Cow<'_, str>> {
    match &process.runtime {
        // The full version does not fit next to it.
        Some(version) if process.native_aot => Some(format!("AOT {}.{}", version.major(), version.minor()).into()),
        Some(version) => Some(version.as_str().into()),
        None if process.native_aot => Some("AOT".into()),
        None if process.contact == Contact::Ok => Some("3.x".into()),
        None => None,
    }
}

/// Returns the name of the user, or the user id if it has none.
pub(super) fn user(process: &Process) -> Cow<'_, str> {
    process.user.as_deref().map_or_else(|| process.uid.to_string().into(), Cow::Borrowed)
}

/// Unreported versions are the oldest.
fn version(process: &Process) -> Option<(u32, u32, &str)> {
    process.runtime.as_ref().map(|version| (version.major(), version.minor(), version.as_str()))
}

/// CPU rounded as displayed, so that rows that look equal do not swap places.
fn tenths(percent: Option<f64>) -> Option<u32> {
    percent.map(|percent| (percent.max(0.0) * 10.0).round() as u32)
}

fn caseless(a: &str, b: &str) -> Ordering {
    a.chars().flat_map(char::to_lowercase).cmp(b.chars().flat_map(char::to_lowercase))
}

/// Rank of a state, ascending: running, unreachable or stopped, suspended, health issue, recording, recording with a health issue.
fn state_rank(row: &Row) -> u8 {
    let has_issue = row.issue().is_some();
    match (&row.process.contact, row.process.run_state) {
        _ if row.is_stopped() => 1,
        _ if row.recording => 4 + u8::from(has_issue),
        _ if has_issue => 3,
        (_, RunState::Suspended) => 2,
        (Contact::Trouble { .. }, _) => 1,
        _ => 0,
    }
}
