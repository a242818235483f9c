//! The tabs, in their order: each is described by the `TAB` of its module.

use super::{View, assemblies, compare, counters, environment, events, exceptions, gc, heap, http, jit, jobs, logs, methods, overview};
use super::{slowdown, stacks, threads, trace};
use crate::analysis::CountersSnapshot;
use crate::app::action::{Context, Entry};
use crate::app::cursor::Neighbour;
use crate::app::pane::RowKind;
use crate::app::state::State;
use crate::diagnosis::Source;

/// All that a tab is.
pub(in crate::app) struct Descriptor {
    /// Its titles, from the longest to one for where room is short.
    pub(in crate::app) titles: [&'static str; 3],
    /// Which rows have it.
    pub(super) is_shown: fn(RowKind) -> bool,
    /// What the keys go to while it has the focus.
    pub(in crate::app) context: fn(&State) -> Context,
    /// What its keys do, but for those that do the same in other tabs.
    pub(in crate::app) actions: &'static [Entry],
    pub(super) shows: Shows,
}

/// What a tab shows.
pub(super) enum Shows {
    /// Facts about the process.
    Overview,
    /// The recordings of the process, live.
    Recordings,
    /// A list of its own.
    List(for<'a> fn(&'a State) -> View<'a>),
    /// What is in a recording.
    Recording(Recorded),
}

/// What a tab shows of a recording.
pub(super) struct Recorded {
    /// `None` where nothing is known of a recording.
    pub(super) view: for<'a> fn(&'a State) -> Option<View<'a>>,
    /// What a recording must hold for it, where one key can start that.
    pub(super) sources: &'static [Source],
    /// What it shows of a process that is not recorded.
    pub(super) live: Option<Live>,
}

/// What a tab shows of a process that is not recorded.
pub(super) struct Live {
    /// A view of the counters of the process, where it is watched.
    pub(super) view: for<'a> fn(&'a State, Option<&'a CountersSnapshot>) -> View<'a>,
    /// Whether it needs them.
    pub(super) is_watched: bool,
    /// Graphs of the overview that belong to it.
    pub(super) graphs: &'static [&'static str],
    /// What a recording adds.
    pub(super) rest: &'static str,
}

/// What a tab shows, without how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Facts about the process.
    Overview,
    Recordings,
    /// A view of one recording.
    Recording,
    /// Another list.
    List,
}

/// The tabs with their modules.
macro_rules! tabs {
    ($($(#[$doc:meta])* $tab:ident: $module:ident,)*) => {
        /// What of the selected process is shown.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Tab {
            $($(#[$doc])* $tab,)*
        }

        impl Tab {
            /// All tabs, left to right.
            pub const ALL: [Self; [$(Self::$tab),*].len()] = [$(Self::$tab),*];

            pub(in crate::app) const fn descriptor(self) -> &'static Descriptor {
                match self {
                    $(Self::$tab => &$module::TAB,)*
                }
            }
        }
    };
}

tabs! {
    Overview: overview,
    Environment: environment,
    /// Its recordings, live: one of them, in a few words.
    Trace: trace,
    /// Garbage collections of the shown recording.
    Gc: gc,
    Exceptions: exceptions,
    /// Waits for locks, and the thread pool.
    Threads: threads,
    /// Where threads spend their time.
    Methods: methods,
    Events: events,
    /// What the process and its libraries publish.
    Counters: counters,
    /// Requests and other operations that start and stop.
    Http: http,
    /// Messages of `ILogger`.
    Logs: logs,
    Jit: jit,
    Assemblies: assemblies,
    /// Why it is slow: possible causes, the worst first.
    Slowdown: slowdown,
    /// What changed between two recordings.
    Compare: compare,
    /// What every thread does at one moment.
    Stacks: stacks,
    Heap: heap,
    Jobs: jobs,
}

impl Default for Tab {
    fn default() -> Self {
        Self::ALL[0]
    }
}

impl Tab {
    /// Its titles, from the longest to one for where room is short.
    pub fn titles(self) -> [&'static str; 3] {
        self.descriptor().titles
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
        match self.descriptor().shows {
            Shows::Overview => Content::Overview,
            Shows::Recordings => Content::Recordings,
            Shows::List(_) => Content::List,
            Shows::Recording(_) => Content::Recording,
        }
    }

    /// What a recording must hold for it, where one key can start that.
    pub(in crate::app) fn sources(self) -> &'static [Source] {
        match &self.descriptor().shows {
            Shows::Recording(recorded) => recorded.sources,
            Shows::Overview | Shows::Recordings | Shows::List(_) => &[],
        }
    }

    /// Whether it shows what is in a recording.
    pub fn is_analysis(self) -> bool {
        self.content() == Content::Recording
    }

    /// Whether it shows a recording, or what is in one.
    pub(in crate::app) fn shows_recordings(self) -> bool {
        matches!(self.content(), Content::Recordings | Content::Recording)
    }

    pub fn is_shown(self, of: RowKind) -> bool {
        (self.descriptor().is_shown)(of)
    }

    /// The tab to the right, or to the left, round the ends.
    pub(in crate::app) fn step(self, to: Neighbour, of: RowKind) -> Self {
        let next = Self::ALL[to.of(self as usize, Self::ALL.len())];
        if next.is_shown(of) { next } else { next.step(to, of) }
    }
}
