//! A dialog that confirms an action: its effects, its fields, and its buttons, the harmless one first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tui_input::Input;

use super::dump::Dump;
use super::export::Export;
use super::perf_map::PerfMap;
use super::trace::Trace;
use super::words::words;
use super::{Change, Subject, port, resume};
use crate::app::Ticket;
use crate::app::cursor::Neighbor;

/// A dialog with fields and buttons.
#[derive(Debug)]
pub struct Form {
    /// The process acted on; the dialog closes when it exits.
    pub subject: Option<Subject>,
    pub purpose: Purpose,
    title: &'static str,
    buttons: &'static [&'static str],
    /// The effects of the action, if they do not depend on the fields; one sentence each.
    effects: Vec<String>,
    pub questions: Vec<Question>,
    /// The focused field; initially the first one, or the harmless button if the action is dangerous.
    pub focus: Field,
    /// The dangerous button was pressed once and must be pressed again.
    pub pressed_once: bool,
    /// Why the form cannot be submitted.
    pub problem: Option<String>,
}

#[derive(Debug)]
pub enum Purpose {
    Dump(Dump),
    Export(Export),
    PerfMap(PerfMap),
    /// Resuming this process, or all that are suspended at startup: their number.
    Resume(usize),
    /// An environment variable, a startup hook or a profiler.
    Control(Change),
    Trace(Trace),
    /// Starting a program.
    Launch,
    /// Serving a diagnostic port.
    Port,
    ClosePort,
    /// Removal of the sockets of killed processes in these directories.
    CleanUp(BTreeSet<PathBuf>),
    /// Serving Perfetto's tracing service.
    Producer,
    /// Its status while it is served, and stopping it.
    StopProducer,
    HeapWalk,
    /// Writing the objects found by a heap walk to a file.
    HeapFile(Ticket),
    Quit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Question(usize),
    Button(usize),
}

#[derive(Debug)]
pub struct Question {
    pub label: &'static str,
    pub reply: Reply,
    pub about: &'static str,
    /// Why it does not apply to this process; the focus skips it.
    pub refused: Option<String>,
    pub problem: Option<String>,
}

#[derive(Debug)]
pub enum Reply {
    Choice(Choice),
    Text(Input),
}

#[derive(Debug)]
pub struct Choice {
    /// The options, each with a description.
    pub options: &'static [(&'static str, &'static str)],
    pub at: usize,
}

impl Question {
    pub(super) fn choice(label: &'static str, options: &'static [(&'static str, &'static str)], at: usize) -> Self {
        Self { label, reply: Reply::Choice(Choice { options, at }), about: "", refused: None, problem: None }
    }

    pub(super) fn text(label: &'static str, value: impl Into<String>, about: &'static str) -> Self {
        Self { label, reply: Reply::Text(Input::new(value.into())), about, refused: None, problem: None }
    }

    pub(super) fn refused(mut self, reason: Option<String>) -> Self {
        self.refused = reason;
        self
    }

    /// Returns the description of the field, or of the chosen option.
    pub fn about(&self) -> &'static str {
        match &self.reply {
            Reply::Choice(choice) if self.about.is_empty() => choice.options.get(choice.at).map_or("", |(_, about)| about),
            _ => self.about,
        }
    }
}

