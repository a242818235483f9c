//! Creation of one complete file from the segments of a flight recorder that was killed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::{SalvageError, ShouldContinue};
use crate::model::{Bytes, Counted, SafeText};
use crate::nettrace::{Event, Pieces, SegmentStore, Sink, StoreError, TraceHeader};
use crate::session::recorded::{ReadError, RecordedFile};
use crate::sorting::CompactSort;

/// Maximum size of a segment; real ones have a fraction of this. Each is read as a whole.
const MAX_SEGMENT_BYTES: u64 = 64 << 20;

/// Facts about the contents of a segment.
#[derive(Default)]
struct Contents {
    /// Oldest and newest timestamp.
    range: Option<(i64, i64)>,
    events: u64,
    rundown: bool,
}

struct Segment<'a> {
    path: &'a Path,
    header: TraceHeader,
    range: (i64, i64),
    contents: Contents,
}

impl Sink for Contents {
    fn event(&mut self, event: &Event<'_>) {
        let at = event.timestamp();
        let (oldest, newest) = self.range.unwrap_or((at, at));
        self.range = Some((oldest.min(at), newest.max(at)));
        self.events += 1;
        self.rundown |= event.metadata.provider.ends_with("Rundown");
    }
}

/// Existing segment files, which are left unchanged.
#[derive(Debug)]
struct Files(VecDeque<PathBuf>);

impl SegmentStore for Files {
    fn put(&mut self, _segment: &[u8]) -> Result<(), StoreError> {
        Err(StoreError::Failed("these files are read-only here".to_owned()))
    }

    fn drop_oldest(&mut self) {
        self.0.pop_front();
    }

    fn take_oldest(&mut self) -> Result<Vec<u8>, String> {
        let Some(path) = self.0.pop_front() else { return Ok(Vec::new()) };
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(MAX_SEGMENT_BYTES).read_to_end(&mut bytes));
        read.map(|_| bytes).map_err(|error| format!("{} cannot be read: {error}", shown(&path)))
    }

    fn release(&mut self) {}
}

pub(super) fn join(
    paths: &[PathBuf],
    file: &mut File,
    notes: &mut Vec<String>,
    should_continue: ShouldContinue<'_>,
) -> Result<bool, SalvageError> {
    let mut segments = Vec::new();
    for path in paths {
        segments.extend(read(path, notes, should_continue)?);
    }
    segments.compact_sort_by_key(|segment| segment.range);
    let Some(first) = segments.first() else { return Err(SalvageError::NoEvents) };
    if let Some(other) = segments.iter().find(|segment| segment.header != first.header) {
        let (one, other) = (shown(first.path), shown(other.path));
        return Err(SalvageError::NotSegments(format!("{one} and {other} belong to different recordings")));
    }
    if let Some(pair) = segments.windows(2).find(|pair| pair[0].path == pair[1].path) {
        return Err(SalvageError::NotSegments(format!("{} is given twice", shown(pair[0].path))));
    }
    let files = segments.iter().map(|segment| segment.path.to_owned()).collect();
    let mut pieces = Pieces::join(first.header, segments.iter().map(|segment| segment.range), Box::new(Files(files)));
    let written = write(&mut pieces, file, should_continue).map_err(|error| error.to_string());
    if let Some(trouble) = written.err().or_else(|| pieces.first_error().map(str::to_owned)) {
        return Err(SalvageError::Write(trouble));
    }
    let events = segments.iter().map(|segment| segment.contents.events).sum();
    notes.push(format!(
        "{} of {}; events before the first or after the last are lost",
        Counted(events, "event"),
        Counted(segments.len() as u64, "segment")
    ));
    let missing = gaps(segments.iter().filter_map(|segment| number(segment.path)));
    notes.extend(missing.into_iter().map(|(from, to)| format!("between {from:04} and {to:04} segments are missing")));
    Ok(segments.iter().any(|segment| segment.contents.rundown))
}

/// Reads the facts about a segment; `None` with a note if it is empty.
fn read<'a>(path: &'a Path, notes: &mut Vec<String>, should_continue: ShouldContinue<'_>) -> Result<Option<Segment<'a>>, SalvageError> {
    let mut contents = Contents::default();
    let is_wanted = &mut |bytes| bytes <= MAX_SEGMENT_BYTES && should_continue();
    let read = RecordedFile::open(path).and_then(|mut recorded| recorded.read_while(&mut contents, is_wanted));
    let pass = match read {
        Ok(pass) => pass,
        // The newest may have been created but not written.
        Err(error @ ReadError::NoHeader(_)) => {
            notes.push(format!("{error}; skipped"));
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    if pass.bytes > MAX_SEGMENT_BYTES {
        return Err(SalvageError::NotSegments(format!("{} is larger than {}: it is not a segment", shown(path), Bytes(MAX_SEGMENT_BYTES))));
    }
    if let Some(trouble) = pass.trouble() {
        notes.push(format!("{}: {trouble}", shown(path)));
    }
    Ok(contents.range.map(|range| Segment { path, header: pass.header, range, contents }))
}

fn write(pieces: &mut Pieces, file: &mut File, should_continue: ShouldContinue<'_>) -> io::Result<()> {
    for piece in pieces.take_while(|_| should_continue()) {
        file.write_all(&piece)?;
    }
    file.sync_all()
}

/// Returns the number at the end of a segment's name.
fn number(path: &Path) -> Option<u32> {
    path.extension()?.to_str()?.parse().ok()
}

/// Returns the pairs of numbers between which others are missing.
fn gaps(numbers: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_unstable();
    numbers.windows(2).filter(|pair| pair[1] - pair[0] > 1).map(|pair| (pair[0], pair[1])).collect()
}

fn shown(path: &Path) -> SafeText {
    SafeText::from_path(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_in_segment_numbers_are_found() {
        let of = |paths: &[&str]| gaps(paths.iter().filter_map(|path| number(path.as_ref())));
        assert_eq!(of(&["a.partial.0003", "a.partial.0001", "a.partial.0004", "b.nettrace", "a.0009"]), [(1, 3), (4, 9)]);
        assert!(of(&["x", "a.0001", "a.0002"]).is_empty());
    }
}
