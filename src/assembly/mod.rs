//! .NET assemblies (ECMA-335, partition II): reads what determines whether a runtime can load a file as a startup hook.
//!
//! Opens no files: input is any [`Read`] and [`Seek`]. The bytes may be anything: sizes are bounded by [`MAX_METADATA`], indexes checked.

mod image;
mod tables;

use std::io::{self, Read, Seek, SeekFrom};

use thiserror::Error;

use self::image::{CLI_HEADER_BYTES, CliHeader, HEAD_BYTES, Image};
use self::tables::{Metadata, Table};
use crate::wire::WireError;

/// Maximum bytes of metadata read. The metadata of the largest framework assembly, `System.Private.CoreLib`, has 5 MB.
pub const MAX_METADATA: u32 = 64 << 20;

/// A version: major, minor, build, revision.
pub type Version = [u16; 4];

/// Facts about an assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembly {
    /// Simple name in the manifest, which may differ from the file name.
    pub name: String,
    /// Version of the assembly.
    pub version: Version,
    /// Module version ID, unique to every compilation.
    pub mvid: [u8; 16],
    /// Machines that the assembly is for.
    pub machine: Machine,
    /// Version of the referenced `System.Runtime`. From .NET 5 on, its major number is that of .NET.
    pub system_runtime: Option<Version>,
    /// Whether it can be a startup hook.
    pub startup_hook: StartupHook,
}

/// Machines that an assembly is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// All machines.
    Any,
    /// One machine, by its number in the PE format (`IMAGE_FILE_MACHINE_*`).
    Only(u16),
}

/// Whether an assembly can be a startup hook: it must have a class `StartupHook` in the global namespace with a public or non-public method
/// `static void Initialize()` (`documentation/design-docs/host-startup-hook.md` of dotnet/runtime, and `StartupHookProvider.CallStartupHook`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartupHook {
    /// It can be a startup hook.
    Yes,
    /// The class is missing.
    NoClass,
    /// The class lacks the method.
    NoMethod,
}

impl StartupHook {
    /// Returns what the assembly lacks, phrased as the end of a sentence.
    pub fn problem(self) -> Option<&'static str> {
        match self {
            Self::Yes => None,
            Self::NoClass => Some("has no class StartupHook in the global namespace"),
            Self::NoMethod => Some("has no method `static void Initialize()` in its class StartupHook"),
        }
    }
}

/// The reason why a file cannot be read as an assembly, displayed as the end of a sentence.
#[derive(Debug, Error)]
pub enum AssemblyError {
    /// I/O error.
    #[error("cannot be read ({0})")]
    Io(#[from] io::Error),
    /// The file is something else: native code, a .NET module without a manifest, or not a program at all.
    #[error("is not a .NET assembly")]
    NotAnAssembly,
    /// The metadata is truncated, inconsistent, or of a form not written by compilers.
    #[error("has metadata that cannot be read ({0})")]
    Malformed(&'static str),
}

impl From<WireError> for AssemblyError {
    fn from(_: WireError) -> Self {
        Self::Malformed("unexpected end")
    }
}

impl Assembly {
    /// Reads the headers and the metadata of a file.
    ///
    /// # Errors
    /// [`AssemblyError`].
    pub fn read(file: &mut (impl Read + Seek)) -> Result<Self, AssemblyError> {
        let image = Image::parse(&bytes_at(file, 0, HEAD_BYTES)?).ok_or(AssemblyError::NotAnAssembly)?;
        if image.end() > file.seek(SeekFrom::End(0))? {
            return Err(AssemblyError::Malformed("the file is cut off"));
        }
        let at = image.offset(image.cli_header).ok_or(AssemblyError::NotAnAssembly)?;
        let cli = CliHeader::parse(&bytes_at(file, at, CLI_HEADER_BYTES)?)?;
        if cli.metadata_bytes > MAX_METADATA {
            return Err(AssemblyError::Malformed("it is too large"));
        }
        let at = image.offset(cli.metadata).ok_or(AssemblyError::Malformed("not in any section"))?;
        Self::describe(&bytes_at(file, at, cli.metadata_bytes.into())?, image.machine(cli.flags))
    }

    /// Column numbers are as in ECMA-335, II.22.2 and II.22.5.
    fn describe(metadata: &[u8], machine: Machine) -> Result<Self, AssemblyError> {
        let metadata = Metadata::parse(metadata)?;
        if metadata.rows(Table::Assembly) == 0 {
            return Err(AssemblyError::NotAnAssembly);
        }
        let mut system_runtime = None;
        for row in 1..=metadata.rows(Table::AssemblyRef) {
            if metadata.is(Table::AssemblyRef, row, 6, b"System.Runtime")? {
                system_runtime = Some(metadata.version(Table::AssemblyRef, row, 0)?);
            }
        }
        Ok(Self {
            name: String::from_utf8_lossy(metadata.text(Table::Assembly, 1, 7)?).into_owned(),
            version: metadata.version(Table::Assembly, 1, 1)?,
            mvid: metadata.mvid()?,
            machine,
            system_runtime,
            startup_hook: metadata.startup_hook()?,
        })
    }
}

/// Reads at most `count` bytes from an offset; fewer at the end of the file.
fn bytes_at(file: &mut (impl Read + Seek), offset: u64, count: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
pub(crate) mod tests;
