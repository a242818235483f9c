//! The help text: the action table by headings, with the actions of the current context first.

use super::action::{Context, Entry, Group, Key, KeyMap, TABLE};
use super::text::{width, wrap};
use super::{Overlay, Reader, State};
use crate::analysis::{Field, Filter};

#[derive(Debug, Clone)]
pub enum HelpLine {
    Blank,
    Heading(String),
    Entry(&'static Entry, Vec<Key>),
    Note(&'static str),
}

/// A line of the help on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HelpRow {
    Blank,
    Heading(String),
    /// Keys of an action, and part of its description. An action takes as many rows as the longer of the two.
    Entry(Vec<Key>, String),
    Note(String),
}

/// The context in which the help was opened.
#[derive(Debug, Clone)]
pub struct HelpContext {
    pub context: Context,
    pub title: String,
}

/// The help over the panes.
#[derive(Debug)]
pub struct Help {
    pub reader: Reader,
    pub here: HelpContext,
    /// The overlay below, restored when the help is closed.
    pub(super) beneath: Option<Box<Overlay>>,
}

const NOTES: [&str; 5] = [
    "Hold Shift to select text with the mouse.",
    "In a dialog, Right at the end of a word completes it.",
    "A process's row shows why it cannot be attached to.",
    "In tab HTTP, {number}, {guid}, {hex} and {token} stand for identifiers in paths whose route is not known.",
    "States: ● running  ◎ watched  ◐ suspended  ◉ recording  ! trouble",
];

pub const COLUMNS: [&str; 2] = ["KEY", "TEXT"];

/// Width of the key column, including the gap after it.
pub const KEYS_WIDTH: u16 = 14;

/// Indentation of the rows below a heading.
pub const INDENT: u16 = 2;

/// Returns the help lines that match the filter. Given a context, actions specific to it come first, and those unavailable there last.
pub fn help(search: &Filter, keys: &KeyMap, here: Option<&HelpContext>) -> Vec<HelpLine> {
    let passes = |keys: &str, label: &str, text: &str| {
        search.passes(&[Field::text(COLUMNS[0], keys), Field::text(COLUMNS[1], label), Field::text(COLUMNS[1], text)])
    };
    let mut lines = Vec::new();
    let mut section = |title: String, body: Vec<HelpLine>| {
        if !body.is_empty() {
            if !lines.is_empty() {
                lines.push(HelpLine::Blank);
            }
            lines.push(HelpLine::Heading(title));
            lines.extend(body);
        }
    };
    // The same action with different keys elsewhere is listed only once.
    let mut listed: Vec<&Entry> = Vec::new();
    let mut entries = |is_meant: &dyn Fn(&Entry) -> bool| -> Vec<HelpLine> {
        let mut found = Vec::new();
        for entry in TABLE.iter().filter(|entry| is_meant(entry)) {
            // Where text is typed, letters are input.
            let keys = match here.filter(|here| entry.places.contains(here.context)) {
                Some(here) => keys.of_in(entry, here.context),
                None => keys.of(entry),
            };
            let again = listed.iter().any(|other| other.action == entry.action && other.help == entry.help);
            let names: Vec<_> = keys.iter().flat_map(|key| [key.name(true), key.name(false)]).collect();
            if !keys.is_empty() && !again && passes(&names.join(" "), entry.label, entry.help) {
                listed.push(entry);
                found.push(HelpLine::Entry(entry, keys));
            }
        }
        found
    };
    let is_here = |entry: &Entry| here.is_none_or(|here| entry.places.contains(here.context));
    if let Some(here) = here {
        section(here.title.clone(), entries(&|entry| is_here(entry) && !entry.places.is_general()));
    }
    for group in Group::ALL {
        section(group.title().to_owned(), entries(&|entry| entry.group == group && is_here(entry)));
    }
    for group in Group::ALL {
        section(format!("{}, elsewhere", group.title()), entries(&|entry| entry.group == group));
    }
    section("Notes".to_owned(), NOTES.into_iter().filter(|note| passes("", "", note)).map(HelpLine::Note).collect());
    lines
}

/// Wraps the lines at word boundaries to the given width, without truncating any.
pub fn rows(lines: Vec<HelpLine>, columns: u16) -> Vec<HelpRow> {
    let room = columns.saturating_sub(INDENT).max(1);
    let mut rows = Vec::new();
    for line in lines {
        match line {
            HelpLine::Blank => rows.push(HelpRow::Blank),
            HelpLine::Heading(title) => rows.extend(wrap(&title, columns.max(1)).into_iter().map(HelpRow::Heading)),
            HelpLine::Note(note) => rows.extend(wrap(note, room).into_iter().map(HelpRow::Note)),
            HelpLine::Entry(entry, keys) => {
                let (mut keys, mut texts) =
                    (wrapped_keys(&keys).into_iter(), wrap(entry.help, room.saturating_sub(KEYS_WIDTH).max(1)).into_iter());
                loop {
                    match (keys.next(), texts.next()) {
                        (None, None) => break,
                        (keys, text) => rows.push(HelpRow::Entry(keys.unwrap_or_default(), text.unwrap_or_default())),
                    }
                }
            }
        }
    }
    rows
}

/// Distributes keys over lines of their column. Their names without arrows are the longer ones.
fn wrapped_keys(keys: &[Key]) -> Vec<Vec<Key>> {
    let mut lines: Vec<Vec<Key>> = Vec::new();
    let mut used = 0;
    for key in keys {
        let columns = width(&key.name(true)) + 1;
        if lines.is_empty() || used + columns > KEYS_WIDTH {
            lines.push(Vec::new());
            used = 0;
        }
        lines.last_mut().into_iter().for_each(|line| line.push(*key));
        used += columns;
    }
    lines
}

impl State {
    /// Opens the help for the current context.
    pub(in crate::app) fn open_help(&mut self) {
        let context = self.context();
        let title = match &self.overlay {
            Some(Overlay::Form(form)) => form.title(),
            Some(_) => self.pick_list().map_or_else(String::new, |list| list.title),
            None if context == Context::List => Group::Table.title().to_owned(),
            None => self.tab.titles()[0].to_owned(),
        };
        let beneath = self.overlay.take().map(Box::new);
        self.overlay = Some(Overlay::Help(Help { reader: Reader::default(), here: HelpContext { context, title }, beneath }));
    }

