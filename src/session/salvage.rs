//! Creation of a complete, readable file from a recording that was cut off, or from the segments of a flight recorder that was killed.

mod segments;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::recorded::{ReadError, RecordedFile};
use crate::analysis::Throughput;
use crate::model::{Bytes, Counted, SafeText};
use crate::net::files;
use crate::nettrace::{Ending, Repair};

/// Number of bytes copied before a cancellation is noticed.
const PIECE: u64 = 16 << 20;

/// Why no complete file can be created.
#[derive(Debug, Error)]
pub enum SalvageError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The operating system reports no size for a file.
    #[error("cannot read {path}: {error}")]
    Size {
        /// The file.
        path: SafeText,
        /// The operating system's error.
        error: io::Error,
    },
    /// No segment contains an event.
    #[error("these files contain no events")]
    NoEvents,
    /// The files are not the segments of one recording.
    #[error("{0}")]
    NotSegments(String),
    /// The new file cannot be written.
    #[error("cannot write the file; the incomplete file is removed: {0}")]
    Write(String),
    /// Canceled by the caller.
    #[error("the repair was canceled; the incomplete file is removed")]
    Canceled,
}

/// Returns whether to continue.
type ShouldContinue<'a> = &'a dyn Fn() -> bool;

/// Writes the complete file as long as `should_continue` returns true. Messages for the user are added to `notes`. Returns whether the file has a
/// rundown: the names of methods that were compiled before the recording.
///
/// # Errors
/// If a file cannot be read, several are not segments of one recording, or the new one cannot be written.
pub fn salvage(
    paths: &[PathBuf],
    file: &mut File,
    notes: &mut Vec<String>,
    should_continue: &dyn Fn() -> bool,
) -> Result<bool, SalvageError> {
    let result = match paths {
        [path] => repair(path, file, notes, should_continue),
        paths => segments::join(paths, file, notes, should_continue),
    };
    // What was read or written until then is incomplete, and may look like damage.
    if should_continue() { result } else { Err(SalvageError::Canceled) }
}

fn repair(path: &Path, file: &mut File, notes: &mut Vec<String>, should_continue: ShouldContinue<'_>) -> Result<bool, SalvageError> {
    let mut recorded = RecordedFile::open(path)?;
    let mut tally = Throughput::default();
    let pass = recorded.read_while(&mut tally, &mut |_| should_continue())?;
    let repair = match (&pass.ending, pass.repair) {
        (Ending::Complete, _) | (_, None) => Repair { keep: pass.bytes, patch: None, append: &[] },
        (_, Some(repair)) => repair,
    };
    let source = recorded.rewind()?;
    let path = SafeText::from_path(path);
    let size = source.metadata().map_err(|error| SalvageError::Size { path: path.clone(), error })?.len();
    write(source, file, &repair, should_continue).map_err(|error| SalvageError::Write(error.to_string()))?;
    if pass.ending.is_complete() {
        notes.push(format!("{path} is complete: the copy is identical"));
        return Ok(true);
    }
    let events = tally.snapshot().events;
    let lost = size.saturating_sub(repair.keep);
    let (kept, size) = (Counted(events, "event"), Bytes(size));
    notes.push(match lost {
        0 => format!("kept {kept}, all of {size}"),
        lost => format!("kept {kept}; the last {:#} of {size} contained no complete event", Counted(lost, "byte")),
    });
    if let Ending::Broken { error, .. } = &pass.ending {
        notes.push(format!("it cannot be decoded beyond that: {error}"));
    }
    Ok(tally.counts().iter().any(|count| count.provider.ends_with("Rundown")))
}

/// Copies the part to keep and completes it.
fn write(source: &mut File, file: &mut File, repair: &Repair, should_continue: ShouldContinue<'_>) -> io::Result<()> {
    let mut kept = source.take(repair.keep);
    while should_continue() && io::copy(&mut (&mut kept).take(PIECE), file)? > 0 {}
    file.write_all(repair.append)?;
    if let Some((at, bytes)) = repair.patch {
        files::write_all_at(file, &bytes, at)?;
    }
    file.sync_all()
}
