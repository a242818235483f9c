//! The list of recorded files that can be opened.

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::app::state::State;
use crate::model::TraceFile;

use super::ListState;

/// What a recorded file is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    Open,
    /// To be compared with the open one, which can be chosen itself: a range of it with another.
    Compare,
}

/// Which recorded file to open, or to compare with.
#[derive(Debug)]
pub struct FilePicker {
    pub purpose: FileUse,
    /// Whether another range of the open file can be chosen: on the first line.
    ranges: bool,
    pub files: Vec<TraceFile>,
    pub list: ListState,
}

impl FilePicker {
    pub(in crate::app) fn new(purpose: FileUse, ranges: bool, files: Vec<TraceFile>) -> Self {
        Self { purpose, ranges, files, list: ListState::default() }
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.files.len() + usize::from(self.ranges)
    }

    /// The file of a line; `None` for the range of the open file that is shown.
    pub(in crate::app) fn file(&self, item: usize) -> Option<&TraceFile> {
        self.files.get(item.checked_sub(usize::from(self.ranges))?)
    }
}

impl State {
    /// Local date and time at which a recording began, or a heap was written; empty where that is not known.
    pub(in crate::app) fn recorded_at(&self, file: &TraceFile) -> String {
        let began = i64::try_from(file.start_unix_ms).ok().filter(|ms| *ms > 0).and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let local = |time: Timestamp| Offset::from_seconds(self.now.utc_offset).unwrap_or(Offset::UTC).to_datetime(time);
        began.map_or_else(String::new, |time| local(time).strftime("%Y-%m-%d %H:%M").to_string())
    }
}
