//! Number of events by kind.

use std::fmt;

use crate::clr::{RUNTIME_PROVIDER, SAMPLE_PROFILER, UNIVERSAL_EVENTS};

/// Number and size of the events of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCount {
    /// Provider name; not sanitized. Empty for events whose metadata is missing from the stream.
    pub provider: String,
    /// Event ID within its provider.
    pub event_id: u32,
    /// Event name; the runtime's own events are named by [`events::name`](crate::clr::events::name). Not sanitized.
    pub name: String,
    /// Number of events.
    pub count: u64,
    /// Payload bytes.
    pub bytes: u64,
}

impl EventCount {
    /// Returns the event name, or the ID if it has no name; not sanitized.
    pub fn title(&self) -> String {
        if self.name.is_empty() { format!("event {}", self.event_id) } else { self.name.clone() }
    }

    /// Returns whether this is a sample of the runtime's sampling profiler or of the kernel.
    pub fn is_sample(&self) -> bool {
        [SAMPLE_PROFILER, UNIVERSAL_EVENTS].contains(&self.provider.as_str())
    }

    /// Returns whether this is a sample or an event of a runtime suspension: each sampling round of the runtime requires a suspension, and so
    /// does each garbage collection.
    pub fn is_sampling_event(&self) -> bool {
        self.is_sample() || is_suspension(&self.provider, self.event_id)
    }
}

/// Returns whether this is an event of a runtime suspension.
pub(super) fn is_suspension(provider: &str, event_id: u32) -> bool {
    const SUSPENSIONS: [u32; 4] = [3, 7, 8, 9];
    provider == RUNTIME_PROVIDER && SUSPENSIONS.contains(&event_id)
}

/// Number of kernel samples in a stream, as recorded by `dotnet-trace collect-linux` and `record-trace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelSamples {
    /// CPU samples, taken at regular intervals.
    pub cpu: u64,
    /// Context switches.
    pub switches: u64,
}

impl KernelSamples {
    /// Sums up the kernel samples among the event counts of a stream; `None` if there are none.
    pub fn from_counts<'a>(counts: impl IntoIterator<Item = &'a EventCount>) -> Option<Self> {
        let mut samples = Self::default();
        for EventCount { name, count, .. } in counts.into_iter().filter(|count| count.provider == UNIVERSAL_EVENTS) {
            match name.as_str() {
                "cpu" => samples.cpu += count,
                "cswitch" => samples.switches += count,
                _ => {}
            }
        }
        Some(samples).filter(|samples| *samples != Self::default())
    }
}

impl fmt::Display for KernelSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, switches } = self;
        write!(
            f,
            "{cpu} CPU samples and {switches} context switches of the kernel ({UNIVERSAL_EVENTS}), not analyzed here: export them with `dn-top export --format perfetto`"
        )
    }
}
