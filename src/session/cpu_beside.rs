//! The CPU samples of a recording, in a file beside it: the runtime's stream is written as it comes, and has no place for them.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::recorded::Recorded;
use crate::analysis::{RecordedCpuTime, SampledMethods};
use crate::model::Span;
use crate::nettrace::TraceHeader;

/// How far apart the beginnings of the two may be, nanoseconds: what is farther is of another recording.
const APART_NS: u64 = 60_000_000_000;

/// The path of the file with the samples of a recording, which may not have come to its proper end.
pub(super) fn cpu_file(recording: &Path) -> PathBuf {
    let whole = recording.extension().filter(|extension| *extension == "partial").map(|_| recording.with_extension(""));
    whole.as_deref().unwrap_or(recording).with_extension("cpu.nettrace")
}

/// The file of the samples beside a recording.
#[derive(Debug)]
pub(super) struct CpuBeside {
    pub(super) path: PathBuf,
    pub(super) recorded: Recorded,
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
        Some(Self { path, recorded, later_ns })
    }

    /// A part of the recording, nanoseconds since its start, as a part of this file.
    pub(super) fn window(&self, part: &RangeInclusive<i64>) -> RangeInclusive<i64> {
        part.start().saturating_add(self.later_ns)..=part.end().saturating_add(self.later_ns)
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
