//! .NET assemblies (ECMA-335, partition II): as much of a file as decides whether a runtime can load it as a startup hook.
//!
//! No files: what is read is [`Read`] and [`Seek`]. The bytes may be anything: every size is bounded by [`MAX_METADATA`], every index is checked.

mod image;
mod tables;

use std::io::{self, Read, Seek, SeekFrom};

use thiserror::Error;

use self::image::{CLI_HEADER_BYTES, CliHeader, HEAD_BYTES, Image};
use self::tables::{Metadata, Table};
use crate::wire::WireError;

/// The most metadata that is read, in bytes. That of the largest framework assembly, `System.Private.CoreLib`, has 5 MB.
pub const MAX_METADATA: u32 = 64 << 20;

/// Four numbers of a version: major, minor, build, revision.
pub type Version = [u16; 4];

/// What is known of an assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembly {
    /// The simple name, as its manifest has it: the file may have another.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// The module version id, new for every compilation.
    pub mvid: [u8; 16],
    /// Which machines it is for.
    pub machine: Machine,
    /// The version of `System.Runtime` that it was compiled against. Its major number is that of .NET from 5 on.
    pub system_runtime: Option<Version>,
    /// Whether it can be a startup hook.
    pub startup_hook: StartupHook,
}

/// Which machines an assembly is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// All.
    Any,
    /// One, by its number in the PE format (`IMAGE_FILE_MACHINE_*`).
    Only(u16),
}

/// Whether an assembly can be a startup hook: it has a class `StartupHook` outside of any namespace, with a method `static void Initialize()`,
/// public or not (`documentation/design-docs/host-startup-hook.md` of dotnet/runtime, and `StartupHookProvider.CallStartupHook`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartupHook {
    /// It can.
    Yes,
    /// It has no such class.
    NoClass,
    /// The class has no such method.
    NoMethod,
}

/// Why a file is not understood.
#[derive(Debug, Error)]
pub enum AssemblyError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else: native code, a .NET module without a manifest, or no program at all.
    #[error("is not a .NET assembly")]
    NotAnAssembly,
    /// Its metadata is cut off, contradicts itself, or is of a kind that compilers do not write.
    #[error("has metadata that cannot be read ({0})")]
    Malformed(&'static str),
}

impl From<WireError> for AssemblyError {
    fn from(_: WireError) -> Self {
        Self::Malformed("it ends too soon")
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
        let at = image.offset(cli.metadata).ok_or(AssemblyError::Malformed("it is in no section"))?;
        Self::describe(&bytes_at(file, at, cli.metadata_bytes.into())?, image.machine(cli.flags))
    }

    /// The numbers are those of columns (ECMA-335, II.22.2 and II.22.5).
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

/// At most `count` bytes from an offset on: fewer where the file ends.
fn bytes_at(file: &mut (impl Read + Seek), offset: u64, count: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
pub(crate) mod tests;
