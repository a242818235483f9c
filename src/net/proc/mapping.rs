//! The memory mappings of a process: `/proc/PID/maps`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::{Proc, words};

/// Maximum bytes read of `maps`.
const MAX_MAPS_BYTES: u64 = 16 << 20;

/// A file mapped into a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MappedFile {
    pub(crate) path: PathBuf,
    /// Whether the path is now that of another file, or of none.
    pub(crate) is_deleted: bool,
}

/// An executable mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeMapping {
    pub(crate) range: Range<u64>,
    /// Offset in the file.
    pub(crate) file_offset: u64,
    /// Path of the file as seen by the process, or a kernel name in brackets; empty if not backed by a file.
    pub(crate) path: Vec<u8>,
    /// Whether the path is now that of another file, or of none.
    pub(crate) is_deleted: bool,
}

impl Proc {
    /// Whether a file with this name is mapped.
    pub(crate) fn maps_file(&self, pid: u32, name: &str) -> bool {
        self.mapped_files(pid).is_ok_and(|files| files.iter().any(|file| file.path.ends_with(name)))
    }

    /// Returns the mapped assemblies, with paths as seen by the process.
    pub(crate) fn assemblies(&self, pid: u32) -> io::Result<BTreeSet<PathBuf>> {
        Ok(self.mapped_files(pid)?.into_iter().map(|file| file.path).filter(|path| is_assembly(path)).collect())
    }

    /// Returns the mapped files, with paths as seen by the process, once per mapping.
    pub(crate) fn mapped_files(&self, pid: u32) -> io::Result<Vec<MappedFile>> {
        // The path is the rest of a line after the fifth column; " (deleted)" follows if the file was replaced or removed.
        let maps = self.maps(pid)?;
        let paths = maps.split(|byte| *byte == b'\n').filter_map(|line| line.iter().position(|byte| *byte == b'/').map(|at| &line[at..]));
        let file = |path: &[u8]| {
            let kept = path.strip_suffix(b" (deleted)");
            MappedFile { path: PathBuf::from(OsString::from_vec(kept.unwrap_or(path).to_vec())), is_deleted: kept.is_some() }
        };
        Ok(paths.map(file).collect())
    }

    /// Returns the executable mappings, in ascending order.
    pub(crate) fn code_mappings(&self, pid: u32) -> io::Result<Vec<CodeMapping>> {
        let maps = self.maps(pid)?;
        Ok(maps.split(|byte| *byte == b'\n').filter_map(CodeMapping::parse).collect())
    }

    fn maps(&self, pid: u32) -> io::Result<Vec<u8>> {
        let mut maps = Vec::new();
        File::from(self.open_file(&format!("{pid}/maps"))?).take(MAX_MAPS_BYTES).read_to_end(&mut maps)?;
        Ok(maps)
    }
}

/// Whether a path is that of a .NET assembly or program, by its extension.
pub(crate) fn is_assembly(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "dll")
}

impl CodeMapping {
    /// Parses a line of `maps`: "from-to rwxp offset device inode path", numbers in hexadecimal. `None` if not executable.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let number = |text: &[u8]| u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok();
        let mut words = words(line);
        let mut ends = words.next()?.splitn(2, |byte| *byte == b'-').map(number);
        let range = ends.next()??..ends.next()??;
        if !words.next()?.contains(&b'x') {
            return None;
        }
        let file_offset = number(words.next()?)?;
        // The path may contain spaces; no column before it contains one of these characters.
        let path = line.iter().position(|byte| matches!(byte, b'/' | b'[')).map_or(&[][..], |at| &line[at..]);
        let kept = path.strip_suffix(b" (deleted)");
        Some(Self { range, file_offset, path: kept.unwrap_or(path).to_vec(), is_deleted: kept.is_some() })
    }
}
