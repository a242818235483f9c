//! ELF files: their functions and build IDs, and the exports that distinguish a NativeAOT program from one with a JIT.
//!
//! The file belongs to the target and may contain anything: only a little of it is read, and malformed data yields no names.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::wire::{Reader, WireError};

/// Maximum number of program headers read. Programs have about 15.
const MAX_SEGMENTS: u16 = 128;
/// Maximum number of bytes read of the dynamic section. Programs have about 40 entries of 16 bytes.
const MAX_DYNAMIC_BYTES: u64 = 16 << 10;
/// Maximum number of bytes read of the names. A single-file .NET application has 8 KB of them.
const MAX_NAMES_BYTES: u64 = 1 << 20;

/// ELF64, little endian: the start of `e_ident`.
const MAGIC: [u8; 6] = *b"\x7fELF\x02\x01";
const HEADER: usize = 64;
const SEGMENT: usize = 56;
/// `PT_LOAD`, `PT_DYNAMIC` and `PT_NOTE`.
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const NOTES: u32 = 4;
/// `PF_X`.
const EXECUTABLE: u32 = 1;
/// `DT_STRTAB` and `DT_STRSZ`.
const NAMES: u64 = 5;
const NAMES_SIZE: u64 = 10;

/// Exported only by the runtime of a NativeAOT program, from .NET 8 on.
const NATIVE_AOT: &[u8] = b"DotNetRuntimeDebugHeader";
/// Exported by a single-file application that contains CoreCLR.
const CORE_CLR: &[u8] = b"g_dacTable";

mod functions;
mod identity;
mod unwind;

pub(super) use functions::Functions;
pub(super) use identity::identity;
pub(super) use unwind::{UnwindRow, UnwindTable};

/// Returns whether a program file contains the NativeAOT runtime and not CoreCLR.
pub(super) fn is_native_aot(file: &File) -> bool {
    let names = dynamic_names(file).unwrap_or_default();
    let has = |wanted: &[u8]| names.split(|byte| *byte == 0).any(|name| name == wanted);
    has(NATIVE_AOT) && !has(CORE_CLR)
}

/// Reads the string table of the dynamic symbols: NUL-terminated names. Empty if the file is not such an ELF file.
fn dynamic_names(file: &File) -> io::Result<Vec<u8>> {
    let segments = segments(file)?;
    let Some(dynamic) = segments.iter().find(|segment| segment.kind == DYNAMIC) else { return Ok(Vec::new()) };
    let entries = read(file, dynamic.offset, dynamic.size.min(MAX_DYNAMIC_BYTES))?;
    let value = |wanted: u64| {
        entries.chunks_exact(16).find_map(|entry| {
            let mut reader = Reader::new(entry);
            (reader.u64().ok()? == wanted).then(|| reader.u64().ok())?
        })
    };
    let (Some(address), Some(size)) = (value(NAMES), value(NAMES_SIZE)) else { return Ok(Vec::new()) };
    let loaded = segments.iter().filter(|segment| segment.kind == LOAD);
    let place = loaded.filter_map(|segment| segment.place_of(address)).next();
    place.map_or_else(|| Ok(Vec::new()), |place| read(file, place, size.min(MAX_NAMES_BYTES)))
}

/// Reads the program headers. Empty if the file is not such an ELF file.
fn segments(file: &File) -> io::Result<Vec<Segment>> {
    // `e_phoff`, `e_phentsize`.
    let table = table(file, [32, 54], SEGMENT, MAX_SEGMENTS)?;
    Ok(table.chunks_exact(SEGMENT).filter_map(|bytes| Segment::read(bytes).ok()).collect())
}

/// Reads a table of headers. `places` are the offsets in the ELF header of the table's file offset, and of the entry size followed by the entry
/// count. Empty if the entries have another size or there are more than `most`.
fn table(file: &File, places: [usize; 2], size: usize, most: u16) -> io::Result<Vec<u8>> {
    let header = read(file, 0, HEADER as u64)?;
    let (at, count) = table_place(&header, places, size).ok().flatten().filter(|(_, count)| *count <= most).unwrap_or_default();
    read(file, at, u64::from(count) * size as u64)
}

/// Returns the file offset of a table of headers, and its number of entries.
fn table_place(header: &[u8], [offset, sizes]: [usize; 2], size: usize) -> Result<Option<(u64, u16)>, WireError> {
    let mut reader = Reader::new(header);
    if reader.take(MAGIC.len())? != MAGIC {
        return Ok(None);
    }
    reader.take(offset - MAGIC.len())?;
    let at = reader.u64()?;
    reader.take(sizes - offset - 8)?;
    let (entry, count) = (reader.u16()?, reader.u16()?);
    Ok((usize::from(entry) == size).then_some((at, count)))
}

/// A part of the file and the address at which it is loaded.
#[derive(Debug)]
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
    alignment: u64,
    is_code: bool,
}

