//! What threads do: samples of the sampling profiler, waits for locks, exceptions.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// Kind of code that a thread was executing at the time of the sample (event 0 of the sample profiler). The event's stack shows where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleType {
    /// Unknown.
    Error,
    /// Native code called by the leaf method: usually waiting, but possibly working in the runtime or a library.
    External,
    /// Managed code: running or ready to run.
    Managed,
}

impl Payload<'_> for SampleType {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(match fields.u32()? {
            1 => Self::External,
            2 => Self::Managed,
            _ => Self::Error,
        })
    }
}

/// A thread starts to wait for a lock (event 81).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentionStart {
    /// Whether the lock belongs to the runtime itself.
    pub native: bool,
    /// Lock ID (version 2, .NET 8).
    pub lock: Option<u64>,
    /// Operating system ID of the thread that holds the lock, 0 if unknown (version 2).
    pub owner: Option<u64>,
}

impl Payload<'_> for ContentionStart {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let native = fields.u8()? != 0;
        fields.clr_instance()?;
        let added = fields.since(2, |fields| {
            let (lock, _object) = (fields.pointer()?, fields.pointer()?);
            Some((lock, fields.u64()?))
        })?;
        Some(Self { native, lock: added.map(|(lock, _)| lock), owner: added.map(|(_, owner)| owner) })
    }
}

/// A thread acquired the lock that it waited for (event 91).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContentionStop {
    /// Whether the lock belongs to the runtime itself.
    pub native: bool,
    /// Wait time in nanoseconds (version 1, .NET Core 3.0).
    pub duration_ns: Option<f64>,
}

impl Payload<'_> for ContentionStop {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let native = fields.u8()? != 0;
        fields.clr_instance()?;
        Some(Self { native, duration_ns: fields.since(1, Fields::f64)? })
    }
}

/// An exception is thrown (event 80).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceptionThrown<'a> {
    /// Full name of the exception type.
    pub type_name: Utf16<'a>,
    /// Message; can be empty.
    pub message: Utf16<'a>,
    /// HRESULT of the exception.
    pub hresult: u32,
    /// Flags: 1 has an inner exception, 2 nested (thrown while another was handled), 4 rethrown, 8 corrupted state, 0x10 CLS-compliant.
    pub flags: u16,
}

impl ExceptionThrown<'_> {
    /// Returns whether the exception was caught before and is rethrown.
    pub fn is_rethrown(&self) -> bool {
        self.flags & 4 != 0
    }
}

impl<'a> Payload<'a> for ExceptionThrown<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (type_name, message) = (fields.text()?, fields.text()?);
        let _address = fields.pointer()?;
        Some(Self { type_name, message, hresult: fields.u32()?, flags: fields.u16()? })
    }
}
