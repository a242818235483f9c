//! Exporting a recorded file.

use std::cell::Cell;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::output::{OutputError, OutputFile};
use super::recorded::{Pass, ReadError, Recorded};
use crate::export::{Export, Options, Overview};

/// How far apart the starts of the machine may be that two recordings tell, milliseconds: the calendar is adjusted now and then.
const SAME_START_MS: u64 = 1000;

/// Why a file was not exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output cannot be made or named.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The output could not be written to its end. What was written stays under its partial name.
    #[error("{} could not be written to its end: {error}; what was written is in {}", path.display(), partial.display())]
    Write {
        /// The file that was to be made.
        path: PathBuf,
        /// Where what was written is.
        partial: PathBuf,
        /// What the operating system said.
        error: io::Error,
    },
    /// The output is no file, and could not be written to its end.
    #[error("cannot write to stdout: {0}")]
    Stdout(io::Error),
    /// Two recordings have no time in common.
    #[error("{} and {} were not recorded since the same start of the machine, so that their times cannot be compared: export each by itself", first.display(), other.display())]
    OtherStart {
        /// The first of the recordings.
        first: PathBuf,
        /// One that does not go with it.
        other: PathBuf,
    },
    /// It was not wanted any more.
    #[error("the export was given up")]
    GivenUp,
    /// A file to gather in could not be made.
    #[error("no temporary file can be made: {0}")]
    Scratch(io::Error),
}

/// Is told how many bytes were read, and says whether to go on.
pub type GoOn<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Where an export goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file, made with mode 0600 and never over another.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// Exports recorded files into one, in memory that does not depend on their size, as long as `go_on` says so, which is told how many bytes were read: each
/// recording is read twice. Gives what there is to say of each recording.
///
/// # Errors
/// See [`ExportError`].
pub fn export(paths: &[PathBuf], options: &Options, destination: &Destination, go_on: GoOn<'_>) -> Result<Vec<Pass>, ExportError> {
    let mut recordings = Vec::new();
    for path in paths {
        let before = recordings.iter().map(|recording: &Recording| recording.bytes).sum();
        recordings.push(Recording::read(path, before, go_on)?);
    }
    one_clock(&recordings)?;
    match destination {
        Destination::Stdout => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(recordings, options, &mut out, go_on)?.map_err(ExportError::Stdout)
        }
        Destination::File(path) => {
            let (output, file) = OutputFile::create(path).map_err(OutputError::without_salvage)?;
            let mut out = BufWriter::with_capacity(256 * 1024, &file);
            let written = match write(recordings, options, &mut out, go_on) {
                Ok(written) => written,
                Err(error) => {
                    output.discard();
                    return Err(error);
                }
            };
            match written.and_then(|passes| file.sync_all().map(|()| passes)) {
                Ok(passes) => {
                    output.keep()?;
                    Ok(passes)
                }
                Err(error) => Err(ExportError::Write { path: path.clone(), partial: output.leave()?, error }),
            }
        }
    }
}

/// A recording after the first pass.
struct Recording {
    path: PathBuf,
    recorded: Recorded,
    overview: Overview,
    bytes: u64,
}

impl Recording {
    fn read(path: &Path, before: u64, go_on: GoOn<'_>) -> Result<Self, ExportError> {
        let mut recorded = Recorded::open(path)?;
        let mut overview = Overview::default();
        let mut is_wanted = true;
        let mut told = |bytes| {
            is_wanted = go_on(before + bytes);
            is_wanted
        };
        let bytes = recorded.read_while(&mut overview, &mut told)?.bytes;
        if !is_wanted {
            return Err(ExportError::GivenUp);
        }
        recorded.rewind()?;
        Ok(Self { path: path.to_owned(), recorded, overview, bytes })
    }
}

