//! Threads and samples of what they do.

use super::{Fields, Payload};

/// A managed thread is made (event 85).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCreated {
    /// The number that the program knows it by (`Environment.CurrentManagedThreadId`).
    pub managed_index: u32,
    /// The operating system's number, in the process's own pid namespace; 0 where the thread does not run yet.
    pub os_thread: u32,
}

impl Payload<'_> for ThreadCreated {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let (_managed_id, _domain, _flags) = (fields.u64()?, fields.u64()?, fields.u32()?);
        Some(Self { managed_index: fields.u32()?, os_thread: fields.u32()? })
    }
}

/// What a thread was doing when the sampler looked (event 0 of the sample profiler). Its stack says where.
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
