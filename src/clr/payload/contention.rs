//! Lock contention.

use super::{Fields, Payload};

/// A thread starts to wait for a lock (event 81).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentionStart {
    /// Whether the lock belongs to the runtime itself.
    pub native: bool,
    /// Lock ID (version 2, .NET 8).
    pub lock: Option<u64>,
    /// Managed ID of the thread that holds the lock, 0 if unknown (version 2).
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
