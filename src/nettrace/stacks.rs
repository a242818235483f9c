//! Call stacks.

use crate::wire::Reader;

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

/// Reads the next row of a stack block.
pub(super) fn row<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let size = reader.u32().ok()? as usize;
    reader.take(size).ok()
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
