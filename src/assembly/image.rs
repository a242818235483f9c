//! The PE headers that locate the metadata of a file (PE format; ECMA-335, II.25).

use super::{AssemblyError, Machine};
use crate::wire::Reader;

/// Bytes read for the headers. The headers written by compilers are far shorter.
pub(super) const HEAD_BYTES: u64 = 4096;
/// Bytes read of the CLI header.
pub(super) const CLI_HEADER_BYTES: u64 = 20;

/// Offset of the PE header's offset in the MS-DOS stub.
const PE_OFFSET: usize = 0x3c;
/// Index of the CLI header's data directory, and the offsets of the directories in both forms of the optional header.
const CLI_DIRECTORY: usize = 14;
const DIRECTORIES_PE32: usize = 96;
const DIRECTORIES_PE32_PLUS: usize = 112;
/// Limit of the Windows loader.
const MAX_SECTIONS: u16 = 96;

/// `IMAGE_FILE_MACHINE_I386`: an IL-only image of this machine runs on any machine.
const I386: u16 = 0x14c;
/// `COMIMAGE_FLAGS_32BITREQUIRED`, and the flag that reduces it to a preference.
const REQUIRES_32_BIT: u32 = 0x2;
const PREFERS_32_BIT: u32 = 0x2_0000;
/// In images precompiled for Linux, the machine number is XORed with this.
const PRECOMPILED_FOR_LINUX: u16 = 0x7b79;

/// A PE file that contains managed code.
#[derive(Debug)]
pub(super) struct Image {
    machine: u16,
    /// Address of the CLI header.
    pub(super) cli_header: u32,
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    address: u32,
    bytes: u32,
    offset: u32,
}

/// The CLI header.
#[derive(Debug)]
pub(super) struct CliHeader {
    /// Address of the metadata.
    pub(super) metadata: u32,
    pub(super) metadata_bytes: u32,
    pub(super) flags: u32,
}

impl Image {
    /// Parses the first [`HEAD_BYTES`] of a file; `None` if it is not a PE file, or has no managed code.
    pub(super) fn parse(head: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
        let half = |at: usize| Some(u16::from_le_bytes(*head.get(at..)?.first_chunk()?));
        let pe = word(PE_OFFSET).map(|at| at as usize).filter(|at| *at < head.len() && head.starts_with(b"MZ"))?;
        if !head[pe..].starts_with(b"PE\0\0") {
            return None;
        }
        let file = pe + 4;
        let optional = file + 20;
        let directories = optional
            + match half(optional)? {
                0x10b => DIRECTORIES_PE32,
                0x20b => DIRECTORIES_PE32_PLUS,
                _ => return None,
            };
        let count = word(directories - 4)?;
        let cli_header = word(directories + 8 * CLI_DIRECTORY)?;
        if count as usize <= CLI_DIRECTORY || cli_header == 0 {
            return None;
        }
        let table = optional + usize::from(half(file + 16)?);
        let section = |i: u16| {
            let at = table + 40 * usize::from(i);
            Some(Section { address: word(at + 12)?, bytes: word(at + 16)?, offset: word(at + 20)? })
        };
        let sections = (0..half(file + 2)?.min(MAX_SECTIONS)).map(section).collect::<Option<_>>()?;
        Some(Self { machine: half(file)?, cli_header, sections })
    }

    /// Returns the file offset at which the last section ends.
    pub(super) fn end(&self) -> u64 {
        self.sections.iter().map(|section| u64::from(section.offset) + u64::from(section.bytes)).max().unwrap_or(0)
    }

    /// Returns the file offset of an address in the image.
    pub(super) fn offset(&self, address: u32) -> Option<u64> {
        self.sections.iter().find_map(|section| {
            let at = address.checked_sub(section.address).filter(|at| *at < section.bytes)?;
            Some(u64::from(section.offset) + u64::from(at))
        })
    }

    /// Returns the machines that the image is for, given the flags of its CLI header.
    pub(super) fn machine(&self, flags: u32) -> Machine {
        match self.machine {
            I386 if flags & (REQUIRES_32_BIT | PREFERS_32_BIT) != REQUIRES_32_BIT => Machine::Any,
            known @ (I386 | 0x1c4 | 0x8664 | 0xaa64) => Machine::Only(known),
            other => Machine::Only(other ^ PRECOMPILED_FOR_LINUX),
        }
    }
}

impl CliHeader {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, AssemblyError> {
        let mut reader = Reader::new(bytes);
        // Size of the header, and required version of the runtime.
        reader.take(8)?;
        Ok(Self { metadata: reader.u32()?, metadata_bytes: reader.u32()?, flags: reader.u32()? })
    }
}
