//! Converts the timestamps of a stream to nanoseconds.

use crate::nettrace::TraceHeader;

/// Converts timestamps to nanoseconds since the sync point in the trace header, which is near the start of the session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Option<TraceHeader>);

impl Clock {
    /// Returns a clock without a trace header; it treats timestamps as nanoseconds.
    pub(super) fn unknown() -> Self {
        Self(None)
    }

    pub(super) fn new(header: &TraceHeader) -> Self {
        Self(Some(*header))
    }

    pub(super) fn header(&self) -> Option<&TraceHeader> {
        self.0.as_ref()
    }

    #[inline]
    pub(super) fn nanoseconds(&self, timestamp: i64) -> i64 {
        self.0.map_or(timestamp, |header| header.nanoseconds_between(header.sync_ticks, timestamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let header = TraceHeader { sync_ticks: 1000, ..TraceHeader::default() };
        assert_eq!(Clock::new(&header).nanoseconds(1500), 500);
        assert_eq!(Clock::new(&header).nanoseconds(i64::MIN), i64::MIN, "no overflow");
        let slow = Clock::new(&TraceHeader { ticks_per_second: 10_000_000, ..header });
        assert_eq!(slow.nanoseconds(1500), 50_000);
        assert_eq!(Clock::unknown().nanoseconds(7), 7);
    }
}
