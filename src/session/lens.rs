//! What of a running recording somebody wants to see. It changes nothing of what is recorded.

use std::sync::{Arc, Mutex, PoisonError};

/// The filter of single events, which whoever looks at a recording can change while it goes on. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Lens(Arc<Mutex<Option<String>>>);

impl Lens {
    /// Asks for the events that this filter lets through.
    pub fn set(&self, filter: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(filter);
    }

    /// What was asked for since this was last called.
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
