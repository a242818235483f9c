//! The panes and their tabs.

/// Which pane the keys go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Focus {
    /// The process table.
    #[default]
    List,
    /// The details of the selected process.
    Detail,
}

/// What of the selected process is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tab {
    /// Facts, and what can be done with it.
    #[default]
    Info,
    /// Its environment.
    Environment,
    /// Its recordings, live: one of them, in a few words.
    Trace,
    /// What the garbage collector does, as the shown recording tells.
    Gc,
    /// Which exceptions are thrown.
    Exceptions,
    /// Waits for locks, and the thread pool.
    Threads,
    /// Where threads spend their time.
    Methods,
    /// Which events come.
    Events,
    /// Log messages, requests, compilation, assemblies.
    More,
    /// What was and is being done, to all processes.
    Operations,
}

impl Tab {
    /// All tabs, left to right.
    pub const ALL: [Self; 10] = [
        Self::Info,
        Self::Environment,
        Self::Trace,
        Self::Gc,
        Self::Exceptions,
        Self::Threads,
        Self::Methods,
        Self::Events,
        Self::More,
        Self::Operations,
    ];

    /// Its titles, from the longest to one for where room is short.
    pub fn titles(self) -> [&'static str; 3] {
        match self {
            Self::Info => ["Info"; 3],
            Self::Environment => ["Environment", "Env", "Env"],
            Self::Trace => ["Trace", "Trace", "Trc"],
            Self::Gc => ["GC"; 3],
            Self::Exceptions => ["Exceptions", "Exc", "Exc"],
            Self::Threads => ["Threads", "Threads", "Thr"],
            Self::Methods => ["Methods", "Methods", "Mth"],
            Self::Events => ["Events", "Events", "Evt"],
            Self::More => ["More"; 3],
            Self::Operations => ["Operations", "Ops", "Ops"],
        }
    }

    /// The digit that leads to it: the tenth has 0.
    pub fn digit(self) -> usize {
        (self as usize + 1) % 10
    }

    /// Whether it shows what is in a recording.
    pub fn is_analysis(self) -> bool {
        matches!(self, Self::Gc | Self::Exceptions | Self::Threads | Self::Methods | Self::Events | Self::More)
    }

    /// The tab to the right, or to the left, round the ends.
    pub(super) fn step(self, forward: bool) -> Self {
        let at = self as usize;
        Self::ALL[(at + if forward { 1 } else { Self::ALL.len() - 1 }) % Self::ALL.len()]
    }
}
