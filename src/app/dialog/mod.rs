//! What lies over the panes: dialogs, lists to choose from, texts to read.

mod chooser;
mod close_port;
mod control;
mod dump;
mod export;
mod file_picker;
mod form;
mod heap;
mod launch;
mod menu;
mod palette;
mod perf_map;
mod pick_list;
mod picker;
mod place;
mod port;
mod producer;
mod quit;
mod resume;
mod suggest;
mod trace;
mod words;

use std::fmt;

use crate::analysis::Filter;
use crate::app::OutputView;
use crate::app::help::Help;
use crate::model::{ProcessKey, SafeText};

pub use chooser::Chooser;
pub(super) use chooser::Chosen;
pub use control::Change;
pub(super) use control::ControlRequest;
pub(super) use export::ExportRequest;
pub use file_picker::{FilePicker, FileUse};
pub use form::{Choice, Field, Form, Purpose, Question, Reply};
pub(super) use launch::Program;
pub use menu::{ActMenu, CopyItem, CopyMenu};
pub use palette::{Found, Palette};
pub use pick_list::{ListState, PickList};
pub use picker::Picker;
pub use place::{FormLayout, Line as FormLine};
pub use producer::ProducerForm;
pub(super) use producer::Served;
pub(super) use quit::QuitAnswer;

/// Which process something is about. A dialog keeps this, never a row: rows move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub key: ProcessKey,
    pub name: SafeText,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.pid {
            // A program that is being started.
            0 => f.write_str(&self.name),
            pid => write!(f, "{} ({pid})", self.name),
        }
    }
}

/// What lies over the panes.
#[derive(Debug)]
pub enum Overlay {
    Help(Help),
    Messages(Reader),
    /// What a program writes that was started.
    Output(OutputView),
    /// Find an action or a process.
    Palette(Palette),
    Profiles(Picker),
    Copy(CopyMenu),
    Act(ActMenu),
    /// A dialog that confirms an action.
    Form(Form),
    /// Choose what to type into a field of one.
    Choose(Chooser),
    Files(FilePicker),
}

/// A text to read.
#[derive(Debug, Default)]
pub struct Reader {
    /// How many lines are above the first one shown.
    pub scroll: usize,
    /// What is searched for: lines without it are left out.
    pub search: Filter,
}

impl Overlay {
    /// This, or what the help covers where this is the help.
    pub(super) fn beneath_help(&mut self) -> Option<&mut Self> {
        match self {
            Self::Help(help) => help.beneath.as_deref_mut(),
            other => Some(other),
        }
    }

    pub(super) fn filter(&mut self) -> Option<&mut Filter> {
        if self.reader().is_some() { self.reader().map(|reader| &mut reader.search) } else { self.list_mut().map(|list| &mut list.filter) }
    }

    /// How a text is read, where this is one.
    pub(super) fn reader(&mut self) -> Option<&mut Reader> {
        match self {
            Self::Help(help) => Some(&mut help.reader),
            Self::Messages(reader) => Some(reader),
            Self::Output(view) => Some(&mut view.reader),
            _ => None,
        }
    }

    /// Where in a list one is, where this is a list.
    pub(super) fn list(&self) -> Option<&ListState> {
        match self {
            Self::Profiles(picker) => Some(&picker.list),
            Self::Copy(menu) => Some(&menu.list),
            Self::Act(menu) => Some(&menu.list),
            Self::Choose(chooser) => Some(&chooser.list),
            Self::Files(picker) => Some(&picker.list),
            Self::Palette(palette) => Some(&palette.list),
            Self::Help(_) | Self::Messages(_) | Self::Output(_) | Self::Form(_) => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn list_mut(&mut self) -> Option<&mut ListState> {
        match self {
            Self::Profiles(picker) => Some(&mut picker.list),
            Self::Copy(menu) => Some(&mut menu.list),
            Self::Act(menu) => Some(&mut menu.list),
            Self::Choose(chooser) => Some(&mut chooser.list),
            Self::Files(picker) => Some(&mut picker.list),
            Self::Palette(palette) => Some(&mut palette.list),
            Self::Help(_) | Self::Messages(_) | Self::Output(_) | Self::Form(_) => None,
        }
    }

    /// The process that this is about.
    pub fn subject(&self) -> Option<&Subject> {
        match self {
            Self::Profiles(picker) => Some(&picker.subject),
            Self::Act(menu) => menu.subject.as_ref(),
            Self::Form(form) | Self::Choose(Chooser { form, .. }) => form.subject.as_ref(),
            Self::Help(help) => help.beneath.as_ref().and_then(|beneath| beneath.subject()),
            Self::Messages(_) | Self::Palette(_) | Self::Output(_) | Self::Copy(_) | Self::Files(_) => None,
        }
    }
}
