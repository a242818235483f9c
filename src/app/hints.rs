//! The hint line: available actions, the most useful first, as many as fit.

use super::State;
use super::action::{Action, Entry, Status, TABLE};

use crate::sorting::CompactSort;

/// A hint and its position in the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    pub action: Action,
    /// Name of the key. Hints never use arrow keys, so this is the same with and without Unicode.
    pub key: String,
    pub label: &'static str,
    /// Column of the left end.
    pub x: u16,
    pub width: u16,
}

/// Spaces between two hints.
const GAP: u16 = 2;

impl State {
    /// Returns the hint line for a terminal of this width.
    pub fn hints(&self, width: u16) -> Vec<Hint> {
        let context = self.context();
        let is_hinted = |entry: &&Entry| {
            let is_of_use = entry.action != Action::Search || self.has_filterable_rows();
            entry.hint > 0 && entry.places.contains(context) && is_of_use && entry.status(self) == Status::Ready
        };
        let mut entries: Vec<&Entry> = TABLE.iter().filter(is_hinted).collect();
        entries.compact_sort_by_key(|entry| std::cmp::Reverse(entry.hint));
        let (help, others): (Vec<&Entry>, Vec<&Entry>) = entries.into_iter().partition(|entry| entry.action == Action::Help);
        let mut hints: Vec<Hint> = Vec::new();
        let mut x = 1;
        let end = width.saturating_sub(1);
        let reserved: u16 = help.iter().map(|entry| hint(self, entry, 0).width + GAP).sum();
        for (entry, reserved) in others.into_iter().map(|entry| (entry, reserved)).chain(help.into_iter().map(|entry| (entry, 0))) {
            let hint = hint(self, entry, x);
            if x + hint.width + reserved <= end && !hints.iter().any(|other| other.action == hint.action && other.label == hint.label) {
                x += hint.width + GAP;
                hints.push(hint);
            }
        }
        hints
    }
}

fn hint(state: &State, entry: &Entry, x: u16) -> Hint {
    let key = state.options.keys.of_in(entry, state.context()).first().map(|key| key.name(true).into_owned()).unwrap_or_default();
    let label = entry.hint_label(state);
    let width = (key.chars().count() + 1 + label.chars().count()) as u16;
    Hint { action: entry.action, key, label, x, width }
}
