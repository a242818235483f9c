//! The columns of the process table.

use std::cmp::Ordering;
use std::fmt;

use crate::analysis::RuntimeStats;
use crate::model::{Contact, Process, RunState};

use super::Row;

/// A column of the process table, in the order of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Column {
    Pid,
    /// Entry assembly.
    Name,
    Runtime,
    /// Per cent of one core.
    Cpu,
    /// Resident memory.
    Memory,
    /// Size of the collector's heap; this and the next ones only where something is watched.
    Heap,
    /// Bytes allocated a second.
    Allocation,
    /// Per cent of the time in collections.
    GcTime,
    /// Exceptions a second.
    Exceptions,
    /// Work items that wait for a thread of the pool.
    Queue,
    Threads,
    User,
    /// Time since its start.
    Uptime,
    /// Running, suspended, recording, or its trouble in a word.
    State,
    /// Container id; only where a process is in one.
    Container,
    /// Command line, or its trouble in a sentence.
    Command,
}

impl Column {
    /// All columns, left to right. The digit keys count through them.
    pub const ALL: [Self; 16] = [
        Self::Pid,
        Self::Name,
        Self::Runtime,
        Self::Cpu,
        Self::Memory,
        Self::Heap,
        Self::Allocation,
        Self::GcTime,
        Self::Exceptions,
        Self::Queue,
        Self::Threads,
        Self::User,
        Self::Uptime,
        Self::State,
        Self::Container,
        Self::Command,
    ];

    /// The columns in which a filter looks for words.
    pub const FILTERED: [Self; 7] = [Self::Pid, Self::Name, Self::Runtime, Self::User, Self::State, Self::Container, Self::Command];

    /// What stands in the header.
    pub fn title(self) -> &'static str {
        match self {
            Self::Pid => "PID",
            Self::Name => "NAME",
            Self::Runtime => "RUNTIME",
            Self::Cpu => "CPU%",
            Self::Memory => "RSS",
            Self::Heap => "HEAP",
            Self::Allocation => "ALLOC/S",
            Self::GcTime => "GC%",
            Self::Exceptions => "EXC/S",
            Self::Queue => "TPQ",
            Self::Threads => "THR",
            Self::User => "USER",
            Self::Uptime => "UPTIME",
            Self::State => "STATE",
            Self::Container => "CONTAINER",
            Self::Command => "COMMAND",
        }
    }

    /// Its name on the command line: the title in lower case, without unit.
    pub fn name(self) -> String {
        self.title().split(['%', '/']).next().unwrap_or_default().to_lowercase()
    }

    /// The column with this name.
    ///
    /// # Errors
    /// A sentence with all names.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|column| column.name() == name.trim().to_lowercase());
        found.ok_or_else(|| format!("unknown column '{}': expected one of {}", name.escape_debug(), Columns::default()))
    }

    /// Columns it needs on the screen.
    pub fn width(self) -> u16 {
        match self {
            Self::Pid | Self::Uptime | Self::Memory | Self::Heap | Self::Allocation => 7,
            Self::Exceptions | Self::Queue => 5,
            Self::Name => 16,
            Self::Runtime | Self::User => 9,
            Self::Cpu => 6,
            Self::Threads | Self::GcTime => 4,
            Self::State => 13,
            Self::Container => 12,
            Self::Command => 22,
        }
    }

    /// Which columns go first when there is no room, last in this list first. The others always stay.
    ///
    /// Figures of watches come before those that are always there.
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

    /// Whether numbers stand in it, flush right.
    pub fn is_right_aligned(self) -> bool {
        self.is_watched() || matches!(self, Self::Pid | Self::Cpu | Self::Memory | Self::Threads | Self::Uptime)
    }

    /// Whether its useful end is the large one.
    pub fn is_descending_first(self) -> bool {
        self.is_watched() || matches!(self, Self::Cpu | Self::Memory | Self::Threads | Self::State)
    }

    /// Whether it is about watched processes only.
    pub fn is_watched(self) -> bool {
        matches!(self, Self::Heap | Self::Allocation | Self::GcTime | Self::Exceptions | Self::Queue)
    }

    /// The text that stands in it, where that is text.
    pub fn text(self, row: &Row) -> Option<&str> {
        match self {
            Self::Name => Some(&row.process.name),
            Self::Runtime => row.process.runtime.as_ref().map(|version| version.as_str()),
            Self::User => row.process.user.as_deref(),
            Self::State => Some(row.word()),
            Self::Container => row.process.container.as_deref(),
            Self::Command => Some(&row.process.command_line),
            _ => None,
        }
    }

    /// The figure of a watched process that stands in it.
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

    /// Whether nothing is known of a row that could stand in it.
    pub(super) fn lacks(self, row: &Row) -> bool {
        match self {
            Self::Runtime => row.process.runtime.is_none(),
            Self::Cpu => row.process.usage.cpu_percent.is_none(),
            Self::User => row.process.user.is_none(),
            Self::Container => row.process.container.is_none(),
            _ => self.is_watched() && row.watch.and_then(|watch| self.figure(&watch.stats)).is_none(),
        }
    }

    /// Ascending order of two rows by this column; unknown values are lowest.
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
            Self::State => urgency(a).cmp(&urgency(b)),
            Self::Container => left.container.cmp(&right.container),
            Self::Command => caseless(&left.command_line, &right.command_line),
        }
    }
}

/// Columns of the process table, from the left. NAME is always among them, and none is there twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    order: [Column; Column::ALL.len()],
    count: usize,
}

impl Columns {
    pub const ALL: Self = Self { order: Column::ALL, count: Column::ALL.len() };

    /// Reads names with commas between them.
    ///
    /// # Errors
    /// A sentence about what is wrong.
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

    /// From the left.
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

fn version(process: &Process) -> Option<(u32, u32, &str)> {
    process.runtime.as_ref().map(|version| (version.major(), version.minor(), version.as_str()))
}

/// CPU as it is shown: rows that look equal do not change places.
fn tenths(percent: Option<f32>) -> Option<u32> {
    percent.map(|percent| (percent.max(0.0) * 10.0).round() as u32)
}

fn caseless(a: &str, b: &str) -> Ordering {
    a.chars().flat_map(char::to_lowercase).cmp(b.chars().flat_map(char::to_lowercase))
}

/// Order of states: recording with a health issue, recording, health issue, suspended, in trouble, running.
fn urgency(row: &Row) -> u8 {
    let is_ill = row.watch.is_some_and(|watch| watch.issue.is_some());
    match (&row.process.contact, row.process.run_state) {
        _ if row.recording => 4 + u8::from(is_ill),
        _ if is_ill => 3,
        (_, RunState::Suspended) => 2,
        (Contact::Trouble { .. }, _) => 1,
        _ => 0,
    }
}
