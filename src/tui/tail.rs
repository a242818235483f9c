//! The end of a file that another process is writing.

use std::fs::File;

use crate::model::{SafeText, newest_lines};
use crate::net::files;

/// Number of bytes that are read from the end.
const WINDOW: u64 = 64 * 1024;

/// Reader of the end of a file that another process is writing.
pub(super) struct Tail {
    file: File,
    /// Length of the file when it was last read.
    seen: u64,
}

impl Tail {
    /// Creates a reader. The writer may share the open file: reading does not move its position.
    pub(super) fn new(file: File) -> Self {
        Self { file, seen: 0 }
    }

    /// Returns the newest lines, if the file has changed.
    pub(super) fn new_lines(&mut self) -> Option<Vec<SafeText>> {
        let len = self.file.metadata().ok()?.len();
        if len == self.seen {
            return None;
        }
        self.seen = len;
        let from = len.saturating_sub(WINDOW);
        let mut end = vec![0; (len - from) as usize];
        files::read_exact_at(&self.file, &mut end, from).ok()?;
        // The first line may be incomplete.
        let whole = if from == 0 { 0 } else { end.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1) };
        Some(newest_lines(end.get(whole..).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn new_lines_are_reported_once() {
        let mut file = tempfile::tempfile().unwrap();
        let mut tail = Tail::new(file.try_clone().unwrap());
        assert_eq!(tail.new_lines(), None);
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(tail.new_lines().unwrap(), ["one", "tw"]);
        assert_eq!(tail.new_lines(), None);
        file.write_all(b"o\n").unwrap();
        assert_eq!(tail.new_lines().unwrap(), ["one", "two"]);
        let line = "x".repeat(999);
        (0..100).for_each(|_| writeln!(file, "{line}").unwrap());
        let lines = tail.new_lines().unwrap();
        assert_eq!(lines.len(), 65, "the end alone");
        assert!(lines.iter().all(|other| **other == line), "no part of a line");
    }
}
