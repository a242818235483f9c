//! The palette: an action or a process, found by name.

use super::{ListState, Subject};
use crate::analysis::{Field, Filter};
use crate::app::action::{Action, Entry, Status, TABLE};
use crate::app::list::Row;
use crate::app::state::State;
use tui_input::Input;

/// An action or a process, found by name.
#[derive(Debug, Default)]
pub struct Palette {
    /// What is searched for.
    pub input: Input,
    /// The selected line, and what is searched for.
    pub list: ListState,
    /// What was found: actions by their names, processes, then actions by what they do.
    pub found: Vec<Found>,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A line of the action table.
    Action(usize),
    /// A process.
    Process(Subject),
}

impl Palette {
    /// The columns in which a word can match.
    pub const COLUMNS: [&str; 3] = ["ACTION", "HELP", "PROCESS"];

    /// Searches among the lines of the action table that `offers` takes, and among the processes.
    pub(in crate::app) fn search(&mut self, offers: impl Fn(usize) -> bool, rows: &[Row]) {
        let filter = Filter::new(self.input.value());
        let passes = |fields: &[(&'static str, &str)]| {
            filter.passes(&fields.iter().map(|(column, text)| Field::text(column, text)).collect::<Vec<_>>())
        };
        let [action, help, process] = Self::COLUMNS;
        let (mut named, mut described) = (Vec::new(), Vec::new());
        for (index, entry) in TABLE.iter().enumerate().filter(|(index, _)| offers(*index)) {
            if passes(&[(action, entry.label)]) {
                named.push(Found::Action(index));
            } else if passes(&[(action, entry.label), (help, entry.help)]) {
                described.push(Found::Action(index));
            }
        }
        // What begins so is meant before what only has it.
        let begins = |found: &Found| matches!(found, Found::Action(index) if TABLE[*index].label.starts_with(filter.as_str()));
        named.sort_by_key(|found| !begins(found));
        // Processes come in once something is typed: there may be very many.
        if !filter.is_empty() {
            let subjects = rows.iter().map(|row| Subject { key: row.process.key, name: row.process.name.clone() });
            named.extend(subjects.filter(|subject| passes(&[(process, &subject.to_string())])).map(Found::Process));
        }
        named.append(&mut described);
        self.found = named;
        self.list.set_filter(filter);
    }
}

impl State {
    /// Searches for what the palette's line says, among what could be done without the palette.
    pub(in crate::app) fn searched(&self, mut palette: Palette) -> Palette {
        debug_assert!(self.overlay.is_none(), "the palette asks what is possible beneath it");
        let context = self.context();
        let offers = |index: usize| {
            let entry: &Entry = &TABLE[index];
            let earlier = TABLE[..index].iter().any(|other| other.action == entry.action && other.places.contains(context));
            entry.places.contains(context)
                && !earlier
                && !matches!(entry.action, Action::Digit | Action::Palette)
                && entry.status(self) != Status::Idle
        };
        palette.search(offers, self.list.rows());
        palette
    }
}
