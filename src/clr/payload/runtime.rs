//! The runtime and its process.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// Runtime version and process (event 187, also in the rundown).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeInformation<'a> {
    /// Major, minor, build and revision.
    pub version: [u16; 4],
    /// Command line of the process.
    pub command_line: Utf16<'a>,
    /// Path of the runtime's library.
    pub path: Utf16<'a>,
}

impl<'a> Payload<'a> for RuntimeInformation<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        fields.clr_instance()?;
        let _sku = fields.u16()?;
        for _library in 0..4 {
            fields.u16()?;
        }
        let version = [fields.u16()?, fields.u16()?, fields.u16()?, fields.u16()?];
        let (_startup_flags, _startup_mode) = (fields.u32()?, fields.u8()?);
        let command_line = fields.text()?;
        let _com_object = fields.guid()?;
        Some(Self { version, command_line, path: fields.text()? })
    }
}

/// Process information, written when a session stops (event 1 of the EventPipe provider).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessInfo<'a> {
    /// Command line of the process.
    pub command_line: Utf16<'a>,
    /// Operating system (version 1, .NET 5).
    pub os: Option<Utf16<'a>>,
    /// Architecture (version 1).
    pub architecture: Option<Utf16<'a>>,
}

impl<'a> Payload<'a> for ProcessInfo<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let command_line = fields.text()?;
        Some(Self { command_line, os: fields.since(1, Fields::text)?, architecture: fields.since(1, Fields::text)? })
    }
}
