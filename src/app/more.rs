//! What a recording holds besides: log messages, requests and the like, compilation, assemblies.

use super::source::Source;
use crate::analysis::Snapshot;

/// One of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Messages of `ILogger`.
    Logs,
    /// What begins and ends: requests, look-ups, commands to a database.
    Activities,
    /// Methods that are compiled.
    Compilation,
    /// Assemblies.
    Assemblies,
}

impl Section {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::Logs, Self::Activities, Self::Compilation, Self::Assemblies];

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Logs => "log messages",
            Self::Activities => "requests",
            Self::Compilation => "compilation",
            Self::Assemblies => "assemblies",
        }
    }

    /// What it takes for a recording to hold it.
    pub fn source(self) -> Source {
        match self {
            Self::Logs => Source::Logs,
            Self::Activities => Source::Activities,
            Self::Compilation => Source::Compilation,
            Self::Assemblies => Source::Assemblies,
        }
    }

    /// How much of it there is.
    pub fn count(self, snapshot: &Snapshot) -> u64 {
        match self {
            Self::Logs => snapshot.logs.by_level.iter().sum(),
            Self::Activities => snapshot.activities.requests(),
            Self::Compilation => snapshot.jit.bodies,
            Self::Assemblies => snapshot.assemblies.loaded.len() as u64 + snapshot.assemblies.failures,
        }
    }
}
