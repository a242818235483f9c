//! The CPU samples of a recording, in a file beside it: the runtime's stream is written as it comes, and has no place for them.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::pieces::Pieces;
use super::recorded::{ReadError, Recorded};
use crate::analysis::{RecordedCpuTime, SampledMethods};
use crate::export::{Batch, Samples};
use crate::model::Span;
use crate::nettrace::{Decoder, Limits, TraceHeader};

/// How far apart the beginnings of the two may be, nanoseconds: what is farther is of another recording.
const APART_NS: u64 = 60_000_000_000;

/// The path of the file with the samples of a recording, which may be incomplete.
pub(super) fn cpu_file(recording: &Path) -> PathBuf {
    let whole = recording.extension().filter(|extension| *extension == "partial").map(|_| recording.with_extension(""));
    whole.as_deref().unwrap_or(recording).with_extension("cpu.nettrace")
}

/// The file of the samples beside a recording.
#[derive(Debug)]
pub(super) struct CpuBeside {
    pub(super) path: PathBuf,
    pub(super) recorded: Recorded,
    header: TraceHeader,
    /// How much later than its own start the recording starts, nanoseconds.
    later_ns: i64,
}

impl CpuBeside {
    /// `None` where there is no such file of the same time.
    pub(super) fn open(recording: &Path, header: &TraceHeader) -> Option<Self> {
        let path = cpu_file(recording);
        if path == recording || header.ticks_per_second != 1_000_000_000 {
            return None;
        }
        let mut recorded = Recorded::open(&path).ok()?;
        let own = recorded.header().ok()?;
        // Both are on the clock CLOCK_MONOTONIC.
        let later_ns = header.sync_ticks.checked_sub(own.sync_ticks).filter(|later| later.unsigned_abs() < APART_NS)?;
        Some(Self { path, recorded, header: own, later_ns })
    }

    /// A part of the recording, nanoseconds since its start, as a part of this file.
    pub(super) fn window(&self, part: &RangeInclusive<i64>) -> RangeInclusive<i64> {
        part.start().saturating_add(self.later_ns)..=part.end().saturating_add(self.later_ns)
    }
}

/// Reads the samples piece by piece, as long as `go_on` returns true. What a file that is damaged holds behind the damage is missing.
pub(super) struct SampleReader<'a> {
    header: TraceHeader,
    pieces: Pieces<'a>,
    decoder: Decoder,
    go_on: &'a dyn Fn() -> bool,
    /// The buffer of the latest piece.
    done: Option<Vec<u8>>,
    is_over: bool,
    is_complete: bool,
}

impl<'a> SampleReader<'a> {
    /// From the start of the file on.
    ///
    /// # Errors
    /// As [`Recorded::rewind`].
    pub(super) fn new(beside: &'a mut CpuBeside, go_on: &'a dyn Fn() -> bool) -> Result<Self, ReadError> {
        let pieces = Pieces::new(beside.recorded.rewind()?, Limits::default());
        let decoder = Decoder::new(Limits::default());
        Ok(Self { header: beside.header, pieces, decoder, go_on, done: None, is_over: false, is_complete: false })
    }
}

impl Samples for SampleReader<'_> {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn refill(&mut self, batch: &mut Batch) -> bool {
        while batch.is_empty() && !self.is_over {
            let done = self.done.take();
            let piece = if (self.go_on)() { self.pieces.next(done).ok().flatten() } else { None };
            self.done = piece.and_then(|piece| self.decoder.feed_cut(&piece.bytes, piece.cut, batch).is_ok().then_some(piece.bytes));
            if self.done.is_none() {
                let ending = self.decoder.finish(batch);
                (self.is_over, self.is_complete) = (true, ending.is_complete());
            }
        }
        !batch.is_empty()
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }
}

/// The samples beside a recording, of a part of it where one is given; `None` where there are none of the same process and time.
pub fn cpu_beside(recording: &Path, header: &TraceHeader, span: Option<Span>) -> Option<RecordedCpuTime> {
    let mut beside = CpuBeside::open(recording, header)?;
    let (from, to) = span.unwrap_or((i64::MIN, i64::MAX));
    let mut sampled = SampledMethods::within(beside.window(&(from..=to)));
    beside.recorded.read(&mut sampled).ok()?;
    sampled.cpu()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_are_beside_the_recording() {
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
