//! The list of recorded files that can be opened.

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::app::state::State;
use crate::model::TraceFile;

use super::ListState;

/// What a recorded file is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    /// To be opened.
    Open,
    /// To be compared with the open one, which can be chosen itself: a range of it with another.
    Compare,
}

/// Which recorded file to open, or to compare with.
#[derive(Debug)]
pub struct FilePicker {
    /// What for.
    pub purpose: FileUse,
    /// The files.
    pub files: Vec<TraceFile>,
    /// The selected line.
    pub list: ListState,
}

impl FilePicker {
    pub(in crate::app) fn new(purpose: FileUse, files: Vec<TraceFile>) -> Self {
        Self { purpose, files, list: ListState::default() }
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.files.len() + usize::from(self.purpose == FileUse::Compare)
    }

    /// The file of a line; `None` for the range of the open file that is shown.
    pub(in crate::app) fn file(&self, item: usize) -> Option<&TraceFile> {
        self.files.get(item.checked_sub(usize::from(self.purpose == FileUse::Compare))?)
    }
}

impl State {
    /// Local date and time at which a recording began; empty where that is not known.
    pub(super) fn recorded_at(&self, file: &TraceFile) -> String {
        let began = i64::try_from(file.start_unix_ms).ok().filter(|ms| *ms > 0).and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let local = |time: Timestamp| Offset::from_seconds(self.now.utc_offset).unwrap_or(Offset::UTC).to_datetime(time);
        began.map_or_else(String::new, |time| local(time).strftime("%Y-%m-%d %H:%M").to_string())
    }
}
