//! Menus: items to copy, and actions on a process.

use crate::app::action::Action;

use super::Pick;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyItem {
    pub label: &'static str,
    pub text: String,
}

impl Pick {
    /// The actions on a process, whether currently possible or not.
    pub const ACTIONS: [Action; 14] = [
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
