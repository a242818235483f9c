//! The tabs in display order, each described by the `TAB` of its module.

use super::{
    Look, View, assemblies, compare, counters, environment, events, exceptions, gc, heap, http, jit, jobs, logs, methods, overview,
    slowdown, stacks, threads, trace,
};
use crate::analysis::CountersSnapshot;
use crate::app::action::{Context, Entry};
use crate::app::cursor::Neighbor;
use crate::app::{RowKind, State};
use crate::diagnosis::Source;

/// The description of a tab.
pub(in crate::app) struct Descriptor {
    /// Titles, from the longest to the shortest.
    pub(in crate::app) titles: [&'static str; 3],
    /// Kinds of rows that have the tab.
    pub(super) is_shown: fn(RowKind) -> bool,
    /// The context for keys while the tab has the focus.
    pub(in crate::app) context: fn(&State) -> Context,
    /// Its actions, except those shared with other tabs.
    pub(in crate::app) actions: &'static [Entry],
    pub(super) shows: Shows,
}

impl Descriptor {
    /// Describes a tab of all rows that can have a recording, with a list of rows and no actions of its own.
    pub(super) const fn new(titles: [&'static str; 3], shows: Shows) -> Self {
        Self { titles, is_shown: RowKind::can_have_recording, context: |_| Context::Rows, actions: &[], shows }
    }
}

/// The content of a tab.
pub(super) enum Shows {
    /// A tab that draws itself.
    Itself,
    List(for<'a> fn(&'a State) -> View<'a>),
    /// The content of a recording.
    Recording(Recorded),
    /// The counters of a watch or of a recording; `None` if there is neither.
    Counters(for<'a> fn(&'a State) -> Option<View<'a>>),
}

/// How a tab shows a recording.
pub(super) struct Recorded {
    pub(super) view: for<'a> fn(Look<'a>) -> View<'a>,
    /// The sources that a recording needs for this tab, if a single key can start it.
    pub(super) sources: &'static [Source],
    /// How the tab shows a process that is not being recorded.
    pub(super) live: Option<Live>,
}

/// How a tab shows a process that is not being recorded.
pub(super) struct Live {
    /// View of the counters of the process, if it is watched.
    pub(super) view: for<'a> fn(&'a State, Option<&'a CountersSnapshot>) -> View<'a>,
    /// Whether the view needs the counters.
    pub(super) needs_counters: bool,
    /// Titles of the overview graphs shown in the tab.
    pub(super) graphs: &'static [&'static str],
    /// Description of what a recording adds.
    pub(super) recording_adds: &'static str,
}

/// Defines the tabs and their modules.
macro_rules! tabs {
    ($($(#[$doc:meta])* $tab:ident: $module:ident,)*) => {
        listed! {
            /// A tab of the details pane. All are listed from left to right.
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum Tab {
                $($(#[$doc])* $tab,)*
            }
        }

        impl Tab {
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
    /// The recordings of the process, one of them at a time, live.
    Trace: trace,
    /// Garbage collections of the shown recording.
    Gc: gc,
    Exceptions: exceptions,
    /// Lock contention and the thread pool.
    Threads: threads,
    /// Samples by method.
    Methods: methods,
    Events: events,
    /// Counters and meters published by the process and its libraries.
    Counters: counters,
    /// Requests and other start-stop operations.
    Http: http,
    /// Messages of `ILogger`.
    Logs: logs,
    Jit: jit,
    Assemblies: assemblies,
    /// Why the process is slow: possible causes, the worst first.
    Slowdown: slowdown,
    /// The comparison of two recordings.
    Compare: compare,
    /// The stacks of all threads at one moment.
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
    /// Returns the titles, from the longest to the shortest.
    pub fn titles(self) -> [&'static str; 3] {
        self.descriptor().titles
    }

    /// Returns the key that opens the tab: its digit among the shown tabs. Tabs without a digit are reached with Tab or by name.
    pub fn key(self, of: RowKind) -> &'static str {
        const DIGITS: [&str; 10] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"];
        let place = Self::ALL.into_iter().filter(|tab| tab.is_shown(of)).position(|tab| tab == self);
        match (self, of) {
            (Self::Jobs, RowKind::Process) => "0",
            (_, RowKind::Process) if place >= Some(DIGITS.len() - 1) => "Tab",
            _ => place.and_then(|place| DIGITS.get(place).copied()).unwrap_or("Tab"),
        }
    }

    /// Returns the sources that a recording needs for this tab, if a single key can start it.
    pub(in crate::app) fn sources(self) -> &'static [Source] {
        match &self.descriptor().shows {
            Shows::Recording(recorded) => recorded.sources,
            Shows::Itself | Shows::List(_) | Shows::Counters(_) => &[],
        }
    }

    /// Returns whether the tab shows the content of a recording.
    pub fn is_analysis(self) -> bool {
        matches!(self.descriptor().shows, Shows::Recording(_) | Shows::Counters(_))
    }

    /// Returns whether the tab shows recordings or the content of one.
    pub(in crate::app) fn shows_recordings(self) -> bool {
        self == Self::Trace || self.is_analysis()
    }

    pub fn is_shown(self, of: RowKind) -> bool {
        (self.descriptor().is_shown)(of)
    }

    /// Returns the next or previous shown tab, wrapping around.
    pub(in crate::app) fn step(self, to: Neighbor, of: RowKind) -> Self {
        let next = Self::ALL[to.of(self as usize, Self::ALL.len())];
        if next.is_shown(of) { next } else { next.step(to, of) }
    }
}
