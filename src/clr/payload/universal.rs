//! Events of machine-wide collectors outside the runtime: `Universal.Events` and `Universal.System`.
//!
//! Their metadata declares strings as single characters (`record-trace`, 2026), hence the fixed layouts here. Source: the manifests of these
//! providers in microsoft/perfview, verified against the output of `record-trace`.

use serde::Serialize;

use super::{Fields, Payload};

/// A thread was switched out at the time of the event; the event's stack shows where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextSwitch {
    /// Time off CPU in nanoseconds.
    pub duration_ns: u64,
}

impl Payload<'_> for ContextSwitch {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { duration_ns: fields.varuint()? })
    }
}

/// A process exists or starts. Strings are bytes that need not be UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessName<'a> {
    /// Process name; empty if unknown.
    pub name: &'a [u8],
}

impl<'a> Payload<'a> for ProcessName<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let _id_in_namespace = fields.varuint()?;
        Some(Self { name: fields.short_utf8()? })
    }
}

/// A file or anonymous memory is mapped into a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessMapping<'a> {
    /// First address.
    pub start: u64,
    /// Last address.
    pub end: u64,
    /// File offset of the first address in bytes.
    pub file_offset: u64,
    /// Path of the file.
    pub path: &'a [u8],
}

impl<'a> Payload<'a> for ProcessMapping<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let _id = fields.varuint()?;
        Some(Self { start: fields.varuint()?, end: fields.varuint()?, file_offset: fields.varuint()?, path: fields.short_utf8()? })
    }
}

/// Time that a thread spent in one state while sampled; written to dn-top's own files, one event per thread and state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTime<'a> {
    /// Thread name; bytes that need not be UTF-8.
    pub name: &'a [u8],
    /// State: `cpu`, `runnable`, or the reason of the wait, such as `futex`.
    pub state: &'a [u8],
    /// Time in nanoseconds.
    pub duration_ns: u64,
}

impl<'a> Payload<'a> for ThreadTime<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        Some(Self { name: fields.short_utf8()?, state: fields.short_utf8()?, duration_ns: fields.varuint()? })
    }
}

/// Sample losses of a file; written at the end of dn-top's own files, and serialized with the names of its JSON output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SampleLosses {
    /// Whether samples include kernel frames.
    #[serde(rename = "kernel_visible")]
    pub includes_kernel: bool,
    /// Samples dropped because a ring buffer was full.
    #[serde(rename = "lost_samples")]
    pub lost: u64,
    /// Samples that could not be decoded.
    #[serde(rename = "unreadable_samples")]
    pub unreadable: u64,
    /// Number of times that the kernel throttled sampling because of the sample rate.
    pub throttled: u64,
    /// Threads that could not be sampled.
    pub missed_threads: u64,
    /// Threads that exited before they could be sampled.
    pub short_threads: u64,
}

impl<'a> Payload<'a> for SampleLosses {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        Some(Self {
            includes_kernel: fields.varuint()? != 0,
            lost: fields.varuint()?,
            unreadable: fields.varuint()?,
            throttled: fields.varuint()?,
            missed_threads: fields.varuint()?,
            short_threads: fields.varuint()?,
        })
    }
}

/// A function in the address space of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSymbol<'a> {
    /// First address.
    pub start: u64,
    /// Last address.
    pub end: u64,
    /// Function name.
    pub name: &'a [u8],
}

impl<'a> Payload<'a> for ProcessSymbol<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (_id, _mapping) = (fields.varuint()?, fields.varuint()?);
        Some(Self { start: fields.varuint()?, end: fields.varuint()?, name: fields.short_utf8()? })
    }
}
