//! A recorded file that is looked at.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{RecordingAnalysis, SafeText};

/// What a recorded file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Events over time: a nettrace file.
    Trace,
    /// The heap at one moment: a `.gcdump` file.
    Heap,
}

impl FileKind {
    /// The kind that the end of the name stands for. PerfView writes it as `.gcDump`.
    pub fn of(path: &Path) -> Self {
        let is_heap = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gcdump"));
        if is_heap { Self::Heap } else { Self::Trace }
    }
}

/// What is known of a recorded file once its first bytes were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFile {
    /// What it holds.
    pub kind: FileKind,
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The process that was recorded; 0 where that is not known.
    pub process_id: u32,
    /// When, in milliseconds since the Unix epoch; 0 where it has none. Of a heap when the file was written.
    pub start_unix_ms: u64,
}

impl TraceFile {
    /// The last part of its path. Not sanitised.
    pub fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy()
    }
}

/// A part of a recorded file, in nanoseconds since the start of its session; both ends belong to it.
pub type Span = (i64, i64);

/// What is in a file, or in a part of it.
#[derive(Debug, Clone)]
pub struct FileContents {
    /// What was found.
    pub analysis: Arc<RecordingAnalysis>,
    /// Bytes that made sense.
    pub bytes: u64,
    /// The moment that the recording was stopped, nanoseconds since the start of the session; of the newest event, where the stop is not in the file.
    pub end: i64,
    /// How long was recorded.
    pub duration: Duration,
    /// Whether the file ends the way a whole one does.
    pub complete: bool,
    /// A sentence where it does not.
    pub trouble: Option<SafeText>,
}
