//! Call stacks.

use crate::wire::{Reader, WireError};

use super::rows::Rows;

/// The instruction pointers of a stack, leaf first. All but the leaf are return addresses. Only managed frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stack<'a> {
    bytes: &'a [u8],
    pointer_size: u8,
}

impl<'a> Stack<'a> {
    pub(super) fn new(bytes: &'a [u8], pointer_size: u8) -> Self {
        Self { bytes, pointer_size }
    }

    /// Returns the encoded bytes; equal for equal stacks of one stream.
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of frames.
    pub fn len(self) -> usize {
        self.bytes.len() / usize::from(self.pointer_size)
    }

    /// Returns whether there are no frames.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the instruction pointers, leaf first.
    pub fn frames(self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + 'a {
        self.bytes.chunks_exact(self.pointer_size.into()).map(|bytes| {
            let mut address = [0; 8];
            address[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(address)
        })
    }
}

/// Result of loading a block: the number of rows, and whether all rows that events may refer to are still stored.
pub(super) struct Loaded {
    pub(super) count: u32,
    pub(super) kept: bool,
    /// Offset at which the block is damaged.
    pub(super) damage: Option<usize>,
}

/// Loads a stack block into the table.
pub(super) fn load(block: &[u8], rows: &mut Rows) -> Loaded {
    let mut loaded = Loaded { count: 0, kept: true, damage: None };
    let mut reader = Reader::new(block);
    if read(&mut reader, rows, &mut loaded).is_err() {
        loaded.damage = Some(reader.at());
    }
    loaded
}

fn read(reader: &mut Reader<'_>, rows: &mut Rows, loaded: &mut Loaded) -> Result<(), WireError> {
    let (first_id, count) = (reader.u32()?, reader.u32()?);
    loaded.kept = rows.begin(first_id, reader.remaining());
    for _ in 0..count {
        // On a length without its stack, the cursor remains before the length.
        let mut ahead = *reader;
        let size = ahead.u32()? as usize;
        let stack = ahead.take(size)?;
        *reader = ahead;
        loaded.kept &= rows.push(stack);
        loaded.count += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_size_is_the_pointer_size() {
        let bytes = [1, 0, 0, 0, 2, 0, 0, 0x80];
        assert_eq!(Stack::new(&bytes, 4).frames().collect::<Vec<_>>(), [1, 0x8000_0002]);
        assert_eq!(Stack::new(&bytes, 8).frames().collect::<Vec<_>>(), [0x8000_0002_0000_0001]);
        assert_eq!(Stack::new(&bytes[..7], 8).len(), 0);
    }
}
