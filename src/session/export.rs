//! Export of recorded files.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::cpu_sample_file::{CpuSampleFile, SampleReader};
use super::{NoSamples, OutputError, OutputFile, Pass, ReadError, RecordedFile};
use crate::export::{Export, Finished, JoinCounts, Options, Overview, Part, Processes};
use crate::model::TraceFormat;

/// Maximum difference between the boot times of two recordings, in milliseconds: the system clock is adjusted from time to time.
const MAX_BOOT_TIME_DIFFERENCE_MS: u64 = 1000;

/// Why an export failed.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output cannot be created or renamed.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The output could not be written completely. The written part is kept under its partial name.
    #[error("{} could not be written completely: {error}; the written part is in {}", path.display(), partial.display())]
    Write {
        /// The requested file.
        path: PathBuf,
        /// The file that holds the written part.
        partial: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// Standard output could not be written completely.
    #[error("cannot write to stdout: {0}")]
    Stdout(io::Error),
    /// Two recordings have no common time base.
    #[error("{} and {} were recorded before and after a reboot, so their timestamps cannot be aligned: export them separately", first.display(), other.display())]
    OtherBoot {
        /// The first of the recordings.
        first: PathBuf,
        /// One with a different boot time.
        other: PathBuf,
    },
    /// The CPU samples next to a recording do not belong to it.
    #[error(transparent)]
    NoSamples(#[from] NoSamples),
    /// Canceled by the caller.
    #[error("the export was canceled")]
    Canceled,
    /// A temporary file could not be created.
    #[error("cannot create a temporary file: {0}")]
    TemporaryFile(io::Error),
}

/// Receives the number of bytes read and the total number to read; returns whether to continue.
pub type ShouldContinue<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// Destination of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file, created with mode 0600; never overwrites another.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// An exported file.
#[derive(Debug)]
pub struct Exported {
    /// The file.
    pub path: PathBuf,
    /// The file of the CPU samples that went into the same stream.
    pub samples: Option<PathBuf>,
    /// Result of reading it.
    pub pass: Pass,
    /// What was written of it.
    pub finished: Finished,
    /// Whether it ends before the selected part begins.
    pub is_before_part: bool,
}

impl Exported {
    /// Returns the counts of the nettrace format.
    pub fn joined(&self) -> Option<JoinCounts> {
        match self.finished {
            Finished::Joined(counts) => Some(counts),
            Finished::Part(_) => None,
        }
    }
}

/// Exports recorded files, with the CPU samples next to them, into one output, as long as `should_continue` returns true. Returns the files that were
/// read. Each file is read twice, so memory use does not depend on file sizes.
///
/// # Errors
/// See [`ExportError`].
pub fn export(
    paths: &[PathBuf],
    options: &Options,
    destination: &Destination,
    should_continue: ShouldContinue<'_>,
) -> Result<Vec<Exported>, ExportError> {
    let mut sources = Vec::new();
    for path in paths {
        sources.extend(Source::find(path, paths, options)?);
    }
    let total = sources.iter().map(|source| 2 * source.recorded.size()).sum();
    let should_continue: &mut dyn FnMut(u64) -> bool = &mut |bytes| should_continue(bytes, total);
    let mut recordings = Vec::new();
    for source in sources {
        let before = recordings.iter().map(|recording: &Recording| recording.bytes).sum();
        recordings.push(source.read(before, should_continue)?);
    }
    check_common_clock(&recordings)?;
    omit_redundant_samples(&mut recordings);
    match destination {
        Destination::Stdout => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(recordings, options, &mut out, should_continue)?.map_err(ExportError::Stdout)
        }
        Destination::File(path) => {
            let (output, file) = OutputFile::create(path).map_err(OutputError::without_salvage)?;
            let mut out = BufWriter::with_capacity(256 * 1024, &file);
            let written = write(recordings, options, &mut out, should_continue)?;
            match written.and_then(|passes| file.sync_all().map(|()| passes)) {
                Ok(passes) => {
                    output.persist()?;
                    Ok(passes)
                }
                Err(error) => Err(ExportError::Write { path: path.clone(), partial: output.keep_partial()?, error }),
            }
        }
    }
}

