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

impl State {
    /// Returns the local date and time at which the recording started or the heap was written; empty if unknown.
    pub(in crate::app) fn recorded_at(&self, file: &TraceFile) -> String {
        let began = i64::try_from(file.start_unix_ms).ok().filter(|ms| *ms > 0).and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let local = |time: Timestamp| Offset::from_seconds(self.now.utc_offset).unwrap_or(Offset::UTC).to_datetime(time);
        began.map_or_else(String::new, |time| local(time).strftime("%Y-%m-%d %H:%M").to_string())
    }
}
