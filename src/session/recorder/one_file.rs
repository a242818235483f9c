//! A recording and the CPU samples beside it become one file, of format 6, once both are whole.

use std::io;
use std::path::Path;

use crate::export::Joined;
use crate::model::Bytes;
use crate::net::files::{FileId, free_space, open};
use crate::session::export::{ExportError, GoOn, write_joined};
use crate::session::output::OutputFile;

/// One file of both.
#[derive(Debug)]
pub(super) struct OneFile {
    /// It gets the name of the recording.
    pub(super) output: OutputFile,
    pub(super) bytes: u64,
    /// How many CPU samples are in it.
    pub(super) samples: u64,
}

/// Why there are still two.
#[derive(Debug)]
pub(super) struct TwoFiles {
    /// The recording.
    pub(super) output: OutputFile,
    /// What went wrong, as a sentence; `None` where one was not wanted any more.
    pub(super) trouble: Option<String>,
}

impl OneFile {
    /// Makes it of a recording with so many events and a file of samples, which both go away once everything of them is in it, as long as `go_on` returns true.
    ///
    /// # Errors
    /// Both are as they were.
    pub(super) fn join(recording: OutputFile, samples: &Path, events: u64, go_on: GoOn<'_>) -> Result<Self, TwoFiles> {
        // Made now, so that no file of another is taken for it later.
        let facts = open(samples).and_then(|file| Ok((FileId::of(&file)?, file.metadata()?.len() + recording.partial().metadata()?.len())));
        let written = facts.map_err(|error| error.to_string()).and_then(|(id, needed)| {
            check_space(free_space(recording.partial()).ok(), needed)?;
            Ok((id, write(&recording, samples, events, go_on)?))
        });
        match written {
            Ok((id, Some((output, joined, bytes)))) => {
                if id.is_at(samples) {
                    // One that stays has nothing that is not in the other.
                    let _ = std::fs::remove_file(samples);
                }
                Ok(Self { output: output.in_place_of(recording), bytes, samples: joined.samples })
            }
            Ok((_, None)) => Err(TwoFiles { output: recording, trouble: None }),
            Err(why) => {
                let trouble = format!("the CPU samples are in a file of their own, {}: {why}", samples.display());
                Err(TwoFiles { output: recording, trouble: Some(trouble) })
            }
        }
    }
}

/// Others write to the disk as well: half of what it has left stays free.
fn check_space(free: Option<u64>, needed: u64) -> Result<(), String> {
    match free {
        Some(free) if free / 2 < needed => {
            Err(format!("one file takes {} more for a moment, and the disk has {} left", Bytes(needed), Bytes(free)))
        }
        _ => Ok(()),
    }
}

/// The new file, what is in it, and how many bytes; `None` where it was given up.
fn write(recording: &OutputFile, samples: &Path, events: u64, go_on: GoOn<'_>) -> Result<Option<(OutputFile, Joined, u64)>, String> {
    // Samples are in NAME.cpu.nettrace.
    let (output, file) = OutputFile::create(&samples.with_extension("joined")).map_err(|error| error.to_string())?;
    let failed = |error: io::Error| format!("{}: {error}", output.partial().display());
    let written = match write_joined(recording.partial(), &file, go_on) {
        Err(ExportError::GivenUp) => Ok(None),
        Err(error) => Err(error.to_string()),
        Ok(Some(joined)) if joined.events == events && !joined.samples_cut => {
            let bytes = file.sync_all().and_then(|()| file.metadata()).map(|facts| facts.len());
            bytes.map(|bytes| Some((joined, bytes))).map_err(failed)
        }
        Ok(joined) => {
            let written = joined.map_or(0, |joined| joined.events);
            Err(format!("{written} of {events} events could be written together with them"))
        }
    };
    match written {
        Ok(Some((joined, bytes))) => Ok(Some((output, joined, bytes))),
        unfinished => {
            output.discard();
            unfinished.map(|_| None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::analysis::CpuStack;
    use crate::export::CpuTrace;
    use crate::nettrace::{Encoder, ThreadId, TraceHeader};

    /// A recording without events, and three samples beside it.
    fn files(folder: &Path) -> (OutputFile, PathBuf) {
        let (output, mut file) = OutputFile::create(&folder.join("a.nettrace")).unwrap();
        let mut encoder = Encoder::new(TraceHeader { process_id: 42, ..TraceHeader::default() });
        encoder.end();
        io::Write::write_all(&mut file, &encoder.take()).unwrap();
        let mut trace = CpuTrace::new(&TraceHeader::default(), 42, "shop");
        let sample = |at| CpuStack { thread: ThreadId::of(43), at, kernel: &[], user: &[0x1010], missing: None };
        (1..=3).for_each(|at| trace.sample(&sample(at)));
        let mut bytes = trace.write_until(i64::MAX);
        bytes.extend(trace.finish());
        let samples = folder.join("a.cpu.nettrace");
        std::fs::write(&samples, bytes).unwrap();
        (output, samples)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_disk_is_not_filled() {
        for (free, needed, fits) in [(None, u64::MAX, true), (Some(200), 100, true), (Some(199), 100, false), (Some(0), 0, true)] {
            assert_eq!(check_space(free, needed).is_ok(), fits, "{free:?} {needed}");
        }
        let words = "one file takes 5.0 GB more for a moment, and the disk has 6.0 GB left";
        assert_eq!(check_space(Some(6_000_000_000), 5_000_000_000).unwrap_err(), words);
    }

    #[test]
    fn both_become_one() {
        let folder = tempfile::tempdir().unwrap();
        let (output, samples) = files(folder.path());
        let OneFile { output, bytes, samples } = OneFile::join(output, &samples, 0, &mut |_, _| true).unwrap();
        let file = output.keep().unwrap();
        assert_eq!((samples, file.metadata().unwrap().len(), names(folder.path())), (3, bytes, vec!["a.nettrace".to_owned()]));
    }

    #[test]
    fn both_stay_where_one_would_not_have_everything() {
        for (events, wanted, words) in
            [(0, false, None), (1, true, Some("a.cpu.nettrace: 0 of 1 events could be written together with them"))]
        {
            let folder = tempfile::tempdir().unwrap();
            let (output, samples) = files(folder.path());
            let before = std::fs::read(&samples).unwrap();
            let TwoFiles { output, trouble } = OneFile::join(output, &samples, events, &mut |_, _| wanted).unwrap_err();
            assert_eq!(trouble.is_some(), words.is_some());
            assert!(trouble.is_none_or(|trouble| trouble.contains(words.unwrap())));
            output.keep().unwrap();
            assert_eq!(
                (names(folder.path()), std::fs::read(&samples).unwrap()),
                (vec!["a.cpu.nettrace".to_owned(), "a.nettrace".to_owned()], before)
            );
        }
    }
}