/// Writes a recording and the CPU samples next to it into one stream, as [`export`] does. The outer error concerns the input, the inner one
/// the output.
///
/// # Errors
/// See [`ExportError`].
pub(super) fn write_joined(
    recording: &Path,
    out: &File,
    should_continue: ShouldContinue<'_>,
) -> Result<io::Result<JoinCounts>, ExportError> {
    let options = Options::new(TraceFormat::Nettrace, Part::default());
    let mut source = Source::new(recording, &options)?;
    source.sample_file = Some(CpuSampleFile::open(recording, &source.recorded.header()?)?);
    let total = 2 * source.recorded.size();
    let should_continue: &mut dyn FnMut(u64) -> bool = &mut |bytes| should_continue(bytes, total);
    let recordings = vec![source.read(0, should_continue)?];
    let mut buffered = BufWriter::with_capacity(256 * 1024, out);
    let written = write(recordings, &options, &mut buffered, should_continue)?;
    Ok(written.map(|written| written.first().and_then(Exported::joined).unwrap_or_default()))
}

/// A file to export, and the part of it.
struct Source {
    path: PathBuf,
    recorded: RecordedFile,
    part: Part,
    /// Samples to write into the same stream.
    sample_file: Option<CpuSampleFile>,
    /// File of samples that is exported as well, as a source of its own.
    separate_samples: Option<PathBuf>,
}

/// A file after the first pass.
struct Recording {
    source: Source,
    overview: Overview,
    bytes: u64,
}

impl Source {
    /// Opens a file without the CPU samples next to it.
    fn new(path: &Path, options: &Options) -> Result<Self, ReadError> {
        let (recorded, part) = (RecordedFile::open(path)?, options.part.clone());
        Ok(Self { path: path.to_owned(), recorded, part, sample_file: None, separate_samples: None })
    }

    /// Opens a recording, and the CPU samples next to it unless they are exported already. Formats that contain only samples use these alone:
    /// they are more exact than those of the runtime, and using both would count each twice.
    fn find(path: &Path, paths: &[PathBuf], options: &Options) -> Result<Vec<Self>, ReadError> {
        let mut main = Self::new(path, options)?;
        if matches!(options.format, TraceFormat::Chromium | TraceFormat::Csv) {
            return Ok(vec![main]);
        }
        let is_listed = |file: &Path| paths.iter().any(|path| same_file(path, file));
        let header = main.recorded.header()?;
        let Ok(sample_file) = CpuSampleFile::open(path, &header) else { return Ok(vec![main]) };
        if is_listed(&sample_file.path) {
            main.separate_samples = Some(sample_file.path);
            return Ok(vec![main]);
        }
        if options.format == TraceFormat::Nettrace {
            main.sample_file = Some(sample_file);
            return Ok(vec![main]);
        }
        let part = Part { window: sample_file.window(&main.part.window), ..main.part.clone() };
        main.separate_samples = Some(sample_file.path.clone());
        let samples = Self { path: sample_file.path, recorded: sample_file.recorded, part, sample_file: None, separate_samples: None };
        Ok(if options.format.has_events() { vec![main, samples] } else { vec![samples] })
    }

