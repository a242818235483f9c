//! Temporary modes of the dashboard: typing a line, a frozen display, quitting.

use std::time::Duration;

use tui_input::Input;

use super::{Now, State};
use crate::model::{Process, ProcessKey};

#[derive(Debug)]
pub struct Line {
    pub purpose: LinePurpose,
    pub input: Input,
    /// The process that was selected when typing began.
    pub selected: Option<ProcessKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinePurpose {
    Filter,
    /// The filter of the open tab's list.
    Tab,
    /// The filter of the open overlay.
    Overlay,
}

/// A frozen display.
#[derive(Debug)]
pub struct Pause {
    pub since: Now,
    /// The newest processes, shown when the display resumes.
    pub(super) pending: Option<Vec<Process>>,
}

/// Quitting once all recordings are finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingQuit {
    /// When recordings are abandoned, and after that when the wait ends.
    pub limit: Duration,
    pub abandoned: bool,
}

impl State {
    /// Returns the line of text that is being typed for this purpose.
    pub fn typed(&self, purpose: LinePurpose) -> Option<&Input> {
        self.line.as_ref().filter(|line| line.purpose == purpose).map(|line| &line.input)
    }
}
