//! The profile picker.

use crate::app::cursor::Cursor;
use crate::clr::{SLOW_PROFILE, profiles};

use super::{ListState, Subject};

#[derive(Debug)]
pub struct Picker {
    /// The process to record.
    pub subject: Subject,
    pub list: ListState,
    pub chosen: Vec<bool>,
}

impl Picker {
    pub(in crate::app) fn new(subject: Subject, chosen: &[String]) -> Self {
        let chosen: Vec<bool> = profiles().iter().map(|profile| chosen.contains(&profile.name)).collect();
        let first = chosen.iter().position(|chosen| *chosen).unwrap_or(0);
        Self { subject, list: ListState { cursor: Cursor::at(first), ..ListState::default() }, chosen }
    }

    pub(in crate::app) fn toggle(&mut self, item: usize) {
        if let Some(chosen) = self.chosen.get_mut(item) {
            *chosen = !*chosen;
        }
    }

    /// Sums up the overhead of the chosen profiles: the number of each kind, the heaviest first. `None` for fewer than two.
    pub(super) fn overhead(&self) -> Option<String> {
        let chosen: Vec<_> =
            profiles().iter().zip(&self.chosen).filter(|(_, chosen)| **chosen).map(|(profile, _)| profile.overhead()).collect();
        let weight = |kind: &&str| ["moderate", "low to high", "low", "very low"].iter().position(|known| known == kind);
        let mut kinds = chosen.clone();
        kinds.sort_unstable_by_key(weight);
        kinds.dedup();
        let count = |kind: &str| format!("{} {kind}", chosen.iter().filter(|other| **other == kind).count());
        (chosen.len() > 1).then(|| kinds.into_iter().map(count).collect::<Vec<_>>().join(" + "))
    }

    /// Returns the chosen profiles; the selected one alone if none is chosen, or if it is the `slow` profile, which is recorded on its own.
    pub(in crate::app) fn names(&self, selected: usize) -> Vec<String> {
        let named = |index: usize| profiles().get(index).map(|profile| profile.name.clone());
        let chosen: Vec<_> = (0..self.chosen.len()).filter(|&index| self.chosen[index]).filter_map(named).collect();
        if chosen.is_empty() || profiles().get(selected).is_some_and(|profile| profile.name == SLOW_PROFILE) {
            named(selected).into_iter().collect()
        } else {
            chosen
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ProcessKey, SafeText};

    #[test]
    fn overhead_of_selected_profiles_is_summarized_by_level() {
        let of = |names: &[&str]| {
            let subject = Subject { key: ProcessKey { pid: 7, started: 1 }, name: SafeText::new("Web") };
            Picker::new(subject, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).overhead()
        };
        assert_eq!(of(&["cpu"]), None);
        assert_eq!(of(&["cpu", "gc-verbose", "http", "exceptions"]).as_deref(), Some("2 moderate + 1 low + 1 very low"));
    }
}
