//! The file that the objects of a heap and their references are written to.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use thiserror::Error;

use super::output::{OutputError, OutputFile};
use crate::analysis::HeapSnapshot;
use crate::export::{Facts, GraphError, HeapGraph};
use crate::model::Process;

/// A file that is written once the walk is over, and removed if the walk fails.
#[derive(Debug)]
pub struct HeapFile {
    output: Option<OutputFile>,
    file: File,
    /// For Perfetto, and no `.gcdump`.
    is_trace: bool,
}

/// Why no file was written.
#[derive(Debug, Error)]
pub enum HeapFileError {
    /// The walk did not give every object.
    #[error("no file was written: parts of the heap walk are missing, and references would point to wrong objects")]
    Incomplete,
    /// The graph does not fit, or the file cannot be written.
    #[error("no file was written: {0}")]
    Graph(#[from] GraphError),
    /// The file cannot be written.
    #[error("no file was written: {0}")]
    Io(#[from] io::Error),
    /// The file could not be made or named.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl HeapFile {
    /// Makes the file: where that is not possible, the process is not asked for anything.
    ///
    /// # Errors
    /// [`OutputError`].
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let (output, file) = OutputFile::create(path)?;
        let is_trace = path.extension().is_some_and(|extension| extension == "perfetto-trace");
        Ok(Self { output: Some(output), file, is_trace })
    }

    /// Writes the graph of a complete walk, and gives the file its name.
    ///
    /// # Errors
    /// [`HeapFileError`].
    pub fn write(mut self, graph: HeapGraph, heap: &HeapSnapshot, process: &Process) -> Result<Option<PathBuf>, HeapFileError> {
        if !heap.is_whole() {
            return Err(HeapFileError::Incomplete);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let facts =
            Facts { process_id: process.key.pid, process_name: process.name.to_string(), collected_unix_ms: now.as_millis() as i64 };
        let mut out = BufWriter::with_capacity(1 << 18, &mut self.file);
        if self.is_trace {
            graph.write_trace(&facts, &mut out)?;
        } else {
            graph.write(&facts, &mut out)?;
        }
        out.flush()?;
        drop(out);
        self.file.sync_all()?;
        Ok(self.output.take().map(OutputFile::keep).transpose()?)
    }
}

impl Drop for HeapFile {
    fn drop(&mut self) {
        if let Some(output) = self.output.take() {
            output.discard();
        }
    }
}
