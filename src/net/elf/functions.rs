//! The functions of an ELF file, from its symbol tables.

use std::fs::File;
use std::io;

use super::{LOAD, Segment, read, segments, table};
use crate::wire::{Reader, WireError};

/// Maximum number of sections read. Large programs have about 40.
const MAX_SECTIONS: u16 = 1024;
/// Maximum bytes read of a symbol table, and of its names. Debug builds of a runtime have 10 MB.
const MAX_TABLE_BYTES: u64 = 64 << 20;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// `SHT_SYMTAB` and `SHT_DYNSYM`.
const TABLES: [u32; 2] = [FULL_TABLE, 11];
const FULL_TABLE: u32 = 2;
/// `STT_FUNC` and `STT_GNU_IFUNC`.
const FUNCTIONS: [u8; 2] = [2, 10];
/// Functions written in assembly may have no size. They are assumed to have this many bytes, or to end where the next function begins.
const DEFAULT_FUNCTION_SIZE: u64 = 4096;
/// Longer names are truncated.
const MAX_NAME_BYTES: usize = 1024;

/// The functions of a file by address.
#[derive(Debug, Default)]
pub(in crate::net) struct Functions {
    segments: Vec<Segment>,
    /// Sorted by address, without duplicates.
    functions: Vec<Function>,
    names: Vec<u8>,
    /// Whether there is no full symbol table, so that only exported functions are known.
    is_stripped: bool,
    /// Bytes read of the symbol tables, most of which may not be functions.
    symbol_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Function {
    address: u64,
    size: u64,
    /// Offset of its name in `Functions::names`.
    name: usize,
}

/// A section header.
struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

impl Functions {
    /// Reads the functions of a file; empty if it is not an ELF file of the supported kind.
    pub(in crate::net) fn read(file: &File) -> io::Result<Self> {
        let mut this = Self { segments: segments(file)?, is_stripped: true, ..Self::default() };
        this.segments.retain(|segment| segment.kind == LOAD);
        this.add(file)?;
        Ok(this)
    }

    /// Whether the file was stripped of all functions except those that it exports.
    pub(in crate::net) fn is_stripped(&self) -> bool {
        self.is_stripped
    }

    /// Adds the functions of another file: the same one, or the one that its debug symbols were moved to.
    pub(in crate::net) fn add(&mut self, file: &File) -> io::Result<()> {
        // `e_shoff`, `e_shentsize`.
        let table = table(file, [40, 58], SECTION, MAX_SECTIONS)?;
        let sections: Vec<_> = table.chunks_exact(SECTION).filter_map(|bytes| Section::read(bytes).ok()).collect();
        // A file has one table of each kind. A hostile file could have a thousand that all refer to the same bytes.
        let tables = TABLES.iter().filter_map(|kind| sections.iter().find(|section| section.kind == *kind));
        let added = tables.into_iter().try_for_each(|table| self.add_table(file, table, sections.get(table.link as usize)));
        // Exported functions are in both tables. Of several aliases, the one with a size is kept.
        self.functions.sort_by_key(|function| (function.address, u64::MAX - function.size));
        self.functions.dedup_by_key(|function| function.address);
        added
    }

    fn add_table(&mut self, file: &File, table: &Section, names: Option<&Section>) -> io::Result<()> {
        let Some(names) = names else { return Ok(()) };
        self.is_stripped &= table.kind != FULL_TABLE;
        let base = self.names.len();
        self.names.extend(read(file, names.offset, names.size.min(MAX_TABLE_BYTES))?);
        let symbols = read(file, table.offset, table.size.min(MAX_TABLE_BYTES))?;
        self.symbol_bytes += symbols.len();
        let length = self.names.len() - base;
        self.functions.extend(symbols.chunks_exact(SYMBOL).filter_map(|bytes| Function::read(bytes, base, length).ok().flatten()));
        Ok(())
    }

    /// Memory used, in bytes.
    fn size(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.segments) + size_of_val(&*self.functions) + self.names.len()
    }

    /// Memory used, in bytes, and the time it took to read the file, for which an eighth of the bytes read is added: a file of any size may have no
    /// function at all.
    pub(in crate::net) fn cost(&self) -> usize {
        self.size() + self.symbol_bytes / 8
    }

