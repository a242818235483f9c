//! How a stream that was cut off becomes a whole one.

use super::Format;

/// What makes a whole stream of one that was cut off: keep its start, change four bytes, append the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Bytes to keep.
    pub keep: u64,
    /// Four bytes to write over those at an offset: the size of a block that is shorter now.
    pub patch: Option<(u64, [u8; 4])>,
    /// Bytes to append.
    pub append: &'static [u8],
}

impl Repair {
    /// Ends the stream behind its whole blocks.
    pub(super) fn behind(format: Format, whole: u64) -> Self {
        let append = match format {
            Format::V4 => &[1][..],
            Format::V6 => &[0; 4],
        };
        Self { keep: whole, patch: None, append }
    }

    /// Ends the event block at offset `at` after `size` bytes of its content, and the stream behind it.
    pub(super) fn of_block(format: Format, at: u64, size_at: usize, body: usize, size: usize) -> Self {
        let (patch, append) = match format {
            Format::V4 => (size as u32, &[6, 1][..]),
            // The kind of the block stands above its size.
            Format::V6 => (size as u32 | 2 << 24, &[0; 4][..]),
        };
        Self { keep: at + (body + size) as u64, patch: Some((at + size_at as u64, patch.to_le_bytes())), append }
    }
}
