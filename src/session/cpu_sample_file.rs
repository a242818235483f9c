//! The CPU samples of a recording, in a separate file next to it: the runtime's stream is written unchanged and has no place for them.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::pieces::Pieces;
use super::recorded::{ReadError, RecordedFile};
use crate::analysis::{RecordedCpuTime, SampledMethods};
use crate::export::{Batch, SampleStream};
use crate::model::{Nanoseconds, Span, finished_path};
use crate::nettrace::{Decoder, Ending, Limits, TraceHeader};

/// Frequency of the clock of the samples, CLOCK_MONOTONIC, in ticks per second. Runtimes use the same clock.
const TICKS_PER_SECOND: u64 = 1_000_000_000;
/// Maximum distance between the starts of the two files, in nanoseconds: beyond it they belong to different recordings.
const MAX_START_DIFFERENCE_NS: u64 = 60 * TICKS_PER_SECOND;

/// Why there are no samples that belong to a recording.
#[derive(Debug, Error)]
pub enum NoSamples {
    /// The sample file does not exist, or cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The recording has another clock.
    #[error(
        "the clock of the recording has {0} ticks per second, and that of the samples {TICKS_PER_SECOND}, so that their times cannot be compared"
    )]
    Clock(u64),
    /// The files begin at different times.
    #[error(
        "the recording begins at {} of its clock and the samples at {} of theirs: more than {} apart, so they are not of the same time",
        at(*.recording), at(*.samples), Nanoseconds(MAX_START_DIFFERENCE_NS)
    )]
    Time {
        /// Start of the recording.
        recording: i64,
        /// Start of the samples.
        samples: i64,
    },
}

/// Formats a time of the clock.
fn at(ticks: i64) -> String {
    format!("{:.3} s", ticks as f64 / TICKS_PER_SECOND as f64)
}

/// Path of the file with the samples of a recording, which may itself still be `.partial`.
pub(super) fn cpu_file(recording: &Path) -> PathBuf {
    finished_path(recording).with_extension("cpu.nettrace")
}

/// The sample file next to a recording.
#[derive(Debug)]
pub(super) struct CpuSampleFile {
    pub(super) path: PathBuf,
    pub(super) recorded: RecordedFile,
    header: TraceHeader,
    /// How much later than this file the recording starts, in nanoseconds.
    start_offset_ns: i64,
}

impl CpuSampleFile {
    /// Opens the sample file.
    ///
    /// # Errors
    /// If there is none of the same time.
    pub(super) fn open(recording: &Path, header: &TraceHeader) -> Result<Self, NoSamples> {
        let path = cpu_file(recording);
        // In a shared folder, anyone may have created it.
        let mut recorded = RecordedFile::open_discovered(&path)?;
        let own = recorded.header()?;
        if header.ticks_per_second != TICKS_PER_SECOND {
            return Err(NoSamples::Clock(header.ticks_per_second));
        }
        let start_offset_ns = header.sync_ticks.checked_sub(own.sync_ticks);
        match start_offset_ns.filter(|later| later.unsigned_abs() < MAX_START_DIFFERENCE_NS) {
            Some(start_offset_ns) => Ok(Self { path, recorded, header: own, start_offset_ns }),
            None => Err(NoSamples::Time { recording: header.sync_ticks, samples: own.sync_ticks }),
        }
    }

    /// Converts a range of the recording, in nanoseconds since its start, to a range of this file.
    pub(super) fn window(&self, part: &RangeInclusive<i64>) -> RangeInclusive<i64> {
        part.start().saturating_add(self.start_offset_ns)..=part.end().saturating_add(self.start_offset_ns)
    }
}

/// Reads the samples piece by piece, as long as `should_continue` returns true. Samples after damage in the file are missing.
pub(super) struct SampleReader<'a> {
    header: TraceHeader,
    pieces: Pieces<'a>,
    decoder: Decoder,
    should_continue: &'a dyn Fn() -> bool,
    /// The buffer of the latest piece.
    done: Option<Vec<u8>>,
    /// How the stream ends, once it has ended.
    ending: Option<Ending>,
}

impl<'a> SampleReader<'a> {
    /// Starts at the beginning of the file.
    ///
    /// # Errors
    /// As [`RecordedFile::rewind`].
    pub(super) fn new(sample_file: &'a mut CpuSampleFile, should_continue: &'a dyn Fn() -> bool) -> Result<Self, ReadError> {
        let pieces = Pieces::new(sample_file.recorded.rewind()?, Limits::default());
        let decoder = Decoder::new(Limits::default());
        Ok(Self { header: sample_file.header, pieces, decoder, should_continue, done: None, ending: None })
    }
}

impl SampleStream for SampleReader<'_> {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn refill(&mut self, batch: &mut Batch) -> bool {
        while batch.is_empty() && self.ending.is_none() {
            let done = self.done.take();
            let piece = if (self.should_continue)() { self.pieces.next(done).ok().flatten() } else { None };
            self.done =
                piece.and_then(|piece| self.decoder.feed_scanned(&piece.bytes, piece.scanned, batch).is_ok().then_some(piece.bytes));
            if self.done.is_none() {
                self.ending = Some(self.decoder.finish(batch));
            }
        }
        !batch.is_empty()
    }

    fn is_complete(&self) -> bool {
        self.ending.as_ref().is_some_and(Ending::is_complete)
    }
}

/// Reads the samples next to a recording, limited to `span` if given; `None` if there are none of the same time.
pub fn read_cpu_samples(recording: &Path, header: &TraceHeader, span: Option<Span>) -> Option<RecordedCpuTime> {
    let mut sample_file = CpuSampleFile::open(recording, header).ok()?;
    let (from, to) = span.unwrap_or((i64::MIN, i64::MAX));
    let mut sampled = SampledMethods::within(sample_file.window(&(from..=to)));
    sample_file.recorded.read(&mut sampled).ok()?;
    sampled.cpu()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_file_is_next_to_the_recording() {
        for (recording, samples) in [
            ("/a/b.nettrace", "/a/b.cpu.nettrace"),
            ("/a/b.nettrace.partial", "/a/b.cpu.nettrace"),
            ("/a/b", "/a/b.cpu.nettrace"),
            ("b.c.nettrace", "b.c.cpu.nettrace"),
        ] {
            assert_eq!(cpu_file(Path::new(recording)), Path::new(samples));
        }
    }
}
