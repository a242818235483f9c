//! The palette: an action or a process, found by name.

use super::Subject;
use crate::app::action::{Action, Entry, Status, TABLE};
use crate::app::cursor::Cursor;
use crate::app::list::Row;
use crate::app::state::State;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use tui_input::Input;

/// An action or a process, found by name.
#[derive(Debug, Default)]
pub struct Palette {
    /// What is searched for.
    pub input: Input,
    /// The selected line.
    pub cursor: Cursor,
    /// What was found, best first.
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
    /// Searches among the lines of the action table that `offers` takes, and among the processes.
    pub(in crate::app) fn search(&mut self, offers: impl Fn(usize) -> bool, rows: &[Row]) {
        let mut matcher = Matcher::new(Config::DEFAULT);
        let pattern = Pattern::parse(self.input.value(), CaseMatching::Ignore, Normalization::Smart);
        let mut chars = Vec::new();
        let mut score = |text: &str| pattern.score(Utf32Str::new(text, &mut chars), &mut matcher);
        let mut found: Vec<(u32, Found)> = Vec::new();
        for (index, entry) in TABLE.iter().enumerate().filter(|(index, _)| offers(*index)) {
            let best = score(entry.label).max(score(entry.help).map(|score| score / 2));
            found.extend(best.map(|best| (best, Found::Action(index))));
        }
        // Processes come in once something is typed: there may be very many.
        if !self.input.value().is_empty() {
            for row in rows {
                let subject = Subject { key: row.process.key, name: row.process.name.clone() };
                found.extend(score(&subject.to_string()).map(|score| (score, Found::Process(subject))));
            }
        }
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        self.found = found.into_iter().map(|(_, found)| found).collect();
        self.cursor = Cursor::default();
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
