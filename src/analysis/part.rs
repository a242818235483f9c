//! Counts the events in a part of a stream.

use std::ops::RangeInclusive;

use crate::nettrace::{Event, Loss, SequencePoint, Sink, TraceHeader, forward_sink};

use super::Throughput;
use super::clock::Clock;

/// Counts like [`Throughput`], but of events, losses and sequence points only those in a part of the stream. Stacks, names of threads and
/// problems, which have no time, are those of the whole stream.
#[derive(Debug)]
pub struct PartThroughput {
    throughput: Throughput,
    clock: Clock,
    window: RangeInclusive<i64>,
}

impl PartThroughput {
    /// Counts the part between two times in nanoseconds since the start of the session.
    pub fn within(window: RangeInclusive<i64>) -> Self {
        Self { throughput: Throughput::default(), clock: Clock::default(), window }
    }

    /// Returns the counts.
    pub fn into_throughput(self) -> Throughput {
        self.throughput
    }

    fn contains(&self, timestamp: i64) -> bool {
        self.window.contains(&self.clock.nanoseconds(timestamp))
    }
}

impl Sink for PartThroughput {
    forward_sink!(self => [self.throughput]: metadata stacks thread problem);

    fn trace(&mut self, header: &TraceHeader) {
        Sink::trace(&mut self.throughput, header);
        self.clock = Clock::new(header);
    }

    fn event(&mut self, event: &Event<'_>) {
        if self.contains(event.timestamp()) {
            self.throughput.event(event);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        if self.contains(loss.timestamp) {
            self.throughput.loss(loss);
        }
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        if self.contains(point.timestamp) {
            self.throughput.sequence_point(point);
        }
    }
}
