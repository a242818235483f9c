//! The help text: the action table, by headings.

use super::action::{Entry, Group, TABLE};
use crate::analysis::{Field, Filter};

/// A line of the help.
#[derive(Debug, Clone, Copy)]
pub enum HelpLine {
    /// Nothing.
    Blank,
    /// A heading.
    Heading(&'static str),
    /// An action.
    Entry(&'static Entry),
    /// A sentence.
    Note(&'static str),
}

const NOTES: [&str; 4] = [
    "Hold Shift to select text with the mouse.",
    "In a dialog, Right at the end of a word completes it.",
    "Why a process cannot be attached to is in its row.",
    "States: ● running  ◎ watched  ◐ suspended  ◉ recording  ! trouble",
];

/// The columns of the help.
pub const COLUMNS: [&str; 2] = ["KEY", "TEXT"];

/// The lines of the help that the filter lets through.
pub fn help(search: &Filter) -> Vec<HelpLine> {
    let passes = |keys: &str, label: &str, text: &str| {
        search.passes(&[Field::text(COLUMNS[0], keys), Field::text(COLUMNS[1], label), Field::text(COLUMNS[1], text)])
    };
    let mut lines = Vec::new();
    let mut section = |title: &'static str, body: Vec<HelpLine>| {
        if !body.is_empty() {
            if !lines.is_empty() {
                lines.push(HelpLine::Blank);
            }
            lines.push(HelpLine::Heading(title));
            lines.extend(body);
        }
    };
    for group in Group::ALL {
        // The same action with other keys elsewhere needs no second line.
        let again = |at: usize, entry: &Entry| TABLE[..at].iter().any(|other| other.action == entry.action && other.help == entry.help);
        let entries = TABLE.iter().enumerate().filter(|(at, entry)| entry.group == group && !entry.keys.is_empty() && !again(*at, entry));
        let entries = entries.map(|(_, entry)| entry);
        let found = entries.filter(|entry| {
            let keys: Vec<_> = entry.keys.iter().flat_map(|key| [key.name(true), key.name(false)]).collect();
            passes(&keys.join(" "), entry.label, entry.help)
        });
        section(group.title(), found.map(HelpLine::Entry).collect());
    }
    section("Notes", NOTES.into_iter().filter(|note| passes("", "", note)).map(HelpLine::Note).collect());
    lines
}
