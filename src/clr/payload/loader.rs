//! Modules and assemblies.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// A module is loaded (event 152; at the rundown provider 153 and 154).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleLoad<'a> {
    /// The module.
    pub module: u64,
    /// Its assembly.
    pub assembly: u64,
    /// Path of its file; not a real one for a file in a bundle, empty for a dynamic module.
    pub path: Utf16<'a>,
    /// Its symbols, which tell where in the sources a method stands (version 2).
    pub symbols: Option<Symbols<'a>>,
}

/// What identifies the symbols of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbols<'a> {
    /// Its signature.
    pub signature: [u8; 16],
    /// Its age.
    pub age: u32,
    /// Where it was when the module was built.
    pub path: Utf16<'a>,
}

impl<'a> Payload<'a> for ModuleLoad<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (module, assembly) = (fields.u64()?, fields.u64()?);
        let (_flags, _reserved) = (fields.u32()?, fields.u32()?);
        let (path, _native_path) = (fields.text()?, fields.text()?);
        let symbols = fields.since(2, |fields| {
            fields.clr_instance()?;
            Some(Symbols { signature: fields.guid()?, age: fields.u32()?, path: fields.text()? })
        })?;
        Some(Self { module, assembly, path, symbols })
    }
}

/// An assembly is loaded (event 154; at the rundown provider 155 and 156), or unloaded (155).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssemblyLoad<'a> {
    /// The assembly.
    pub assembly: u64,
    /// 1 neutral, 2 dynamic, 4 has native code, 8 collectible, 0x10 ready to run.
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

/// The runtime is done looking for an assembly (event 291).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssemblyLoadStop<'a> {
    /// What was looked for.
    pub name: Utf16<'a>,
    /// The requesting assembly; can be empty.
    pub requested_by: Utf16<'a>,
    /// Whether it was found.
    pub found: bool,
    /// Whether it had been found before.
    pub cached: bool,
}

impl<'a> Payload<'a> for AssemblyLoadStop<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        fields.clr_instance()?;
        let (name, _path, requested_by) = (fields.text()?, fields.text()?, fields.text()?);
        let (_context, _requesting_context) = (fields.text()?, fields.text()?);
        let found = fields.u32()? != 0;
        let (_result, _result_path) = (fields.text()?, fields.text()?);
        Some(Self { name, requested_by, found, cached: fields.u32()? != 0 })
    }
}
