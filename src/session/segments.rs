//! Segments of a flight recorder, in files next to its own, which survive if dn-top is killed. Each is a complete stream.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::output::{is_disk_full, remove_own};
use crate::model::SafeText;
use crate::net::files::{self, FileId};
use crate::nettrace::{SegmentStore, StoreError};

/// Segment files `PATH.0001`, `PATH.0002`, and so on.
#[derive(Debug)]
pub(super) struct Segments {
    base: PathBuf,
    /// Oldest first.
    files: VecDeque<Segment>,
    taken: Option<Segment>,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    number: u32,
    bytes: u64,
    id: FileId,
}

impl Segments {
    /// Creates an empty list of segments for this path.
    pub(super) fn new(path: &Path) -> Self {
        Self { base: path.to_owned(), files: VecDeque::new(), taken: None, last: 0 }
    }

    fn path(&self, number: u32) -> PathBuf {
        let mut path = self.base.clone().into_os_string();
        path.push(format!(".{number:04}"));
        path.into()
    }

    fn remove(&self, segment: Segment) {
        remove_own(segment.id, &self.path(segment.number));
    }

    /// Opens a file written by us, and nothing that replaced it: no link is followed, and opening a pipe does not block.
    fn open(&self, segment: Segment) -> io::Result<File> {
        let file = files::open(&self.path(segment.number))?;
        if FileId::of(&file)? == segment.id { Ok(file) } else { Err(io::Error::other("it was replaced by another file")) }
    }

    fn error_message(&self, number: u32, what: &str, error: &io::Error) -> String {
        format!("{} cannot be {what}: {error}", SafeText::from_path(&self.path(number)))
    }
}

impl SegmentStore for Segments {
    fn put(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.last += 1;
        let number = self.last;
        // Never overwrites a file or follows a link.
        let made = files::create(&self.path(number));
        let failed = |what: &str, error: io::Error| refusal(&error, self.error_message(number, what, &error));
        let mut file = made.map_err(|error| failed("created", error))?;
        let id = FileId::of(&file).map_err(|error| failed("created", error))?;
        let segment = Segment { number, bytes: bytes.len() as u64, id };
        if let Err(error) = file.write_all(bytes) {
            let refusal = failed("written", error);
            self.remove(segment);
            return Err(refusal);
        }
        self.files.push_back(segment);
        Ok(())
    }

    fn drop_oldest(&mut self) {
        if let Some(segment) = self.files.pop_front() {
            self.remove(segment);
        }
    }

    fn take_oldest(&mut self) -> Result<Vec<u8>, String> {
        self.release();
        let Some(segment) = self.files.pop_front() else { return Ok(Vec::new()) };
        self.taken = Some(segment);
        let mut bytes = Vec::new();
        let read = self.open(segment).and_then(|file| file.take(segment.bytes).read_to_end(&mut bytes));
        read.map(|_| bytes).map_err(|error| self.error_message(segment.number, "read", &error))
    }

    fn release(&mut self) {
        if let Some(segment) = self.taken.take() {
            self.remove(segment);
        }
    }
}

fn refusal(error: &io::Error, words: String) -> StoreError {
    if is_disk_full(error) { StoreError::Full(words) } else { StoreError::Failed(words) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::session::tests::file_names;

    #[cfg(target_os = "linux")]
    mod linux;

    #[test]
    fn segment_files_are_removed_once_dropped_or_released() {
        let folder = tempfile::tempdir().unwrap();
        let mut segments = Segments::new(&folder.path().join("a.partial"));
        for segment in [b"one".as_slice(), b"two", b"three"] {
            segments.put(segment).unwrap();
        }
        assert_eq!(file_names(folder.path()), ["a.partial.0001", "a.partial.0002", "a.partial.0003"]);
        segments.drop_oldest();
        assert_eq!(segments.take_oldest().unwrap(), b"two");
        assert_eq!(file_names(folder.path()), ["a.partial.0002", "a.partial.0003"], "there is always one of it");
        assert_eq!(segments.take_oldest().unwrap(), b"three");
        assert_eq!(file_names(folder.path()), ["a.partial.0003"]);
        segments.release();
        assert!(file_names(folder.path()).is_empty());
    }

    #[test]
    fn files_of_others_are_not_overwritten_read_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.0001"), "another").unwrap();
        let mut segments = Segments::new(&folder.path().join("a"));
        assert!(matches!(segments.put(b"mine"), Err(StoreError::Failed(words)) if words.contains("a.0001 cannot be created")));
        segments.put(b"mine").unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "another").unwrap();
        fs::rename(other, folder.path().join("a.0002")).unwrap();
        let words = segments.take_oldest().unwrap_err();
        assert!(words.contains("a.0002 cannot be read") && words.contains("replaced by another file"), "{words}");
        segments.release();
        assert_eq!(file_names(folder.path()), ["a.0001", "a.0002"]);
    }

    #[test]
    fn full_disk_is_distinguished_from_other_errors() {
        let segments = |path: &str| Segments { last: 0, ..Segments::new(Path::new(path)) };
        assert!(matches!(segments("/no/such/folder/a").put(b"x"), Err(StoreError::Failed(_))));
        assert!(matches!(refusal(&io::ErrorKind::StorageFull.into(), String::new()), StoreError::Full(_)));
        assert!(matches!(refusal(&io::ErrorKind::QuotaExceeded.into(), String::new()), StoreError::Full(_)));
    }
}
