//! The segments of a flight recorder, in files beside its own: what is left of it where dn-top is killed. Each is a stream of its own.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::model::sanitise;
use crate::nettrace::{Refusal, Shelf};

/// Segments `PATH.0001` and on.
#[derive(Debug)]
pub(super) struct Segments {
    beside: PathBuf,
    /// Number and size of each, oldest first.
    files: VecDeque<(u32, u64)>,
    taken: Option<u32>,
    last: u32,
}

impl Segments {
    /// None yet.
    pub(super) fn beside(path: &Path) -> Self {
        Self { beside: path.to_owned(), files: VecDeque::new(), taken: None, last: 0 }
    }

    fn path(&self, number: u32) -> PathBuf {
        let mut path = self.beside.clone().into_os_string();
        path.push(format!(".{number:04}"));
        path.into()
    }

    fn remove(&self, number: u32) {
        // Where it cannot be removed it stays, readable, and harms nobody.
        let _ = fs::remove_file(self.path(number));
    }

    fn said(&self, number: u32, what: &str, error: &io::Error) -> String {
        format!("{} cannot be {what}: {error}", sanitise(&self.path(number).to_string_lossy()))
    }
}

impl Shelf for Segments {
    fn put(&mut self, segment: &[u8]) -> Result<(), Refusal> {
        self.last += 1;
        let number = self.last;
        // Neither over another file nor through a link.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path(number));
        let mut file = made.map_err(|error| refusal(&error, self.said(number, "made", &error)))?;
        if let Err(error) = file.write_all(segment) {
            self.remove(number);
            return Err(refusal(&error, self.said(number, "written", &error)));
        }
        self.files.push_back((number, segment.len() as u64));
        Ok(())
    }

    fn drop_oldest(&mut self) {
        if let Some((number, _)) = self.files.pop_front() {
            self.remove(number);
        }
    }

    fn take_oldest(&mut self) -> Result<Vec<u8>, String> {
        self.release();
        let Some((number, size)) = self.files.pop_front() else { return Ok(Vec::new()) };
        self.taken = Some(number);
        let mut bytes = Vec::new();
        // What somebody else may have put there meanwhile is not followed, and not longer.
        let opened = OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(self.path(number));
        let read = opened.and_then(|file: File| file.take(size).read_to_end(&mut bytes));
        read.map(|_| bytes).map_err(|error| self.said(number, "read", &error))
    }

    fn release(&mut self) {
        if let Some(number) = self.taken.take() {
            self.remove(number);
        }
    }
}

fn refusal(error: &io::Error, words: String) -> Refusal {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Refusal::Full(words),
        _ => Refusal::Failed(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn segments_are_files_of_ours_until_they_are_somewhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut segments = Segments::beside(&folder.path().join("a.partial"));
        for segment in [b"one".as_slice(), b"two", b"three"] {
            segments.put(segment).unwrap();
        }
        assert_eq!(names(folder.path()), ["a.partial.0001", "a.partial.0002", "a.partial.0003"]);
        assert_eq!(folder.path().join("a.partial.0001").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        segments.drop_oldest();
        assert_eq!(segments.take_oldest().unwrap(), b"two");
        assert_eq!(names(folder.path()), ["a.partial.0002", "a.partial.0003"], "there is always one of it");
        assert_eq!(segments.take_oldest().unwrap(), b"three");
        assert_eq!(names(folder.path()), ["a.partial.0003"]);
        segments.release();
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn nothing_of_others_is_written_over_or_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (beside, secret) = (folder.path().join("a"), folder.path().join("secret"));
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, folder.path().join("a.0001")).unwrap();
        let mut segments = Segments::beside(&beside);
        assert!(matches!(segments.put(b"mine"), Err(Refusal::Failed(words)) if words.contains("a.0001 cannot be made")));
        assert_eq!(fs::read(&secret).unwrap(), b"secret");
        segments.put(b"mine").unwrap();
        fs::remove_file(folder.path().join("a.0002")).unwrap();
        symlink(&secret, folder.path().join("a.0002")).unwrap();
        assert!(segments.take_oldest().unwrap_err().contains("a.0002 cannot be read"));
    }

    #[test]
    fn a_full_disk_is_told_from_other_trouble() {
        let segments = |path: &str| Segments { last: 0, ..Segments::beside(Path::new(path)) };
        assert!(matches!(segments("/no/such/folder/a").put(b"x"), Err(Refusal::Failed(_))));
        assert!(matches!(refusal(&io::ErrorKind::StorageFull.into(), String::new()), Refusal::Full(_)));
        assert!(matches!(refusal(&io::ErrorKind::QuotaExceeded.into(), String::new()), Refusal::Full(_)));
    }
}
