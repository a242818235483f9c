//! Reading of a file in pieces, ahead of their use.

use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use crate::nettrace::{BlockScanner, Limits, ScannedBlocks};

/// Maximum size of one read. A piece of 1 MB has left the processor's cache before it is decoded, and allocating it takes as long as reading
/// a file of 20 MB.
const PIECE: usize = 512 << 10;
/// Minimum buffer size, for short files.
const SHORT: usize = 4 << 10;

/// Bytes of a stream that start and end at block boundaries.
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) scanned: ScannedBlocks,
}

impl Piece {
    /// Counts the contents of the event blocks, if not done yet.
    pub(super) fn count(&mut self) {
        self.scanned.count(&self.bytes);
    }
}

/// Reads a file in pieces. Bytes are read to where they are decoded, except for an incomplete block at the end of a read, which is copied.
pub(super) struct Pieces<'a> {
    file: &'a mut File,
    scanner: BlockScanner,
    /// Start of the next piece. All buffers have the size of this one.
    buffer: Vec<u8>,
    filled: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(file: &'a mut File, limits: Limits) -> Self {
        let length = file.metadata().map_or(PIECE, |facts| usize::try_from(facts.len()).unwrap_or(PIECE));
        Self { file, scanner: BlockScanner::new(limits), buffer: vec![0; length.clamp(SHORT, PIECE)], filled: 0 }
    }

    /// Returns the next piece, or `None` after the last. `other`, the buffer of a finished piece, is reused.
    pub(super) fn next(&mut self, other: Option<Vec<u8>>) -> io::Result<Option<Piece>> {
        loop {
            let count = self.file.read(&mut self.buffer[self.filled..])?;
            let filled = self.filled + count;
            let mut scanned = self.scanner.scan(&self.buffer[..filled]);
            if count == 0 {
                // The rest is the last piece.
                scanned.extend(filled);
            }
            if scanned.size() > 0 {
                let mut next = other.unwrap_or_else(|| vec![0; self.buffer.len()]);
                self.filled = filled - scanned.size();
                next[..self.filled].copy_from_slice(&self.buffer[scanned.size()..filled]);
                return Ok(Some(Piece { bytes: std::mem::replace(&mut self.buffer, next), scanned }));
            }
            if count == 0 {
                return Ok(None);
            }
            self.filled = filled;
        }
    }

    /// Sends all pieces in order, and counts them here while the receiver is busy.
    pub(super) fn send_all(mut self, to: &SyncSender<io::Result<Piece>>, done: &Receiver<Vec<u8>>, counts: bool) {
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
