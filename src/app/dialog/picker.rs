//! The profile picker.

use crate::app::cursor::Cursor;
use crate::clr::{SLOW_PROFILE, profiles};

use super::{ListState, Overlay, Pick, Subject};

impl Overlay {
    /// Creates the list of profiles for recording a process, with those of these names chosen.
    pub(in crate::app) fn profiles(subject: Subject, names: &[String]) -> Self {
        let chosen: Vec<bool> = profiles().iter().map(|profile| names.contains(&profile.name)).collect();
        let first = chosen.iter().position(|chosen| *chosen).unwrap_or(0);
        Self::List(ListState { cursor: Cursor::at(first), chosen, ..ListState::default() }, Pick::Profiles(subject))
    }
}

/// Sums up the overhead of the chosen profiles: the number of each kind, the heaviest first. `None` for fewer than two.
pub(super) fn overhead(chosen: &[bool]) -> Option<String> {
    let chosen: Vec<_> = profiles().iter().zip(chosen).filter(|(_, chosen)| **chosen).map(|(profile, _)| profile.overhead()).collect();
    let weight = |kind: &&str| ["moderate", "low to high", "low", "very low"].iter().position(|known| known == kind);
    let mut kinds = chosen.clone();
    kinds.sort_unstable_by_key(weight);
    kinds.dedup();
    let count = |kind: &str| format!("{} {kind}", chosen.iter().filter(|other| **other == kind).count());
    (chosen.len() > 1).then(|| kinds.into_iter().map(count).collect::<Vec<_>>().join(" + "))
}

/// Returns the chosen profiles; the selected one alone if none is chosen, or if it is the `slow` profile, which is recorded on its own.
pub(in crate::app) fn picked_profiles(chosen: &[bool], selected: usize) -> Vec<String> {
    let is_slow = profiles().get(selected).is_some_and(|profile| profile.name == SLOW_PROFILE);
    let is_picked = |index: usize| if is_slow || !chosen.contains(&true) { index == selected } else { chosen[index] };
    profiles().iter().enumerate().filter(|(index, _)| is_picked(*index)).map(|(_, profile)| profile.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_of_selected_profiles_is_summarized_by_level() {
        let of = |names: &[&str]| overhead(&profiles().iter().map(|profile| names.contains(&profile.name.as_str())).collect::<Vec<_>>());
        assert_eq!(of(&["cpu"]), None);
        assert_eq!(of(&["cpu", "gc-verbose", "http", "exceptions"]).as_deref(), Some("2 moderate + 1 low + 1 very low"));
    }
}
