//! Which processes could be watched, and are not.

use crate::app::action::{Status, attach};
use crate::app::state::State;
use crate::model::ProcessKey;

impl State {
    /// The processes that the filter lets through, could be watched, and are not.
    pub(in crate::app) fn unwatched(&self) -> impl Iterator<Item = ProcessKey> {
        let rows = self.list.shown().filter(|row| !matches!(attach(self, row), Some(Status::Refused(_))));
        rows.map(|row| row.process.key).filter(|key| self.watches.of(*key).is_none())
    }
}
