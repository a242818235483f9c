//! Unwinding from a function to its caller by the call frame information of an ELF file (`.eh_frame`: System V ABI, DWARF 5 section 6.4).

use std::fs::File;
use std::io;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian, Pointer, ReaderOffset, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindSection, UnwindTableRow, X86_64,
};

use super::{LOAD, Segment, read, segments};

/// `PT_GNU_EH_FRAME`: the index of the call frame information.
const INDEX: u32 = 0x6474_e550;
/// Maximum bytes read of the index, and of the call frame information. Large libraries have 10 MB.
const MAX_TABLE_BYTES: u64 = 32 << 20;
/// Maximum bytes at the start of the index that locate the call frame information.
const INDEX_HEADER_BYTES: u64 = 64;
/// Place of the encoding of the number of entries in the index (Linux Standard Base, `.eh_frame_hdr`).
const COUNT_ENCODING: usize = 2;
/// Longest entry that is evaluated, in bytes: each row requires a pass through one. Most have less than 100 bytes; the largest function of a .NET
/// runtime and its libraries has 10 KB.
const MAX_ENTRY_BYTES: usize = 16 << 10;
/// Longest common entry of functions, in bytes. Compilers write 20 to 44 bytes.
const MAX_COMMON_BYTES: usize = 256;
const ADDRESS_SIZE: u8 = 8;

/// Storage for the rules of x86-64: its registers are numbered from 0 to 32. An entry can save and restore all rules in two bytes, any number of times.
#[derive(Debug)]
struct FewRules;

impl<T: ReaderOffset> UnwindContextStorage<T> for FewRules {
    type Rules = [(Register, RegisterRule<T>); 33];
    type Stack = [UnwindTableRow<T, Self>; 4];
}

/// The entry of a function, for an instruction in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::net) struct UnwindEntry {
    address: u64,
    /// Offset in the call frame information.
    offset: usize,
    /// Number of bytes that are evaluated for a row: those of the entry and of its common entry.
    pub(in crate::net) bytes: usize,
}

/// The call frame information of a file for x86-64.
#[derive(Debug)]
pub(in crate::net) struct UnwindTable {
    segments: Vec<Segment>,
    index: Vec<u8>,
    frames: Vec<u8>,
    bases: BaseAddresses,
}

/// The locations of the caller's registers, as seen from one instruction of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::net) struct UnwindRow {
    /// Whether the canonical frame address (the caller's stack pointer) is `offset` bytes from the frame pointer rather than the stack pointer.
    pub(in crate::net) is_from_frame_pointer: bool,
    pub(in crate::net) offset: i64,
    /// Where the caller's frame pointer is saved, relative to the canonical frame address; `None` if it is unchanged.
    pub(in crate::net) frame_pointer: Option<i64>,
    /// Where the return address is, relative to the canonical frame address.
    pub(in crate::net) return_address: i64,
}

