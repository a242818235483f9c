//! Reading of a recorded file to its end, with memory use independent of its size.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use thiserror::Error;

use super::heap_file::is_heap_file;
use super::pieces::{Piece, Pieces};
use crate::analysis::{Live, SampledMethods};
use crate::model::{Counted, FileKind, Span, TraceFile, is_partial_file};
use crate::net::files;
use crate::nettrace::{DecodeError, Decoder, Ending, Limits, Repair, Sink, TraceHeader};

/// Advice about a file that does not end properly.
const SALVAGE: &str = "`dn-top salvage` repairs it (`--names` adds method names while the process is running)";

/// Number of pieces read before a thread is started for reading: a small file ends before that.
const INLINE_PIECES: usize = 8;
/// Number of pieces read ahead, besides the one being read.
const READ_AHEAD: usize = 2;

/// A sink that ignores everything.
struct NullSink;

impl Sink for NullSink {}

/// A nettrace file.
#[derive(Debug)]
pub struct RecordedFile {
    path: PathBuf,
    file: File,
}

/// Why a file cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file cannot be opened.
    #[error("{} cannot be opened: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The file is not a trace.
    #[error("{}", no_trace(path, error))]
    NoTrace {
        /// The file.
        path: PathBuf,
        /// The decoder's error.
        error: DecodeError,
    },
    /// The file is a heap file.
    #[error("{} is a heap file, and not a recording: `dn-top heap {}` shows it", .0.display(), .0.display())]
    HeapFile(PathBuf),
    /// The file is empty.
    #[error("{} is empty{}", .0.display(), segments_advice(.0))]
    Empty(PathBuf),
    /// The file ends within the header of a trace.
    #[error("{} ends within its header: it contains no events", .0.display())]
    NoHeader(PathBuf),
}

/// The unfinished file of a flight recorder is empty: what it kept is in files next to it.
fn segments_advice(path: &Path) -> String {
    if !is_partial_file(path) {
        return String::new();
    }
    format!("; if it is of a flight recorder, `dn-top salvage {}.*` joins the segments next to it", path.display())
}

fn no_trace(path: &Path, error: &DecodeError) -> String {
    match error {
        DecodeError::NotNettrace(bytes) => format!("{} is not a nettrace file: it begins with the bytes {bytes:02x?}", path.display()),
        error => format!("{} cannot be read: {error}", path.display()),
    }
}

/// Result of reading a file to its end.
#[derive(Debug)]
pub struct Pass {
    /// Properties of the whole stream.
    pub header: TraceHeader,
    /// Number of bytes read: all, unless decoding failed or reading was stopped.
    pub bytes: u64,
    /// How the stream ends.
    pub ending: Ending,
    /// How to make the file complete.
    pub repair: Option<Repair>,
    /// The largest metadata id in the file.
    pub largest_metadata_id: u32,
}

impl Pass {
    /// Returns a message about a file that does not end properly.
    pub fn trouble(&self) -> Option<String> {
        let words = match &self.ending {
            Ending::Complete => return None,
            Ending::Truncated { complete_bytes, trailing_bytes: 0 } => {
                format!("cut off after the last complete block at byte {complete_bytes}")
            }
            Ending::Truncated { complete_bytes, trailing_bytes } => {
                format!("cut off: {:#} after the last complete block at byte {complete_bytes}", Counted(*trailing_bytes, "byte"))
            }
            Ending::Broken { error, .. } => format!("{error}; everything before it is counted"),
        };
        Some(if self.repair.is_some() { format!("{words}; {SALVAGE}") } else { words })
    }
}

