//! Unwinding from a function to its caller by the call frame information of an ELF file (`.eh_frame`: System V ABI, DWARF 5 section 6.4).

use std::fs::File;
use std::io;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, Pointer, Register, RegisterRule, UnwindContext, UnwindSection, X86_64,
};

use super::{LOAD, Segment, read, segments};

/// `PT_GNU_EH_FRAME`: the index of the call frame information.
const INDEX: u32 = 0x6474_e550;
/// Maximum bytes read of the index, and of the call frame information. Large libraries have 10 MB.
const MAX_TABLE_BYTES: u64 = 32 << 20;
/// Longest entry that is evaluated, in bytes: each row requires a pass through one. The entry of a function has some hundred bytes at most.
const MAX_ENTRY_BYTES: usize = 64 << 10;
const ADDRESS_SIZE: u8 = 8;

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
        let index = read(file, *offset, (*size).min(MAX_TABLE_BYTES))?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(*address);
        let found = EhFrameHdr::new(&index, LittleEndian).parse(&bases, ADDRESS_SIZE).map(|index| index.eh_frame_ptr());
        let Ok(Pointer::Direct(frames_at)) = found else { return Ok(None) };
        segments.retain(|segment| segment.kind == LOAD);
        let Some((place, rest)) = segments.iter().find_map(|segment| {
            let place = segment.place_of(frames_at)?;
            Some((place, segment.size - (place - segment.offset)))
        }) else {
            return Ok(None);
        };
        let frames = read(file, place, rest.min(MAX_TABLE_BYTES))?;
        Ok(Some(Self { segments, index, frames, bases: bases.set_eh_frame(frames_at) }))
    }

    /// Memory used, in bytes.
    pub(in crate::net) fn size(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.segments) + self.index.len() + self.frames.len()
    }

    /// Returns the row of the instruction at an offset in the file.
    pub(in crate::net) fn row(&self, place: u64) -> Option<UnwindRow> {
        let address = self.segments.iter().find_map(|segment| segment.address_of(place))?;
        let index = EhFrameHdr::new(&self.index, LittleEndian).parse(&self.bases, ADDRESS_SIZE).ok()?;
        let frames = EhFrame::new(&self.frames, LittleEndian);
        let (found, begin) = (index.table()?.lookup(address, &self.bases).ok()?.direct().ok()?, index.eh_frame_ptr().direct().ok()?);
        // gimli's own lookup of the function overflows if the index is damaged.
        let offset = usize::try_from(found.checked_sub(begin)?).ok()?;
        let function = frames.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset).ok()?;
        if !function.contains(address) || function.entry_len().max(function.cie().entry_len()) > MAX_ENTRY_BYTES {
            return None;
        }
        let mut context = UnwindContext::new();
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

    #[test]
    fn c_library_functions_have_unwind_rows() {
        let (table, places) = library();
        let rows: Vec<_> = places.clone().step_by(64).filter_map(|place| table.row(place)).collect();
        assert!(rows.len() as u64 > (places.end - places.start) / 128, "{} rows", rows.len());
        // At the entry of a function, the return address is on top of the stack.
        let entry = UnwindRow { is_from_frame_pointer: false, offset: 8, frame_pointer: None, return_address: -8 };
        assert!(rows.contains(&entry) && rows.iter().all(|row| row.return_address == -8));
        // Some functions use the frame pointer as a general register.
        assert!(rows.iter().any(|row| !row.is_from_frame_pointer && row.frame_pointer.is_some()));
        assert_eq!(table.row(u64::MAX), None);
    }

    #[test]
    fn oversized_unwind_entries_are_skipped() {
        let (mut table, mut places) = library();
        let place = places.find(|place| table.row(*place).is_some()).unwrap();
        let address = table.segments.iter().find_map(|segment| segment.address_of(place)).unwrap();
        let index = EhFrameHdr::new(&table.index, LittleEndian).parse(&table.bases, ADDRESS_SIZE).unwrap();
        let frames = EhFrame::new(&table.frames, LittleEndian);
        let at = index.table().unwrap().fde_for_address(&frames, &table.bases, address, EhFrame::cie_from_offset).unwrap().offset();
        for (length, is_followed) in [(MAX_ENTRY_BYTES, true), (MAX_ENTRY_BYTES + 1, false)] {
            table.frames[at..at + 4].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
            assert_eq!(table.row(place).is_some(), is_followed, "{length}");
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
                let _ = table.row(all.start + place.index((all.end - all.start) as usize) as u64);
            }
        }
    }
}
