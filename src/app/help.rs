//! The help text: the action table, by headings.

use super::action::{Entry, Group, TABLE};

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
    "In a dialog, Right at the end of a word types what is offered first.",
    "A process that cannot be talked to says why in its row.",
    "States: ● running  ◎ watched  ◐ suspended  ◉ recording  ! trouble",
];

/// The lines of the help in which the text occurs, in keys or words.
pub fn help(search: &str) -> Vec<HelpLine> {
    let wanted = search.trim().to_lowercase();
    let occurs = |text: &str| text.to_lowercase().contains(&wanted);
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
            occurs(entry.label) || occurs(entry.help) || entry.keys.iter().any(|key| occurs(&key.name(true)) || occurs(&key.name(false)))
        });
        section(group.title(), found.map(HelpLine::Entry).collect());
    }
    section("Good to know", NOTES.into_iter().filter(|note| occurs(note)).map(HelpLine::Note).collect());
    lines
}