impl Form {
    pub(super) fn new(
        purpose: Purpose,
        subject: Option<Subject>,
        title: &'static str,
        buttons: &'static [&'static str],
        effects: Vec<String>,
        questions: Vec<Question>,
    ) -> Self {
        let mut form =
            Self { subject, purpose, title, buttons, effects, questions, focus: Field::Button(0), pressed_once: false, problem: None };
        // A change has no default: it cannot be requested before its fields are filled in, and its buttons are entered at the harmless one.
        if (!form.is_dangerous() || matches!(form.purpose, Purpose::Control(_))) && !form.questions.is_empty() {
            form.focus = Field::Question(0);
        }
        form
    }

    /// Creates the form for removing the sockets of killed processes.
    pub(in crate::app) fn clean_up(folders: BTreeSet<PathBuf>) -> Self {
        let names: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let effects = vec![
            format!("Removes diagnostic sockets in {}.", names.join(", ")),
            "Only those of your user, more than a minute old, on which nothing listens.".to_owned(),
        ];
        Self::new(Purpose::CleanUp(folders), None, "Clean up stale sockets", &["No", "Yes, remove them"], effects, Vec::new())
    }

    pub fn title(&self) -> String {
        self.subject.as_ref().map_or_else(|| self.title.to_owned(), |subject| format!("{} · {subject}", self.title))
    }

    /// Returns the effects of the action, one sentence each.
    pub fn effects(&self) -> Vec<String> {
        match &self.purpose {
            Purpose::Dump(dump) => dump.effects(self),
            Purpose::PerfMap(perf_map) => perf_map.effects(self),
            Purpose::Resume(waiting) => resume::effects(self, *waiting),
            Purpose::Trace(trace) => trace.effects(self),
            Purpose::Port => port::effects(self),
            _ => self.effects.clone(),
        }
    }

    /// Returns a warning about what was entered, which does not prevent submitting the form.
    pub(super) fn warning(&self) -> Option<String> {
        match &self.purpose {
            Purpose::Dump(dump) => dump.warning(self),
            _ => None,
        }
    }

    /// Updates the status of Perfetto's tracing service, if the dialog shows it.
    pub(in crate::app) fn show_producer(&mut self, sentences: Vec<String>) {
        if matches!(self.purpose, Purpose::StopProducer) {
            self.effects = sentences;
        }
    }

    /// Returns the buttons, the harmless one first.
    pub fn buttons(&self) -> &'static [&'static str] {
        match self.purpose {
            Purpose::Dump(_) if self.pressed_once => &["No", "Yes, all memory"],
            Purpose::Trace(_) if self.pressed_once => &["Cancel", "Record, may stall process"],
            _ => self.buttons,
        }
    }

    /// Returns help for the focused question: suggestions, at most `lines` of them, else the problem, else the description.
    pub fn help(&self, lines: usize) -> Vec<String> {
        let Field::Question(at) = self.focus else { return Vec::new() };
        let Some(question) = self.questions.get(at) else { return Vec::new() };
        if let Purpose::Trace(_) = self.purpose {
            let items = self.suggestions(at).map(|found| found.items).unwrap_or_default();
            let mut help: Vec<String> = items.iter().take(lines).map(|(name, about)| format!("{name} · {about}")).collect();
            if items.len() > lines {
                let names: Vec<_> = items.iter().skip(lines - 1).map(|(name, _)| name.as_str()).collect();
                help[lines - 1] = format!("also: {}", names.join(", "));
            }
            if !help.is_empty() {
                return help;
            }
        }
        // After an attempt to submit the form, the problem is already shown below.
        let problem = question.problem.clone().filter(|problem| self.problem.as_ref() != Some(problem));
        vec![problem.unwrap_or_else(|| question.about().to_owned())]
    }

    /// Returns the equivalent command line.
    pub fn command_line(&self) -> Option<&str> {
        match &self.purpose {
            Purpose::Trace(trace) => Some(&trace.command_line),
            _ => None,
        }
    }

    /// Returns whether the action changes or stops something, so that the focus enters the buttons at the harmless one.
    pub fn is_dangerous(&self) -> bool {
        let is_harmless = matches!(
            self.purpose,
            Purpose::Quit
                | Purpose::Export(_)
                | Purpose::Trace(_)
                | Purpose::Launch
                | Purpose::Port
                | Purpose::HeapFile(_)
                | Purpose::Producer
        );
        !is_harmless || self.pressed_once
    }

    /// Returns the label of Enter for the focused field.
    pub(in crate::app) fn enter_label(&self) -> &'static str {
        match self.focus {
            Field::Button(_) => "press",
            Field::Question(_) => "next field",
        }
    }

    /// Returns whether a text field has the focus.
    pub fn is_typing(&self) -> bool {
        matches!(self.focus, Field::Question(at) if self.text(at).is_some())
    }

    /// Returns the focused text field.
    pub(in crate::app) fn input(&mut self) -> Option<&mut Input> {
        let Field::Question(at) = self.focus else { return None };
        match self.questions.get_mut(at).map(|question| &mut question.reply) {
            Some(Reply::Text(input)) => Some(input),
            _ => None,
        }
    }

    /// Returns the text field of a question.
    pub(super) fn text(&self, question: usize) -> Option<&Input> {
        match &self.questions.get(question)?.reply {
            Reply::Text(input) => Some(input),
            Reply::Choice(_) => None,
        }
    }

    /// Returns the index of the option chosen for a question.
    pub(super) fn chosen(&self, question: usize) -> usize {
        match self.questions.get(question).map(|question| &question.reply) {
            Some(Reply::Choice(choice)) => choice.at,
            _ => 0,
        }
    }

    /// Returns the text typed for a question, trimmed.
    pub(super) fn typed(&self, question: usize) -> &str {
        self.untrimmed(question).trim()
    }

    /// Returns the names of profiles typed for a question, separated by commas or blanks.
    pub(super) fn typed_profiles(&self, question: usize) -> Vec<String> {
        words(&self.typed(question).replace(',', " "))
    }

    /// Returns the path of a new file typed for a question, or the question and the reason why it is none.
    pub(in crate::app) fn new_file(&self, question: usize) -> Result<PathBuf, (usize, String)> {
        let path = self.typed(question);
        if path.is_empty() || path.ends_with('/') { Err((question, "Enter a file name, too.".to_owned())) } else { Ok(path.into()) }
    }

    /// Replaces a proposed path with another, unless the user has changed it.
    pub(in crate::app) fn rename(&mut self, proposed: &Path, free: &Path) {
        for question in &mut self.questions {
            if let Reply::Text(input) = &mut question.reply
                && Path::new(input.value()) == proposed
            {
                *input = Input::new(free.to_string_lossy().into_owned());
            }
        }
    }

    pub(super) fn untrimmed(&self, question: usize) -> &str {
        self.text(question).map_or("", Input::value)
    }

    /// Shows a problem and focuses the field to correct.
    pub(in crate::app) fn show_problem(&mut self, question: usize, problem: String) {
        self.problem = Some(problem);
        self.focus = Field::Question(question);
    }

    /// Moves the focus to the next or previous field, wrapping around. The row of buttons counts as one field, entered at the confirming
    /// button, or at the harmless one if the action is dangerous.
    pub(in crate::app) fn step(&mut self, to: Neighbor) {
        let button = match self.focus {
            Field::Button(at) => at,
            Field::Question(_) => usize::from(!self.is_dangerous()),
        };
        let possible = (0..self.questions.len()).filter(|&at| self.questions[at].refused.is_none());
        let fields: Vec<Field> = possible.map(Field::Question).chain([Field::Button(button)]).collect();
        let at = fields.iter().position(|field| *field == self.focus).unwrap_or(0);
        self.focus = fields[to.of(at, fields.len())];
        self.reset_confirmation();
    }

    /// Changes the chosen option, or moves to another button.
    pub(in crate::app) fn change(&mut self, to: Neighbor) {
        let buttons = self.buttons().len();
        match self.focus {
            Field::Question(at) => {
                if let Some(Question { reply: Reply::Choice(choice), .. }) = self.questions.get_mut(at) {
                    choice.at = to.of(choice.at, choice.options.len());
                }
            }
            Field::Button(at) => {
                self.focus = Field::Button(match to {
                    Neighbor::Previous => at.saturating_sub(1),
                    Neighbor::Next => (at + 1).min(buttons - 1),
                });
            }
        }
        self.reset_confirmation();
    }

    /// Resets the confirmation after any change: a dangerous button must be pressed twice in a row.
    pub(in crate::app) fn reset_confirmation(&mut self) {
        self.pressed_once = false;
        self.problem = None;
        self.check();
    }
}
