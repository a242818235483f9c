//! The memory mappings of a process: `/proc/PID/maps`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;

use super::long_list::Limits;
use super::{Proc, words};

/// Limits for `maps`. 65,000 mappings, the default limit of a process, take about 0.06 s; while a process is sampled, they are read twice a second.
pub(super) const MAPS: Limits = Limits { list: Duration::from_millis(300), user: Duration::from_secs(10), all: Duration::from_secs(30) };
/// Limits for `mountinfo`. A container has some dozen mounts, which take less than 0.1 ms.
pub(super) const MOUNTS: Limits = Limits { list: Duration::from_millis(100), user: Duration::from_secs(1), all: Duration::from_secs(6) };

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

/// The memory of a process whose reading cannot block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadableMemory {
    /// All: the process is our own user's.
    All,
    /// Memory that belongs to no file, in ascending order.
    Anonymous(Vec<Range<u64>>),
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

    /// Returns which memory of a process may be read now. Listing the memory of a large process takes time, during which it cannot map any.
    pub(crate) fn readable_memory(&self, pid: u32) -> io::Result<ReadableMemory> {
        // Another user could have mapped a file that blocks whoever reads it forever: see `mounts`.
        if self.is_ours(pid) { Ok(ReadableMemory::All) } else { Ok(ReadableMemory::Anonymous(anonymous_ranges(&self.maps(pid)?))) }
    }

    fn maps(&self, pid: u32) -> io::Result<Vec<u8>> {
        self.maps.read(self.other_user(pid), File::from(self.open_file(&format!("{pid}/maps"))?))
    }

    /// Returns the mounted file systems as a process sees them (`mountinfo` in `proc(5)`); empty if they cannot be read.
    pub(in crate::net) fn mount_table(&self, pid: u32) -> Vec<u8> {
        let open = self.open_file(&format!("{pid}/mountinfo")).map(File::from);
        open.and_then(|file| self.mounts.read(self.other_user(pid), file)).unwrap_or_default()
    }

    /// Returns the owner of a process if that is neither root nor our own user: only another user has a reason to make a list long.
    fn other_user(&self, pid: u32) -> Option<u32> {
        self.identity(pid).ok().map(|identity| identity.uid).filter(|uid| ![0, geteuid().as_raw()].contains(uid))
    }
}

impl ReadableMemory {
    /// Returns how many bytes from an address upwards may be read.
    pub(super) fn bytes_at(&self, address: u64) -> usize {
        let Self::Anonymous(ranges) = self else { return usize::MAX };
        let range = ranges.get(ranges.partition_point(|range| range.end <= address)).filter(|range| range.contains(&address));
        range.map_or(0, |range| usize::try_from(range.end - address).unwrap_or(usize::MAX))
    }
}

/// Finds the memory of no file in the text of `maps`, in which the line of a file contains its path.
fn anonymous_ranges(maps: &[u8]) -> Vec<Range<u64>> {
    let lines = maps.split(|byte| *byte == b'\n').filter(|line| !line.contains(&b'/'));
    lines.filter_map(|line| range(words(line).next()?)).collect()
}

/// Parses "from-to", in hexadecimal.
fn range(text: &[u8]) -> Option<Range<u64>> {
    let mut ends = text.splitn(2, |byte| *byte == b'-').map(hexadecimal);
    Some(ends.next()??..ends.next()??)
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// Whether a path is that of a .NET assembly or program, by its extension.
pub(crate) fn is_assembly(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "dll")
}

impl CodeMapping {
    /// Returns the path of the file, as seen by the process; `None` if there is none, or another file with other functions may have it by now.
    pub(crate) fn file(&self) -> Option<&Path> {
        (!self.is_deleted && self.path.starts_with(b"/")).then(|| Path::new(OsStr::from_bytes(&self.path)))
    }

    /// Returns the offset in the file of an address in the mapping.
    pub(crate) fn offset_of(&self, address: u64) -> u64 {
        (address - self.range.start).saturating_add(self.file_offset)
    }

    /// Parses a line of `maps`: "from-to rwxp offset device inode path", numbers in hexadecimal. `None` if not executable.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let mut words = words(line);
        let range = range(words.next()?)?;
        if !words.next()?.contains(&b'x') {
            return None;
        }
        let file_offset = hexadecimal(words.next()?)?;
        // The path may contain spaces; no column before it contains one of these characters.
        let path = line.iter().position(|byte| matches!(byte, b'/' | b'[')).map_or(&[][..], |at| &line[at..]);
        let kept = path.strip_suffix(b" (deleted)");
        Some(Self { range, file_offset, path: kept.unwrap_or(path).to_vec(), is_deleted: kept.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::fake_proc::{Fake, FakeProc, fake, own_uid};

    /// Another file with other functions may be at its path by now.
    #[test]
    fn deleted_file_of_a_mapping_has_no_path() {
        let file = |path: &str| {
            let mapping = CodeMapping::parse(format!("1000-3000 r-xp 00000000 00:2e 3      {path}").as_bytes()).unwrap();
            mapping.file().map(Path::to_owned)
        };
        assert_eq!(file("/a b/libc.so"), Some("/a b/libc.so".into()));
        assert_eq!([file("/a b/libc.so (deleted)"), file("[vdso]"), file("")], [const { None }; 3]);
    }

    /// The memory of other users could contain a file that blocks its readers.
    #[test]
    fn memory_of_other_users_is_read_only_if_anonymous() {
        let place = FakeProc::new();
        let maps = "1000-3000 rw-p 00000000 00:00 0\n3000-4000 rw-s 00000000 00:2e 3      /mnt/file\n5000-6000 rw-p 00000000 00:00 0\n";
        let status = fake(2).status.replace(&own_uid().to_string(), &(own_uid() + 1).to_string());
        place.add(&Fake { maps, ..fake(1) });
        place.add(&Fake { maps, status, ..fake(2) });
        let proc = Proc::open(&place.path("proc")).unwrap();
        let readable = [1, 2].map(|pid| proc.readable_memory(pid).unwrap());
        assert_eq!(readable, [ReadableMemory::All, ReadableMemory::Anonymous(vec![0x1000..0x3000, 0x5000..0x6000])]);
    }

    #[test]
    fn memory_of_files_is_not_anonymous() {
        let maps = b"1000-3000 rw-p 00000000 00:00 0\n3000-4000 rw-s 00000000 00:2e 3      /mnt/a b/file (deleted)\n\
            4000-5000 rw-p 00000000 00:00 0      [stack]\n5000-6000 rw-s 00000000 00:01 7 /memfd:x\nx-y\n";
        let memory = ReadableMemory::Anonymous(anonymous_ranges(maps));
        let bytes = [0xfff, 0x1000, 0x2fff, 0x3000, 0x3fff, 0x4ff8, 0x5000, 0x6000].map(|address| memory.bytes_at(address));
        assert_eq!(bytes, [0, 0x2000, 1, 0, 0, 8, 0, 0]);
        assert_eq!(ReadableMemory::All.bytes_at(0x3000), usize::MAX);
    }
}