impl RecordedFile {
    /// Opens a file.
    ///
    /// # Errors
    /// If the operating system denies it.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::of(path, File::open(path))
    }

    fn of(path: &Path, opened: io::Result<File>) -> Result<Self, ReadError> {
        let path = path.to_owned();
        match opened {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(ReadError::Open { path, error }),
        }
    }

    /// Returns the file size in bytes; 0 if unknown.
    pub fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |facts| facts.len())
    }

    /// Returns the properties of the whole stream, and rewinds the file.
    ///
    /// # Errors
    /// As [`read`](Self::read) and [`rewind`](Self::rewind).
    pub fn header(&mut self) -> Result<TraceHeader, ReadError> {
        // The header is in the first piece.
        let header = self.read_while(&mut NullSink, &mut |_| false)?.header;
        self.rewind()?;
        Ok(header)
    }

    /// Opens a file that was not explicitly selected: only a regular file, without following links.
    ///
    /// # Errors
    /// If the operating system denies it, or it is not a regular file.
    pub fn open_discovered(path: &Path) -> Result<Self, ReadError> {
        let opened = files::open(path).and_then(|file| match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::Unsupported.into()),
        });
        Self::of(path, opened)
    }

    /// Reads the facts in the file's header.
    ///
    /// # Errors
    /// If it is not a trace.
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

    /// Feeds the rest of the file to the sink.
    ///
    /// # Errors
    /// Also if the file contains nothing: it is not a trace, or ends before its header does.
    pub fn read(&mut self, sink: &mut dyn Sink) -> Result<Pass, ReadError> {
        self.read_while(sink, &mut |_| true)
    }

    /// Does the same until it is canceled by `should_continue`, which receives the number of bytes read; then returns `None`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_or_cancel(&mut self, sink: &mut dyn Sink, should_continue: &mut dyn FnMut(u64) -> bool) -> Result<Option<Pass>, ReadError> {
        let mut is_wanted = true;
        let pass = self.read_while(sink, &mut |bytes| {
            is_wanted = should_continue(bytes);
            is_wanted
        });
        if is_wanted { pass.map(Some) } else { Ok(None) }
    }

    /// Does the same as long as `should_continue`, which receives the number of bytes read, returns true.
    pub(super) fn read_while(&mut self, mut sink: &mut dyn Sink, should_continue: &mut dyn FnMut(u64) -> bool) -> Result<Pass, ReadError> {
        // One decoder instantiation, over `dyn Sink`, for all uses of files: a virtual call per event is cheaper than another copy of the decoder.
        let mut decoder = Decoder::new(Limits::default());
        let (mut bytes, counts) = (0, sink.takes_counts());
        let mut feed = |mut piece: Piece| {
            bytes += piece.scanned.size() as u64;
            if counts {
                piece.count();
            }
            // `finish` returns the error again, with the position up to which the file could be decoded.
            let fed = decoder.feed_scanned(&piece.bytes, piece.scanned, &mut sink);
            (fed.is_ok() && should_continue(bytes)).then_some(piece.bytes)
        };
        let mut pieces = Pieces::new(&mut self.file, Limits::default());
        let read = || {
            let mut done = None;
            for _ in 0..INLINE_PIECES {
                done = pieces.next(done)?.and_then(&mut feed);
                if done.is_none() {
                    return Ok(());
                }
            }
            thread::scope(|scope| {
                let ((ahead, next), (back, empty)) = (sync_channel(READ_AHEAD), channel());
                let reader = move || pieces.send_all(&ahead, &empty, counts);
                thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, reader)?;
                for piece in next {
                    let Some(done) = feed(piece?) else { break };
                    // The reader may have ended.
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
            (None, Ending::Broken { error: DecodeError::NetPerf, .. }) if is_heap_file(&self.path) => {
                Err(ReadError::HeapFile(self.path.clone()))
            }
            (None, Ending::Broken { error, .. }) => Err(ReadError::NoTrace { path: self.path.clone(), error }),
            (None, Ending::Truncated { trailing_bytes: 0, .. }) => Err(ReadError::Empty(self.path.clone())),
            (None, _) => Err(ReadError::NoHeader(self.path.clone())),
        }
    }

    /// Collects sampled methods of a file, or of a part of it. A file in which the names come too late is read again, which is impossible for a pipe.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_methods(&mut self, span: Option<Span>) -> Result<(SampledMethods, Pass), ReadError> {
        let mut sampled = span.map_or_else(SampledMethods::default, |(from, to)| SampledMethods::within(from..=to));
        let mut pass = self.read(&mut sampled)?;
        if sampled.is_incomplete() && self.rewind().is_ok() {
            let mut symbols = Live::symbols_only();
            self.read(&mut symbols)?;
            self.rewind()?;
            sampled = sampled.with_symbols(symbols.into_symbols());
            pass = self.read(&mut sampled)?;
        }
        Ok((sampled, pass))
    }

    /// Seeks back to the start.
    ///
    /// # Errors
    /// If it is a pipe.
    pub fn rewind(&mut self) -> Result<&mut File, ReadError> {
        match self.file.seek(SeekFrom::Start(0)) {
            Ok(_) => Ok(&mut self.file),
            Err(error) => Err(ReadError::Read { path: self.path.clone(), error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nettrace::Encoder;

    #[test]
    fn command_for_a_heap_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        std::fs::write(&path, b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x0a\0\0\0\x08\0\0\0\x0a\0\0\0GCHeapDump\x06").unwrap();
        let error = RecordedFile::open(&path).unwrap().read(&mut NullSink).unwrap_err().to_string();
        assert_eq!(error, format!("{0} is a heap file, and not a recording: `dn-top heap {0}` shows it", path.display()));
    }

    #[test]
    fn rest_of_a_truncated_file_is_counted_in_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.nettrace");
        let mut encoder = Encoder::new(TraceHeader::default());
        encoder.flush();
        let whole = encoder.take();
        let cases = [
            (&[][..], "cut off after the last complete block at byte "),
            (&[5], "cut off: 1 byte after the last"),
            (&[5, 5], "cut off: 2 bytes after the last"),
        ];
        for (rest, words) in cases {
            std::fs::write(&path, [&whole, rest].concat()).unwrap();
            let trouble = RecordedFile::open(&path).unwrap().read(&mut NullSink).unwrap().trouble().unwrap();
            assert!(trouble.starts_with(words), "{trouble}");
        }
    }
}
