//! Reading a recorded file to its end, in memory that does not depend on its size.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use thiserror::Error;

use super::pieces::{Piece, Pieces};
use crate::analysis::{Live, SampledMethods};
use crate::model::{FileKind, TraceFile};
use crate::net::files;
use crate::nettrace::{DecodeError, Decoder, Ending, Limits, Repair, Sink, TraceHeader};

/// What a person can do with a file that does not end as it should.
const SALVAGE: &str = "`dn-top salvage` makes a whole file of it (`--names` adds names of methods while its process runs)";

/// Pieces that are read before there is a thread for it: a small file is over by then.
const ALONE: usize = 8;
/// Pieces that are read ahead, besides the one that is being read.
const AHEAD: usize = 2;

/// Takes nothing.
struct Nothing;

impl Sink for Nothing {}

/// A nettrace file.
#[derive(Debug)]
pub struct Recorded {
    path: PathBuf,
    file: File,
}

/// Why a file cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system does not let it be opened.
    #[error("{} cannot be opened: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The system does not let it be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// It is no trace.
    #[error("{}", no_trace(path, error))]
    NoTrace {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: DecodeError,
    },
    /// It is the start of a trace, and of nothing else.
    #[error("{} ends before its header does: it holds no events", .0.display())]
    NoHeader(PathBuf),
}

fn no_trace(path: &Path, error: &DecodeError) -> String {
    match error {
        DecodeError::NotNettrace(bytes) => format!("{} is not a nettrace file: it begins with the bytes {bytes:02x?}", path.display()),
        error => format!("{} cannot be read: {error}", path.display()),
    }
}

/// What remains to be reported of a file that was read to its end.
#[derive(Debug)]
pub struct Pass {
    /// What the whole stream has in common.
    pub header: TraceHeader,
    /// Bytes that were read: all, unless they stopped making sense or the rest was not wanted.
    pub bytes: u64,
    /// How the stream ends.
    pub ending: Ending,
    /// How the file becomes a whole one.
    pub repair: Option<Repair>,
    /// The largest id of a kind of event.
    pub largest_metadata_id: u32,
}

impl Pass {
    /// What a person should know of a file that does not end the way a whole one does.
    pub fn trouble(&self) -> Option<String> {
        let words = match &self.ending {
            Ending::Complete => return None,
            Ending::Truncated { whole_bytes, loose_bytes } => {
                format!("cut off: {loose_bytes} bytes after the last whole block at byte {whole_bytes}")
            }
            Ending::Broken { error, .. } => format!("{error}; everything before it is counted"),
        };
        Some(if self.repair.is_some() { format!("{words}; {SALVAGE}") } else { words })
    }
}

impl Recorded {
    /// Opens a file.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let path = path.to_owned();
        match File::open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(ReadError::Open { path, error }),
        }
    }

    /// Its size in bytes; 0 where that is not known.
    pub fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |facts| facts.len())
    }

    /// What the whole stream has in common. The file stands at its start again.
    ///
    /// # Errors
    /// As [`read`](Self::read) and [`rewind`](Self::rewind).
    pub fn header(&mut self) -> Result<TraceHeader, ReadError> {
        // It is in the first piece.
        let header = self.read_while(&mut Nothing, |_| false)?.header;
        self.rewind()?;
        Ok(header)
    }

    /// Opens a file that no person selected by its name: a regular one, through no link.
    ///
    /// # Errors
    /// When the system refuses, or it is something else.
    pub fn open_unasked(path: &Path) -> Result<Self, ReadError> {
        let opened = files::open(path).and_then(|file| match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::Unsupported.into()),
        });
        let path = path.to_owned();
        match opened {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(ReadError::Open { path, error }),
        }
    }

    /// What is known of it once its first bytes are read.
    ///
    /// # Errors
    /// Where it is no trace.
    pub fn facts(mut self) -> Result<TraceFile, ReadError> {
        let header = self.header()?;
        let started = header.sync_utc.map_or(0, |time| time.unix_ms());
        let bytes = self.size();
        Ok(TraceFile {
            kind: FileKind::Trace,
            path: self.path,
            bytes,
            process_id: header.process_id,
            start_unix_ms: u64::try_from(started).unwrap_or(0),
        })
    }

    /// Gives the sink everything that the file holds, from where it stands.
    ///
    /// # Errors
    /// Also where the file holds nothing: it is no trace, or ends before its header does.
    pub fn read(&mut self, sink: &mut dyn Sink) -> Result<Pass, ReadError> {
        self.read_while(sink, |_| true)
    }

    /// The same as long as `go_on`, which gets how many bytes were read, returns true.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_while(&mut self, mut sink: &mut dyn Sink, mut go_on: impl FnMut(u64) -> bool) -> Result<Pass, ReadError> {
        // One decoder for all that is done with files: a call through a table for each event is cheaper than one decoder more for each of them.
        let mut decoder = Decoder::new(Limits::default());
        let (mut bytes, counts) = (0, sink.takes_counts());
        let mut feed = |mut piece: Piece| {
            bytes += piece.cut.size() as u64;
            if counts {
                piece.count();
            }
            // The error comes again from finish, with how far the file makes sense.
            let fed = decoder.feed_cut(&piece.bytes, piece.cut, &mut sink);
            (fed.is_ok() && go_on(bytes)).then_some(piece.bytes)
        };
        let mut pieces = Pieces::new(&mut self.file, Limits::default());
        let read = || {
            let mut done = None;
            for _ in 0..ALONE {
                done = pieces.next(done)?.and_then(&mut feed);
                if done.is_none() {
                    return Ok(());
                }
            }
            thread::scope(|scope| {
                let ((ahead, next), (back, empty)) = (sync_channel(AHEAD), channel());
                let reader = move || pieces.hand_over(&ahead, &empty, counts);
                thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, reader)?;
                for piece in next {
                    let Some(done) = feed(piece?) else { break };
                    // It may be over.
                    let _ = back.send(done);
                }
                Ok(())
            })
        };
        read().map_err(|error| ReadError::Read { path: self.path.clone(), error })?;
        let ending = decoder.finish(&mut sink);
        match (decoder.trace(), ending) {
            (Some(header), ending) => {
                Ok(Pass { header: *header, bytes, ending, repair: decoder.repair(), largest_metadata_id: decoder.largest_metadata_id() })
            }
            (None, Ending::Broken { error, .. }) => Err(ReadError::NoTrace { path: self.path.clone(), error }),
            (None, _) => Err(ReadError::NoHeader(self.path.clone())),
        }
    }

    /// Where threads spend their time. A file whose names come too late for that is read once more, which a pipe cannot be.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_methods(&mut self) -> Result<(SampledMethods, Pass), ReadError> {
        let mut sampled = SampledMethods::default();
        let mut pass = self.read(&mut sampled)?;
        if sampled.is_incomplete() && self.rewind().is_ok() {
            let mut symbols = Live::only_symbols();
            self.read(&mut symbols)?;
            self.rewind()?;
            sampled = SampledMethods::with_symbols(symbols.into_symbols());
            pass = self.read(&mut sampled)?;
        }
        Ok((sampled, pass))
    }

    /// Goes back to the start, for another look.
    ///
    /// # Errors
    /// Where that is no file but a pipe.
    pub fn rewind(&mut self) -> Result<&mut File, ReadError> {
        match self.file.seek(SeekFrom::Start(0)) {
            Ok(_) => Ok(&mut self.file),
            Err(error) => Err(ReadError::Read { path: self.path.clone(), error }),
        }
    }
}
