//! The profile picker.

use crate::app::cursor::Cursor;
use crate::clr::{SLOW, profiles};

use super::{ListState, Subject};

/// What to record of a process.
#[derive(Debug)]
pub struct Picker {
    /// The process that would be recorded.
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

    /// The chosen profiles; the selected one where none is, and where it answers a question by itself.
    pub(in crate::app) fn names(&self, selected: usize) -> Vec<String> {
        let named = |index: usize| profiles().get(index).map(|profile| profile.name.clone());
        let chosen: Vec<_> = (0..self.chosen.len()).filter(|&index| self.chosen[index]).filter_map(named).collect();
        if chosen.is_empty() || profiles().get(selected).is_some_and(|profile| profile.name == SLOW) {
            named(selected).into_iter().collect()
        } else {
            chosen
        }
    }
}