/// The clock of a recording counts from the start of the machine: recordings from before and after a restart have no time in common.
fn one_clock(recordings: &[Recording]) -> Result<(), ExportError> {
    let started = |recording: &Recording| {
        let header = recording.overview.header();
        let calendar = header.sync_utc?.unix_ms();
        Some(calendar - header.nanoseconds_between(0, header.sync_ticks) / 1_000_000)
    };
    let Some(first) = recordings.first() else { return Ok(()) };
    let other = recordings.iter().find(|other| match (started(first), started(other)) {
        (Some(first), Some(other)) => first.abs_diff(other) > SAME_START_MS,
        _ => false,
    });
    match other {
        Some(other) => Err(ExportError::OtherStart { first: first.path.clone(), other: other.path.clone() }),
        None => Ok(()),
    }
}

/// The second pass. The outer error is of a recording, the inner one of the output.
fn write(
    recordings: Vec<Recording>,
    options: &Options,
    out: &mut dyn Write,
    go_on: GoOn<'_>,
) -> Result<io::Result<Vec<Pass>>, ExportError> {
    let mut passes = Vec::new();
    let mut before: u64 = recordings.iter().map(|recording| recording.bytes).sum();
    for (number, Recording { mut recorded, overview, bytes, .. }) in (0..).zip(recordings) {
        let scratch = tempfile::tempfile().map_err(ExportError::Scratch)?;
        let options = Options { number, ..options.clone() };
        let failed = Cell::new(false);
        let out = Watched { out: &mut *out, failed: &failed };
        let mut export = match Export::new(options, overview, Box::new(out), Box::new(scratch)) {
            Ok(export) => export,
            Err(error) => return Ok(Err(error)),
        };
        // Once nothing more can be written there is nothing to read for.
        let mut is_wanted = true;
        let told = |bytes| {
            is_wanted = go_on(before + bytes);
            is_wanted && !failed.get()
        };
        let pass = recorded.read_while(&mut export, told)?;
        if !is_wanted {
            return Err(ExportError::GivenUp);
        }
        before += bytes;
        if let Err(error) = export.finish() {
            return Ok(Err(error));
        }
        passes.push(pass);
    }
    Ok(Ok(passes))
}

/// An output of which it is known whether it failed.
struct Watched<'a> {
    out: &'a mut dyn Write,
    failed: &'a Cell<bool>,
}

impl Watched<'_> {
    fn watch<T>(&self, result: io::Result<T>) -> io::Result<T> {
        // What was interrupted is tried again.
        self.failed.set(self.failed.get() || result.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted));
        result
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.out.write(bytes);
        self.watch(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.out.flush();
        self.watch(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Part;
    use crate::model::TraceFormat;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A recording of some megabytes.
    fn capture(folder: &Path) -> PathBuf {
        let packed = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures/net9-heavy-norundown.nettrace.xz");
        let path = folder.join("a.nettrace");
        let mut packed = xz2::read::XzDecoder::new(std::fs::File::open(packed).unwrap());
        io::copy(&mut packed, &mut std::fs::File::create(&path).unwrap()).unwrap();
        path
    }

    fn options(format: TraceFormat) -> Options {
        Options { format, part: Part::default(), calls: false, tasks: false, number: 0 }
    }

    #[test]
    fn what_cannot_be_written_is_not_read_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = capture(folder.path());
        let size = path.metadata().unwrap().len();
        for format in [TraceFormat::Perfetto, TraceFormat::Csv, TraceFormat::Chromium] {
            let mut bytes = 0;
            let mut told = |now| {
                bytes = now;
                true
            };
            let recording = Recording::read(&path, 0, &mut told).unwrap();
            let mut out = BufWriter::with_capacity(4096, Full);
            let written = write(vec![recording], &options(format), &mut out, &mut told).unwrap();
            assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull, "{format:?}");
            // The first pass is whole.
            assert!(bytes >= size && bytes < size + size / 2, "{format:?}: {bytes} of {size}");
        }
    }

    #[test]
    fn what_is_given_up_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = capture(folder.path());
        let size = path.metadata().unwrap().len();
        for end in [0, size / 2, size + size / 2] {
            let out = folder.path().join("out");
            let given_up =
                export(std::slice::from_ref(&path), &options(TraceFormat::Perfetto), &Destination::File(out.clone()), &mut |bytes| {
                    bytes < end
                });
            assert!(matches!(given_up, Err(ExportError::GivenUp)), "{given_up:?}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the recording alone");
        }
    }
}
