//! Modules and assemblies.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// A module is loaded (event 152; 153 and 154 in the rundown).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleLoad<'a> {
    /// Module ID.
    pub module: u64,
    /// File path; not a real path if the file is in a bundle, empty for a dynamic module.
    pub path: Utf16<'a>,
}

impl<'a> Payload<'a> for ModuleLoad<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (module, _assembly) = (fields.u64()?, fields.u64()?);
        let (_flags, _reserved) = (fields.u32()?, fields.u32()?);
        Some(Self { module, path: fields.text()? })
    }
}

/// An assembly is loaded (event 154; 155 and 156 in the rundown) or unloaded (155).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssemblyLoad<'a> {
    /// Assembly ID.
    pub assembly: u64,
    /// Flags: 1 domain-neutral, 2 dynamic, 4 native code, 8 collectible, 0x10 ReadyToRun.
    pub flags: u32,
    /// Name, version, culture and public key token.
    pub full_name: Utf16<'a>,
}

impl<'a> Payload<'a> for AssemblyLoad<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (assembly, _domain, _binding) = (fields.u64()?, fields.u64()?, fields.u64()?);
        Some(Self { assembly, flags: fields.u32()?, full_name: fields.text()? })
    }
}

/// The runtime finished the load attempt for an assembly (event 291).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssemblyLoadStop<'a> {
    /// Name of the assembly to load.
    pub name: Utf16<'a>,
    /// The requesting assembly; can be empty.
    pub requested_by: Utf16<'a>,
    /// Whether the assembly was found.
    pub found: bool,
}

impl<'a> Payload<'a> for AssemblyLoadStop<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        fields.clr_instance()?;
        let (name, _path, requested_by) = (fields.text()?, fields.text()?, fields.text()?);
        let (_context, _requesting_context) = (fields.text()?, fields.text()?);
        Some(Self { name, requested_by, found: fields.u32()? != 0 })
    }
}
