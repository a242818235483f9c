//! Joins a recording and the CPU samples next to it into one file, of format 6, once both are complete.

use std::io;
use std::path::Path;

use crate::export::JoinCounts;
use crate::model::Bytes;
use crate::net::files::{FileId, free_space, open};
use crate::session::export::{ExportError, ShouldContinue, write_joined};
use crate::session::output::{OutputFile, remove_own};

/// The joined file.
#[derive(Debug)]
pub(super) struct JoinedFile {
    /// Takes the final name of the recording.
    pub(super) output: OutputFile,
    pub(super) bytes: u64,
    /// Number of CPU samples in it.
    pub(super) samples: u64,
}

/// Result if there are still two files.
#[derive(Debug)]
pub(super) struct NotJoined {
    /// The recording.
    pub(super) output: OutputFile,
    /// An error message; `None` if canceled.
    pub(super) trouble: Option<String>,
}

impl JoinedFile {
    /// Joins a recording with this many events and a sample file, as long as `should_continue` returns true. Both are removed once all their contents
    /// are in the new file.
    ///
    /// # Errors
    /// Both files are unchanged.
    pub(super) fn join(recording: OutputFile, samples: &Path, events: u64, should_continue: ShouldContinue<'_>) -> Result<Self, NotJoined> {
        // Identify the file now, so that it is not confused with a later file of the same name.
        let facts = open(samples).and_then(|file| Ok((FileId::of(&file)?, file.metadata()?.len() + recording.partial().metadata()?.len())));
        let written = facts.map_err(|error| error.to_string()).and_then(|(id, needed)| {
            check_space(free_space(recording.partial()).ok(), needed)?;
            Ok((id, write(&recording, samples, events, should_continue)?))
        });
        match written {
            Ok((id, Some((output, joined, bytes)))) => {
                remove_own(id, samples);
                Ok(Self { output: output.replacing(recording), bytes, samples: joined.samples })
            }
            Ok((_, None)) => Err(NotJoined { output: recording, trouble: None }),
            Err(why) => {
                let trouble = format!("the CPU samples are in a separate file, {}: {why}", samples.display());
                Err(NotJoined { output: recording, trouble: Some(trouble) })
            }
        }
    }
}

/// Checks that at most half of the free disk space is used, because other programs write to the disk as well.
fn check_space(free: Option<u64>, needed: u64) -> Result<(), String> {
    match free {
        Some(free) if free / 2 < needed => {
            Err(format!("joining them needs {} of temporary disk space, and {} are free", Bytes(needed), Bytes(free)))
        }
        _ => Ok(()),
    }
}

