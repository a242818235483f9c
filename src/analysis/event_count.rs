//! How often the events of one kind came.

use crate::clr::{RUNTIME, SAMPLE_PROFILER, UNIVERSAL_EVENTS};

/// How often an event came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCount {
    /// Name of the provider; not sanitised. Empty for events whose kind the stream does not define.
    pub provider: String,
    /// Number of the event within its provider.
    pub event_id: u32,
    /// Name of the event, for the runtime's own events from [`events::name`](crate::clr::events::name); not sanitised.
    pub name: String,
    /// Events.
    pub count: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

impl EventCount {
    /// Its name, or its number where it has none; not sanitised.
    pub fn title(&self) -> String {
        if self.name.is_empty() { format!("event {}", self.event_id) } else { self.name.clone() }
    }

    /// Whether it is a sample.
    pub fn is_sample(&self) -> bool {
        [SAMPLE_PROFILER, UNIVERSAL_EVENTS].contains(&self.provider.as_str())
    }

    /// Whether it is a sample, or of a suspension of all threads: each round of samples of the runtime needs one, and so does each collection.
    pub fn comes_of_sampling(&self) -> bool {
        const SUSPENSIONS: [u32; 4] = [3, 7, 8, 9];
        self.is_sample() || self.provider == RUNTIME && SUSPENSIONS.contains(&self.event_id)
    }
}
