//! Heap files: writing objects and references to one, and reading one back.

use std::fmt::Display;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use thiserror::Error;

use super::output::{OutputError, OutputFile};
use crate::analysis::HeapSnapshot;
use crate::export::{DumpError, DumpInfo, GraphError, HeapDump, HeapGraph};
use crate::model::{FileKind, Process, TraceFile, is_perfetto_file};
use crate::net::files;

/// A file written after the walk is complete, and removed if the walk fails.
#[derive(Debug)]
pub struct HeapFile {
    output: OutputFile,
    file: File,
    /// Perfetto trace instead of `.gcdump`.
    is_trace: bool,
}

/// Why no file was written.
#[derive(Debug, Error)]
pub enum HeapFileError {
    /// The walk did not report every object.
    #[error("no file was written: parts of the heap walk are missing, and references would point to wrong objects")]
    Incomplete,
    /// The graph is too large, or the file cannot be written.
    #[error("no file was written: {0}")]
    Graph(#[from] GraphError),
    /// The file cannot be written.
    #[error("no file was written: {0}")]
    Io(#[from] io::Error),
    /// The file could not be created or renamed.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Canceled by the caller.
    #[error("no file was written: canceled")]
    Canceled,
}

impl HeapFile {
    /// Creates the file. Called first, so that nothing is sent to the process if this fails.
    ///
    /// # Errors
    /// [`OutputError`].
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let (output, file) = OutputFile::create(path).map_err(OutputError::without_salvage)?;
        Ok(Self { output, file, is_trace: is_perfetto_file(path) })
    }

    /// Writes the graph of a complete walk as long as `should_continue` returns true, and gives the file its final name.
    ///
    /// # Errors
    /// [`HeapFileError`].
    pub fn write(
        mut self,
        graph: HeapGraph,
        heap: &HeapSnapshot,
        process: &Process,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<PathBuf, HeapFileError> {
        if !heap.has_all_references() {
            return Err(HeapFileError::Incomplete);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let facts =
            DumpInfo { process_id: process.key.pid, process_name: process.name.to_string(), collected_unix_ms: now.as_millis() as i64 };
        let mut out = BufWriter::with_capacity(1 << 18, CancelableFile { file: &mut self.file, should_continue });
        let written = if self.is_trace { graph.write_trace(&facts, &mut out) } else { graph.write(&facts, &mut out) };
        let written = written.and_then(|()| Ok(out.flush()?));
        drop(out);
        if !should_continue() {
            return Err(HeapFileError::Canceled);
        }
        written?;
        self.file.sync_all()?;
        Ok(self.output.persist()?)
    }
}

/// A file that refuses to be written once the caller has canceled.
struct CancelableFile<'a> {
    file: &'a mut File,
    should_continue: &'a dyn Fn() -> bool,
}

impl Write for CancelableFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.should_continue)() { self.file.write(bytes) } else { Err(io::Error::other("canceled")) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Maximum size of a `.gcdump` file, which uses 32-bit offsets.
const MAX_GCDUMP_BYTES: u64 = 4 << 30;
/// Number of leading bytes that identify the file type.
const MAGIC_BYTES: u64 = 64;

/// Reads a `.gcdump` file. Its bytes and the graph are in memory at the same time, about three times the file size.
///
/// # Errors
/// An error message.
pub fn read_heap(path: &Path) -> Result<HeapDump, String> {
    let (facts, mut file) = open_heap(path, files::open_named(path))?;
    if facts.len() > MAX_GCDUMP_BYTES {
        return Err(unreadable(path, "it is larger than 4 GiB, which no .gcdump file is"));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(facts.len() as usize).map_err(|error| unreadable(path, error))?;
    let read = file.rewind().and_then(|()| file.take(facts.len()).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(path, error))?;
    HeapDump::read(&bytes).map_err(|error| unreadable(path, error))
}

/// Whether the file is a `.gcdump` file, regardless of its name.
pub fn is_heap_file(path: &Path) -> bool {
    open_heap(path, files::open_named(path)).is_ok()
}

/// Returns the facts about a heap file that are available without reading it all.
///
/// # Errors
/// An error message.
pub(super) fn heap_facts(path: &Path, file: io::Result<File>) -> Result<TraceFile, String> {
    let (facts, _) = open_heap(path, file)?;
    let written = facts.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    let (bytes, start_unix_ms) = (facts.len(), written.as_millis() as u64);
    Ok(TraceFile { kind: FileKind::Heap, path: path.to_owned(), bytes, process_id: 0, start_unix_ms })
}

/// Opens a regular file that starts like a heap file. Pipes and devices are not read, as they may have no end.
fn open_heap(path: &Path, file: io::Result<File>) -> Result<(Metadata, File), String> {
    let opened = file.and_then(|file| Ok((file.metadata()?, file)));
    let (facts, file) = opened.map_err(|error| format!("{} cannot be opened: {error}", path.display()))?;
    let mut start = Vec::new();
    let is_heap = facts.is_file() && (&file).take(MAGIC_BYTES).read_to_end(&mut start).is_ok() && HeapDump::is_gcdump(&start);
    if is_heap { Ok((facts, file)) } else { Err(unreadable(path, DumpError::NotGcDump)) }
}

fn unreadable(path: &Path, why: impl Display) -> String {
    format!("{} cannot be read: {why}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salvage_is_not_recommended_for_heap_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gcdump");
        std::fs::write(path.with_extension("gcdump.partial"), "").unwrap();
        let error = HeapFile::create(&path).unwrap_err();
        assert!(matches!(&error, OutputError::Exists(partial) if partial.ends_with("a.gcdump.partial")), "{error}");
    }
}
