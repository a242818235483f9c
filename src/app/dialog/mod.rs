//! Overlays over the panes: dialogs, pick lists and readers.

mod chooser;
mod control;
mod dump;
mod export;
mod form;
mod form_layout;
mod heap;
mod launch;
mod palette;
mod perf_map;
mod pick_list;
mod picker;
mod port;
mod producer;
mod quit;
mod resume;
mod suggest;
mod trace;
mod words;

use std::fmt;

use crate::analysis::Filter;
use crate::app::help::Help;
use crate::app::{OutputView, State};
use crate::model::{Process, ProcessKey, Recording, SafeText, TraceFile};

pub use chooser::Chooser;
pub use control::{Change, ControlRequest};
pub use export::ExportRequest;
pub use form::{Choice, Field, Form, Purpose, Question, Reply};
pub use form_layout::{FormLayout, Line as FormLine};
pub use launch::ProgramRequest;
pub use palette::{Found, Palette};
pub use pick_list::{CopyItem, FileUse, ListState, PickList};
pub(super) use picker::picked_profiles;

/// The process that a dialog applies to. Dialogs keep this rather than a row index, because rows move.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    pub key: ProcessKey,
    pub name: SafeText,
}

impl Subject {
    pub(super) fn of(process: &Process) -> Self {
        Self { key: process.key, name: process.name.clone() }
    }

    pub fn of_recording(recording: &Recording) -> Self {
        Self { key: recording.key, name: recording.name.clone() }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.pid {
            // A program that is being started has no PID yet.
            0 => f.write_str(&self.name),
            pid => write!(f, "{} ({pid})", self.name),
        }
    }
}

/// An overlay over the panes.
#[derive(Debug)]
pub enum Overlay {
    Help(Help),
    Messages(Reader),
    /// Output of a launched program.
    Output(OutputView),
    /// A dialog that confirms an action.
    Form(Form),
    /// A list of items to choose from.
    List(ListState, Pick),
}

/// The items of a list over the panes.
#[derive(Debug)]
pub enum Pick {
    /// Actions, tabs, processes, files and others, found by name.
    Palette(Palette),
    /// Profiles to record this process.
    Profiles(Subject),
    Copy(Vec<CopyItem>),
    /// Actions on this process. Without a process, only those that need none are available.
    Actions(Option<Subject>),
    /// Values for a field of a form.
    Values(Box<Chooser>),
    /// Recorded files; `None` stands for another range of the open file.
    Files(FileUse, Vec<Option<TraceFile>>),
}

/// A scrollable text.
#[derive(Debug, Default)]
pub struct Reader {
    /// Number of lines above the first visible one.
    pub scroll: usize,
    /// Lines that do not match are hidden.
    pub search: Filter,
}

impl Overlay {
    /// Returns this overlay or, for the help, the overlay beneath it.
    pub(super) fn beneath_help(&mut self) -> Option<&mut Self> {
        match self {
            Self::Help(help) => help.beneath.as_deref_mut(),
            other => Some(other),
        }
    }

    pub(super) fn filter(&mut self) -> Option<&mut Filter> {
        if let Self::List(list, _) = self { Some(&mut list.filter) } else { self.reader().map(|reader| &mut reader.search) }
    }

    /// Returns the reader state, if this is a text.
    pub(super) fn reader(&mut self) -> Option<&mut Reader> {
        match self {
            Self::Help(help) => Some(&mut help.reader),
            Self::Messages(reader) => Some(reader),
            Self::Output(view) => Some(&mut view.reader),
            _ => None,
        }
    }

    /// Returns the process that the overlay applies to.
    pub fn subject(&self) -> Option<&Subject> {
        match self {
            Self::List(_, Pick::Profiles(subject)) => Some(subject),
            Self::List(_, Pick::Actions(subject)) => subject.as_ref(),
            Self::List(_, Pick::Values(chooser)) => chooser.form.subject.as_ref(),
            Self::Form(form) => form.subject.as_ref(),
            Self::Help(help) => help.beneath.as_ref().and_then(|beneath| beneath.subject()),
            Self::Messages(_) | Self::Output(_) | Self::List(_, Pick::Palette(_) | Pick::Copy(_) | Pick::Files(..)) => None,
        }
    }
}

impl State {
    /// Returns the open form, unless something covers it.
    pub(super) fn form(&self) -> Option<&Form> {
        if let Some(Overlay::Form(form)) = &self.overlay { Some(form) } else { None }
    }

    pub(super) fn form_mut(&mut self) -> Option<&mut Form> {
        if let Some(Overlay::Form(form)) = &mut self.overlay { Some(form) } else { None }
    }

    /// Returns the open form, even if the help or a list of values covers it.
    pub(super) fn covered_form_mut(&mut self) -> Option<&mut Form> {
        match self.overlay.as_mut().and_then(Overlay::beneath_help)? {
            Overlay::Form(form) => Some(form),
            Overlay::List(_, Pick::Values(chooser)) => Some(&mut chooser.form),
            _ => None,
        }
    }
}
