//! Exporting a recorded file.

use std::cell::Cell;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::cpu_beside::CpuBeside;
use super::output::{OutputError, OutputFile};
use super::recorded::{Pass, ReadError, Recorded};
use crate::export::{Export, Options, Overview, Part};
use crate::model::TraceFormat;

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

/// Gets how many bytes were read, of how many that are to be read, and says whether to go on.
pub type GoOn<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// Where an export goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file, made with mode 0600 and never over another.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// Exports recorded files, and the CPU samples beside them, into one, in memory that does not depend on their size, as long as `go_on` says so: each file is
/// read twice. Gives the files that were read and what there is to say of each.
///
/// # Errors
/// See [`ExportError`].
pub fn export(
    paths: &[PathBuf],
    options: &Options,
    destination: &Destination,
    go_on: GoOn<'_>,
) -> Result<Vec<(PathBuf, Pass)>, ExportError> {
    let mut sources = Vec::new();
    for path in paths {
        sources.extend(Source::find(path, paths, options)?);
    }
    let total = sources.iter().map(|source| 2 * source.recorded.size()).sum();
    let go_on: &mut dyn FnMut(u64) -> bool = &mut |bytes| go_on(bytes, total);
    let mut recordings = Vec::new();
    for source in sources {
        let before = recordings.iter().map(|recording: &Recording| recording.bytes).sum();
        recordings.push(source.read(before, go_on)?);
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

/// A file that is exported, and which part of it.
struct Source {
    path: PathBuf,
    recorded: Recorded,
    part: Part,
}

/// A file after the first pass.
struct Recording {
    source: Source,
    overview: Overview,
    bytes: u64,
}

impl Source {
    /// A recording, and the CPU samples beside it where there are any that are not exported already. A format that has nothing but samples is made of these
    /// alone: they are more exact than those of the runtime, and each would be counted twice.
    fn find(path: &Path, paths: &[PathBuf], options: &Options) -> Result<Vec<Self>, ReadError> {
        let part = options.part.clone();
        let mut main = Self { path: path.to_owned(), recorded: Recorded::open(path)?, part };
        let has_events = match options.format {
            TraceFormat::Perfetto => true,
            TraceFormat::Speedscope | TraceFormat::Folded | TraceFormat::Pprof => false,
            TraceFormat::Chromium | TraceFormat::Csv => return Ok(vec![main]),
        };
        let is_listed = |file: &Path| paths.iter().any(|path| same_file(path, file));
        let header = main.recorded.header()?;
        let Some(beside) = CpuBeside::open(path, &header).filter(|beside| !is_listed(&beside.path)) else { return Ok(vec![main]) };
        let part = Part { window: beside.window(&main.part.window), ..main.part.clone() };
        let samples = Self { path: beside.path, recorded: beside.recorded, part };
        Ok(if has_events { vec![main, samples] } else { vec![samples] })
    }

    /// The first pass.
    fn read(mut self, before: u64, go_on: &mut dyn FnMut(u64) -> bool) -> Result<Recording, ExportError> {
        let mut overview = Overview::default();
        let mut is_wanted = true;
        let mut reported = |bytes| {
            is_wanted = go_on(before + bytes);
            is_wanted
        };
        let bytes = self.recorded.read_while(&mut overview, &mut reported)?.bytes;
        if !is_wanted {
            return Err(ExportError::GivenUp);
        }
        self.recorded.rewind()?;
        Ok(Recording { source: self, overview, bytes })
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.canonicalize().ok();
    one == other || place(one).is_some_and(|one| place(other) == Some(one))
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
        Some(other) => Err(ExportError::OtherStart { first: first.source.path.clone(), other: other.source.path.clone() }),
        None => Ok(()),
    }
}

/// The second pass. The outer error is of a recording, the inner one of the output.
fn write(
    recordings: Vec<Recording>,
    options: &Options,
    out: &mut dyn Write,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<io::Result<Vec<(PathBuf, Pass)>>, ExportError> {
    let mut passes = Vec::new();
    let mut before: u64 = recordings.iter().map(|recording| recording.bytes).sum();
    for (number, Recording { source: Source { path, mut recorded, part }, overview, bytes }) in (0..).zip(recordings) {
        let scratch = tempfile::tempfile().map_err(ExportError::Scratch)?;
        let options = Options { number, part, ..options.clone() };
        let failed = Cell::new(false);
        let out = Watched { out: &mut *out, failed: &failed };
        let mut export = match Export::new(options, overview, Box::new(out), Box::new(scratch)) {
            Ok(export) => export,
            Err(error) => return Ok(Err(error)),
        };
        // Once nothing more can be written there is nothing to read for.
        let mut is_wanted = true;
        let reported = |bytes| {
            is_wanted = go_on(before + bytes);
            is_wanted && !failed.get()
        };
        let pass = recorded.read_while(&mut export, reported)?;
        if !is_wanted {
            return Err(ExportError::GivenUp);
        }
        before += bytes;
        if let Err(error) = export.finish() {
            return Ok(Err(error));
        }
        passes.push((path, pass));
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
    use crate::export::CpuTrace;
    use crate::nettrace::{CollectorHeader, Encoder, TraceHeader, UtcTime};

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
            let mut reported = |now| {
                bytes = now;
                true
            };
            let [source] = <[_; 1]>::try_from(Source::find(&path, &[], &options(format)).unwrap()).ok().unwrap();
            let recording = source.read(0, &mut reported).unwrap();
            let mut out = BufWriter::with_capacity(4096, Full);
            let written = write(vec![recording], &options(format), &mut out, &mut reported).unwrap();
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
            let given_up = export(
                std::slice::from_ref(&path),
                &options(TraceFormat::Perfetto),
                &Destination::File(out.clone()),
                &mut |bytes, total| {
                    assert_eq!(total, 2 * size);
                    bytes < end
                },
            );
            assert!(matches!(given_up, Err(ExportError::GivenUp)), "{given_up:?}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the recording alone");
        }
    }

    const STARTED: i64 = 1_000_000_000;

    /// A recording without events, and beside it samples of one function, at 1, 2 and 3 s of the recording, whose file begins so much later.
    fn with_samples(folder: &Path, later: i64) -> PathBuf {
        let path = folder.join("a.nettrace");
        let mut encoder = Encoder::new(TraceHeader { sync_ticks: STARTED, process_id: 42, ..TraceHeader::default() });
        encoder.end();
        std::fs::write(&path, encoder.take()).unwrap();
        let header = CollectorHeader {
            sync_utc: UtcTime::from_unix_ms(0),
            sync_ns: STARTED + later,
            processors: 1,
            sampling_interval_ns: 1_000_000,
        };
        let mut trace = CpuTrace::new(&header, 42, "shop");
        trace.mapping(0x1000..0x2000, 0, b"/lib/libz.so");
        (1..=3).for_each(|second| trace.sample(43, STARTED + second * 1_000_000_000, &[], &[0x1010]));
        let mut bytes = trace.write_until(i64::MAX);
        trace.function(0x1000, 0x100, "inflate");
        bytes.extend(trace.finish());
        std::fs::write(folder.join("a.cpu.nettrace"), bytes).unwrap();
        path
    }

    #[test]
    fn cpu_samples_beside_a_recording_are_exported_with_it() {
        let read = |paths: &[&Path], options: &Options, out: &Path| {
            let paths: Vec<_> = paths.iter().map(|path| path.to_path_buf()).collect();
            let read = export(&paths, options, &Destination::File(out.to_owned()), &mut |_, _| true).unwrap();
            let bytes = std::fs::read(out).unwrap();
            std::fs::remove_file(out).unwrap();
            (read.into_iter().map(|(path, _)| path).collect::<Vec<_>>(), bytes)
        };
        for later in [-300_000_000, 0, 300_000_000] {
            let folder = tempfile::tempdir().unwrap();
            let (path, out) = (with_samples(folder.path(), later), folder.path().join("out"));
            let samples = folder.path().join("a.cpu.nettrace");
            let (files, folded) = read(&[&path], &options(TraceFormat::Folded), &out);
            assert_eq!((files, String::from_utf8(folded).unwrap().trim()), (vec![samples.clone()], "thread 42/43;inflate 3"), "{later}");
            // Times are those of the recording.
            let window = 1_900_000_000..=2_100_000_000;
            let part = Options { part: Part { window, ..Part::default() }, ..options(TraceFormat::Folded) };
            assert_eq!(String::from_utf8(read(&[&path], &part, &out).1).unwrap().trim(), "thread 42/43;inflate 1", "{later}");
            for format in [TraceFormat::Speedscope, TraceFormat::Pprof] {
                assert_eq!(read(&[&path], &options(format), &out).0, std::slice::from_ref(&samples), "{format:?}");
            }
            let perfetto = options(TraceFormat::Perfetto);
            let (files, trace) = read(&[&path], &perfetto, &out);
            assert_eq!(files, [path.clone(), samples.clone()]);
            // Once, where they are named as well.
            assert_eq!(read(&[&path, &folder.path().join("./a.cpu.nettrace")], &perfetto, &out).1, trace);
            assert_eq!(read(&[&path], &options(TraceFormat::Csv), &out).0, [path]);
        }
        // Those of another recording stay out.
        let folder = tempfile::tempdir().unwrap();
        let path = with_samples(folder.path(), 61_000_000_000);
        assert_eq!(read(&[&path], &options(TraceFormat::Perfetto), &folder.path().join("out")).0, [path]);
    }
}
