//! The end of a file that another process writes.

use std::fs::File;

use crate::model::{SafeText, newest_lines};
use crate::net::files;

/// Bytes of the end that are looked at.
const WINDOW: u64 = 64 * 1024;

/// The end of a file that another process writes.
pub(super) struct Tail {
    file: File,
    /// How long it was when it was last looked at.
    seen: u64,
}

impl Tail {
    /// The writer may have the same file open: reading here does not move its position.
    pub(super) fn new(file: File) -> Self {
        Self { file, seen: 0 }
    }

    /// The newest lines, if there is anything new.
    pub(super) fn news(&mut self) -> Option<Vec<SafeText>> {
        let len = self.file.metadata().ok()?.len();
        if len == self.seen {
            return None;
        }
        self.seen = len;
        let from = len.saturating_sub(WINDOW);
        let mut end = vec![0; (len - from) as usize];
        files::read_exact_at(&self.file, &mut end, from).ok()?;
        // Of the first line only a part may be there.
        let whole = if from == 0 { 0 } else { end.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1) };
        Some(newest_lines(end.get(whole..).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_new_is_reported_once() {
        let mut file = tempfile::tempfile().unwrap();
        let mut tail = Tail::new(file.try_clone().unwrap());
        assert_eq!(tail.news(), None);
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(tail.news().unwrap(), ["one", "tw"]);
        assert_eq!(tail.news(), None);
        file.write_all(b"o\n").unwrap();
        assert_eq!(tail.news().unwrap(), ["one", "two"]);
        let line = "x".repeat(999);
        (0..100).for_each(|_| writeln!(file, "{line}").unwrap());
        let lines = tail.news().unwrap();
        assert_eq!(lines.len(), 65, "the end alone");
        assert!(lines.iter().all(|other| **other == line), "no part of a line");
    }
}
