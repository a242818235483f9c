//! A recorded file shown in the dashboard.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{RecordingAnalysis, SafeText};

/// The contents of a recorded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileKind {
    /// Events over time: a nettrace file.
    #[default]
    Trace,
    /// A snapshot of the heap: a `.gcdump` file.
    Heap,
}

impl FileKind {
    /// Returns the kind by the file extension. PerfView writes `.gcDump`.
    pub fn of(path: &Path) -> Self {
        let is_heap = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gcdump"));
        if is_heap { Self::Heap } else { Self::Trace }
    }
}

/// Facts from the first bytes of a recorded file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceFile {
    /// Kind of contents.
    pub kind: FileKind,
    /// Path of the file.
    pub path: PathBuf,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Pid of the recorded process; 0 if unknown.
    pub process_id: u32,
    /// Start of the recording, or for a heap the time the file was written, in milliseconds since the Unix epoch; 0 if unknown.
    pub start_unix_ms: u64,
}

impl TraceFile {
    /// Returns the last component of the path, unsanitized.
    pub fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy()
    }
}

/// A part of a recorded file, in nanoseconds since the start of its session; both ends are inclusive.
pub type Span = (i64, i64);

/// The analyzed contents of a file, or of a part of it.
#[derive(Debug, Clone)]
pub struct FileContents {
    /// Results of the analysis.
    pub analysis: Arc<RecordingAnalysis>,
    /// Number of valid bytes.
    pub bytes: u64,
    /// Time at which the recording was stopped, nanoseconds since the start of the session; that of the newest event if the file does not contain
    /// the stop.
    pub end: i64,
    /// Duration of the recording.
    pub duration: Duration,
    /// Whether the file ends regularly.
    pub complete: bool,
    /// A sentence about the problem, if it does not.
    pub trouble: Option<SafeText>,
}
