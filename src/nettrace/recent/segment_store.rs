//! Where the closed segments of a stream's newest part are kept.

use std::fmt::Debug;

/// Keeps segments, first in, first out. They are not small: they need not be in memory.
pub trait SegmentStore: Debug + Send {
    /// Puts a segment behind the others.
    ///
    /// # Errors
    /// [`Refusal`]; the segment is not there then.
    fn put(&mut self, segment: &[u8]) -> Result<(), Refusal>;

    /// Gives the oldest up.
    fn drop_oldest(&mut self);

    /// Takes the oldest out. It is kept until [`SegmentStore::release`], so that there is always one of it.
    ///
    /// # Errors
    /// A sentence with the reason why it is gone.
    fn take_oldest(&mut self) -> Result<Vec<u8>, String>;

    /// What was taken is somewhere else now.
    fn release(&mut self);
}

/// Why a segment is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no room: giving up another makes some.
    Full(String),
    /// Something else, in words.
    Failed(String),
}
