//! The build ID of an ELF file: a note that the linker writes (`NT_GNU_BUILD_ID`; GNU ld, `--build-id`).

use std::fs::File;
use std::io;

use super::{LOAD, NOTES, read, segments};
use crate::model::ImageIdentity;
use crate::wire::{Reader, WireError};

/// Maximum bytes read of a segment with notes. Programs have some hundred.
const MAX_NOTE_BYTES: u64 = 4 << 10;
/// Maximum length of a build ID in bytes. Linkers write 8 to 32.
const MAX_ID_BYTES: usize = 64;
/// `NT_GNU_BUILD_ID`, and the owner of the note.
const BUILD_ID: u32 = 3;
const OWNER: &[u8] = b"GNU\0";

/// Reads the identity of a file; `None` if it has no build ID or no code.
pub(in crate::net) fn identity(file: &File) -> io::Result<Option<ImageIdentity>> {
    let segments = segments(file)?;
    let Some(code) = segments.iter().find(|segment| segment.kind == LOAD && segment.is_code) else { return Ok(None) };
    for notes in segments.iter().filter(|segment| segment.kind == NOTES) {
        let bytes = read(file, notes.offset, notes.size.min(MAX_NOTE_BYTES))?;
        if let Ok(Some(id)) = build_id(&bytes, notes.alignment) {
            return Ok(Some(ImageIdentity { build_id: id.to_vec(), code_address: code.address, code_offset: code.offset }));
        }
    }
    Ok(None)
}

/// Returns the build ID among these notes.
fn build_id(notes: &[u8], alignment: u64) -> Result<Option<&[u8]>, WireError> {
    // Names and contents are padded to 4 bytes, in some segments to 8.
    let alignment = if alignment == 8 { 8 } else { 4 };
    let mut reader = Reader::new(notes);
    while !reader.is_empty() {
        let (name, contents, kind) = (reader.u32()? as usize, reader.u32()? as usize, reader.u32()?);
        let mut padded = |length| {
            let bytes = reader.take(length)?;
            // The last one need not be padded.
            reader.take((reader.at().next_multiple_of(alignment) - reader.at()).min(reader.remaining()))?;
            Ok(bytes)
        };
        let (name, contents) = (padded(name)?, padded(contents)?);
        if kind == BUILD_ID && name == OWNER {
            return Ok(Some(contents).filter(|id| (1..=MAX_ID_BYTES).contains(&id.len())));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::elf::tests::elf_with_segments;
    use std::io::Write;

    fn note(owner: &[u8], kind: u32, contents: &[u8], alignment: usize) -> Vec<u8> {
        let mut bytes = [owner.len() as u32, contents.len() as u32, kind].map(u32::to_le_bytes).concat();
        for part in [owner, contents] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(alignment), 0);
        }
        bytes
    }

    #[test]
    fn build_id_is_found_among_other_notes() {
        let id = [0xab; 20];
        let (ours, abi) = (note(OWNER, BUILD_ID, &id, 4), note(OWNER, 1, &[0; 16], 4));
        let found = |notes: &[u8], alignment| build_id(notes, alignment).ok().flatten().map(<[u8]>::to_vec);
        for (notes, alignment) in [
            (ours.clone(), 4),
            ([&abi[..], &ours].concat(), 0),
            ([&note(b"stapsdt\0", BUILD_ID, &[1; 7], 4)[..], &ours, &abi].concat(), 4),
            ([note(OWNER, 5, &[0; 12], 8), note(OWNER, BUILD_ID, &id, 8)].concat(), 8),
        ] {
            assert_eq!(found(&notes, alignment), Some(id.to_vec()), "{notes:x?}");
        }
        assert_eq!(found(&note(OWNER, BUILD_ID, &[1; 7], 4)[..23], 4), Some(vec![1; 7]), "padding may be missing at the end");
        for notes in [abi, note(b"Go\0\0", BUILD_ID, &id, 4), note(OWNER, BUILD_ID, &[], 4), note(OWNER, BUILD_ID, &[1; 65], 4), vec![]] {
            assert_eq!(found(&notes, 4), None, "{notes:x?}");
        }
        for length in 0..ours.len() {
            assert_eq!(found(&ours[..length], 4), None, "{length}");
        }
        assert_eq!(found(&[0xff; 64], 4), None);
    }

    #[test]
    fn identity_is_that_of_the_notes_and_of_the_code() {
        let notes = note(OWNER, BUILD_ID, &[7; 20], 4);
        let write = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file
        };
        let read = |segments: &[(u32, u32, u64, u64)]| identity(&write(&elf_with_segments(segments, &notes))).unwrap();
        let (data, code, note) = ((LOAD, 4, 0, 0x40_0000), (LOAD, 5, 0x1000, 0x40_2000), (NOTES, 4, 0, 0x40_0000));
        let expected = ImageIdentity { build_id: vec![7; 20], code_address: 0x40_2000, code_offset: 0x1000 };
        assert_eq!(read(&[data, code, note]), Some(expected));
        assert_eq!((read(&[data, code]), read(&[data, note])), (None, None));
        assert_eq!(identity(&write(b"")).unwrap(), None);
    }
}
