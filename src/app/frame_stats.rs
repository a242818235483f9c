//! What the dashboard itself costs: for those who find it slow.

use std::time::Duration;

/// Times and bytes of the frames since this was shown first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameStats {
    /// Frames that were drawn.
    pub frames: u64,
    /// How long the latest took, from the state to the last byte that was handed to the terminal.
    pub last: Duration,
    /// How long the slowest took.
    pub slowest: Duration,
    /// Bytes that the latest wrote to the terminal.
    pub bytes: usize,
    /// Messages that wait to be taken in.
    pub queue: usize,
}

impl FrameStats {
    /// Counts a frame.
    pub fn add(&mut self, took: Duration, bytes: usize, queue: usize) {
        let (frames, slowest) = (self.frames + 1, self.slowest.max(took));
        *self = Self { frames, last: took, slowest, bytes, queue };
    }
}