    pub fn help_rows(&self, help: &Help) -> Vec<HelpRow> {
        rows(self::help(&help.reader.search, &self.options.keys, Some(&help.here)), self.layout().reader_text().width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::action::{Action, Context};
    use crate::app::test_app::TestApp;

    fn here(context: Context) -> Vec<HelpLine> {
        help(&Filter::default(), &KeyMap::default(), Some(&HelpContext { context, title: "Here".to_owned() }))
    }

    fn entries(lines: &[HelpLine]) -> Vec<&'static Entry> {
        lines.iter().filter_map(|line| if let HelpLine::Entry(entry, _) = line { Some(*entry) } else { None }).collect()
    }

    #[test]
    fn available_actions_come_first_and_all_are_listed() {
        let all = entries(&help(&Filter::default(), &KeyMap::default(), None)).len();
        for context in Context::ALL {
            let lines = here(context);
            let entries = entries(&lines);
            assert_eq!(entries.len(), all, "{context:?}");
            let works: Vec<bool> = entries.iter().map(|entry| entry.places.contains(context)).collect();
            assert!(works.is_sorted_by(|before, after| before >= after), "{context:?}");
            assert!(works[0], "{context:?}");
            assert!(matches!(&lines[0], HelpLine::Heading(title) if title == "Here"));
        }
        let methods = entries(&here(Context::Methods));
        let at = |action| methods.iter().position(|entry| entry.action == action);
        let of_threads = entries(&here(Context::Rows));
        assert!(
            !of_threads.iter().any(|entry| entry.action == Action::Shape && entry.places.contains(Context::Rows)),
            "no key of another tab"
        );
        assert!(at(Action::Callers) < at(Action::Trace) && at(Action::Trace) < at(Action::WriteHeap), "view, general, other views");
    }

    #[test]
    fn help_rows_fit_the_width_and_lose_no_words() {
        let words = |rows: &[HelpRow]| -> usize {
            rows.iter().map(|row| if let HelpRow::Entry(_, text) = row { text.split_whitespace().count() } else { 0 }).sum()
        };
        let all: usize = entries(&here(Context::List)).iter().map(|entry| entry.help.split_whitespace().count()).sum();
        for columns in [30, 76, 96] {
            let rows = rows(here(Context::List), columns);
            assert_eq!(words(&rows), all, "{columns}");
            for row in &rows {
                let used = match row {
                    HelpRow::Blank => 0,
                    HelpRow::Heading(title) => width(title),
                    HelpRow::Note(note) => INDENT + width(note),
                    HelpRow::Entry(keys, text) => {
                        let names: Vec<_> = keys.iter().map(|key| key.name(true)).collect();
                        assert!(width(&names.join(" ")) < KEYS_WIDTH, "{names:?}");
                        INDENT + KEYS_WIDTH + width(text)
                    }
                };
                assert!(used <= columns, "{row:?} in {columns}");
            }
        }
    }

    #[test]
    fn help_opens_over_a_dialog_and_returns_to_it() {
        let mut app = TestApp::populated(80, 24);
        for (keys, title) in [("T", "Record "), ("⎋d", "Dump · "), ("⎋⏎7", "Methods")] {
            app.press(keys);
            let before = app.state.context();
            app.press("?");
            let Some(Overlay::Help(help)) = &app.state.overlay else { panic!("no help after {keys}") };
            assert!(help.here.title.starts_with(title) && help.here.context == before, "{:?}", help.here);
            app.press("?");
            assert_eq!(app.state.context(), before, "after {keys}");
        }
    }
}
