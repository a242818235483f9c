//! Notes on providers whose names may be wrong.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::driver::Driver;
use crate::clr::{silent_provider_hint, without_events};

/// Time after which a specified provider without events is noted.
const PROVIDER_SILENCE: Duration = Duration::from_secs(5);

impl Driver {
    /// Adds a note, once, on each specified provider that has sent no event so far and whose name may be wrong.
    pub(super) fn note_silent_providers(&mut self) {
        if self.plan.specified_providers.is_empty() || self.begun.elapsed() < PROVIDER_SILENCE {
            return;
        }
        let Some(seen) = self.progress.providers.take() else {
            self.progress.providers_requested.store(true, Ordering::Relaxed);
            return;
        };
        let specified = std::mem::take(&mut self.plan.specified_providers);
        let silent = without_events(specified.iter().map(String::as_str), &seen);
        self.recording.notes.extend(silent.filter_map(|name| silent_provider_hint(name, PROVIDER_SILENCE)));
    }
}
