//! Exporting a recorded file.

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
    /// A file to gather in could not be made.
    #[error("no temporary file can be made: {0}")]
    Scratch(io::Error),
}

/// Where an export goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file, made with mode 0600 and never over another.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// Exports recorded files into one, in memory that does not depend on their size. Gives what there is to say of each recording.
///
/// # Errors
/// See [`ExportError`].
pub fn export(paths: &[PathBuf], options: &Options, destination: &Destination) -> Result<Vec<Pass>, ExportError> {
    let mut recordings = Vec::new();
    for path in paths {
        recordings.push(Recording::read(path)?);
    }
    one_clock(&recordings)?;
    match destination {
        Destination::Stdout => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(recordings, options, &mut out)?.map_err(ExportError::Stdout)
        }
        Destination::File(path) => {
            let (output, file) = OutputFile::create(path).map_err(|error| match error {
                // What an export left is no recording that could be made whole.
                OutputError::Unfinished(partial) => OutputError::Exists(partial),
                error => error,
            })?;
            let mut out = BufWriter::with_capacity(256 * 1024, &file);
            let written = match write(recordings, options, &mut out) {
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
}

impl Recording {
    fn read(path: &Path) -> Result<Self, ReadError> {
        let mut recorded = Recorded::open(path)?;
        let mut overview = Overview::default();
        recorded.read(&mut overview)?;
        recorded.rewind()?;
        Ok(Self { path: path.to_owned(), recorded, overview })
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
fn write(recordings: Vec<Recording>, options: &Options, out: &mut dyn Write) -> Result<io::Result<Vec<Pass>>, ExportError> {
    let mut passes = Vec::new();
    for (number, Recording { mut recorded, overview, .. }) in (0..).zip(recordings) {
        let scratch = tempfile::tempfile().map_err(ExportError::Scratch)?;
        let options = Options { number, ..options.clone() };
        let mut export = match Export::new(options, overview, Box::new(&mut *out), Box::new(scratch)) {
            Ok(export) => export,
            Err(error) => return Ok(Err(error)),
        };
        let pass = recorded.read(&mut export)?;
        if let Err(error) = export.finish() {
            return Ok(Err(error));
        }
        passes.push(pass);
    }
    Ok(Ok(passes))
}
