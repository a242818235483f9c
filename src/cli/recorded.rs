//! Reading a recorded file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::exit::Failure;
use crate::nettrace::{Decoder, Ending, Limits, Repair, Sink, TraceHeader};

/// One read takes at most this much.
pub(super) const CHUNK: usize = 256 * 1024;

/// A nettrace file.
pub(super) struct Recorded {
    path: PathBuf,
    file: File,
}

/// What is left to say of a file that was read to its end.
pub(super) struct Pass {
    pub(super) header: TraceHeader,
    /// Bytes that were read: all, unless they stopped making sense.
    pub(super) bytes: u64,
    pub(super) ending: Ending,
    /// How the file becomes a whole one.
    pub(super) repair: Option<Repair>,
}

impl Recorded {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Gives the sink everything that the file holds.
    ///
    /// # Errors
    /// Also where the file holds nothing: it is no trace, or ends before its header does.
    pub(super) fn read(&mut self, sink: &mut impl Sink) -> Result<Pass, Failure> {
        let mut decoder = Decoder::new(Limits::default());
        let mut buffer = vec![0; CHUNK];
        let mut bytes = 0;
        loop {
            let count = self.file.read(&mut buffer).with_context(|| format!("cannot read {}", self.path.display()))?;
            if count == 0 {
                break;
            }
            bytes += count as u64;
            // The error comes again from finish, with how far the file makes sense.
            if decoder.feed(&buffer[..count], sink).is_err() {
                break;
            }
        }
        let ending = decoder.finish(sink);
        let Some(header) = decoder.trace().copied() else {
            return Err(match ending {
                Ending::Broken { error, .. } => anyhow::Error::new(error).context(format!("{} cannot be read", self.path.display())).into(),
                _ => anyhow::anyhow!("{} ends before its header does: it holds no events", self.path.display()).into(),
            });
        };
        Ok(Pass { header, bytes, ending, repair: decoder.repair() })
    }

    /// Goes back to the start, for another look.
    pub(super) fn rewind(&mut self) -> Result<&mut File, Failure> {
        self.file.seek(SeekFrom::Start(0)).with_context(|| format!("{} cannot be read twice", self.path.display()))?;
        Ok(&mut self.file)
    }

    /// What a person should know of a file that does not end the way a whole one does.
    pub(super) fn trouble(&self, ending: &Ending) -> Option<String> {
        let path = self.path.display();
        match ending {
            Ending::Complete => None,
            Ending::Truncated { whole_bytes, loose_bytes } => {
                Some(format!("{path} was cut off: {loose_bytes} bytes after the last whole block at byte {whole_bytes}"))
            }
            Ending::Broken { error, .. } => Some(format!("{path}: {error}; what comes before is counted")),
        }
    }
}