/// Returns the new file, its contents, and its size; `None` if canceled.
fn write(
    recording: &OutputFile,
    samples: &Path,
    events: u64,
    should_continue: ShouldContinue<'_>,
) -> Result<Option<(OutputFile, JoinCounts, u64)>, String> {
    // Samples are in NAME.cpu.nettrace.
    let (output, file) = OutputFile::create(&samples.with_extension("joined")).map_err(|error| error.to_string())?;
    let failed = |error: io::Error| format!("{}: {error}", output.partial().display());
    match write_joined(recording.partial(), &file, should_continue) {
        Err(ExportError::Canceled) => Ok(None),
        // Readers do not find samples that do not belong to the recording.
        Err(error @ ExportError::NoSamples(_)) => Err(format!("{error}; `dn-top report {}` shows them", samples.display())),
        Err(error) => Err(error.to_string()),
        Ok(Err(error)) => Err(failed(error)),
        Ok(Ok(joined)) if joined.events == events && !joined.samples_cut => {
            let bytes = file.sync_all().and_then(|()| file.metadata()).map_err(failed)?.len();
            Ok(Some((output, joined, bytes)))
        }
        Ok(Ok(joined)) if joined.samples_cut => Err("their file ends early, so not all of them could be joined".to_owned()),
        Ok(Ok(JoinCounts { events: written, .. })) => Err(format!("only {written} of {events} events could be joined with them")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::analysis::{CpuStack, OsrCallers};
    use crate::export::CpuTrace;
    use crate::nettrace::{ThreadId, TraceHeader};
    use crate::session::tests::{empty_trace, file_names};

    /// Creates a recording without events, and three samples of process 42 next to it.
    fn files(folder: &Path, header: TraceHeader) -> (OutputFile, PathBuf) {
        let (output, mut file) = OutputFile::create(&folder.join("a.nettrace")).unwrap();
        io::Write::write_all(&mut file, &empty_trace(header)).unwrap();
        let mut trace = CpuTrace::new(&TraceHeader::default(), 42, "shop");
        let sample = |at| CpuStack { thread: ThreadId::of(43), at, kernel: &[], user: &[0x1010], missing: None };
        (1..=3).for_each(|at| trace.sample(&sample(at)));
        let mut bytes = trace.write_until(i64::MAX, &OsrCallers::default());
        bytes.extend(trace.finish());
        let samples = folder.join("a.cpu.nettrace");
        std::fs::write(&samples, bytes).unwrap();
        (output, samples)
    }

    #[test]
    fn joining_needs_enough_free_disk_space() {
        for (free, needed, fits) in [(None, u64::MAX, true), (Some(200), 100, true), (Some(199), 100, false), (Some(0), 0, true)] {
            assert_eq!(check_space(free, needed).is_ok(), fits, "{free:?} {needed}");
        }
        let words = "joining them needs 5.0 GB of temporary disk space, and 6.0 GB are free";
        assert_eq!(check_space(Some(6_000_000_000), 5_000_000_000).unwrap_err(), words);
    }

    #[test]
    fn samples_are_joined_into_the_recording() {
        // In a container, the runtime reports another pid than the kernel.
        for process_id in [42, 1] {
            let folder = tempfile::tempdir().unwrap();
            let (output, samples) = files(folder.path(), TraceHeader { process_id, ..TraceHeader::default() });
            let JoinedFile { output, bytes, samples } = JoinedFile::join(output, &samples, 0, &mut |_, _| true).unwrap();
            let file = output.persist().unwrap();
            assert_eq!((samples, file.metadata().unwrap().len(), file_names(folder.path())), (3, bytes, vec!["a.nettrace".to_owned()]));
        }
    }

    #[test]
    fn reason_for_two_files_is_reported() {
        let header = TraceHeader::default();
        for (header, words) in [
            (
                TraceHeader { sync_ticks: header.sync_ticks + 60_500_000_000, ..header },
                "a.cpu.nettrace: the recording begins at 60.500 s of its clock and the samples at 0.000 s of theirs: more than 60 s apart, so they \
                 are not of the same time; `dn-top report ",
            ),
            (TraceHeader { ticks_per_second: 10_000_000, ..header }, "has 10000000 ticks per second, and that of the samples 1000000000"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (output, samples) = files(folder.path(), header);
            let trouble = JoinedFile::join(output, &samples, 0, &mut |_, _| true).unwrap_err().trouble.unwrap();
            assert!(trouble.contains(words) && trouble.ends_with("a.cpu.nettrace` shows them"), "{trouble}");
        }
    }

    #[test]
    fn both_files_are_kept_if_joining_fails_or_is_canceled() {
        for (events, wanted, words) in [(0, false, None), (1, true, Some("a.cpu.nettrace: only 0 of 1 events could be joined with them"))] {
            let folder = tempfile::tempdir().unwrap();
            let (output, samples) = files(folder.path(), TraceHeader { process_id: 42, ..TraceHeader::default() });
            let before = std::fs::read(&samples).unwrap();
            let NotJoined { output, trouble } = JoinedFile::join(output, &samples, events, &mut |_, _| wanted).unwrap_err();
            assert_eq!(trouble.is_some(), words.is_some());
            assert!(trouble.is_none_or(|trouble| trouble.contains(words.unwrap())));
            output.persist().unwrap();
            assert_eq!(
                (file_names(folder.path()), std::fs::read(&samples).unwrap()),
                (vec!["a.cpu.nettrace".to_owned(), "a.nettrace".to_owned()], before)
            );
        }
    }
}
