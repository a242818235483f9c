//! Memory that Perfetto's tracing service shares with a producer: only on Linux.

use thiserror::Error;

use super::socket::Handle;
use crate::perfetto::page::PageSize;

/// The reason why shared memory is not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MemoryError {
    /// Not exactly one file was passed.
    #[error("the tracing service passed {0} files instead of one")]
    Files(usize),
}

/// The mapped memory; cannot be created.
#[derive(Debug)]
pub enum SharedMemory {}

/// A chunk that is ours until handed over.
#[derive(Debug, PartialEq, Eq)]
pub struct ChunkSlot {
    /// Index of the page.
    pub page: u32,
    /// Index of the chunk in the page.
    pub chunk: u32,
}

#[expect(missing_docs, reason = "nothing of it can be called")]
impl ChunkSlot {
    pub fn size(&self) -> usize {
        0
    }
}

#[expect(missing_docs, reason = "nothing of it can be called")]
impl SharedMemory {
    /// # Errors
    /// Always.
    pub fn map(files: Vec<Handle>, _: Option<PageSize>) -> Result<Self, MemoryError> {
        Err(MemoryError::Files(files.len()))
    }

    pub fn take(&mut self, _: usize) -> Option<ChunkSlot> {
        match *self {}
    }

    pub fn put(&self, _: &ChunkSlot, _: &[u8]) -> bool {
        match *self {}
    }
}
