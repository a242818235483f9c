//! The headers of a PE file that lead to its metadata (PE format; ECMA-335, II.25).

use super::{AssemblyError, Machine};
use crate::wire::Reader;

/// The headers of what compilers write end well before.
pub(super) const HEAD_BYTES: u64 = 4096;
/// The part of the CLI header that is read.
pub(super) const CLI_HEADER_BYTES: u64 = 20;

/// Where the MS-DOS stub has the offset of the PE header.
const PE_OFFSET: usize = 0x3c;
/// The data directory of the CLI header, and where the directories begin in the two forms of the optional header.
const CLI_DIRECTORY: usize = 14;
const DIRECTORIES_PE32: usize = 96;
const DIRECTORIES_PE32_PLUS: usize = 112;
/// The Windows loader takes no more.
const MAX_SECTIONS: u16 = 96;

/// `IMAGE_FILE_MACHINE_I386`: with IL alone it stands for every machine.
const I386: u16 = 0x14c;
/// `COMIMAGE_FLAGS_32BITREQUIRED`, and the flag that makes a mere preference of it.
const REQUIRES_32_BIT: u32 = 0x2;
const PREFERS_32_BIT: u32 = 0x2_0000;
/// What the number of the machine is combined with in images that are precompiled for Linux.
const PRECOMPILED_FOR_LINUX: u16 = 0x7b79;

/// A PE file with managed code in it.
#[derive(Debug)]
pub(super) struct Image {
    machine: u16,
    /// The address of the CLI header.
    pub(super) cli_header: u32,
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    address: u32,
    bytes: u32,
    offset: u32,
}

/// The header of the managed part.
#[derive(Debug)]
pub(super) struct CliHeader {
    /// The address of the metadata.
    pub(super) metadata: u32,
    pub(super) metadata_bytes: u32,
    pub(super) flags: u32,
}

impl Image {
    /// Reads the first [`HEAD_BYTES`] of a file; `None` for what is no PE file, or one without managed code.
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

    /// Where in the file its last section ends.
    pub(super) fn end(&self) -> u64 {
        self.sections.iter().map(|section| u64::from(section.offset) + u64::from(section.bytes)).max().unwrap_or(0)
    }

    /// Where in the file an address of the image is.
    pub(super) fn offset(&self, address: u32) -> Option<u64> {
        self.sections.iter().find_map(|section| {
            let at = address.checked_sub(section.address).filter(|at| *at < section.bytes)?;
            Some(u64::from(section.offset) + u64::from(at))
        })
    }

    /// Which machines it is for, with the flags of its CLI header.
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
        // Its size and the version of the runtime that it requires.
        reader.take(8)?;
        Ok(Self { metadata: reader.u32()?, metadata_bytes: reader.u32()?, flags: reader.u32()? })
    }
}
