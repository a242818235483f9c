//! Bytes that wait to be counted.
//!
//! There is room for a few chunks. What comes faster than it is counted is read from the file that it was written to, later: a decoder cannot leave bytes
//! out. A flight recorder alone has no such file, since it keeps what was decoded: there the reader waits.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use super::count::{Counted, Side};
use super::observe::PACE;
use super::progress::Progress;
use crate::nettrace::{DecodeError, Decoder, Limits, Sink};

/// Chunks that there is room for.
pub(super) const WAITING: usize = 16;
/// What is read at once from the file.
const CHUNK: usize = 256 * 1024;

/// What is to be counted next.
pub(super) enum Work {
    /// A chunk, and how many of its bytes count.
    Chunk(Vec<u8>, usize),
    /// So many bytes that are only in the file.
    InFile(u64),
}

impl Work {
    /// How many chunks it stands for.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Chunk(..) => 1,
            Self::InFile(_) => WAITING,
        }
    }
}

/// Where the bytes come from that are counted.
pub(super) struct Source {
    pub(super) incoming: Receiver<Work>,
    pub(super) give_back: Sender<Vec<u8>>,
    pub(super) file: Option<File>,
    /// How many bytes of the file are counted.
    pub(super) at: u64,
    pub(super) progress: Arc<Progress>,
}

/// Why counting ended before the bytes did.
#[derive(Debug)]
enum Uncounted {
    Undecodable(DecodeError),
    Unreadable(io::Error),
    Abandoned,
}

impl Uncounted {
    fn words(&self) -> String {
        match self {
            Self::Undecodable(error) => format!("cannot decode the event stream: {error}; the bytes are kept"),
            Self::Unreadable(error) => format!("the file cannot be read back, so that its end is not known to be whole: {error}"),
            Self::Abandoned => "abandoned before all of it was counted; the bytes are kept".to_owned(),
        }
    }
}

impl Source {
    /// Feeds a decoder until there is no more, and says whether the stream came to its proper end. `look` is called after each chunk, while none
    /// come, and when it is over.
    pub(super) fn drain<S: Sink>(
        mut self,
        mut sink: (S, Side),
        undecodable: impl FnOnce(DecodeError),
        mut look: impl FnMut(&mut (S, Side), bool),
    ) -> Counted {
        let mut decoder = Decoder::new(Limits::LIVE);
        let (mut outcome, mut undecodable) = (Ok(()), Some(undecodable));
        loop {
            match self.incoming.recv_timeout(PACE) {
                Ok(work) => {
                    let weight = work.weight();
                    if outcome.is_ok() {
                        outcome = self.feed(work, &mut decoder, &mut sink, &mut look);
                    }
                    if let Err(Uncounted::Undecodable(error)) = &outcome
                        && !matches!(error, DecodeError::Version(_))
                        && let Some(undecodable) = undecodable.take()
                    {
                        undecodable(error.clone());
                    }
                    self.progress.waiting.fetch_sub(weight, Ordering::Relaxed);
                }
                // Rates fall while nothing comes.
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            look(&mut sink, false);
        }
        let complete = decoder.finish(&mut sink).is_complete();
        look(&mut sink, true);
        Counted { complete: complete && outcome.is_ok(), trouble: outcome.err().map(|why| why.words()), recent: sink.1.recent }
    }

    fn feed<S: Sink>(
        &mut self,
        work: Work,
        decoder: &mut Decoder,
        sink: &mut (S, Side),
        look: &mut impl FnMut(&mut (S, Side), bool),
    ) -> Result<(), Uncounted> {
        match (work, &self.file) {
            (Work::Chunk(chunk, length), _) => {
                let fed = decoder.feed(&chunk[..length], sink);
                self.at += length as u64;
                // Once the pump has read its last there is nobody to give it back to.
                let _ = self.give_back.send(chunk);
                fed.map_err(Uncounted::Undecodable)
            }
            (Work::InFile(mut left), Some(file)) => {
                let mut buffer = vec![0; CHUNK];
                while left > 0 {
                    if self.progress.abandoned.load(Ordering::Relaxed) {
                        return Err(Uncounted::Abandoned);
                    }
                    let size = left.min(CHUNK as u64) as usize;
                    file.read_exact_at(&mut buffer[..size], self.at).map_err(Uncounted::Unreadable)?;
                    (self.at, left) = (self.at + size as u64, left - size as u64);
                    decoder.feed(&buffer[..size], sink).map_err(Uncounted::Undecodable)?;
                    look(sink, false);
                }
                Ok(())
            }
            (Work::InFile(_), None) => Ok(()),
        }
    }
}
