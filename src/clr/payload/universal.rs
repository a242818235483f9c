//! What collectors outside the runtime record of a machine: `Universal.Events` and `Universal.System`.
//!
//! Their metadata describe texts as single characters (`record-trace`, 2026), so that they are read here. Source: the manifests of these providers in
//! microsoft/perfview, checked against what `record-trace` writes.

use super::{Fields, Payload};

/// A thread stopped running at the moment of the event. Its stack shows where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextSwitch {
    /// How long it did not run, nanoseconds.
    pub duration_ns: u64,
}

impl Payload<'_> for ContextSwitch {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { duration_ns: fields.varuint()? })
    }
}

/// A process is there, or begins. Texts are bytes that need not be UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessName<'a> {
    /// Its name; empty where it is not known.
    pub name: &'a [u8],
}

impl<'a> Payload<'a> for ProcessName<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let _id_in_namespace = fields.varuint()?;
        Some(Self { name: fields.short_utf8()? })
    }
}

/// A file is mapped into a process, or memory that is of no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessMapping<'a> {
    /// The first address.
    pub start: u64,
    /// The last address.
    pub end: u64,
    /// Where in the file the first address is, bytes.
    pub file_offset: u64,
    /// The path of the file.
    pub path: &'a [u8],
}

impl<'a> Payload<'a> for ProcessMapping<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let _id = fields.varuint()?;
        Some(Self { start: fields.varuint()?, end: fields.varuint()?, file_offset: fields.varuint()?, path: fields.short_utf8()? })
    }
}

/// How long a thread was in a state while it was sampled: an event of dn-top's own files, one for each thread and state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTime<'a> {
    /// The name of the thread; bytes that need not be UTF-8.
    pub name: &'a [u8],
    /// The state: `cpu`, `runnable`, or what it waited for, such as `futex`.
    pub state: &'a [u8],
    /// Nanoseconds.
    pub duration_ns: u64,
}

impl<'a> Payload<'a> for ThreadTime<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        Some(Self { name: fields.short_utf8()?, state: fields.short_utf8()?, duration_ns: fields.varuint()? })
    }
}

/// What the samples of a file lack: an event of dn-top's own files, at their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleLosses {
    /// Whether samples show what runs in the kernel.
    pub sees_kernel: bool,
    /// Samples that had no room in a ring buffer.
    pub lost: u64,
    /// Samples that could not be read.
    pub unreadable: u64,
    /// Times that the kernel took no samples for a while, because they came too fast.
    pub throttled: u64,
    /// Threads that could not be sampled.
    pub missed_threads: u64,
    /// Threads that ended before they could be sampled.
    pub short_threads: u64,
}

impl<'a> Payload<'a> for SampleLosses {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        Some(Self {
            sees_kernel: fields.varuint()? != 0,
            lost: fields.varuint()?,
            unreadable: fields.varuint()?,
            throttled: fields.varuint()?,
            missed_threads: fields.varuint()?,
            short_threads: fields.varuint()?,
        })
    }
}

/// A function is at some addresses of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSymbol<'a> {
    /// The first address.
    pub start: u64,
    /// The last address.
    pub end: u64,
    /// Its name.
    pub name: &'a [u8],
}

impl<'a> Payload<'a> for ProcessSymbol<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (_id, _mapping) = (fields.varuint()?, fields.varuint()?);
        Some(Self { start: fields.varuint()?, end: fields.varuint()?, name: fields.short_utf8()? })
    }
}
