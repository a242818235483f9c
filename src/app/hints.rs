//! The hint line: available actions, the most useful first, as many as fit.

use super::action::{Action, Entry, Status, TABLE};
use super::{Focus, State, Tab};

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
/// Priority of the key that fills the open tab while it is empty: after those that leave it.
const OF_TAB: u8 = 83;

/// Returns the action whose result the tab shows, if it has a key of its own in all tabs.
fn fills(tab: Tab) -> Option<Action> {
    match tab {
        Tab::Slowdown => Some(Action::WhySlow),
        Tab::Stacks => Some(Action::Stacks),
        Tab::Heap => Some(Action::WalkHeap),
        _ => None,
    }
}

impl State {
    /// Returns the hint line for a terminal of this width.
    pub fn hints(&self, width: u16) -> Vec<Hint> {
        let context = self.context();
        let is_hinted = |entry: &&Entry| {
            let is_of_use = entry.action != Action::Search || self.has_filterable_rows();
            entry.hint > 0 && entry.places.contains(context) && is_of_use && entry.status(self) == Status::Ready
        };
        let mut entries: Vec<&Entry> = TABLE.iter().filter(is_hinted).collect();
        let is_empty = || self.view_of(self.tab).is_none_or(|view| view.list.is_empty());
        let of_tab = fills(self.tab).filter(|_| self.focus == Focus::Detail && is_empty());
        let priority = |entry: &Entry| if of_tab == Some(entry.action) { OF_TAB } else { entry.hint };
        entries.compact_sort_by_key(|entry| std::cmp::Reverse(priority(entry)));
        let (help, others): (Vec<&Entry>, Vec<&Entry>) = entries.into_iter().partition(|entry| entry.action == Action::Help);
        let mut hints: Vec<Hint> = Vec::new();
        let mut x = 1;
        let end = width.saturating_sub(1);
        let reserved: u16 = help.iter().map(|entry| hint(self, entry, 0).width + GAP).sum();
        for (entry, reserved) in others.into_iter().map(|entry| (entry, reserved)).chain(help.into_iter().map(|entry| (entry, 0))) {
            let hint = hint(self, entry, x);
            // One key is enough for what several do.
            if x + hint.width + reserved <= end && hints.iter().all(|other| other.label != hint.label) {
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
