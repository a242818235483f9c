//! Discovery of recorded files: known ones and those of a folder.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use super::heap_file::heap_facts;
use super::recorded::RecordedFile;
use crate::model::{FileKind, TraceFile, finished_path};
use crate::net::files;
use crate::sorting::CompactSort;

/// Maximum number of folder entries examined.
const MAX_ENTRIES: usize = 20_000;
/// Maximum number of files whose header is read, the most recently modified.
const MAX_FILES: usize = 200;

/// Returns the nettrace and `.gcdump` files among these paths and in this folder, most recently modified first. Of incomplete recordings only
/// those among the paths: another one may be under way. Only regular files are opened: no links, pipes or devices.
pub fn recorded_files(known: &[PathBuf], folder: &Path) -> Vec<TraceFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES).filter_map(Result::ok).map(|entry| entry.path());
    let is_recorded =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "nettrace" || FileKind::of(path) == FileKind::Heap);
    let mut found: Vec<(_, PathBuf)> = known
        .iter()
        .filter(|path| is_recorded(&finished_path(path)))
        .cloned()
        .chain(entries.filter(is_recorded))
        .filter_map(|path| {
            let facts = path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
            Some((facts.modified().ok(), files::real_path(&path).ok()?))
        })
        .collect();
    found.compact_sort_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
    found.dedup();
    found.truncate(MAX_FILES);
    let facts = |path: PathBuf| match FileKind::of(&path) {
        FileKind::Trace => RecordedFile::open_discovered(&path).ok()?.facts().ok(),
        FileKind::Heap => heap_facts(&path, files::open(&path)).ok(),
    };
    found.into_iter().filter_map(|(_, path)| facts(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::read::trace_file;
    use super::*;
    use crate::export::{DumpInfo, HeapGraph};
    use crate::nettrace::TraceHeader;
    use crate::session::tests::empty_trace;

    fn trace(pid: u32) -> Vec<u8> {
        empty_trace(TraceHeader { process_id: pid, ..TraceHeader::default() })
    }

    #[test]
    fn only_recordings_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.nettrace"), trace(7)).unwrap();
        fs::write(path("b c.nettrace"), trace(8)).unwrap();
        fs::write(path("no-trace.nettrace"), "no trace").unwrap();
        fs::write(path("empty.nettrace"), "").unwrap();
        fs::write(path("other.txt"), trace(9)).unwrap();
        fs::create_dir(path("folder.nettrace")).unwrap();
        let mut heap = Vec::new();
        HeapGraph::default().write(&DumpInfo::default(), &mut heap).unwrap();
        fs::write(path("heap.gcDump"), heap).unwrap();
        fs::write(path("no-heap.gcdump"), trace(9)).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let known = elsewhere.path().join("known.nettrace");
        fs::write(&known, trace(10)).unwrap();
        for (name, pid) in [("crashed.nettrace.partial", 11), ("other.nettrace.partial", 12)] {
            fs::write(path(name), trace(pid)).unwrap();
        }
        let known = [known, path("a.nettrace"), path("gone.nettrace"), path("crashed.nettrace.partial"), path("other.txt")];
        let found = recorded_files(&known, folder.path());
        let mut pids: Vec<_> = found.iter().map(|file| file.process_id).collect();
        pids.sort_unstable();
        assert_eq!(pids, [0, 7, 8, 10, 11], "{found:?}");
        let heaps: Vec<_> = found.iter().filter(|file| file.kind == FileKind::Heap).map(TraceFile::name).collect();
        assert_eq!(heaps, ["heap.gcDump"]);
        let named = trace_file(&path("folder.nettrace").join("../heap.gcDump")).unwrap();
        assert!(found.contains(&named), "{named:?}");
        assert!(recorded_files(&[], &path("no such folder")).is_empty());
    }

    #[test]
    fn number_of_listed_files_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MAX_FILES as u32 + 50 {
            fs::write(folder.path().join(format!("{number}.nettrace")), trace(number)).unwrap();
        }
        assert_eq!(recorded_files(&[], folder.path()).len(), MAX_FILES);
    }
}
