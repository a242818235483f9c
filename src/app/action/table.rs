//! The action table itself.

mod details;
mod dialogs;
mod process;
mod processes;
mod program;

use super::{Action, Entry};
use crate::app::tabs::Tab;

/// Entries for more than one tab; they precede the entries of single tabs.
const SHARED: [&[Entry]; 3] = [process::ENTRIES, processes::ENTRIES, details::ENTRIES];
const REST: [&[Entry]; 2] = [program::ENTRIES, dialogs::ENTRIES];
const PARTS: usize = SHARED.len() + Tab::ALL.len() + REST.len();

const fn part(at: usize) -> &'static [Entry] {
    match at {
        at if at < SHARED.len() => SHARED[at],
        at if at < SHARED.len() + Tab::ALL.len() => Tab::ALL[at - SHARED.len()].descriptor().actions,
        at => REST[at - SHARED.len() - Tab::ALL.len()],
    }
}

const COUNT: usize = {
    let (mut count, mut at) = (0, 0);
    while at < PARTS {
        count += part(at).len();
        at += 1;
    }
    count
};

/// All actions with their keys, labels, contexts, conditions and handlers. An action can have several entries, with other texts and another
/// handler in another context.
pub static TABLE: [Entry; COUNT] = ENTRIES;

const ENTRIES: [Entry; COUNT] = {
    let mut table = [SHARED[0][0]; COUNT];
    let (mut row, mut at) = (0, 0);
    while at < PARTS {
        let (entries, mut index) = (part(at), 0);
        while index < entries.len() {
            table[row] = entries[index];
            (row, index) = (row + 1, index + 1);
        }
        at += 1;
    }
    table
};

/// Index of the first entry of each action. An action without an entry does not compile.
static FIRST: [usize; Action::ALL.len()] = {
    let mut first = [0; Action::ALL.len()];
    let mut action = 0;
    while action < first.len() {
        while ENTRIES[first[action]].action as usize != action {
            first[action] += 1;
            assert!(first[action] < COUNT, "an action has no line in the table");
        }
        action += 1;
    }
    first
};

/// Returns the first entry of an action.
pub fn entry(action: Action) -> &'static Entry {
    &TABLE[FIRST[action as usize]]
}
