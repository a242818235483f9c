//! The runtime and its process.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// Runtime version and process (event 187, also in the rundown).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeInformation {
    /// Major, minor, build and revision.
    pub version: [u16; 4],
}

impl Payload<'_> for RuntimeInformation {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        fields.clr_instance()?;
        let _sku = fields.u16()?;
        for _library in 0..4 {
            fields.u16()?;
        }
        Some(Self { version: [fields.u16()?, fields.u16()?, fields.u16()?, fields.u16()?] })
    }
}

/// Process information, written when a session stops (event 1 of the EventPipe provider).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessInfo<'a> {
    /// Command line of the process.
    pub command_line: Utf16<'a>,
}

impl<'a> Payload<'a> for ProcessInfo<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        Some(Self { command_line: fields.text()? })
    }
}
