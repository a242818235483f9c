//! Samples of the runtime's sampling profiler.

use super::{Fields, Payload};

/// State of a thread at the time of the sample (event 0 of the sample profiler). The event's stack shows where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSample {
    /// Kind of code that the thread was executing.
    pub kind: SampleType,
}

/// Kind of code that a thread was executing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleType {
    /// Unknown.
    Error,
    /// Native code called by the leaf method: usually waiting, but possibly working in the runtime or a library.
    External,
    /// Managed code: running or ready to run.
    Managed,
}

impl Payload<'_> for ThreadSample {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let kind = match fields.u32()? {
            1 => SampleType::External,
            2 => SampleType::Managed,
            _ => SampleType::Error,
        };
        Some(Self { kind })
    }
}
