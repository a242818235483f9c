//! Pieces of a file, read ahead of their use.

use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use crate::nettrace::{Cut, Cutter, Limits};

/// One read takes at most this much. With 1 MB a piece has left the processor's cache when it is decoded, and the memory takes as long to be had as a
/// file of 20 MB to be read.
const PIECE: usize = 512 << 10;
/// The buffer of a short file has this much room at least.
const SHORT: usize = 4 << 10;

/// Bytes of a stream from the end of a block to the end of a block.
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) cut: Cut,
}

impl Piece {
    /// Counts what event blocks hold, if that was not done.
    pub(super) fn count(&mut self) {
        self.cut.count(&self.bytes);
    }
}

/// Reads a file by the piece. Bytes are read to where they are decoded, but for the start of a block at the end of what is read.
pub(super) struct Pieces<'a> {
    file: &'a mut File,
    cutter: Cutter,
    /// What the next piece begins with. All buffers have the size of this one.
    buffer: Vec<u8>,
    filled: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(file: &'a mut File, limits: Limits) -> Self {
        let length = file.metadata().map_or(PIECE, |facts| usize::try_from(facts.len()).unwrap_or(PIECE));
        Self { file, cutter: Cutter::new(limits), buffer: vec![0; length.clamp(SHORT, PIECE)], filled: 0 }
    }

    /// The next piece, `None` behind the last. The other buffer, of a piece that is done with, is used again.
    pub(super) fn next(&mut self, other: Option<Vec<u8>>) -> io::Result<Option<Piece>> {
        loop {
            let count = self.file.read(&mut self.buffer[self.filled..])?;
            let filled = self.filled + count;
            let mut cut = self.cutter.cut(&self.buffer[..filled]);
            if count == 0 {
                // Nothing comes behind it.
                cut.extend(filled);
            }
            if cut.size() > 0 {
                let mut next = other.unwrap_or_else(|| vec![0; self.buffer.len()]);
                self.filled = filled - cut.size();
                next[..self.filled].copy_from_slice(&self.buffer[cut.size()..filled]);
                return Ok(Some(Piece { bytes: std::mem::replace(&mut self.buffer, next), cut }));
            }
            if count == 0 {
                return Ok(None);
            }
            self.filled = filled;
        }
    }

    /// Hands all pieces over in their order, and counts ahead while the other side has enough to do.
    pub(super) fn hand_over(mut self, to: &SyncSender<io::Result<Piece>>, done: &Receiver<Vec<u8>>, counts: bool) {
        while let Some(piece) = self.next(done.try_recv().ok()).transpose() {
            let is_last = piece.is_err();
            let sent = to.try_send(piece).or_else(|refused| match refused {
                TrySendError::Full(mut piece) => {
                    if let (Ok(piece), true) = (&mut piece, counts) {
                        piece.count();
                    }
                    to.send(piece).map_err(|_| ())
                }
                TrySendError::Disconnected(_) => Err(()),
            });
            if sent.is_err() || is_last {
                break;
            }
        }
    }
}
