//! The palette: finds actions, tabs, profiles, themes, processes and files by name.

use super::Subject;
use crate::analysis::{Field, Filter, name_rank};
use crate::app::action::{Action, Entry, Status, TABLE};
use crate::app::tabs::{Cell, Role};
use crate::app::{State, Tab, Ticket};
use crate::clr::{Profile, profiles};
use crate::model::{SafeText, TraceFile};
use crate::sorting::CompactSort;
use tui_input::Input;

#[derive(Debug, Default)]
pub struct Palette {
    pub input: Input,
    /// The pending search for recorded files.
    pub(in crate::app) asked: Option<Ticket>,
    /// Recorded files of this run and of the current directory, once the search has finished.
    pub(in crate::app) files: Vec<TraceFile>,
    /// The results, ranked by name: exact matches, prefix matches, then the rest. Within a rank: actions (those possible now first), tabs,
    /// profiles, themes, processes. Actions that match by their help text only follow, then files.
    pub found: Vec<Found>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Index into the action table.
    Action(usize),
    Tab(Tab),
    Profile(&'static Profile),
    Theme(SafeText),
    Process(Subject),
    File(TraceFile),
}

impl State {
    /// Updates the results for the typed text. Actions are those available without the palette.
    pub(in crate::app) fn searched(&self, mut palette: Palette) -> Palette {
        debug_assert!(self.overlay.is_none(), "the palette asks what is possible beneath it");
        let filter = Filter::new(palette.input.value());
        let passes = |fields: &[(&'static str, &str)]| {
            filter.passes(&fields.iter().map(|(column, text)| Field::text(column, text)).collect::<Vec<_>>())
        };
        // A kind lists all of it, and with another word some: "theme dark". Fewer letters are in too many names.
        let first = filter.as_str().split_whitespace().next().unwrap_or_default().to_lowercase();
        let is_kind = |kind: &str| first.len() >= 3 && kind.starts_with(&first);
        let passes_as = |kind: &'static str, column: &'static str, name: &str| {
            passes(&[(column, name)]) || is_kind(kind) && passes(&[("KIND", kind), (column, name)])
        };
        let (mut named, mut described) = (Vec::new(), Vec::new());
        for (index, entry) in TABLE.iter().enumerate().filter(|(index, _)| self.offers(*index)) {
            if passes(&[("ACTION", entry.label)]) {
                named.push((index, entry));
            } else if passes(&[("ACTION", entry.label), ("HELP", entry.help)]) {
                described.push(Found::Action(index));
            }
        }
        named.compact_sort_by_key(|(_, entry)| entry.status(self) != Status::Ready);
        let mut found: Vec<Found> = named.into_iter().map(|(index, _)| Found::Action(index)).collect();
        let tabs = Tab::ALL.into_iter().filter(|tab| tab.is_shown(self.row_kind()));
        found.extend(tabs.filter(|tab| passes_as("tab", "TAB", tab.titles()[0])).map(Found::Tab));
        if (0..TABLE.len()).any(|index| TABLE[index].action == Action::Profiles && self.offers(index)) {
            found.extend(profiles().iter().filter(|profile| passes_as("profile", "PROFILE", &profile.name)).map(Found::Profile));
        }
        found.extend(self.options.themes.iter().filter(|name| passes_as("theme", "THEME", name)).cloned().map(Found::Theme));
        // Processes and files are listed only once something is typed: there may be very many.
        let typed = !filter.is_empty();
        let subjects = self.list.rows().iter().map(|row| Subject::of(&row.process));
        found.extend(subjects.filter(|subject| typed && passes_as("process", "PROCESS", &subject.to_string())).map(Found::Process));
        if typed {
            found.sort_by_cached_key(|found| match found {
                Found::Action(index) if TABLE[*index].status(self) != Status::Ready => 2,
                found => name_rank(filter.as_str(), &found.name()),
            });
        }
        found.append(&mut described);
        // Last: files arrive later and must not move the selection.
        found.extend(palette.files.iter().filter(|file| typed && passes_as("file", "FILE", &file.name())).cloned().map(Found::File));
        palette.found = found;
        palette
    }

    /// Returns whether the palette includes this entry of the action table.
    fn offers(&self, index: usize) -> bool {
        let (entry, context): (&Entry, _) = (&TABLE[index], self.context());
        let earlier = TABLE[..index].iter().any(|other| other.action == entry.action && other.places.contains(context));
        entry.places.contains(context)
            && !earlier
            && !matches!(entry.action, Action::Digit | Action::Palette)
            && entry.status(self) != Status::Idle
    }

    /// Returns the cells of a result: for an action its label, help and key, otherwise kind, name and key.
    pub(super) fn found_cells(&self, found: &Found) -> [Cell; 3] {
        let (kind, key) = match found {
            Found::Action(index) => {
                let entry = &TABLE[*index];
                let (label, help) = self.action_cells(entry);
                return [label, help, self.key_cell(entry)];
            }
            Found::Tab(tab) => ("tab", Cell::new(tab.key(self.row_kind()), Role::Key)),
            Found::Profile(_) => ("profile", Cell::EMPTY),
            Found::Theme(_) => ("theme", Cell::EMPTY),
            Found::Process(_) => ("process", Cell::EMPTY),
            Found::File(_) => ("file", Cell::EMPTY),
        };
        [Cell::new(kind, Role::Dim), Cell::new(found.name(), Role::Strong), key]
    }
}

impl Found {
    fn name(&self) -> String {
        match self {
            Self::Action(index) => TABLE[*index].label.to_owned(),
            Self::Tab(tab) => tab.titles()[0].to_owned(),
            Self::Profile(profile) => profile.name.clone(),
            Self::Theme(name) => name.to_string(),
            Self::Process(subject) => subject.to_string(),
            Self::File(file) => file.name().into_owned(),
        }
    }
}
