//! What the dashboard is in the middle of: a line that is typed, a frozen display, the end of the program.

use std::time::Duration;

use tui_input::Input;

use super::Now;
use crate::model::Process;

/// A line of text that is being typed.
#[derive(Debug)]
pub struct Line {
    pub purpose: Typing,
    pub input: Input,
}

/// What a line of text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typing {
    Filter,
    /// The filter of the open tab's list.
    Tab,
    /// The filter of what lies over the panes.
    Overlay,
}

/// The display is frozen.
#[derive(Debug)]
pub struct Pause {
    pub since: Now,
    /// The newest processes, to be shown when the display goes on.
    pub(super) pending: Option<Vec<Process>>,
}

/// The program ends once its recordings are finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// When the recordings are abandoned; after that, when the wait ends.
    pub limit: Duration,
    pub abandoned: bool,
}