    /// Runs the first pass.
    fn read(mut self, before: u64, should_continue: &mut dyn FnMut(u64) -> bool) -> Result<Recording, ExportError> {
        let mut overview = Overview::default();
        let pass = self.recorded.read_or_cancel(&mut overview, &mut |bytes| should_continue(before + bytes))?;
        let bytes = pass.ok_or(ExportError::Canceled)?.bytes;
        self.recorded.rewind()?;
        Ok(Recording { source: self, overview, bytes })
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.canonicalize().ok();
    one == other || place(one).is_some_and(|one| place(other) == Some(one))
}

/// Checks that all recordings share a clock, which counts from boot: recordings from before and after a reboot have no common time base.
fn check_common_clock(recordings: &[Recording]) -> Result<(), ExportError> {
    let started = |recording: &Recording| {
        let header = recording.overview.header();
        let calendar = header.sync_utc?.unix_ms();
        Some(calendar - header.nanoseconds_between(0, header.sync_ticks) / 1_000_000)
    };
    let Some(first) = recordings.first() else { return Ok(()) };
    let other = recordings.iter().find(|other| match (started(first), started(other)) {
        (Some(first), Some(other)) => first.abs_diff(other) > MAX_BOOT_TIME_DIFFERENCE_MS,
        _ => false,
    });
    match other {
        Some(other) => Err(ExportError::OtherBoot { first: first.source.path.clone(), other: other.source.path.clone() }),
        None => Ok(()),
    }
}

/// Leaves out the runtime's samples of recordings whose kernel samples are exported as well: flame graphs would count both.
fn omit_redundant_samples(recordings: &mut [Recording]) {
    let sampled = recordings.iter().filter(|recording| recording.overview.has_cpu_samples);
    let of_kernel: Vec<_> = sampled.map(|recording| recording.source.path.clone()).collect();
    for Recording { source, overview, .. } in recordings {
        if source.separate_samples.as_ref().is_some_and(|samples| of_kernel.iter().any(|path| same_file(path, samples))) {
            overview.has_cpu_samples = true;
        }
    }
}

/// Runs the second pass. The outer error concerns a recording, the inner one the output.
fn write(
    recordings: Vec<Recording>,
    options: &Options,
    out: &mut dyn Write,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<io::Result<Vec<Exported>>, ExportError> {
    let (mut passes, mut processes) = (Vec::new(), Processes::default());
    let mut before: u64 = recordings.iter().map(|recording| recording.bytes).sum();
    let should_continue = RefCell::new(should_continue);
    for (number, Recording { source: Source { path, mut recorded, part, mut sample_file, .. }, mut overview, bytes }) in
        (0..).zip(recordings)
    {
        processes.add(&mut overview);
        let starts = *part.window.start();
        let options = Options { number, part, ..options.clone() };
        let (failed, is_wanted, done) = (Cell::new(false), Cell::new(true), Cell::new(before));
        let is_still_wanted = || {
            is_wanted.set(is_wanted.get() && should_continue.borrow_mut()(done.get()));
            is_wanted.get()
        };
        let out = FailureTrackingWriter { out: &mut *out, failed: &failed };
        let samples = sample_file.as_ref().map(|sample_file| sample_file.path.clone());
        let export = match sample_file.as_mut().map(|sample_file| SampleReader::new(sample_file, &is_still_wanted)).transpose()? {
            Some(samples) => Ok(Export::joined(&overview, Box::new(out), Box::new(samples))),
            None => {
                let scratch = tempfile::tempfile().map_err(ExportError::TemporaryFile)?;
                Export::new(options, overview, Box::new(out), Box::new(scratch))
            }
        };
        let mut export = match export {
            Ok(export) => export,
            Err(error) => return Ok(Err(error)),
        };
        // Stop reading once the output has failed.
        let mut reported = |bytes| {
            done.set(before + bytes);
            is_still_wanted() && !failed.get()
        };
        let pass = recorded.read_while(&mut export, &mut reported)?;
        // There may be more samples after the end of the recording.
        let finished = is_wanted.get().then(|| export.finish());
        let Some(finished) = finished.filter(|_| is_wanted.get()) else { return Err(ExportError::Canceled) };
        before += bytes;
        match finished {
            Ok(finished) => {
                let is_before_part = matches!(&finished, Finished::Part(written) if written.newest < starts);
                passes.push(Exported { path, samples, pass, finished, is_before_part });
            }
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(passes))
}

/// Output that remembers whether a write failed.
struct FailureTrackingWriter<'a> {
    out: &'a mut dyn Write,
    failed: &'a Cell<bool>,
}

impl FailureTrackingWriter<'_> {
    fn watch<T>(&self, result: io::Result<T>) -> io::Result<T> {
        // Interrupted writes are retried.
        self.failed.set(self.failed.get() || result.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted));
        result
    }
}

impl Write for FailureTrackingWriter<'_> {
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
mod tests;
