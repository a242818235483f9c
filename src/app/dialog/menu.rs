//! Menus: what can be copied, and what can be done with a process.

use crate::app::action::Action;

use super::{ListState, Subject};

/// What can be copied.
#[derive(Debug)]
pub struct CopyMenu {
    pub list: ListState,
    pub items: Vec<CopyItem>,
}

/// A line of the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyItem {
    pub label: &'static str,
    pub text: String,
}

/// What can be done with a process.
#[derive(Debug)]
pub struct ActMenu {
    /// The process; without one, only programs can be started.
    pub subject: Option<Subject>,
    pub list: ListState,
}

impl ActMenu {
    /// The lines, whether they are possible now or not.
    pub const ITEMS: [Action; 14] = [
        Action::TraceForm,
        Action::Profiles,
        Action::Dump,
        Action::PerfMap,
        Action::SetVariable,
        Action::UnsetVariable,
        Action::StartupHook,
        Action::AttachProfiler,
        Action::StartupProfiler,
        Action::Resume,
        Action::WalkHeap,
        Action::Port,
        Action::Producer,
        Action::Launch,
    ];
}
