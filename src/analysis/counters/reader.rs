//! Reads counters one value at a time, for callers that need no history.

use crate::clr::EventKind;
use crate::nettrace::Event;

use super::super::event_context::EventContext;
use super::{CounterKind, CounterSnapshot, Counters};

/// Reads counter values from events.
#[derive(Debug, Default)]
pub struct CounterReader(Counters);

/// A counter value. Text is not sanitized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterValue<'a> {
    /// Provider or meter.
    pub group: &'a str,
    /// Counter name.
    pub name: &'a str,
    /// Tags, which distinguish counters of the same name: `k=v,k2=v2`; may be empty.
    pub tags: &'a str,
    /// Unit; may be empty.
    pub unit: &'a str,
    /// Kind of the counter.
    pub kind: CounterKind,
    /// Value of a gauge, change per second of a counter, highest quantile of a histogram.
    pub value: f64,
}

impl CounterReader {
    /// Reads the value of an event of kind [`EventKind::EventCounter`] or [`EventKind::Metrics`]; `None` if it has none. `at` is the time of
    /// the event in nanoseconds since the start of the session.
    pub fn read(&mut self, kind: EventKind, event: &Event<'_>, at: i64, pointer_size: u8) -> Option<CounterValue<'_>> {
        let counters = &mut self.0;
        counters.store.latest = None;
        counters.feed(&EventContext { kind, event, at, thread: event.thread(), pointer_size })?;
        let series = counters.store.series.get(counters.store.latest? as usize)?;
        let (_, value) = series.newest().filter(|(last, _)| *last == at)?;
        let CounterSnapshot { group, name, tags, unit, kind, .. } = &series.counter;
        Some(CounterValue { group, name, tags, unit, kind: *kind, value })
    }
}