impl UnwindTable {
    /// Reads the table of a file; `None` if it has none.
    pub(in crate::net) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut segments = segments(file)?;
        let Some(Segment { offset, address, size, .. }) = segments.iter().find(|segment| segment.kind == INDEX) else { return Ok(None) };
        let (index_at, index_size) = (*offset, (*size).min(MAX_TABLE_BYTES));
        let bases = BaseAddresses::default().set_eh_frame_hdr(*address);
        // Any number of files could have a large index of nothing.
        let header = read(file, index_at, index_size.min(INDEX_HEADER_BYTES))?;
        let found = EhFrameHdr::new(&header, LittleEndian).parse(&bases, ADDRESS_SIZE).map(|index| index.eh_frame_ptr());
        let Ok(Pointer::Direct(frames_at)) = found else { return Ok(None) };
        segments.retain(|segment| segment.kind == LOAD);
        let Some((place, rest)) = segments.iter().find_map(|segment| {
            let place = segment.place_of(frames_at)?;
            Some((place, segment.size - (place - segment.offset)))
        }) else {
            return Ok(None);
        };
        let index = read(file, index_at, index_size)?;
        let frames = read(file, place, rest.min(MAX_TABLE_BYTES))?;
        Ok(Some(Self { segments, index, frames, bases: bases.set_eh_frame(frames_at) }))
    }

    /// Memory used, in bytes.
    pub(in crate::net) fn size(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.segments) + self.index.len() + self.frames.len()
    }

    /// Returns the entry of the instruction at an offset in the file.
    pub(in crate::net) fn entry(&self, place: u64) -> Option<UnwindEntry> {
        let address = self.segments.iter().find_map(|segment| segment.address_of(place))?;
        // gimli's lookup overflows if the number of entries is larger than the four bytes that linkers write.
        if *self.index.get(COUNT_ENCODING)? != gimli::DW_EH_PE_udata4.0 {
            return None;
        }
        let index = EhFrameHdr::new(&self.index, LittleEndian).parse(&self.bases, ADDRESS_SIZE).ok()?;
        let (found, begin) = (index.table()?.lookup(address, &self.bases).ok()?.direct().ok()?, index.eh_frame_ptr().direct().ok()?);
        // gimli's own lookup of the function overflows if the index is damaged.
        let offset = usize::try_from(found.checked_sub(begin)?).ok()?;
        // The common entry is some bytes before the field that refers to it.
        let length = self.number(offset)? as usize;
        let common = offset.checked_add(4)?.checked_sub(self.number(offset + 4)? as usize)?;
        let common_length = self.number(common)? as usize;
        if length > MAX_ENTRY_BYTES || common_length > MAX_COMMON_BYTES {
            return None;
        }
        let is_its = self.function(offset)?.contains(address);
        is_its.then_some(UnwindEntry { address, offset, bytes: length + common_length })
    }

    fn function(&self, offset: usize) -> Option<FrameDescriptionEntry<EndianSlice<'_, LittleEndian>>> {
        EhFrame::new(&self.frames, LittleEndian).fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset).ok()
    }

    /// Returns a number of the call frame information.
    fn number(&self, at: usize) -> Option<u32> {
        self.frames.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Returns the row of an instruction, given its entry.
    pub(in crate::net) fn row(&self, entry: UnwindEntry) -> Option<UnwindRow> {
        let UnwindEntry { address, offset, .. } = entry;
        let (frames, function) = (EhFrame::new(&self.frames, LittleEndian), self.function(offset)?);
        let mut context = UnwindContext::<_, FewRules>::new_in();
        let row = function.unwind_info_for_address(&frames, &self.bases, &mut context, address).ok()?;
        let (is_from_frame_pointer, offset) = match row.cfa() {
            CfaRule::RegisterAndOffset { register: X86_64::RBP, offset } => (true, *offset),
            CfaRule::RegisterAndOffset { register: X86_64::RSP, offset } => (false, *offset),
            _ => return None,
        };
        let at = |register: Register| match row.register(register) {
            Some(RegisterRule::Offset(at)) => Some(Some(at)),
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Some(None),
            _ => None,
        };
        Some(UnwindRow { is_from_frame_pointer, offset, frame_pointer: at(X86_64::RBP)?, return_address: at(X86_64::RA)?? })
    }
}

