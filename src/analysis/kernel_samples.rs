//! Kernel samples, as recorded by `dotnet-trace collect-linux` and `record-trace`. They are only counted here, and exported.

use std::fmt;

use super::EventCount;

/// Provider of these events (reference: Universal providers of the nettrace format).
const PROVIDER: &str = "Universal.Events";

/// Number of kernel samples in a stream.
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
        for EventCount { name, count, .. } in counts.into_iter().filter(|count| count.provider == PROVIDER) {
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
            "{cpu} CPU samples and {switches} context switches of the kernel ({PROVIDER}), not analyzed here: export them with `dn-top export --format perfetto`"
        )
    }
}