    /// Returns the function at an offset in the file: its name as stored in the file, the distance from its start, and its size.
    pub(in crate::net) fn at(&self, place: u64) -> Option<(&[u8], u64, u64)> {
        let address = self.segments.iter().find_map(|segment| segment.address_of(place))?;
        let next = self.functions.partition_point(|function| function.address <= address);
        let function = self.functions.get(next.checked_sub(1)?)?;
        let room = self.functions.get(next).map_or(u64::MAX, |next| next.address - function.address);
        let size = if function.size == 0 { DEFAULT_FUNCTION_SIZE.min(room) } else { function.size };
        let inside = address - function.address;
        let name = self.names.get(function.name..)?;
        let name = &name[..name.iter().take(MAX_NAME_BYTES).position(|byte| *byte == 0).unwrap_or(name.len().min(MAX_NAME_BYTES))];
        (inside < size && !name.is_empty()).then_some((name, inside, size))
    }
}

impl Section {
    fn read(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (_name, kind, _flags, _address) = (reader.u32()?, reader.u32()?, reader.u64()?, reader.u64()?);
        Ok(Self { kind, offset: reader.u64()?, size: reader.u64()?, link: reader.u32()? })
    }
}

impl Function {
    /// Returns `None` for a symbol that is not a function of this file. Its names begin at `base` and take `names` bytes.
    fn read(bytes: &[u8], base: usize, names: usize) -> Result<Option<Self>, WireError> {
        let mut reader = Reader::new(bytes);
        let (name, info, _other, section) = (reader.u32()? as usize, reader.u8()?, reader.u8()?, reader.u16()?);
        let (address, size) = (reader.u64()?, reader.u64()?);
        let is_function = FUNCTIONS.contains(&(info & 0xf)) && section != 0 && name < names;
        Ok(is_function.then_some(Self { address, size, name: base + name }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::elf::{HEADER, MAGIC, identity};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;
    use std::io::Write;
    use std::sync::LazyLock;

    const LOADED_AT: u64 = 0x40_0000;
    const CODE: u64 = 0x1000;

    /// Builds an ELF file with code at [`CODE`] and these functions: name, offset from the start of the code, size.
    fn elf(functions: &[(&str, u64, u64)]) -> Vec<u8> {
        let mut names = vec![0];
        let mut symbols = vec![0; SYMBOL];
        for (name, at, size) in functions {
            symbols.extend((names.len() as u32).to_le_bytes());
            symbols.extend([0x12, 0, 1, 0]);
            symbols.extend([LOADED_AT + CODE + at, *size].map(u64::to_le_bytes).concat());
            names.extend(name.as_bytes());
            names.push(0);
        }
        let segment = (HEADER + 3 * SECTION) as u64;
        let symbols_at = segment + 56;
        let names_at = symbols_at + symbols.len() as u64;
        let mut bytes = [&MAGIC[..], &[0; 26]].concat();
        bytes.extend([segment, HEADER as u64].map(u64::to_le_bytes).concat());
        bytes.extend([0; 6]);
        bytes.extend([56_u16, 1, SECTION as u16, 3, 0].map(u16::to_le_bytes).concat());
        bytes.resize(HEADER, 0);
        for (kind, offset, size, link) in [(0, 0, 0, 0), (2, symbols_at, symbols.len(), 2), (3, names_at, names.len(), 0)] {
            bytes.extend([0_u32, kind].map(u32::to_le_bytes).concat());
            bytes.extend([0, 0, offset, size as u64].map(u64::to_le_bytes).concat());
            bytes.extend([link, 0_u32].map(u32::to_le_bytes).concat());
            bytes.extend([0; 16]);
        }
        bytes.extend([LOAD, 5].map(u32::to_le_bytes).concat());
        bytes.extend([CODE, LOADED_AT + CODE, 0, 0x1000, 0x1000, 0x1000].map(u64::to_le_bytes).concat());
        [bytes, symbols, names].concat()
    }

    fn functions(bytes: &[u8]) -> Functions {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        // Offsets beyond the end of the file are errors.
        let id_bytes = identity(&file).ok().flatten().map_or(0, |identity| identity.build_id.len());
        assert!(id_bytes <= 64);
        Functions::read(&file).unwrap_or_default()
    }

    #[test]
    fn functions_are_found_by_file_offset() {
        let functions = functions(&elf(&[("late", 0x40, 0), ("alias", 0, 0), ("early", 0, 0x10), ("next", 0x60, 8)]));
        let name = |inside: u64| functions.at(CODE + inside).map(|(name, ..)| String::from_utf8_lossy(name).into_owned());
        let named = |name: &str| Some(name.to_owned());
        for (inside, expected) in [
            (0, named("early")),
            (0xf, named("early")),
            (0x10, None),
            (0x40, named("late")),
            (0x5f, named("late")),
            (0x67, named("next")),
            (0x68, None),
        ] {
            assert_eq!(name(inside), expected, "{inside:#x}");
        }
        assert_eq!(functions.at(CODE + 0xf).unwrap().1, 0xf);
        assert_eq!(functions.at(CODE + 0x40).unwrap().2, 0x20, "it ends where the next one begins");
        assert_eq!((functions.at(0), functions.at(u64::MAX)), (None, None));
        let own = Functions::read(&File::open(std::env::current_exe().unwrap()).unwrap()).unwrap();
        assert!(own.functions.len() > 1000, "a test has symbols");
    }

    #[test]
    fn symbols_that_are_no_functions_have_a_cost() {
        // Only the first of those at the same address is kept.
        let functions = functions(&elf(&[("", 0, 0); 1000]));
        assert_eq!((functions.functions.len(), functions.cost() - functions.size()), (1, 1001 * SYMBOL / 8));
    }

    #[test]
    fn name_must_be_in_the_names_of_its_symbol_table() {
        let mut bytes = elf(&[("name", 0, 0x10)]);
        let symbol = HEADER + 3 * SECTION + 56 + SYMBOL;
        for (name, found) in [(1_u32, 1), (5, 1), (6, 0), (u32::MAX, 0)] {
            bytes[symbol..symbol + 4].copy_from_slice(&name.to_le_bytes());
            assert_eq!(functions(&bytes).functions.len(), found, "{name}");
        }
    }

    #[test]
    fn duplicate_symbol_tables_are_read_once() {
        let mut bytes = elf(&[("name", 0, 0x10)]);
        let section = bytes[HEADER + SECTION..HEADER + 2 * SECTION].to_vec();
        // All section headers except that of the names describe the same table.
        let at = bytes.len() as u64;
        bytes.extend(section.repeat(1000));
        bytes.copy_within(HEADER + 2 * SECTION..HEADER + 3 * SECTION, at as usize + 2 * SECTION);
        bytes[40..48].copy_from_slice(&at.to_le_bytes());
        bytes[60..62].copy_from_slice(&1000_u16.to_le_bytes());
        let functions = functions(&bytes);
        assert_eq!((functions.functions.len(), functions.names.len()), (1, 6));
    }

    /// Returns a library loaded by this test, or a synthetic file.
    fn real_library() -> &'static [u8] {
        static REAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("libc.so"));
            path.and_then(|path| std::fs::read(path).ok()).unwrap_or_else(|| elf(&[("name", 0, 0x10)]))
        });
        &REAL
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn random_damage_to_a_real_file_does_not_panic(changes in vec((any::<Index>(), any::<u64>(), 0..4_u8), 1..24), places in vec(any::<u64>(), 8)) {
            let mut bytes = real_library().to_vec();
            let word = |bytes: &[u8], at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
            let sections = word(&bytes, 40).min(bytes.len() - HEADER);
            for (index, value, part) in changes {
                // Mostly in the headers, where most can go wrong.
                let at = match part {
                    0 => index.index(HEADER),
                    1 => HEADER + index.index(16 * 56),
                    2 => sections + index.index(bytes.len() - sections),
                    _ => index.index(bytes.len()),
                };
                let end = (at + 8).min(bytes.len());
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
            check(&bytes, &places);
        }

        #[test]
        fn random_bytes_do_not_panic(header in vec(any::<u8>(), HEADER), rest in vec(any::<u8>(), 0..4096), places in vec(any::<u64>(), 8)) {
            let mut bytes = [header, rest].concat();
            bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
            bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
            bytes[58..60].copy_from_slice(&(SECTION as u16).to_le_bytes());
            check(&bytes, &places);
        }
    }

    /// Checks that no more memory is used than the file has bytes, and that no lookup panics.
    fn check(bytes: &[u8], places: &[u64]) {
        let functions = functions(bytes);
        assert!(functions.names.len() <= 2 * bytes.len() && functions.functions.len() <= 2 * bytes.len() / SYMBOL);
        for place in places.iter().flat_map(|place| [*place, place % (bytes.len() as u64 + 1)]) {
            functions.at(place);
        }
    }

    #[test]
    fn systematic_damage_does_not_panic() {
        let whole = elf(&[("name", 0, 0x10)]);
        let look_up_all = |bytes: &[u8]| {
            let functions = functions(bytes);
            for place in [0, CODE, CODE + 1, u64::MAX] {
                functions.at(place);
            }
        };
        (0..whole.len()).for_each(|length| look_up_all(&whole[..length]));
        for at in 0..whole.len() {
            for value in [0xff, 0x7f, 0] {
                let mut damaged = whole.clone();
                let end = (at + 8).min(damaged.len());
                damaged[at..end].fill(value);
                look_up_all(&damaged);
            }
        }
    }
}
