//! The memory that Perfetto's tracing service shares with a producer. There is none on other systems than Linux.

use thiserror::Error;

use super::socket::Handle;
use crate::perfetto::page::PageSize;

/// Why memory is not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MemoryError {
    /// There is none, or more than one.
    #[error("the tracing service passed {0} files instead of one")]
    Files(usize),
}

/// The memory, and how it is divided. There is none.
#[derive(Debug)]
pub enum SharedMemory {}

/// A chunk that is ours until it is handed over.
#[derive(Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its page.
    pub page: u32,
    /// Its place in the page.
    pub chunk: u32,
}

#[expect(missing_docs, reason = "nothing of it can be called")]
impl Slot {
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

    pub fn size(&self) -> usize {
        match *self {}
    }

    pub fn take(&mut self, _: usize) -> Option<Slot> {
        match *self {}
    }

    pub fn put(&self, _: &Slot, _: &[u8]) -> bool {
        match *self {}
    }
}
