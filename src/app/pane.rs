//! The panes and their tabs.

use super::cursor::Neighbour;
use crate::diagnosis::Source;
use crate::model::FileKind;

/// Which pane the keys go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Focus {
    #[default]
    List,
    Detail,
}

/// What of the selected process is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tab {
    #[default]
    Overview,
    Environment,
    /// Its recordings, live: one of them, in a few words.
    Trace,
    /// Garbage collections of the shown recording.
    Gc,
    Exceptions,
    /// Waits for locks, and the thread pool.
    Threads,
    /// Where threads spend their time.
    Methods,
    Events,
    /// What the process and its libraries publish.
    Counters,
    /// Requests and other operations that start and stop.
    Http,
    /// Messages of `ILogger`.
    Logs,
    Jit,
    Assemblies,
    /// Why it is slow: possible causes, the worst first.
    Slowdown,
    /// What changed between two recordings.
    Compare,
    /// What every thread does at one moment.
    Stacks,
    Heap,
    Jobs,
}

/// What the selected row is: each kind has its tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    Process,
    File(FileKind),
}

/// What a tab shows: tabs of one recording are all drawn and moved in alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Facts about the process.
    Overview,
    Recordings,
    /// A view of one recording, described by a module of [`tabs`](super::tabs).
    Recording,
    /// Another list, described by such a module.
    List,
}

impl Tab {
    /// All tabs, left to right.
    pub const ALL: [Self; 18] = [
        Self::Overview,
        Self::Environment,
        Self::Trace,
        Self::Gc,
        Self::Exceptions,
        Self::Threads,
        Self::Methods,
        Self::Events,
        Self::Counters,
        Self::Http,
        Self::Logs,
        Self::Jit,
        Self::Assemblies,
        Self::Slowdown,
        Self::Compare,
        Self::Stacks,
        Self::Heap,
        Self::Jobs,
    ];

    /// Its titles, from the longest to one for where room is short.
    pub fn titles(self) -> [&'static str; 3] {
        match self {
            Self::Overview => ["Overview", "Over", "Ovw"],
            Self::Environment => ["Environment", "Env", "Env"],
            Self::Trace => ["Trace", "Trace", "Trc"],
            Self::Gc => ["GC"; 3],
            Self::Exceptions => ["Exceptions", "Exc", "Exc"],
            Self::Threads => ["Threads", "Thr", "Thr"],
            Self::Methods => ["Methods", "Methods", "Mth"],
            Self::Events => ["Events", "Events", "Evt"],
            Self::Counters => ["Counters", "Count", "Ctr"],
            Self::Http => ["HTTP"; 3],
            Self::Logs => ["Logs", "Logs", "Log"],
            Self::Jit => ["JIT"; 3],
            Self::Assemblies => ["Assemblies", "Asm", "Asm"],
            Self::Slowdown => ["Slow?", "Slow?", "Why"],
            Self::Compare => ["Compare", "Comp", "Cmp"],
            Self::Stacks => ["Stacks", "Stacks", "Stk"],
            Self::Heap => ["Heap"; 3],
            Self::Jobs => ["Jobs"; 3],
        }
    }

    /// The key that leads to it: the digit of its place among those that are shown. Those that are left over are reached with Tab and by name.
    pub fn key(self, of: RowKind) -> &'static str {
        const DIGITS: [&str; 10] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"];
        let place = Self::ALL.into_iter().filter(|tab| tab.is_shown(of)).position(|tab| tab == self);
        match (self, of) {
            (Self::Jobs, RowKind::Process) => "0",
            (_, RowKind::Process) if place >= Some(DIGITS.len() - 1) => "Tab",
            _ => place.and_then(|place| DIGITS.get(place).copied()).unwrap_or("Tab"),
        }
    }

    pub fn content(self) -> Content {
        match self {
            Self::Overview => Content::Overview,
            Self::Trace => Content::Recordings,
            Self::Gc
            | Self::Exceptions
            | Self::Threads
            | Self::Methods
            | Self::Events
            | Self::Counters
            | Self::Http
            | Self::Logs
            | Self::Jit
            | Self::Assemblies
            | Self::Slowdown => Content::Recording,
            Self::Environment | Self::Compare | Self::Stacks | Self::Heap | Self::Jobs => Content::List,
        }
    }

    /// What a recording must hold for it, where one key can start that.
    pub(super) fn sources(self) -> &'static [Source] {
        match self {
            Self::Gc => &[Source::Allocations],
            Self::Exceptions => &[Source::Exceptions],
            Self::Threads => &[Source::Contention, Source::ThreadPool],
            Self::Http => &[Source::Activities],
            Self::Logs => &[Source::Logs],
            Self::Jit => &[Source::Compilation],
            Self::Assemblies => &[Source::Assemblies],
            _ => &[],
        }
    }

    /// Whether it shows what is in a recording.
    pub fn is_analysis(self) -> bool {
        self.content() == Content::Recording
    }

    /// Whether it shows a recording, or what is in one.
    pub(super) fn shows_recordings(self) -> bool {
        self == Self::Trace || self.is_analysis()
    }

    pub fn is_shown(self, of: RowKind) -> bool {
        match self {
            Self::Overview | Self::Environment | Self::Stacks | Self::Jobs => of == RowKind::Process,
            Self::Heap => of != RowKind::File(FileKind::Trace),
            Self::Compare => of == RowKind::File(FileKind::Trace),
            _ => of != RowKind::File(FileKind::Heap),
        }
    }

    /// The tab to the right, or to the left, round the ends.
    pub(super) fn step(self, to: Neighbour, of: RowKind) -> Self {
        let next = Self::ALL[to.of(self as usize, Self::ALL.len())];
        if next.is_shown(of) { next } else { next.step(to, of) }
    }
}
