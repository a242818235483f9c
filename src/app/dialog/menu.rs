//! Menus: items to copy, and actions on a process.

use crate::app::action::Action;

use super::{ListState, Subject};

#[derive(Debug)]
pub struct CopyMenu {
    pub list: ListState,
    pub items: Vec<CopyItem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyItem {
    pub label: &'static str,
    pub text: String,
}

/// The actions on a process.
#[derive(Debug)]
pub struct ActionMenu {
    /// Without a process, only actions that need none are available.
    pub subject: Option<Subject>,
    pub list: ListState,
}

impl ActionMenu {
    /// All lines, whether currently possible or not.
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
