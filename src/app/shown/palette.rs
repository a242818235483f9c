//! What the palette offers.

use crate::app::action::{Action, Entry, Status, TABLE};
use crate::app::dialog::Palette;
use crate::app::state::State;

impl State {
    /// Searches for what the palette's line says, among what could be done without the palette.
    pub(in crate::app) fn searched(&self, mut palette: Palette) -> Palette {
        debug_assert!(self.overlay.is_none(), "the palette asks what is possible beneath it");
        let context = self.context();
        let offers = |index: usize| {
            let entry: &Entry = &TABLE[index];
            let earlier = TABLE[..index].iter().any(|other| other.action == entry.action && other.places.contains(context));
            entry.places.contains(context)
                && !earlier
                && !matches!(entry.action, Action::Digit | Action::Palette)
                && entry.status(self) != Status::Idle
        };
        palette.search(offers, self.list.rows());
        palette
    }
}
