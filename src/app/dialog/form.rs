//! A dialog that asks before something is done: what it will do, what can be chosen, and buttons, the harmless one first.

use tui_input::Input;

use super::Subject;
use super::dump::Dump;
use super::perf_map::PerfMap;
use super::quit::Quit;
use super::resume::Resume;

/// A dialog that asks.
#[derive(Debug)]
pub struct Form {
    /// The process that something would be done to; the dialog closes when it ends.
    pub subject: Option<Subject>,
    /// What it is about.
    pub purpose: Purpose,
    /// Something to choose.
    pub choice: Option<Choice>,
    /// A path to edit.
    pub path: Option<Input>,
    /// The field that the keys go to: at first the harmless button.
    pub focus: Field,
    /// The dangerous button was pressed once, and must be again.
    pub armed: bool,
    /// Why it could not be done as it stands.
    pub complaint: Option<String>,
}

/// What a dialog is about.
#[derive(Debug)]
pub enum Purpose {
    /// A dump.
    Dump(Dump),
    /// A perf map.
    PerfMap(PerfMap),
    /// The start of what waits for it.
    Resume(Resume),
    /// Leaving.
    Quit(Quit),
}

/// A field of a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The options.
    Choice,
    /// The path.
    Path,
    /// A button, by number.
    Button(usize),
}

/// Something to choose.
#[derive(Debug)]
pub struct Choice {
    /// What it is.
    pub label: &'static str,
    /// The options, each with what it means.
    pub options: &'static [(&'static str, &'static str)],
    /// The one that is chosen.
    pub at: usize,
}

impl Form {
    pub(super) fn new(subject: Option<Subject>, purpose: Purpose) -> Self {
        Self { subject, purpose, choice: None, path: None, focus: Field::Button(0), armed: false, complaint: None }
    }

    /// What it is about, in a few words.
    pub fn title(&self) -> String {
        let what = match &self.purpose {
            Purpose::Dump(_) => "Dump",
            Purpose::PerfMap(_) => "Perf map",
            Purpose::Resume(_) => "Resume",
            Purpose::Quit(_) => "Quit",
        };
        self.subject.as_ref().map_or_else(|| what.to_owned(), |subject| format!("{what} · {subject}"))
    }

    /// What it will do, a sentence each.
    pub fn effects(&self) -> Vec<String> {
        match &self.purpose {
            Purpose::Dump(dump) => dump.effects(self),
            Purpose::PerfMap(perf_map) => perf_map.effects(self),
            Purpose::Resume(resume) => resume.effects(self),
            Purpose::Quit(quit) => quit.effects(),
        }
    }

    /// The buttons, the harmless one first.
    pub fn buttons(&self) -> &'static [&'static str] {
        match &self.purpose {
            Purpose::Dump(_) if self.armed => &["No", "Yes, all memory"],
            Purpose::Dump(_) => &["No", "Yes, dump"],
            Purpose::PerfMap(_) | Purpose::Resume(_) => &["No", "Yes"],
            Purpose::Quit(quit) => quit.buttons(),
        }
    }

    /// Whether it asks about leaving.
    pub(in crate::app) fn is_quit(&self) -> bool {
        matches!(self.purpose, Purpose::Quit(_))
    }

    /// The number of the chosen option.
    pub(super) fn chosen(&self) -> usize {
        self.choice.as_ref().map_or(0, |choice| choice.at)
    }

    fn fields(&self) -> Vec<Field> {
        let choice = self.choice.is_some().then_some(Field::Choice);
        let path = self.path.is_some().then_some(Field::Path);
        let button = match self.focus {
            Field::Button(at) => at,
            Field::Choice | Field::Path => 0,
        };
        choice.into_iter().chain(path).chain([Field::Button(button)]).collect()
    }

    /// Goes to the next field, or the previous one, round the ends. The row of buttons is one field.
    pub(in crate::app) fn step(&mut self, forward: bool) {
        let fields = self.fields();
        let at = fields.iter().position(|field| *field == self.focus).unwrap_or(0);
        self.focus = fields[(at + if forward { 1 } else { fields.len() - 1 }) % fields.len()];
        self.disarm();
    }

    /// Changes the option, or goes to the next button.
    pub(in crate::app) fn change(&mut self, forward: bool) {
        let turn = |at: usize, len: usize| (at + if forward { 1 } else { len - 1 }) % len.max(1);
        let buttons = self.buttons().len();
        match (&mut self.focus, &mut self.choice) {
            (Field::Choice, Some(choice)) => choice.at = turn(choice.at, choice.options.len()),
            (Field::Button(at), _) => *at = if forward { (*at + 1).min(buttons - 1) } else { at.saturating_sub(1) },
            _ => {}
        }
        self.disarm();
    }

    /// What must be pressed twice must be pressed twice in a row.
    pub(in crate::app) fn disarm(&mut self) {
        self.armed = false;
        self.complaint = None;
    }
}
