//! The list of recorded files.

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::app::state::State;
use crate::model::TraceFile;

/// The purpose of choosing a recorded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    Open,
    /// Compare with the open file. The open file itself can be chosen to compare two of its ranges.
    Compare,
}

#[derive(Debug)]
pub struct FilePicker {
    pub purpose: FileUse,
    /// Whether the first line offers another range of the open file.
    pub(in crate::app) ranges: bool,
    pub files: Vec<TraceFile>,
}

impl FilePicker {
    pub(super) fn len(&self) -> usize {
        self.files.len() + usize::from(self.ranges)
    }

    /// Returns the file of a line; `None` for the line that stands for another range of the open file.
    pub(in crate::app) fn file(&self, item: usize) -> Option<&TraceFile> {
        self.files.get(item.checked_sub(usize::from(self.ranges))?)
    }
}

impl State {
    /// Returns the local date and time at which the recording started or the heap was written; empty if unknown.
    pub(in crate::app) fn recorded_at(&self, file: &TraceFile) -> String {
        let began = i64::try_from(file.start_unix_ms).ok().filter(|ms| *ms > 0).and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let local = |time: Timestamp| Offset::from_seconds(self.now.utc_offset).unwrap_or(Offset::UTC).to_datetime(time);
        began.map_or_else(String::new, |time| local(time).strftime("%Y-%m-%d %H:%M").to_string())
    }
}
