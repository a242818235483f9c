//! Converts the timestamps of a stream to nanoseconds.

use crate::clr::EventKind;
use crate::nettrace::{Event, TraceHeader};

use super::event_context::EventContext;

/// Converts timestamps to nanoseconds since the sync point in the trace header, which is near the start of the session.
/// Without a header, timestamps are treated as nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clock(Option<TraceHeader>);

impl Clock {
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

    /// Returns the pointer size of the process, in bytes.
    #[inline]
    pub(super) fn pointer_size(&self) -> u8 {
        self.0.map_or(8, |header| header.pointer_size)
    }

    /// Adds the time of an event and the pointer size of the process.
    #[inline]
    pub(super) fn context<'a>(&self, kind: EventKind, event: &'a Event<'a>) -> EventContext<'a> {
        let at = self.nanoseconds(event.timestamp());
        EventContext { kind, event, at, thread: event.thread(), pointer_size: self.pointer_size() }
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
        assert_eq!(Clock::default().nanoseconds(7), 7);
    }
}
