//! Storage of closed segments.

use std::fmt::Debug;

/// A FIFO store of segments. They are large and need not be kept in memory.
pub trait SegmentStore: Debug + Send {
    /// Adds a segment.
    ///
    /// # Errors
    /// [`StoreError`] if the segment was not stored.
    fn put(&mut self, segment: &[u8]) -> Result<(), StoreError>;

    /// Drops the oldest segment.
    fn drop_oldest(&mut self);

    /// Removes and returns the oldest segment. Its stored copy is kept until [`SegmentStore::release`], so that the data is never lost.
    ///
    /// # Errors
    /// Returns the reason why the segment cannot be read.
    fn take_oldest(&mut self) -> Result<Vec<u8>, String>;

    /// Deletes the stored copy of the last segment returned by `take_oldest`, which has been saved elsewhere.
    fn release(&mut self);
}

/// Reason why a segment was not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// No space left: dropping another segment makes room.
    Full(String),
    /// Any other error.
    Failed(String),
}
