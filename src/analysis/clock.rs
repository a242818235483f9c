//! The stream's clock in nanoseconds.

use crate::nettrace::TraceHeader;

/// Turns timestamps into nanoseconds since the point on the clock that the trace header names, which is near the start of the session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    header: Option<TraceHeader>,
    /// The header's point, where the clock ticks in nanoseconds: on Linux, always.
    origin_ns: Option<i64>,
}

impl Clock {
    /// A clock of which nothing is known yet; it counts timestamps as nanoseconds.
    pub(super) fn unknown() -> Self {
        Self { header: None, origin_ns: Some(0) }
    }

    pub(super) fn new(header: &TraceHeader) -> Self {
        Self { header: Some(*header), origin_ns: (header.ticks_per_second == 1_000_000_000).then_some(header.sync_ticks) }
    }

    pub(super) fn header(&self) -> Option<&TraceHeader> {
        self.header.as_ref()
    }

    #[inline]
    pub(super) fn nanoseconds(&self, timestamp: i64) -> i64 {
        match (self.origin_ns, &self.header) {
            (Some(origin), _) => timestamp.saturating_sub(origin),
            (None, Some(header)) => header.nanoseconds_between(header.sync_ticks, timestamp),
            (None, None) => timestamp,
        }
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
