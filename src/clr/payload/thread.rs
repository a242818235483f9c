//! Samples of what threads do.

use super::{Fields, Payload};

/// What a thread was doing when the sampler looked (event 0 of the sample profiler). Its stack shows where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSample {
    /// In what code.
    pub kind: SampleType,
}

/// In what code a thread was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleType {
    /// Not known.
    Error,
    /// In native code, which its leaf method called: waiting, as a rule, but also working in the runtime or in a library.
    External,
    /// In managed code: running, or ready to run.
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
