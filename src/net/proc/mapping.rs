//! Lines of `/proc/PID/maps`.

use std::ops::Range;
use std::path::PathBuf;

use super::words;

/// A file that is mapped into a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MappedFile {
    pub(crate) path: PathBuf,
    /// Whether the path has another file by now, or none.
    pub(crate) is_deleted: bool,
}

/// Memory that a process may execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeMapping {
    pub(crate) range: Range<u64>,
    /// Where in the file it begins.
    pub(crate) file_offset: u64,
    /// The file as the process sees paths, or a word of the kernel in brackets; empty where it is of no file.
    pub(crate) path: Vec<u8>,
    /// Whether the path has another file by now, or none.
    pub(crate) is_deleted: bool,
}

impl CodeMapping {
    /// A line of `maps`: "from-to rwxp offset device inode path", the numbers in hexadecimal digits. `None` for what may not be executed.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let number = |text: &[u8]| u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok();
        let mut words = words(line);
        let mut ends = words.next()?.splitn(2, |byte| *byte == b'-').map(number);
        let range = ends.next()??..ends.next()??;
        if !words.next()?.contains(&b'x') {
            return None;
        }
        let file_offset = number(words.next()?)?;
        // It may have spaces, and no column before has one of these.
        let path = line.iter().position(|byte| matches!(byte, b'/' | b'[')).map_or(&[][..], |at| &line[at..]);
        let kept = path.strip_suffix(b" (deleted)");
        Some(Self { range, file_offset, path: kept.unwrap_or(path).to_vec(), is_deleted: kept.is_some() })
    }
}
