//! The file that `heap -o` writes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;

use super::exit::{Exit, Failure};
use crate::analysis::{HeapProblem, HeapSnapshot};
use crate::export::{Facts, HeapGraph};
use crate::model::Process;
use crate::session::{OutputError, OutputFile};

/// A file that is to be written once the walk is over. Nothing is left of it where that does not come to pass.
pub(super) struct GraphFile {
    output: Option<OutputFile>,
    file: File,
    /// For Perfetto, and no `.gcdump`.
    is_trace: bool,
}

impl GraphFile {
    /// Makes the file: where that is not possible, nobody is asked for anything.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let (output, file) = OutputFile::create(path).map_err(failed)?;
        let is_trace = path.extension().is_some_and(|extension| extension == "perfetto-trace");
        Ok(Self { output: Some(output), file, is_trace })
    }

    /// Writes the graph of a walk that is whole, and gives the file its name.
    pub(super) fn write(mut self, graph: HeapGraph, heap: &HeapSnapshot, process: &Process) -> Result<Option<PathBuf>, Failure> {
        // The types of some objects may not have been told: that leaves them without a name.
        if !heap.is_finished || !heap.problems.iter().all(|problem| matches!(problem, HeapProblem::TypesUnknown(_))) {
            return Err(anyhow::anyhow!(
                "no file was written: parts of the heap walk are missing, and references would point to wrong objects"
            )
            .into());
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let facts = Facts { process_id: process.key.pid, process_name: process.name.clone(), collected_unix_ms: now.as_millis() as i64 };
        let mut out = BufWriter::with_capacity(1 << 18, &mut self.file);
        let written = if self.is_trace { graph.write_trace(&facts, &mut out) } else { graph.write(&facts, &mut out) };
        written.context("no file is written")?;
        out.flush().context("no file is written")?;
        drop(out);
        self.file.sync_all().context("no file is written")?;
        self.output.take().map(OutputFile::keep).transpose().map_err(failed)
    }
}

impl Drop for GraphFile {
    fn drop(&mut self) {
        if let Some(output) = self.output.take() {
            output.discard();
        }
    }
}

fn failed(error: OutputError) -> Failure {
    Failure::new(if error.is_denied() { Exit::Denied } else { Exit::Failed }, error)
}