#[cfg(test)]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    /// Returns the table of the C library of this process, and the file offsets of its executable part.
    fn library() -> (UnwindTable, std::ops::Range<u64>) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains(" r-xp ") && line.contains("/libc")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = words[0].split_once('-').unwrap();
        let place = number(words[2]);
        let table = UnwindTable::read(&File::open(words[5]).unwrap()).unwrap().unwrap();
        (table, place..place + number(end) - number(start))
    }

    fn row_at(table: &UnwindTable, place: u64) -> Option<UnwindRow> {
        table.entry(place).and_then(|entry| table.row(entry))
    }

    #[test]
    fn c_library_functions_have_unwind_rows() {
        let (table, places) = library();
        let rows: Vec<_> = places.clone().step_by(64).filter_map(|place| row_at(&table, place)).collect();
        assert!(rows.len() as u64 > (places.end - places.start) / 128, "{} rows", rows.len());
        // At the entry of a function, the return address is on top of the stack.
        let entry = UnwindRow { is_from_frame_pointer: false, offset: 8, frame_pointer: None, return_address: -8 };
        assert!(rows.contains(&entry) && rows.iter().all(|row| row.return_address == -8));
        // Some functions use the frame pointer as a general register.
        assert!(rows.iter().any(|row| !row.is_from_frame_pointer && row.frame_pointer.is_some()));
        assert_eq!(table.entry(u64::MAX), None);
    }

    #[test]
    fn number_of_entries_has_four_bytes() {
        let (mut table, mut places) = library();
        let place = places.find(|place| table.entry(*place).is_some()).unwrap();
        // As many entries as eight bytes can count.
        table.index[COUNT_ENCODING] = gimli::DW_EH_PE_udata8.0;
        table.index[8..16].fill(0xff);
        assert_eq!(table.entry(place), None);
    }

    /// Builds the table of one function at address 0, given the augmentation of its common information, and its instructions.
    fn table_of(augmentation: &[u8], instructions: &[u8]) -> UnwindTable {
        let entry = |parts: &[&[u8]]| {
            let bytes = parts.concat();
            [&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], &bytes].concat()
        };
        // Version 1, alignment factors 1 and -8, return address in register 16, absolute addresses; as at the entry of a function.
        let common = entry(&[&[0; 4], &[1], augmentation, &[0, 1, 0x78, 16, 1, 0], &[0x0c, 7, 8, 0x90, 1]]);
        let pointer = u32::try_from(common.len() + 4).unwrap().to_le_bytes();
        let function = entry(&[&pointer, &[0; 8], &u64::from(u32::MAX).to_le_bytes(), &[0], instructions]);
        // Version 1, absolute addresses, number of entries, entries of two addresses.
        let at = common.len() as u64;
        let index = [&[1, 0, 3, 4][..], &[0; 8], &1_u32.to_le_bytes(), &[0; 8], &at.to_le_bytes()].concat();
        let segments = vec![Segment { kind: LOAD, offset: 0, address: 0, size: u64::MAX, alignment: 1, is_code: true }];
        let bases = BaseAddresses::default().set_eh_frame_hdr(0).set_eh_frame(0);
        UnwindTable { segments, index, frames: [common, function, vec![0; 4]].concat(), bases }
    }

    #[test]
    fn common_entries_and_rules_are_limited() {
        let entry = Some(UnwindRow { is_from_frame_pointer: false, offset: 8, frame_pointer: None, return_address: -8 });
        assert_eq!(row_at(&table_of(b"zR", &[]), 7), entry);
        // Each `S` marks the entry as that of a signal handler.
        for (count, is_followed) in [(200, true), (MAX_COMMON_BYTES, false)] {
            let table = table_of(&[&b"zR"[..], &b"S".repeat(count)].concat(), &[]);
            assert_eq!(table.entry(7).is_some(), is_followed, "{count}");
        }
        let rules = |count: u8| (0..count).flat_map(|register| [0x05, register, 1]).collect::<Vec<_>>();
        for (count, is_followed) in [(33, true), (34, false)] {
            assert_eq!(row_at(&table_of(b"zR", &rules(count)), 7).is_some(), is_followed, "{count}");
        }
        let table = table_of(b"zR", &rules(17));
        // 17 rules of 3 bytes, the header of the entry of 21 bytes, and the common entry of 18 bytes.
        assert_eq!(table.entry(7).unwrap().bytes, 17 * 3 + 21 + 18);
    }

    #[test]
    fn oversized_unwind_entries_are_skipped() {
        let (mut table, mut places) = library();
        let place = places.find(|place| row_at(&table, *place).is_some()).unwrap();
        let address = table.segments.iter().find_map(|segment| segment.address_of(place)).unwrap();
        let index = EhFrameHdr::new(&table.index, LittleEndian).parse(&table.bases, ADDRESS_SIZE).unwrap();
        let frames = EhFrame::new(&table.frames, LittleEndian);
        let at = index.table().unwrap().fde_for_address(&frames, &table.bases, address, EhFrame::cie_from_offset).unwrap().offset();
        for (length, is_followed) in [(MAX_ENTRY_BYTES, true), (MAX_ENTRY_BYTES + 1, false)] {
            table.frames[at..at + 4].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
            assert_eq!(row_at(&table, place).is_some(), is_followed, "{length}");
        }
    }

    proptest! {
        #[test]
        fn damaged_unwind_tables_do_not_panic(changes in prop::collection::vec((any::<bool>(), any::<Index>(), any::<u8>()), 1..40), places in prop::collection::vec(any::<Index>(), 8)) {
            let (mut table, all) = library();
            for (is_index, at, byte) in changes {
                let part = if is_index { &mut table.index } else { &mut table.frames };
                let at = at.index(part.len());
                part[at] = byte;
            }
            for place in places {
                let _ = row_at(&table, all.start + place.index((all.end - all.start) as usize) as u64);
            }
        }
    }
}
