//! The profile picker.

use crate::clr::profiles;

use super::{ListState, Subject};

/// What to record of a process.
#[derive(Debug)]
pub struct Picker {
    /// The process that would be recorded.
    pub subject: Subject,
    /// The selected profile.
    pub list: ListState,
    /// Which of [`profiles`] are chosen.
    pub chosen: Vec<bool>,
}

impl Picker {
    pub(in crate::app) fn new(subject: Subject, chosen: &[String]) -> Self {
        Self { subject, list: ListState::default(), chosen: profiles().iter().map(|profile| chosen.contains(&profile.name)).collect() }
    }

    pub(in crate::app) fn toggle(&mut self, item: usize) {
        if let Some(chosen) = self.chosen.get_mut(item) {
            *chosen = !*chosen;
        }
    }

    /// The chosen profiles; the selected one where none is.
    pub(in crate::app) fn names(&self, selected: usize) -> Vec<String> {
        let named = |index: usize| profiles().get(index).map(|profile| profile.name.clone());
        let chosen: Vec<_> = (0..self.chosen.len()).filter(|&index| self.chosen[index]).filter_map(named).collect();
        if chosen.is_empty() { named(selected).into_iter().collect() } else { chosen }
    }
}