impl Segment {
    fn read(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (kind, flags) = (reader.u32()?, reader.u32()?);
        let (offset, address, _physical, size) = (reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?);
        let (_size_in_memory, alignment) = (reader.u64()?, reader.u64()?);
        Ok(Self { kind, offset, address, size, alignment, is_code: flags & EXECUTABLE != 0 })
    }

    /// Returns the file offset of an address.
    fn place_of(&self, address: u64) -> Option<u64> {
        let inside = address.checked_sub(self.address).filter(|inside| *inside < self.size)?;
        self.offset.checked_add(inside)
    }

    /// Returns the address of a file offset.
    fn address_of(&self, place: u64) -> Option<u64> {
        let inside = place.checked_sub(self.offset).filter(|inside| *inside < self.size)?;
        self.address.checked_add(inside)
    }
}

/// Reads up to `count` bytes, fewer at the end of the file.
fn read(file: &File, at: u64, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
    let mut got = 0;
    while got < bytes.len() {
        match file.read_at(&mut bytes[got..], at.saturating_add(got as u64)) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(got);
    Ok(bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::Write;

    /// Returns an ELF file with these names and nothing else.
    pub(in crate::net) fn elf(names: &[&str]) -> Vec<u8> {
        const LOADED_AT: u64 = 0x40_0000;
        let table = names.iter().fold(vec![0], |table, name| [&table, name.as_bytes(), &[0]].concat());
        let dynamic_at = (HEADER + 2 * SEGMENT) as u64;
        let names_at = dynamic_at + 3 * 16;
        let mut bytes = [&MAGIC[..], &[0; 26]].concat();
        bytes.extend((HEADER as u64).to_le_bytes());
        bytes.extend([0; 14]);
        bytes.extend([(SEGMENT as u16).to_le_bytes(), 2_u16.to_le_bytes()].concat());
        bytes.resize(HEADER, 0);
        for (kind, offset, size) in [(LOAD, 0, names_at + table.len() as u64), (DYNAMIC, dynamic_at, 3 * 16)] {
            bytes.extend([kind.to_le_bytes(), [0; 4]].concat());
            bytes.extend([offset, LOADED_AT + offset, 0, size, size, 8].map(u64::to_le_bytes).concat());
        }
        bytes.extend([NAMES_SIZE, table.len() as u64, NAMES, LOADED_AT + names_at, 0, 0].map(u64::to_le_bytes).concat());
        [bytes, table].concat()
    }

    /// Returns an ELF file with these segments: kind, flags, file offset and address. Those at offset 0 are of this content.
    pub(super) fn elf_with_segments(segments: &[(u32, u32, u64, u64)], content: &[u8]) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], &[0; 26]].concat();
        bytes.extend((HEADER as u64).to_le_bytes());
        bytes.resize(54, 0);
        bytes.extend([SEGMENT as u16, segments.len() as u16].map(u16::to_le_bytes).concat());
        bytes.resize(HEADER, 0);
        let content_at = (HEADER + segments.len() * SEGMENT) as u64;
        for (kind, flags, offset, address) in segments {
            bytes.extend([*kind, *flags].map(u32::to_le_bytes).concat());
            let offset = if *offset == 0 { content_at } else { *offset };
            bytes.extend([offset, *address, 0, content.len() as u64, content.len() as u64, 4].map(u64::to_le_bytes).concat());
        }
        [&bytes, content].concat()
    }

    fn is_aot(bytes: &[u8]) -> bool {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        is_native_aot(&file)
    }

    #[test]
    fn native_aot_is_detected_by_symbol_names() {
        for (names, aot) in [
            (&["malloc", "DotNetRuntimeDebugHeader"][..], true),
            (&["DotNetRuntimeInfo", "g_dacTable"], false),
            (&["DotNetRuntimeDebugHeader", "g_dacTable"], false),
            (&["DotNetRuntimeDebugHeader2", "MyDotNetRuntimeDebugHeader"], false),
            (&[], false),
        ] {
            assert_eq!(is_aot(&elf(names)), aot, "{names:?}");
        }
        assert!(!is_native_aot(&File::open(std::env::current_exe().unwrap()).unwrap()));
    }

    #[test]
    fn damaged_elf_files_do_not_panic() {
        let whole = elf(&["DotNetRuntimeDebugHeader"]);
        // The last name needs no NUL.
        for length in 0..whole.len() - 1 {
            assert!(!is_aot(&whole[..length]), "{length}");
        }
        // Numbers that are too large, at every position.
        for at in 0..whole.len() {
            for value in [0xff, 0x80, 0] {
                let mut damaged = whole.clone();
                let end = (at + 8).min(damaged.len());
                damaged[at..end].fill(value);
                is_aot(&damaged);
            }
        }
        // Segments of another size have another format.
        let mut other = whole.clone();
        other[54..56].copy_from_slice(&(SEGMENT as u16 + 8).to_le_bytes());
        assert!(!is_aot(&other));
        let huge = MAX_SEGMENTS + 1;
        let mut many = whole;
        many[56..58].copy_from_slice(&huge.to_le_bytes());
        assert!(!is_aot(&many));
    }
}
