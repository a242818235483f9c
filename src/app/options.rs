//! Options of the dashboard.

use std::path::PathBuf;

use super::action::KeyMap;
use super::list::{Columns, Sort};
use crate::diagnosis::Thresholds;
use crate::model::{OutputName, SafeText, TraceFile};

/// Which processes are watched without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoWatch {
    Selected,
    #[default]
    Never,
    All,
}

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Nothing may be done that changes a process.
    pub readonly: bool,
    pub demo: bool,
    /// Which processes are watched without a key.
    pub watch: AutoWatch,
    pub filter: String,
    /// The table's columns.
    pub columns: Columns,
    /// By what the table is sorted at first.
    pub sort: Sort,
    /// Where diagnostic sockets are searched, for the text where no process is found.
    pub searched: Vec<String>,
    /// A diagnostic port that is served from the start.
    pub port: Option<PathBuf>,
    /// Recorded files to look at instead of processes.
    pub files: Vec<TraceFile>,
    /// Whether the bell rings when a recording or another job has finished.
    pub bell: bool,
    pub user: String,
    /// How to reach the processes of other users; `None` where they are within reach.
    pub elevate: Option<&'static str>,
    /// The names of the themes that can be chosen: built-in ones, and theme files.
    pub themes: Vec<SafeText>,
    /// From which values on a figure is a finding.
    pub thresholds: Thresholds,
    /// What files of walked heaps are called, and where they are.
    pub output_name: OutputName,
    pub keys: KeyMap,
    /// The profiles that are recorded when nothing else is chosen; `None` for the usual ones.
    pub profiles: Option<Vec<String>>,
    /// How many processors there are; 0 where that is not known.
    pub processors: usize,
}
