//! The columns of the process table.

use std::cmp::Ordering;

use crate::model::{Contact, Process, RunState};

use super::Row;

/// A column of the process table, in the order of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Column {
    /// Process id.
    Pid,
    /// Entry assembly.
    Name,
    /// Runtime version.
    Runtime,
    /// Per cent of one core.
    Cpu,
    /// Resident memory.
    Memory,
    /// Threads.
    Threads,
    /// Owner.
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
    pub const ALL: [Self; 11] = [
        Self::Pid,
        Self::Name,
        Self::Runtime,
        Self::Cpu,
        Self::Memory,
        Self::Threads,
        Self::User,
        Self::Uptime,
        Self::State,
        Self::Container,
        Self::Command,
    ];

    /// What stands in the header.
    pub fn title(self) -> &'static str {
        match self {
            Self::Pid => "PID",
            Self::Name => "NAME",
            Self::Runtime => "RUNTIME",
            Self::Cpu => "CPU%",
            Self::Memory => "MEM",
            Self::Threads => "THR",
            Self::User => "USER",
            Self::Uptime => "UPTIME",
            Self::State => "STATE",
            Self::Container => "CONTAINER",
            Self::Command => "COMMAND",
        }
    }

    /// Columns it needs on the screen.
    pub fn width(self) -> u16 {
        match self {
            Self::Pid | Self::Uptime | Self::Memory => 7,
            Self::Name => 16,
            Self::Runtime | Self::User => 9,
            Self::Cpu => 6,
            Self::Threads => 4,
            Self::State => 13,
            Self::Container => 12,
            Self::Command => 22,
        }
    }

    /// Which columns go first when there is no room, last in this list first. The others always stay.
    pub const BY_NEED: [Self; 7] = [Self::Memory, Self::Runtime, Self::Uptime, Self::Command, Self::Threads, Self::User, Self::Container];

    /// Whether numbers stand in it, flush right.
    pub fn is_right_aligned(self) -> bool {
        matches!(self, Self::Pid | Self::Cpu | Self::Memory | Self::Threads | Self::Uptime)
    }

    /// Whether its useful end is the large one.
    pub fn is_descending_first(self) -> bool {
        matches!(self, Self::Cpu | Self::Memory | Self::Threads | Self::State)
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
            Self::Threads => left.usage.threads.cmp(&right.usage.threads),
            Self::User => left.user.cmp(&right.user).then(left.uid.cmp(&right.uid)),
            Self::Uptime => (right.started_unix_ms, right.key.started).cmp(&(left.started_unix_ms, left.key.started)),
            Self::State => urgency(a).cmp(&urgency(b)),
            Self::Container => left.container.cmp(&right.container),
            Self::Command => caseless(&left.command_line, &right.command_line),
        }
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

/// How much a row wants to be looked at: recording first, then suspended, in trouble, running.
fn urgency(row: &Row) -> u8 {
    match (&row.process.contact, row.process.run_state) {
        _ if row.recording => 3,
        (_, RunState::Suspended) => 2,
        (Contact::Trouble { .. }, _) => 1,
        _ => 0,
    }
}
