//! Options of the dashboard.

use std::path::PathBuf;

use super::action::KeyMap;
use super::{Columns, Sort};
use crate::diagnosis::Thresholds;
use crate::model::{OutputName, SafeText, TraceFile};

/// Which processes are watched automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoWatch {
    Selected,
    #[default]
    Never,
    All,
}

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Forbids all actions that change a process.
    pub readonly: bool,
    pub demo: bool,
    /// Which processes are watched automatically.
    pub watch: AutoWatch,
    pub filter: String,
    /// The table's columns.
    pub columns: Columns,
    /// The initial sort order of the table.
    pub sort: Sort,
    /// Directories searched for diagnostic sockets, for the message shown if no process is found.
    pub searched: Vec<String>,
    /// A diagnostic port to serve from the start.
    pub port: Option<PathBuf>,
    /// Recorded files to open instead of showing processes.
    pub files: Vec<TraceFile>,
    /// Whether to ring the bell when a recording or another job has finished.
    pub bell: bool,
    pub user: String,
    /// How to access processes of other users; `None` if they are accessible.
    pub elevate: Option<&'static str>,
    /// Names of the available themes: built-in ones and theme files.
    pub themes: Vec<SafeText>,
    /// Thresholds above which a figure is a finding.
    pub thresholds: Thresholds,
    /// Name pattern and folder of heap files and dumps.
    pub output_name: OutputName,
    pub keys: KeyMap,
    /// Default profiles to record; `None` for the built-in ones.
    pub profiles: Option<Vec<String>>,
    /// Number of processors; 0 if unknown.
    pub processors: usize,
}
