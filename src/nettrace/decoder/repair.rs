//! Repair of truncated streams.

use super::Format;

/// Instructions to repair a truncated stream: keep its start, patch four bytes, append the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Number of bytes to keep.
    pub keep: u64,
    /// Offset and value of four bytes to overwrite: the size of the block that is now shorter.
    pub patch: Option<(u64, [u8; 4])>,
    /// Bytes to append.
    pub append: &'static [u8],
}

impl Repair {
    /// Ends the stream after its last complete block.
    pub(super) fn after_last_block(format: Format, whole: u64) -> Self {
        let append = match format {
            Format::V4 => &[1][..],
            Format::V6 => &[0; 4],
        };
        Self { keep: whole, patch: None, append }
    }

    /// Ends the event block at offset `at` after `size` bytes of its content, and then the stream.
    pub(super) fn within_block(format: Format, at: u64, size_at: usize, body: usize, size: usize) -> Self {
        let (patch, append) = match format {
            Format::V4 => (size as u32, &[6, 1][..]),
            // The block kind is stored in the high byte of the size.
            Format::V6 => (size as u32 | 2 << 24, &[0; 4][..]),
        };
        Self { keep: at + (body + size) as u64, patch: Some((at + size_at as u64, patch.to_le_bytes())), append }
    }
}
